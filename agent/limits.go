package agent

import "time"

// Limits are sizes in bytes, and the budget. They are fixed when the run
// starts and recorded in its first event.
type Limits struct {
	State    int `json:"state"`
	Snapshot int `json:"snapshot"`
	View     int `json:"view"`
	Shown    int `json:"shown"`   // shown state, within View
	Facts    int `json:"facts"`   // within View
	Rulings  int `json:"rulings"` // within View
	Result   int `json:"result"`  // what Commit gets, and a call's arguments
	Message  int `json:"message"` // all unread messages together
	Batch    int `json:"batch"`
	Window   int `json:"window"` // turns shown at most; trimmed by a third
	Active   int `json:"active"` // results shown at most; trimmed by half
	Handled  int `json:"handled"`
	// History and HistoryBytes are how long Temporal's history may grow before
	// the run goes on in a new one, beside Temporal's own suggestion.
	History      int `json:"history,omitempty"`
	HistoryBytes int `json:"history_bytes,omitempty"`
	// Outage is how long a model's provider may be down, in nanoseconds, before
	// the run pauses.
	Outage time.Duration `json:"outage,omitempty"`
	// Idle is the definition's, see [Spec].
	Idle   Idle   `json:"idle,omitzero"`
	Budget Budget `json:"budget"`
}

// DefaultOutage is how long a provider may be down before a run pauses.
const DefaultOutage = 24 * time.Hour

// DefaultLimits are the limits of a run whose definition says nothing else.
func DefaultLimits() Limits {
	return Limits{
		State: 64 << 10, Snapshot: 256 << 10, View: 24 << 10, Shown: 12 << 10, Facts: 4 << 10, Rulings: 2 << 10,
		Result: 16 << 10, Message: 6 << 10, Batch: 64 << 10, Window: 12, Active: 5 << 10, Handled: 1000,
		History: 2000, HistoryBytes: 2 << 20, Outage: DefaultOutage,
		Budget: DefaultBudget(),
	}
}

// Budget bounds a run. At a limit it pauses as budget:<name>. A zero field
// takes the default; a negative one is no limit.
type Budget struct {
	Turns      int           `json:"turns"`
	ModelCalls int           `json:"model_calls"`
	Tokens     int64         `json:"tokens"`
	Active     time.Duration `json:"active"`      // nanoseconds in which a model call or a step ran
	Refusals   int           `json:"refusals"`    // of calls, in a row
	ToolErrors int           `json:"tool_errors"` // in a row
	SameCall   int           `json:"same_call"`   // the same call with the same arguments, in a row
}

// DefaultBudget bounds a run whose definition sets no budget.
func DefaultBudget() Budget {
	return Budget{Turns: 500, ModelCalls: 500, Tokens: 5_000_000, Active: 4 * time.Hour, Refusals: 8, ToolErrors: 5, SameCall: 3}
}

// withDefaults fills what a definition leaves out.
func (l Limits) withDefaults(b Budget) Limits {
	d := DefaultLimits()
	fill := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	for _, p := range []struct {
		v   *int
		def int
	}{{&l.State, d.State}, {&l.Snapshot, d.Snapshot}, {&l.View, d.View}, {&l.Shown, d.Shown}, {&l.Facts, d.Facts},
		{&l.Rulings, d.Rulings}, {&l.Result, d.Result}, {&l.Message, d.Message}, {&l.Batch, d.Batch}, {&l.Window, d.Window},
		{&l.Active, d.Active}, {&l.Handled, d.Handled}, {&l.History, d.History}, {&l.HistoryBytes, d.HistoryBytes}} {
		fill(p.v, p.def)
	}
	if l.Outage == 0 {
		l.Outage = d.Outage
	}
	if l.Budget == (Budget{}) {
		l.Budget = b
	}
	for _, p := range []struct {
		v   *int
		def int
	}{{&l.Budget.Turns, d.Budget.Turns}, {&l.Budget.ModelCalls, d.Budget.ModelCalls}, {&l.Budget.Refusals, d.Budget.Refusals},
		{&l.Budget.ToolErrors, d.Budget.ToolErrors}, {&l.Budget.SameCall, d.Budget.SameCall}} {
		fill(p.v, p.def)
	}
	if l.Budget.Tokens == 0 {
		l.Budget.Tokens = d.Budget.Tokens
	}
	if l.Budget.Active == 0 {
		l.Budget.Active = d.Budget.Active
	}
	return l
}
