package tool

import (
	"reflect"

	"interlock/agent"
)

// Done is what a compensation gets: what a tool was called with, and what came of
// it. Of a result that Keep made smaller it is what the run kept.
type Done[A, R any] struct {
	Args   A `json:"args"`
	Result R `json:"result"`
}

// Undo names the tool that compensates for a call of this one. It takes [Done] of
// this tool's arguments and result, has an effect of its own and, if it names
// them, a gate, a deadline and a Commit:
//
//	void := tool.Keyed("void_charge", func(ctx context.Context, key tool.Key, d tool.Done[ChargeArgs, Charge]) (Voided, error) { … },
//		func(s *State, d tool.Done[ChargeArgs, Charge], v Voided) error { s.ChargeID = ""; return nil })
//	charge.Undo(void)
//
// It runs when somebody asks for the undo of a step (starter.Undo, interlock step
// undo), and where an Enter calls it, or the model in a phase that lists it, with
// the arguments of a step of this tool that stands: that is the undo of that step,
// under the same key, with the result that the run has recorded, and nobody's later
// undo runs it again. Once it has happened, the same call of this tool is a new
// effect.
func (t *Tool[S, A, R]) Undo(by agent.Tool[S]) *Tool[S, A, R] {
	t.spec.Undo, t.spec.UndoArgs = by, reflect.TypeFor[Done[A, R]]()
	return t
}
