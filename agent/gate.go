package agent

import "time"

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
	ID        string          `json:"id"`
	Step      string          `json:"step,omitempty"` // where it is not ID
	Kind      StepKind        `json:"kind"`
	Tool      string          `json:"tool"`
	Args      JSON            `json:"args"`
	Title     string          `json:"title"`
	Policy    string          `json:"policy,omitempty"` // why a person is asked
	Roles     []string        `json:"roles,omitempty"`  // none: the run's user
	Reads     []string        `json:"reads,omitempty"`
	Shown     map[string]JSON `json:"shown,omitempty"`   // the Reads fields as shown
	Rulings   []string        `json:"rulings,omitempty"` // earlier refusals of the same call
	Digest    string          `json:"digest"`
	OpenedAt  time.Time       `json:"opened_at"`
	ExpiresAt *time.Time      `json:"expires_at,omitempty"`
	Status    GateStatus      `json:"status"`
	Reason    string          `json:"reason,omitempty"`
	Verdict   string          `json:"verdict,omitempty"`
	By        *Principal      `json:"by,omitempty"`
	Verified  bool            `json:"verified"` // the verdict's principal was authenticated
	ClosedAt  *time.Time      `json:"closed_at,omitempty"`
}

// StepID is the id of the gate's step.
func (g Gate) StepID() string {
	if g.Step != "" {
		return g.Step
	}
	return g.ID
}

// VerdictValue is what a person can decide. Persisted; never rename.
type VerdictValue string

const (
	Approve VerdictValue = "approve"
	Reject  VerdictValue = "reject"
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
	Result    JSON         `json:"result,omitempty"` // happened: what the tool would have answered
	Again     bool         `json:"again,omitempty"`  // did_not_happen: run it again
	Principal Principal    `json:"principal"`
	Verified  bool         `json:"verified"`
	At        time.Time    `json:"at"` // of its arrival
}
