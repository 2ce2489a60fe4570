package agent

import (
	"slices"
	"time"
)

// GateStatus is where a gate stands. Persisted; never rename.
type GateStatus string

const (
	GateOpen      GateStatus = "open"
	GateApproved  GateStatus = "approved"
	GateRejected  GateStatus = "rejected"
	GateReturned  GateStatus = "returned"
	GateEdited    GateStatus = "edited"
	GateAnswered  GateStatus = "answered"
	GateResolved  GateStatus = "resolved"
	GateExpired   GateStatus = "expired"
	GateVoid      GateStatus = "void"
	GateWithdrawn GateStatus = "withdrawn"
)

// Gate is a point at which a person must decide. Its id is its step's, but for
// one that asks whether a step happened: that has an id of its own.
type Gate struct {
	ID     string   `json:"id"`
	Step   string   `json:"step,omitempty"` // where it is not ID
	Kind   StepKind `json:"kind"`
	Tool   string   `json:"tool"`
	Args   JSON     `json:"args"`
	Title  string   `json:"title"`
	Policy string   `json:"policy,omitempty"` // why a person is asked
	Risk   string   `json:"risk,omitempty"`   // what is at stake, as the policy puts it
	Roles  []string `json:"roles,omitempty"`  // none: the run's user
	// Askers are the subjects who asked for it: whoever edited the call or asked for
	// the undo, the user whom the run serves, who started it, and whoever amended a
	// field that it reads.
	Askers     []string        `json:"askers,omitempty"`
	Quorum     int             `json:"quorum,omitempty"`    // how many different persons must approve; 0: one
	Distinct   bool            `json:"distinct,omitempty"`  // no asker may decide
	Approvals  []Approval      `json:"approvals,omitempty"` // so far, where one is not enough
	Edit       []string        `json:"edit,omitempty"`      // the arguments that may be edited; [EveryArgument]: all; none: none
	Escalation *Escalation     `json:"escalation,omitempty"`
	TakeBack   time.Duration   `json:"take_back,omitempty"` // how long a verdict waits, and can be taken back; 0: it takes effect at once
	Pending    *PendingVerdict `json:"pending,omitempty"`   // the verdict that waits
	Replaces   string          `json:"replaces,omitempty"`  // the step in whose place its step stands
	Schema     JSON            `json:"schema,omitempty"`    // of a question: the fields that an answer may set
	Reads      []string        `json:"reads,omitempty"`
	Shown      map[string]JSON `json:"shown,omitempty"`   // the Reads fields as shown
	Rulings    []string        `json:"rulings,omitempty"` // earlier refusals of the same call
	Seq        int64           `json:"seq,omitempty"`     // of the event that opened it; none in that event itself
	Digest     string          `json:"digest"`
	OpenedAt   time.Time       `json:"opened_at"`
	ExpiresAt  *time.Time      `json:"expires_at,omitempty"`
	Status     GateStatus      `json:"status"`
	Reason     string          `json:"reason,omitempty"`
	Verdict    string          `json:"verdict,omitempty"`
	By         *Principal      `json:"by,omitempty"`
	Verified   bool            `json:"verified"` // the verdict's principal was authenticated
	ClosedAt   *time.Time      `json:"closed_at,omitempty"`
}

// StepID is the id of the gate's step.
func (g Gate) StepID() string {
	if g.Step != "" {
		return g.Step
	}
	return g.ID
}

// MayEdit reports whether a reviewer may edit an argument of the call.
func (g Gate) MayEdit(argument string) bool {
	return slices.Contains(g.Edit, EveryArgument) || slices.Contains(g.Edit, argument)
}

// needs is how many persons must approve.
func (g Gate) needs() int { return max(g.Quorum, 1) }

// Approval is one person's yes, where more than one is needed.
type Approval struct {
	By       Principal `json:"by"`
	Verified bool      `json:"verified"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
}

// PendingVerdict is a verdict that takes effect at Until, unless its person takes it back.
type PendingVerdict struct {
	Verdict  VerdictValue `json:"verdict"`
	By       Principal    `json:"by"`
	Verified bool         `json:"verified"`
	Reason   string       `json:"reason,omitempty"`
	At       time.Time    `json:"at"`
	Until    time.Time    `json:"until"`
}

// Escalation is when more roles may decide a gate that is still open then. It
// decides nothing by itself.
type Escalation struct {
	At    time.Time `json:"at"`
	Roles []string  `json:"roles"`
	Done  bool      `json:"done,omitempty"` // the roles are among the gate's
}

// VerdictValue is what a person can decide. Persisted; never rename.
type VerdictValue string

const (
	Approve VerdictValue = "approve"
	Reject  VerdictValue = "reject" // and code remembers it
	Return  VerdictValue = "return" // with a note: not run, and nothing is remembered
	Edit    VerdictValue = "edit"   // other arguments
	// TakeBack ends the person's own verdict, as long as it has not taken effect.
	TakeBack VerdictValue = "take_back"
	// Of a question, by the run's user.
	GiveAnswer VerdictValue = "answer"
	// Of a step in doubt, by an operator who has found out.
	Happened     VerdictValue = "happened"
	DidNotHappen VerdictValue = "did_not_happen"
)

// Verdict is what a person decided, of one gate as it was shown.
type Verdict struct {
	ID        string       `json:"id"`
	Gate      string       `json:"gate"`
	Digest    string       `json:"digest"` // of the gate as shown
	Verdict   VerdictValue `json:"verdict"`
	Reason    string       `json:"reason,omitempty"`
	Args      JSON         `json:"args,omitempty"`   // edit: the new arguments, whole
	Answer    *Answer      `json:"answer,omitempty"` // answer
	Result    JSON         `json:"result,omitempty"` // happened: what the tool would have answered
	Again     bool         `json:"again,omitempty"`  // did_not_happen: run it again
	Principal Principal    `json:"principal"`
	Verified  bool         `json:"verified"`
	At        time.Time    `json:"at"` // of its arrival
}

// Answer is what a user answers to a question: a yes or no to the values that it
// shows, values for the fields that it asks for, or both.
type Answer struct {
	Confirm *bool `json:"confirm,omitempty"`
	Fields  JSON  `json:"fields,omitempty"` // an object
}

// Content is all that a verdict says, beside who says it: what makes a repeat of
// its id the same verdict.
func (v Verdict) Content() []any {
	out := []any{clean(v.Gate), clean(v.Digest), clean(string(v.Verdict)), clean(v.Reason)}
	switch {
	case v.resolves():
		out = append(out, clean(string(v.Result)), v.Again)
	case v.Verdict == Edit:
		out = append(out, clean(string(v.Args)))
	case v.Verdict == GiveAnswer && v.Answer != nil:
		confirm := ""
		if c := v.Answer.Confirm; c != nil {
			confirm = map[bool]string{true: "yes", false: "no"}[*c]
		}
		out = append(out, confirm, clean(string(v.Answer.Fields)))
	}
	return out
}
