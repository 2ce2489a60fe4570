package tool

import (
	"context"

	"interlock/agent"
)

// Undone makes the tool a [Runner].
func (t *Tool[S, A, R]) Undone(ctx context.Context, task agent.Task, by string, p Ports) error {
	switch {
	case t.spec.Effect == agent.ReadOnly:
		return agent.Errorf(agent.CodeInvalid, "tool %s has no effect that could be undone", t.spec.Name)
	case by == "" || by == task.Key:
		return agent.Errorf(agent.CodeInvalid, "effect %s of tool %s is undone by another effect, whose key must be given", task.Key, t.spec.Name)
	case t.spec.Effect == agent.Transactional:
		return t.undoneInTx(ctx, task, by)
	}
	return p.Ledger.Undone(ctx, task, by)
}

// Undo is what a ledger does with a settlement that is to be marked as undone: the
// new one, or why it stays. nil is a row that is not settled.
func Undo(s *Settlement, key, by string) (Settlement, error) {
	switch {
	case s == nil || s.Refused != "":
		return Settlement{}, agent.Errorf(agent.CodeConflict, "effect %s has not happened, so far as is known: it cannot be undone", key)
	case s.Undone != "" && s.Undone != by:
		return *s, agent.Errorf(agent.CodeConflict, "effect %s was undone already, by effect %s", key, s.Undone)
	}
	undone := *s
	undone.Undone = by
	return undone, nil
}
