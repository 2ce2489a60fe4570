package signals

import (
	"time"

	"interlock/agent"
)

// Workflows about the ledger, and the activities that they are made of, which have
// the same names. Every worker serves them; no agent's name has a dot. Persisted
// in histories; never rename.
const (
	WorkflowSweep   = "interlock.sweep"
	WorkflowResolve = "interlock.resolve"
)

// Swept is what a sweep of the ledger has found: effects that may have happened,
// and that no attempt can be at any more.
type Swept struct {
	Looked     int       `json:"looked"`      // stranded effects
	Alive      int       `json:"alive"`       // their runs are under way, and see to them
	Applied    int       `json:"applied"`     // the other side said that it happened
	NotApplied int       `json:"not_applied"` // the other side said that it did not
	InDoubt    int       `json:"in_doubt"`    // nobody can be asked: a person must find out
	Waiting    int       `json:"waiting"`     // in doubt already: nobody has found out yet
	Unasked    []Unasked `json:"unasked,omitempty"`
	At         time.Time `json:"at"`
}

// Unasked is a stranded effect of which this sweep could not learn anything. The
// next one tries again.
type Unasked struct {
	Tenant string `json:"tenant"`
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

// Resolution is what a person has found out about an effect in doubt whose run has
// ended.
type Resolution struct {
	Tenant    string          `json:"tenant"`
	Key       string          `json:"key"`
	Happened  bool            `json:"happened"`
	Result    agent.JSON      `json:"result,omitempty"` // as the tool would have answered it, where it happened
	Principal agent.Principal `json:"principal"`
	Reason    string          `json:"reason"` // how they found out
	// Unchecked takes a result although no worker has the agent's version, which
	// knows what its results look like.
	Unchecked bool `json:"unchecked,omitempty"`
}

// Resolving is the answer to a [Resolution]: the refusal, or none.
type Resolving struct {
	Code   agent.Code `json:"code,omitempty"`
	Reason string     `json:"reason,omitempty"`
}
