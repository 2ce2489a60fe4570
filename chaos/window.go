package main

import "interlock/agent"

// window is a stretch of an attempt in which a fault strikes.
type window string

const (
	beforeClaim window = "before claim"
	toEffect    window = "claim to effect"
	toSettle    window = "effect to settle"
	toAnswer    window = "settle to answer"
)

// A model call has windows of its own, in the same columns of the table: nothing
// is claimed, and what is settled is the record of the answer.
const (
	toProvider = toEffect // until the provider has answered
	toRecord   = toSettle // until the answer is recorded
	toReturn   = toAnswer // until Temporal has it
)

// windows are the columns of the table.
var windows = []window{beforeClaim, toEffect, toSettle, toAnswer}

// model is the row of the table that is no effect.
const model agent.Effect = "model call"

// cell is a row and a column of the table.
type cell struct {
	effect agent.Effect
	window window
}

// cells are those that must be hit, the most telling first. ReadOnly has no claim
// and nothing to settle.
var cells = []cell{
	{agent.Once, toEffect}, {agent.Once, toSettle}, {agent.Reconcilable, toEffect}, {agent.Reconcilable, toSettle},
	{agent.Keyed, toEffect}, {agent.Keyed, toSettle}, {agent.Transactional, toEffect}, {agent.Transactional, toSettle},
	{agent.Once, toAnswer}, {agent.Reconcilable, toAnswer}, {agent.Keyed, toAnswer}, {agent.Transactional, toAnswer},
	{agent.Once, beforeClaim}, {agent.Reconcilable, beforeClaim}, {agent.Keyed, beforeClaim}, {agent.Transactional, beforeClaim},
	{agent.ReadOnly, beforeClaim}, {agent.ReadOnly, toAnswer},
	{model, toRecord}, {model, toProvider}, {model, toReturn},
}

// The tools of the agent.
const (
	look  = "look"  // ReadOnly
	send  = "send"  // Keyed
	order = "order" // Keyed, refused for good the first time
	pay   = "pay"   // Transactional
	book  = "book"  // Reconcilable
	fire  = "fire"  // Once
	ship  = "ship"  // Keyed, at a gate; in runs that have users
)

// The tools that undo them.
const (
	unsend = "unsend"
	unpay  = "unpay"
	unbook = "unbook"
	unfire = "unfire"
	unship = "unship" // at a gate
)

// effects are the tools with what they promise.
var effects = map[string]agent.Effect{look: agent.ReadOnly, send: agent.Keyed, order: agent.Keyed, pay: agent.Transactional,
	book: agent.Reconcilable, fire: agent.Once, ship: agent.Keyed,
	unsend: agent.Keyed, unpay: agent.Transactional, unbook: agent.Reconcilable, unfire: agent.Once, unship: agent.Keyed}

// acting are the tools whose effects every run has.
var acting = []string{send, order, pay, book, fire}

// undoers are the tools that undo on the other side, in the harness.
var undoers = []string{unsend, unbook, unfire, unship}

// point is what a worker tells the harness when one of its attempts comes to a
// window. The worker goes on when the harness answers.
type point struct {
	Worker  string       `json:"worker"`
	Attempt string       `json:"attempt"` // unique
	Address string       `json:"address"`
	Effect  agent.Effect `json:"effect"`
	Tool    string       `json:"tool,omitempty"`
	Step    string       `json:"step"` // of a model call: its turn
	Window  window       `json:"window"`
	// Over: the attempt is about to answer Temporal. Its window is the last.
	Over bool `json:"over,omitempty"`
	// Passed: it only moves the attempt on; no fault strikes here.
	Passed bool `json:"passed,omitempty"`
	// Failed: it answers Temporal with an error.
	Failed bool `json:"failed,omitempty"`
	// Wrong is what is wrong with a request to the model.
	Wrong string `json:"wrong,omitempty"`
}

func (p point) cell() cell { return cell{p.Effect, p.Window} }

// place is a step or a model call, over all of its attempts.
func (p point) place() place { return place{p.Address, p.Effect, p.Step} }

type place struct {
	address string
	effect  agent.Effect
	step    string
}
