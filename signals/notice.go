package signals

import (
	"fmt"
	"time"

	"interlock/agent"
)

// The workflow that tells one notice to one target, and the activities that it is
// made of. Every worker serves them. Persisted in histories; never rename.
const (
	WorkflowNotice      = "interlock.notice"
	ActivityDeliver     = "interlock.deliver"
	ActivityBury        = "interlock.bury"
	ActivityMarkNoticed = "interlock.mark_noticed"
)

// Types of the errors that a delivery fails with, after which it is not tried again.
const (
	ErrGone     = "gone"      // the target wants no notices any more
	ErrNoTarget = "no_target" // the file of targets does not name it any more
)

// Telling is the input of [WorkflowNotice].
type Telling struct {
	Tenant string `json:"tenant"`
	Target string `json:"target"` // its name; what is secret of it stays with the workers
	ID     string `json:"id"`     // of the notice
	// Notice is what package notice made. The workflow only hands it on, so that a
	// member more is no change of it.
	Notice agent.JSON `json:"notice"`
	// FirstMS is how long after the first attempt the second is made, GiveUpMS how
	// long it is tried at all; 0 is [FirstRetry] and [GiveUp].
	FirstMS  int64 `json:"first_ms,omitempty"`
	GiveUpMS int64 `json:"give_up_ms,omitempty"`
	// Retry is how often an operator has had a dead notice told again, this time
	// included; By is who.
	Retry int    `json:"retry,omitempty"`
	By    string `json:"by,omitempty"`
}

// How long a notice is tried, as Standard Webhooks suggest: after 5 s, half a
// minute, 2, 10 and 50 minutes, then every few hours.
const (
	FirstRetry  = 5 * time.Second
	RetryFactor = 5
	RetryMost   = 10 * time.Hour
	GiveUp      = 72 * time.Hour
)

// WorkflowID is the id that the workflow is started under: once for a notice and
// target, and once for each time that an operator has it told again.
func (t Telling) WorkflowID() string {
	id := WorkflowNotice + "/" + t.Target + "/" + t.ID
	if t.Retry > 0 {
		id += fmt.Sprintf("/retry/%d", t.Retry)
	}
	return id
}

// First is how long after the first attempt the second is made.
func (t Telling) First() time.Duration { return orElse(t.FirstMS, FirstRetry) }

// Within is how long it is tried at all.
func (t Telling) Within() time.Duration { return orElse(t.GiveUpMS, GiveUp) }

func orElse(ms int64, other time.Duration) time.Duration {
	if ms <= 0 {
		return other
	}
	return time.Duration(ms) * time.Millisecond
}

// Burial is the input of [ActivityBury]: a notice that is not tried any more.
type Burial struct {
	Telling
	Reason string `json:"reason"`
}
