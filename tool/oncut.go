package tool

import "interlock/agent"

// OnCut says what becomes of a running call when its turn is cut short: by a
// message that interrupts or rolls back, or by a cancel. One that has not begun is
// stopped, whatever is chosen here.
//
//   - [agent.CutWait]: it runs to its end, and the turn waits for that. The default
//     of a tool with an effect.
//   - [agent.CutAbandon]: it is let go, and its step ends abandoned. The default of
//     a ReadOnly tool, and only for one.
//   - [agent.CutUndo]: its function's context is cancelled, within two seconds, and
//     what has happened all the same is undone, where there is an [Tool.Undo]. A function
//     that stops before it did anything answers with [NotApplied], so that the step
//     ends cancelled; one that answers otherwise leaves a Keyed or Once step in
//     doubt, and a person must find out.
func (t *Tool[S, A, R]) OnCut(choice agent.OnCut) *Tool[S, A, R] {
	t.spec.OnCut = choice
	return t
}
