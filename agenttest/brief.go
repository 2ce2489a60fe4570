package agenttest

import (
	"encoding/json"
	"strings"

	"interlock/agent"
)

// shown are the members of each event's data that a script expects. The rest is
// in the input, or follows from it. Of types that are not here all is shown.
var shown = map[agent.EventType][]string{
	agent.EventStarted:          {"agent", "version"},
	agent.EventMessage:          {"policy"},
	agent.EventTurnStarted:      {"last_word"},
	agent.EventTurnCut:          {"reason"},
	agent.EventProposal:         {},
	agent.EventCallAnswered:     {"call", "status", "step", "text"},
	agent.EventReply:            {"text", "last"},
	agent.EventStateSet:         {"source", "patch", "reset"},
	agent.EventConfirmed:        {"fields"},
	agent.EventFactRecorded:     {"quote"},
	agent.EventPhaseEntered:     {"phase", "by"},
	agent.EventStepStarted:      {"tool", "args", "status", "by", "undoes", "replaces", "edited_by", "ordinal", "reason"},
	agent.EventStepResumed:      {},
	agent.EventStepDone:         {"stood"},
	agent.EventCommitRefused:    {"reason"},
	agent.EventStepSettled:      {"status", "by", "for_good", "reason"},
	agent.EventGateOpened:       {"gate.title", "gate.roles", "gate.quorum", "gate.distinct", "gate.reads", "gate.expires_at", "gate.policy", "gate.risk"},
	agent.EventGateClosed:       {"status", "by.subject", "reason"},
	agent.EventVerdict:          {"verdict.verdict", "judgement", "reason"},
	agent.EventGateCounted:      {"approvals"},
	agent.EventGateEscalated:    {"roles"},
	agent.EventGatePending:      {"pending"},
	agent.EventRulingMade:       {"ruling.tool", "ruling.reason"},
	agent.EventRulingDrafted:    {"ruling.id", "ruling.title", "ruling.reason"},
	agent.EventRulingConfirmed:  {"ruling", "reason"},
	agent.EventRulingLifted:     {"ruling", "reason"},
	agent.EventCancelRequested:  {"undo"},
	agent.EventInputRefused:     {"reason"},
	agent.EventTrimmed:          {"turns", "results", "rulings"},
	agent.EventPaused:           {"reason"},
	agent.EventResumed:          {"budget"},
	agent.EventAmended:          {"fields"},
	agent.EventUndoRequested:    {"steps", "stands", "reason"},
	agent.EventReminded:         {"text"},
	agent.EventInterrupted:      {"undo", "steps"},
	agent.EventStepStopping:     {"as", "reason", "again", "undo", "unapproved"},
	agent.EventStepBegun:        {"reason"},
	agent.EventInterruptSettled: {"account"},
	agent.EventSnapshotLoaded:   {},
	agent.EventCompleted:        {"reason", "failed"},
	agent.EventCancelled:        {"reason", "failed"},
	agent.EventFailed:           {"reason"},
}

// brief is an event in a line.
func brief(e agent.Event) string {
	l := newLine(string(e.Type))
	if e.Step != "" {
		l.WriteString(" " + e.Step)
	}
	members, known := shown[e.Type]
	if !known {
		return l.String() + " " + e.Data.String()
	}
	for _, path := range members {
		v, ok := member(e.Data, path)
		if !ok {
			continue
		}
		if s := plain(v); s != v && bareForm.MatchString(s) {
			v = s
		}
		name := path[strings.LastIndex(path, ".")+1:]
		if name == "subject" {
			name = "by"
		}
		l.WriteString(" " + name + "=" + v)
	}
	return l.String()
}

// member is a member of a JSON object, by a path of names.
func member(j agent.JSON, path string) (string, bool) {
	v := json.RawMessage(j)
	for _, name := range strings.Split(path, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(v, &object) != nil {
			return "", false
		}
		var ok bool
		if v, ok = object[name]; !ok {
			return "", false
		}
	}
	return string(v), string(v) != "null"
}

func briefs(events []agent.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(brief(e) + "\n")
	}
	return b.String()
}
