package agenttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"interlock/agent"
)

// input is the line, or the lines, of a group's input.
func (x *journal) input(g group) (string, error) {
	e := x.events[g.cause]
	l, calls, err := x.line(g, e)
	if err != nil {
		return "", err
	}
	return l.opt("trace", e.TraceID).opt("at", stamp(e.At)).String() + calls, nil
}

func (x *journal) line(g group, e agent.Event) (l *lineOf, calls string, err error) {
	if g.pass {
		return newLine("pass"), "", nil
	}
	switch e.Type {
	case agent.EventStarted:
		l, err = x.startLine(g, e)
	case agent.EventMessage:
		d := dataOf[agent.MessageData](e)
		l = newLine("message", quoted(d.Text)).opt("policy", string(d.Policy)).opt("first", trueOr(d.First)).opt("id", d.ID).who(d.Principal)
	case agent.EventProposal:
		l, calls = modelLines(dataOf[agent.Proposal](e))
	case agent.EventTurnCut:
		l = newLine("model_failed", quoted(dataOf[agent.TurnCutData](e).Reason))
	case agent.EventStepDone:
		l = x.doneLine(g, e)
	case agent.EventStepSettled:
		l, err = x.settledLine(e)
	case agent.EventStepStopping:
		l = newLine("unapproved", e.Step, quoted(dataOf[agent.Stopping](e).Reason))
	case agent.EventStepBegun:
		l = newLine("begun", e.Step, quoted(dataOf[agent.StepBegunData](e).Reason))
	case agent.EventVerdict:
		v := dataOf[agent.VerdictData](e).Verdict
		if d := dataOf[agent.VerdictData](e); d.Judgement == "void" {
			v = withPlaceholders(v)
		}
		l = newLine("verdict", word(v.Gate), word(string(v.Verdict))).opt("reason", v.Reason).opt("args", string(v.Args)).opt("result", string(v.Result)).opt("again", trueOr(v.Again)).opt("id", v.ID).who(v.Principal)
		if v.Answer != nil {
			l.optJSON("answer", v.Answer)
		}
		if v.Digest != x.digests[v.Gate] {
			l.opt("digest", v.Digest)
		}
		if v.Verified {
			l.opt("verified", "true")
		}
	case agent.EventInputRefused:
		d := dataOf[agent.InputRefusedData](e)
		l = newLine("malformed", word(d.Name), quoted(d.Reason))
	case agent.EventSnapshotLoaded:
		d := dataOf[agent.SnapshotLoadedData](e)
		l = newLine("snapshot", word(d.RunID)).opt("rules", strconv.Itoa(d.Rules))
	default:
		l, err = x.steerLine(g, e)
	}
	return l, calls, err
}

// steerLine is an input of those who steer a run.
func (x *journal) steerLine(g group, e agent.Event) (*lineOf, error) {
	switch e.Type {
	case agent.EventCancelRequested:
		d := dataOf[agent.CancelRequestedData](e)
		return newLine("cancel").opt("undo", string(d.Undo)).opt("reason", d.Reason).opt("id", d.ID).who(d.Principal), nil
	case agent.EventRulingLifted, agent.EventRulingConfirmed:
		d := dataOf[agent.RulingConfirmedData](e)
		verb := map[agent.EventType]string{agent.EventRulingLifted: "lift_ruling", agent.EventRulingConfirmed: "confirm_ruling"}[e.Type]
		return newLine(verb, word(d.Ruling)).opt("reason", d.Reason).opt("id", d.ID).who(d.Principal), nil
	case agent.EventResumed:
		d := dataOf[agent.ResumedData](e)
		return newLine("resume").opt("reason", d.Reason).opt("id", d.ID).who(d.Principal), nil
	case agent.EventUndoRequested:
		d := dataOf[agent.UndoRequestedData](e)
		l := newLine("undo")
		for _, id := range d.Steps {
			l.WriteString(" " + word(id))
		}
		return l.opt("reason", d.Reason).opt("id", d.ID).who(d.Principal), nil
	case agent.EventAmended:
		d := dataOf[agent.AmendedData](e)
		fields, err := x.amended(g, d.Fields)
		return newLine("amend", fields.String()).opt("reason", d.Reason).opt("id", d.ID).who(d.Principal), err
	case agent.EventPaused:
		d := dataOf[agent.PausedData](e)
		who := agent.Principal{}
		if d.Principal != nil {
			who = *d.Principal
		}
		reason := strings.TrimPrefix(strings.TrimPrefix(d.Reason, "asked by "+who.Subject), ": ")
		return newLine("pause").opt("reason", reason).opt("id", d.ID).who(who), nil
	}
	return nil, fmt.Errorf("no input is known for it")
}

func (x *journal) startLine(g group, e agent.Event) (*lineOf, error) {
	d := dataOf[agent.StartedData](e)
	limits, err := difference(agent.DefaultLimits(), d.Limits)
	if err != nil {
		return nil, err
	}
	l := newLine("start", d.Body.String()).opt("tenant", e.Tenant).opt("key", d.Key).opt("first_run", d.FirstRunID).opt("user", d.User).who(d.Principal)
	l.opt("rules", strconv.Itoa(d.Rules)).opt("digest", d.BodyDigest).opt("after", d.After)
	l.WriteString(" limits=" + limits.String())
	if p := d.Repair; p != nil {
		for _, after := range x.events[g.cause:g.end] {
			if after.Type == agent.EventStateSet {
				p.State = dataOf[agent.StateSetData](after).Patch
			}
		}
		l.optJSON("repair", p)
	}
	return l, nil
}

// difference holds the members of b that differ from those of a.
func difference(a, b any) (agent.JSON, error) {
	was, err := members(a)
	if err != nil {
		return nil, err
	}
	is, err := members(b)
	if err != nil {
		return nil, err
	}
	for name, v := range was {
		if is[name].Equal(v) {
			delete(is, name)
		}
	}
	return agent.Encode(is)
}

func members(v any) (map[string]agent.JSON, error) {
	j, err := agent.Encode(v)
	if err != nil {
		return nil, err
	}
	var out map[string]agent.JSON
	return out, json.Unmarshal(j, &out)
}

func modelLines(p agent.Proposal) (l *lineOf, calls string) {
	l = newLine("model")
	if p.Text != "" {
		l.WriteString(" " + quoted(p.Text))
	}
	l.WriteString(" finish=" + word(string(p.Finish)) + " model=" + word(p.Model) + " instructions=" + word(p.Instructions))
	l.optJSON("usage", p.Usage).optJSON("opaque", p.Opaque).optJSON("active_ms", p.ActiveMS)
	for _, c := range p.Calls {
		calls += "\n  " + word(c.Tool)
		if c.ProviderID != "" {
			calls += " id=" + word(c.ProviderID)
		}
		if c.Raw != "" || strings.HasPrefix(c.Args.String(), `"`) {
			calls += " " + quoted(or(c.Raw, c.Args.String()))
		} else {
			calls += " " + c.Args.String()
		}
	}
	return l, calls + strings.Repeat("\n  dropped", p.Excess)
}

// doneLine is a result. Where the journal has none although it happened, what
// kept it from the run is the reason for which Commit did not get it.
func (x *journal) doneLine(g group, e agent.Event) *lineOf {
	d := dataOf[agent.StepDoneData](e)
	l := newLine("done", e.Step)
	if d.Stood {
		l = newLine("stands", e.Step)
	}
	if d.Result.String() == "null" && d.Uncommitted {
		for _, after := range x.events[g.cause:g.end] {
			if after.Type == agent.EventCommitRefused {
				return l.opt("unkept", dataOf[agent.CommitRefusedData](after).Reason).optJSON("active_ms", d.ActiveMS)
			}
		}
	}
	l.WriteString(" " + d.Result.String())
	return l.optJSON("whole", d.Whole).optJSON("active_ms", d.ActiveMS)
}

func (x *journal) settledLine(e agent.Event) (*lineOf, error) {
	d := dataOf[agent.StepSettledData](e)
	why, told := x.stopped[e.Step]
	if told && why.As == d.Status && why.Reason == d.Reason || d.Status == agent.StepCancelled && d.Reason == agent.StoppedBeforeReset {
		return newLine("stopped", e.Step), nil
	}
	verb := map[agent.StepStatus]string{agent.StepFailed: "failed", agent.StepRefused: "refused", agent.StepInDoubt: "unknown"}[d.Status]
	if d.Status == agent.StepCancelled { // it was told to stop, and says itself that it did not happen
		if verb = "failed"; d.ForGood {
			verb = "refused"
		}
	}
	if verb == "" {
		return nil, fmt.Errorf("no input is known by which a running step ends as %s", d.Status)
	}
	return newLine(verb, e.Step, quoted(d.Reason)), nil
}

// amended is what an amend set: the values after it.
func (x *journal) amended(g group, names []string) (agent.JSON, error) {
	state := x.state
	var reset []string
	for _, e := range x.events[g.cause:g.end] {
		if e.Type == agent.EventStateSet {
			d := dataOf[agent.StateSetData](e)
			state, reset = agent.ApplyPatch(state, d.Patch), d.Reset
			break
		}
	}
	before, err := members(x.state)
	if err != nil {
		return nil, err
	}
	after, err := members(state)
	if err != nil {
		return nil, err
	}
	fields := map[string]agent.JSON{}
	for _, name := range names {
		if fields[name] = after[name]; slices.Contains(reset, name) {
			fields[name] = before[name]
		}
	}
	return agent.Encode(fields)
}

func trueOr(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// withPlaceholders is a verdict that decided nothing, as one at all: what it brought is
// in no journal, so {} stands for it.
func withPlaceholders(v agent.Verdict) agent.Verdict {
	switch {
	case v.Verdict == agent.Happened && len(v.Result) == 0:
		v.Result = agent.JSON("{}")
	case v.Verdict == agent.Edit && len(v.Args) == 0:
		v.Args = agent.JSON("{}")
	}
	return v
}
