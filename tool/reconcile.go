package tool

import (
	"context"
	"fmt"

	"interlock/agent"
)

// Reconciler finds out what became of an effect that no attempt can be at any
// more, by asking the other side.
type Reconciler interface {
	// Reconcile records in the ledger what the other side says: it happened, with
	// its result, or none of the attempts had it. Its error means that nobody knows.
	Reconcile(ctx context.Context, t agent.Task, p Ports, attempts int) (happened bool, err error)
}

// Reconcile makes a Reconcilable tool a [Reconciler].
func (t *Tool[S, A, R]) Reconcile(ctx context.Context, task agent.Task, p Ports, attempts int) (bool, error) {
	if t.spec.Effect != agent.Reconcilable {
		return false, fmt.Errorf("tool %s cannot be asked: it is %s", t.spec.Name, t.spec.Effect)
	}
	args, err := decode[A](task.Args)
	if err != nil {
		return false, fmt.Errorf("arguments: %w", err)
	}
	ctx, cancel := context.WithTimeout(withTask(ctx, task), t.spec.Timeout)
	defer cancel()
	r, happened, err := t.lookUp(ctx, task, args)
	switch {
	case err != nil:
		return false, fmt.Errorf("look-up: %w", err)
	case happened:
		_, err = t.happened(ctx, task, r, p, attempts)
	default:
		_, err = p.Ledger.Release(ctx, task, 1, attempts)
	}
	return happened, err
}
