// Package notice tells what happens to runs to the outside: as signed webhooks
// (Standard Webhooks), to Slack, by mail. A notice names a run and what became of
// it, and links to its page. It carries no arguments, no state and no text of a
// message, and nothing can be decided by it: whoever gets it looks, and decides
// where they are known.
//
// It knows events and HTTP, and nothing of who tries again when.
package notice

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// Kind is what a notice is about. Persisted and on the wire; never rename.
type Kind string

const (
	RunReplied    Kind = "run.replied"
	GateOpened    Kind = "gate.opened"
	GateEscalated Kind = "gate.escalated" // more roles may decide
	GateClosed    Kind = "gate.closed"    // in any way
	RunEnded      Kind = "run.ended"
	StepInDoubt   Kind = "step.in_doubt" // a person must find out whether it happened
	// Test is sent by hand, and by nothing that happens.
	Test Kind = "notice.test"
)

// Kinds are those that a target can ask for.
var Kinds = []Kind{RunReplied, GateOpened, GateEscalated, GateClosed, RunEnded, StepInDoubt}

// Types are the events that can make a notice.
var Types = []agent.EventType{agent.EventReply, agent.EventGateOpened, agent.EventGateEscalated, agent.EventGateClosed,
	agent.EventCompleted, agent.EventCancelled, agent.EventFailed, agent.EventStepSettled}

// Notice is what is told. Members may be added; none changes its meaning.
type Notice struct {
	// ID is the same for every target and every attempt: by it a receiver knows a
	// repeat.
	ID         string    `json:"id"`
	Kind       Kind      `json:"type"`
	At         time.Time `json:"at"` // of the event
	Tenant     string    `json:"tenant"`
	Agent      string    `json:"agent"`
	Key        string    `json:"key"`
	Address    string    `json:"address"`
	FirstRunID string    `json:"first_run_id"`
	Seq        int64     `json:"seq"` // of the event in the run's journal

	Gate string `json:"gate,omitempty"`
	Step string `json:"step,omitempty"`
	// Title is a gate's. It can hold what the agent's author put into it, personal
	// data included, so that only targets that ask for titles get it.
	Title string `json:"title,omitempty"`
	// Roles may decide the gate; of an escalation, those that may now, too. None: the
	// run's user.
	Roles     []string           `json:"roles,omitempty"`
	Until     *time.Time         `json:"until,omitempty"`  // when the gate expires
	Status    agent.GateStatus   `json:"status,omitempty"` // how the gate was closed
	Verdict   agent.VerdictValue `json:"verdict,omitempty"`
	DecidedBy string             `json:"decided_by,omitempty"` // subject
	Verified  bool               `json:"verified,omitempty"`   // who decided was authenticated
	RunStatus agent.RunStatus    `json:"run_status,omitempty"` // how the run ended
}

// Of is the notice that an event of the feed makes; most make none. One that was
// superseded makes it all the same: it was so.
func Of(a store.Appended) (Notice, bool) {
	n := Notice{ID: idOf(a), At: a.Event.At, Tenant: a.Tenant, Address: a.Address, FirstRunID: a.FirstRunID, Seq: a.Event.Seq}
	_, n.Agent, n.Key, _ = signals.SplitAddress(a.Address)
	ok := n.fill(a.Event)
	return n, ok
}

// fill adds what the event says. Of data that cannot be read the notice is told
// with what is known without: that is no reason to tell nothing.
func (n *Notice) fill(e agent.Event) bool {
	switch e.Type {
	case agent.EventReply:
		n.Kind = RunReplied
	case agent.EventGateOpened:
		g := data[agent.GateOpenedData](e).Gate
		n.Kind, n.Gate, n.Step, n.Title, n.Roles, n.Until = GateOpened, g.ID, g.StepID(), g.Title, g.Roles, g.ExpiresAt
	case agent.EventGateEscalated:
		d := data[agent.GateEscalatedData](e)
		n.Kind, n.Gate, n.Roles = GateEscalated, d.Gate, d.Roles
	case agent.EventGateClosed:
		d := data[agent.GateClosedData](e)
		n.Kind, n.Gate, n.Status, n.Verdict, n.Verified = GateClosed, d.Gate, d.Status, d.Verdict, d.Verified
		if d.By != nil {
			n.DecidedBy = d.By.Subject
		}
	case agent.EventCompleted:
		n.Kind, n.RunStatus = RunEnded, agent.RunCompleted
	case agent.EventCancelled:
		n.Kind, n.RunStatus = RunEnded, agent.RunCancelled
	case agent.EventFailed:
		n.Kind, n.RunStatus = RunEnded, agent.RunFailed
	case agent.EventStepSettled:
		n.Kind, n.Step = StepInDoubt, e.Step
		return data[agent.StepSettledData](e).Status == agent.StepInDoubt
	}
	return n.Kind != ""
}

func data[T any](e agent.Event) (d T) {
	_ = json.Unmarshal(e.Data, &d)
	return d
}

// idOf is a digest of where the event stands in the feed, which no other event
// does: what a reset appends anew is told anew.
func idOf(a store.Appended) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s", a.Tenant, a.Address, a.FirstRunID, a.Place))
	return hex.EncodeToString(sum[:16])
}

// OfGate reports a notice that is about a gate.
func (n Notice) OfGate() bool {
	return n.Kind == GateOpened || n.Kind == GateEscalated || n.Kind == GateClosed
}

// Encode is the notice as it is kept and handed on, in canonical JSON.
func (n Notice) Encode() (agent.JSON, error) { return agent.Encode(n) }

// Decode reads a notice. Unknown members are ignored: a newer worker may have made
// it.
func Decode(j agent.JSON) (n Notice, err error) {
	err = json.Unmarshal(j, &n)
	return n, err
}
