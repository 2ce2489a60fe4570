// Package signals is what goes over the wire to and from a run: names of
// signals, updates and queries, their payloads with JSON Schemas, and the
// types of errors. Any Temporal SDK in any language can send them.
//
// Every name and every JSON member here is persisted in histories or relied on
// by clients; none may be renamed.
package signals

import (
	"regexp"
	"strings"
	"time"

	"interlock/agent"
)

// Signals and updates have the same names and payloads: an update answers with
// an [agent.Receipt], a signal does the same without an answer.
const (
	NameMessage       = "message"
	NameCancel        = "cancel"
	NameVerdict       = "verdict"
	NameAmend         = "amend"
	NamePause         = "pause"
	NameResume        = "resume"
	NameUndo          = "undo"
	NameLiftRuling    = "lift_ruling"
	NameConfirmRuling = "confirm_ruling"
)

// UpdateWait is an update only: it answers with [News] as soon as there is some,
// and with News.Again after [WaitFor] and before continue-as-new: its caller asks
// again with the same AfterSeq. It is refused as unavailable where [WaitMost]
// wait already.
const UpdateWait = "wait"

// WaitFor and WaitMost bound the waiting of [UpdateWait]: how long one waits,
// and how many wait at a time.
const (
	WaitFor  = 20 * time.Second
	WaitMost = 5
)

// QueryRun answers with the [agent.Run] as of the last completed task.
const QueryRun = "run"

// QueryWaiting answers with a list of [agent.Waiting]: what the run waits for, since
// when, until when and for whom. Of a run that has ended it is null.
const QueryWaiting = "waiting"

// Memo keys that the starter sets, so that a repeated start can be told from
// another one.
const (
	MemoBody  = "interlock_body"  // Start.Digest
	MemoAgent = "interlock_agent" // <agent>/v<version>, v0 for the newest
)

// Start is the input of every run's workflow. The workflow id is
// <tenant>/<agent>/<key>, and a run is refused under any other.
type Start struct {
	ID        string          `json:"id,omitempty"` // of the request, chosen by its sender; needed with a token
	Agent     string          `json:"agent"`
	Version   int             `json:"version,omitempty"` // none: the newest that the worker has
	Tenant    string          `json:"tenant"`
	Key       string          `json:"key"`
	Principal agent.Principal `json:"principal"`
	Token     string          `json:"token,omitempty"` // proves the principal, and whoever the first message is from; see package token
	User      string          `json:"user,omitempty"`  // the subject that the run serves; none: the principal
	Body      agent.JSON      `json:"body,omitempty"`  // the agent's start input
	Message   *Message        `json:"message,omitempty"`
	TraceID   string          `json:"trace_id,omitempty"`
	// After is the first run id of the ended run under the same address that
	// this one follows; only a conversation starts so.
	After string `json:"after,omitempty"`
	// Repair makes it a run that undoes steps of one that has ended, and does
	// nothing else. Package starter makes it from that run's journal.
	Repair *agent.Repair `json:"repair,omitempty"`
}

// Message is what the user says. The sender chooses the id; a repeat under it
// is harmless, and another text under it is refused.
type Message struct {
	ID        string          `json:"id"`
	Principal agent.Principal `json:"principal"`
	Token     string          `json:"token,omitempty"` // proves the principal; see package token
	Text      string          `json:"text"`
	// Policy is what the message does while the run is busy: queue, reject,
	// interrupt or rollback; none: the agent's own. The first message, which comes
	// with the start, waits for what the start began, whatever it says here.
	Policy  agent.MessagePolicy `json:"policy,omitempty"`
	TraceID string              `json:"trace_id,omitempty"`
}

// Content is what makes a repeat of the message's id the same message.
func (m Message) Content() []any {
	if m.Policy == "" {
		return []any{m.Text}
	}
	return []any{m.Text, m.Policy}
}

// Cancel ends the run once its running steps have ended, and what is to be undone
// is undone or known to stand. One that comes while another is under way is merged
// into it: the most is undone that any of them asked for.
type Cancel struct {
	ID        string          `json:"id"`
	Principal agent.Principal `json:"principal"`
	Token     string          `json:"token,omitempty"` // proves the principal; see package token
	Reason    string          `json:"reason,omitempty"`
	// Undo is what is undone before the end, the last first: none (the default),
	// turn (what the latest turn did) or run.
	Undo    agent.UndoScope `json:"undo,omitempty"`
	TraceID string          `json:"trace_id,omitempty"`
}

// Verdict is a person's decision about one gate as it was shown.
type Verdict struct {
	ID        string             `json:"id"`
	Gate      string             `json:"gate"`
	Digest    string             `json:"digest"`
	Verdict   agent.VerdictValue `json:"verdict"` // approve, reject, return, edit; of a question answer; of a step in doubt happened, did_not_happen
	Reason    string             `json:"reason,omitempty"`
	Args      agent.JSON         `json:"args,omitempty"`   // edit: the new arguments, whole
	Answer    *agent.Answer      `json:"answer,omitempty"` // answer: {"confirm": true}, {"fields": {...}} or both
	Result    agent.JSON         `json:"result,omitempty"` // happened: as the tool would have answered
	Again     bool               `json:"again,omitempty"`  // did_not_happen: run it again
	Principal agent.Principal    `json:"principal"`
	Token     string             `json:"token,omitempty"` // proves the principal; see package token
	TraceID   string             `json:"trace_id,omitempty"`
}

// Amend sets fields of the state from outside: those tagged user, system,
// model or reviewer. Open gates that show a changed field are void.
type Amend struct {
	ID        string          `json:"id"`
	Principal agent.Principal `json:"principal"`
	Token     string          `json:"token,omitempty"` // proves the principal; see package token
	Fields    agent.JSON      `json:"fields"`          // an object: each field's new value, whole; null sets its zero value
	Reason    string          `json:"reason,omitempty"`
	TraceID   string          `json:"trace_id,omitempty"`
}

// Pause stops a run: nothing new starts until it is resumed. What runs goes on
// to its end; messages and verdicts are taken in and wait.
type Pause struct {
	ID        string          `json:"id"`
	Principal agent.Principal `json:"principal"`
	Token     string          `json:"token,omitempty"` // proves the principal; see package token
	Reason    string          `json:"reason,omitempty"`
	TraceID   string          `json:"trace_id,omitempty"`
}

// Resume lets a paused run go on. A budget that it was paused for is granted
// once more.
type Resume struct {
	ID        string          `json:"id"`
	Principal agent.Principal `json:"principal"`
	Token     string          `json:"token,omitempty"` // proves the principal; see package token
	Reason    string          `json:"reason,omitempty"`
	TraceID   string          `json:"trace_id,omitempty"`
}

// Undo asks that steps which happened be undone, one after the other, the last
// first. Each undo is a step of its own; what cannot be undone stands.
type Undo struct {
	ID        string          `json:"id"`
	Principal agent.Principal `json:"principal"`
	Token     string          `json:"token,omitempty"` // proves the principal; see package token
	Steps     []string        `json:"steps"`           // such as 3.1; all of them, or none
	Reason    string          `json:"reason"`          // the model is told
	TraceID   string          `json:"trace_id,omitempty"`
}

// LiftRuling ends a ruling: the same call goes to a person again, who sees it. The
// draft of one is dropped.
type LiftRuling struct {
	ID        string          `json:"id"`
	Ruling    string          `json:"ruling"`
	Principal agent.Principal `json:"principal"`
	Token     string          `json:"token,omitempty"` // proves the principal; see package token
	Reason    string          `json:"reason"`          // the model is told
	TraceID   string          `json:"trace_id,omitempty"`
}

// ConfirmRuling makes the draft of a ruling, which the model proposed, binding.
type ConfirmRuling struct {
	ID        string          `json:"id"`
	Ruling    string          `json:"ruling"`
	Principal agent.Principal `json:"principal"`
	Token     string          `json:"token,omitempty"`  // proves the principal; see package token
	Reason    string          `json:"reason,omitempty"` // none: the model's
	TraceID   string          `json:"trace_id,omitempty"`
}

// Wait asks for what is new after an event.
type Wait struct {
	AfterSeq int64 `json:"after_seq"`
}

// News is what has become of a run: something that somebody waits for stands
// after AfterSeq, or Again is set.
type News struct {
	Again  bool            `json:"again,omitempty"` // nothing new yet: ask again
	Seq    int64           `json:"seq"`             // of the run's last event
	Status agent.RunStatus `json:"status"`
	Reason string          `json:"reason,omitempty"` // what it waits for, or why it is paused or ended
	Phase  string          `json:"phase"`
	Reply  *agent.Reply    `json:"reply,omitempty"` // the latest, where it came after AfterSeq
	Gates  []agent.Gate    `json:"gates,omitempty"` // all that are open, questions to the user included
}

// NewsOf is what a run answers to a wait for what is new after an event.
//
// Sensitive values are redacted, at gates too: whoever decides about one asks for it.
func NewsOf(r *agent.Run, after int64) News {
	return agent.Redacted(r.Redaction(), newsOf(r, after))
}

func newsOf(r *agent.Run, after int64) News {
	n := News{Again: r.News <= after && !r.Status.Ended(), Seq: r.Seq, Status: r.Status, Reason: r.Reason, Phase: r.Phase}
	if r.Reply != nil && r.Reply.Seq > after {
		n.Reply = r.Reply
	}
	for _, g := range r.Gates {
		if g.Status == agent.GateOpen {
			n.Gates = append(n.Gates, g)
		}
	}
	return n
}

// End is the result of a run's workflow.
type End struct {
	Status agent.RunStatus `json:"status"`
	Phase  string          `json:"phase"`
	Reason string          `json:"reason,omitempty"`
	State  agent.JSON      `json:"state"`
}

// Decoders of what comes from outside.
var (
	Starts         = agent.NewDecoder[Start]()
	Messages       = agent.NewDecoder[Message]()
	Cancels        = agent.NewDecoder[Cancel]()
	Verdicts       = agent.NewDecoder[Verdict]()
	Amends         = agent.NewDecoder[Amend]()
	Pauses         = agent.NewDecoder[Pause]()
	Resumes        = agent.NewDecoder[Resume]()
	Undos          = agent.NewDecoder[Undo]()
	LiftRulings    = agent.NewDecoder[LiftRuling]()
	ConfirmRulings = agent.NewDecoder[ConfirmRuling]()
	Waits          = agent.NewDecoder[Wait]()
)

// Address is a run's workflow id.
func Address(tenant, agentName, key string) string { return tenant + "/" + agentName + "/" + key }

// SplitAddress takes a workflow id apart; ok is false where it is none of ours.
func SplitAddress(address string) (tenant, agentName, key string, ok bool) {
	parts := strings.Split(address, "/")
	if len(parts) != 3 || CheckAddress(parts[0], parts[1], parts[2]) != nil {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

var (
	tenantForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	agentForm  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	keyForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,199}$`)
)

// CheckAddress says what is wrong with the parts of a workflow id.
func CheckAddress(tenant, agentName, key string) error {
	switch {
	case !tenantForm.MatchString(tenant):
		return agent.Errorf(agent.CodeInvalid, "tenant %q must be 1 to 63 of a-z, 0-9, _ and -, starting with a letter or digit", short(tenant))
	case !agentForm.MatchString(agentName):
		return agent.Errorf(agent.CodeInvalid, "agent %q must be 1 to 64 of a-z, 0-9 and _, starting with a letter", short(agentName))
	case !keyForm.MatchString(key):
		return agent.Errorf(agent.CodeInvalid, "key %q must be 1 to 200 of letters, digits and . _ : @ + -, starting with a letter or digit", short(key))
	}
	return nil
}

func short(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// CheckStart says what is wrong with a start input, whoever sends it.
func CheckStart(s Start) error {
	if err := CheckAddress(s.Tenant, s.Agent, s.Key); err != nil {
		return err
	}
	if s.Version < 0 {
		return agent.Errorf(agent.CodeInvalid, "version %d is none; leave it out for the newest", s.Version)
	}
	if s.Token != "" && s.ID == "" {
		return agent.Errorf(agent.CodeInvalid, "a start with a token needs an id, which the token names")
	}
	if s.Principal.Subject == "" {
		return agent.Errorf(agent.CodeInvalid, "a start names its principal: who starts the run")
	}
	if t := s.Principal.Tenant; t != "" && t != s.Tenant {
		return agent.Errorf(agent.CodeDenied, "the principal belongs to tenant %s, and the run to %s", short(t), s.Tenant)
	}
	if m := s.Message; m != nil {
		if m.ID == "" {
			return agent.Errorf(agent.CodeInvalid, "the first message needs an id, chosen by its sender")
		}
		if m.Token != "" {
			return agent.Errorf(agent.CodeInvalid, "the first message carries no token of its own: the start's speaks for it")
		}
		if err := agent.CheckText(m.Text, agent.DefaultLimits().Message); err != nil {
			return err
		}
		if err := agent.CheckPolicy(m.Policy); err != nil {
			return err
		}
	}
	if p := s.Repair; p != nil {
		return checkRepair(s, *p)
	}
	if len(s.Body) > maxBody {
		return agent.Errorf(agent.CodeInvalid, "the body has %d bytes, the limit is %d", len(s.Body), maxBody)
	}
	return nil
}

// Digest tells one start from another under the same key: the same user, body
// and first message is the same start, whichever version it asks for.
func (s Start) Digest() string {
	user, body := s.User, s.Body
	if user == "" {
		user = s.Principal.Subject
	}
	if len(body) == 0 {
		body = agent.JSON("{}")
	}
	parts := []any{s.Agent, user, body}
	if s.Message != nil {
		parts = append(append(parts, s.Message.ID), s.Message.Content()...)
	}
	if p := s.Repair; p != nil {
		parts = append(parts, "repair", p.Address, p.FirstRunID, p.StepIDs())
	}
	j, err := agent.Encode(parts)
	if err != nil {
		return ""
	}
	return agent.DigestOf(j)
}

// maxBody is the limit of a start input's body in bytes.
const maxBody = 64 << 10
