package tool

import (
	"context"
	"database/sql"
	"errors"

	"interlock/agent"
)

// Once makes a tool of which nothing else can be promised: the other side keeps
// no key and cannot be asked. run is started once. Whatever leaves it unknown
// whether it happened (an error that says neither Refused nor NotApplied, a worker
// that dies) puts the step in doubt: it is never run again, and a person must find
// out. Prefer any other effect that the other side allows.
func Once[S, A, R any](name string, run func(context.Context, A) (R, error), commit func(*S, A, R) error) *Tool[S, A, R] {
	return build(name, agent.Once, nil, commit, func(ctx context.Context, _ Key, _ *sql.Tx, a A) (R, error) { return run(ctx, a) })
}

// once waits for an earlier attempt only so that it can still say how it ended.
func (t *Tool[S, A, R]) once(ctx context.Context, task agent.Task, args A, p Ports) (Result, error) {
	row, err := claim(ctx, task, p, Terms{Attempt: t.spec.Timeout + Overhead, Exclusive: true, Grace: Grace})
	if err != nil {
		return Result{}, err
	}
	if row.Settled != nil {
		return row.Settled.Result, nil
	}
	if row.Open {
		done, cancel := after(ctx)
		defer cancel()
		return unknowable(record(done, task, p, row.Attempt, &Failure{Kind: FailedInDoubt, Open: true,
			Err: errors.New("an earlier attempt ended without saying whether it happened, and it is never run again")}))
	}
	return unknowable(t.claimed(ctx, task, args, p, row))
}

// unknowable makes of what nobody knows what nobody will ever know by trying.
func unknowable(r Result, err error) (Result, error) {
	if f := (*Failure)(nil); errors.As(err, &f) && f.Kind == FailedUnknown {
		f.Kind = FailedInDoubt
	}
	return r, err
}
