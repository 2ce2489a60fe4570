package activities

import (
	"context"
	"fmt"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// undone marks the effect that a task has undone, where it undoes one: it stands
// no more, so that a reset or another run of the same scope is not given its old
// result. It comes before the task's own result is answered, and again is no
// error: the attempt after a crash in between finds the undo settled, and marks.
//
// An effect that the ledger does not hold as happened, or that another undo had
// marked before, stays as it is: the run knows what became of its own step.
func (a *Activities) undone(ctx context.Context, task agent.Task, ref store.RunRef) error {
	original, ok := task.Undone()
	if !ok {
		return nil
	}
	runner, _, err := a.runner(original)
	if err != nil {
		return err
	}
	err = runner.Undone(ctx, original, task.Key, a.ports(ref))
	switch agent.ErrorCode(err) {
	case agent.CodeConflict, agent.CodeNotFound, agent.CodeInvalid:
		a.log().Warn("a step was undone, and its effect cannot be marked so", "address", ref.Address, "step", original.Step, "by", task.Step, "error", err)
		return nil
	}
	if err != nil {
		return failed(signals.ErrStore, fmt.Sprintf("record that step %s was undone: %v", original.Step, err))
	}
	return nil
}
