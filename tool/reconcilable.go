package tool

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"interlock/agent"
)

// Reconcilable makes a tool whose other side can be asked whether a key has
// happened. run must send the key along, so that lookUp can find it: it answers
// with the result and true, or with false when the effect certainly has not
// happened. Its error means that nobody knows.
//
// No two attempts overlap. After one that may have had the effect, the next
// waits until that one can act no more ([Overhead] and [Grace] beyond the tool's
// timeout), asks, and runs only what has not happened. So the effect happens
// once, as long as the other side acts on a request by then or never.
func Reconcilable[S, A, R any](name string, run func(context.Context, Key, A) (R, error),
	lookUp func(context.Context, Key, A) (r R, happened bool, err error), commit func(*S, A, R) error) *Tool[S, A, R] {
	t := build(name, agent.Reconcilable, nil, commit, func(ctx context.Context, k Key, _ *sql.Tx, a A) (R, error) { return run(ctx, k, a) })
	t.look = lookUp
	return t
}

func (t *Tool[S, A, R]) reconcilable(ctx context.Context, task agent.Task, args A, p Ports) (Result, error) {
	row, err := claim(ctx, task, p, Terms{Attempt: t.spec.Timeout + Overhead, Exclusive: true, Grace: Grace})
	if err != nil {
		return Result{}, err
	}
	if row.Settled != nil {
		return row.Settled.Result, nil
	}
	if row.Open {
		r, happened, err := t.lookUp(ctx, task, args)
		if err == nil && !happened {
			// No attempt before had the effect, and none can have it any more.
			if _, err = p.Ledger.Release(ctx, task, 1, row.Attempt-1); err == nil {
				err = ctx.Err() // no time may be left to run it
			}
		}
		if err != nil || happened {
			done, cancel := after(ctx)
			defer cancel()
			if err != nil {
				return unanswered(done, task, p, row.Attempt, err)
			}
			return t.happened(done, task, r, p, row.Attempt)
		}
	}
	row.Open = false
	return t.claimed(ctx, task, args, p, row)
}

func (t *Tool[S, A, R]) lookUp(ctx context.Context, task agent.Task, args A) (r R, happened bool, err error) {
	defer caught(t.spec.Name, &err)
	return t.look(ctx, Key(task.Key), args)
}

// unanswered is an attempt that could not learn whether an earlier one had the
// effect. It ran nothing itself, so that the next one need not wait for it.
func unanswered(ctx context.Context, task agent.Task, p Ports, attempt int, cause error) (Result, error) {
	r, err := record(ctx, task, p, attempt, &Failure{Kind: FailedNotApplied, Open: true, Wait: retryWait(cause),
		Err: fmt.Errorf("look-up of an earlier attempt: %w", cause)})
	if f := (*Failure)(nil); errors.As(err, &f) && f.Kind == FailedNotApplied {
		f.Kind = FailedUnknown
	}
	return r, err
}
