package tool

import (
	"context"
	"errors"

	"interlock/agent"
)

// errStopped is why an effect is refused that was closed before it happened.
var errStopped = errors.New("it was told to stop before it happened")

// Closer is a [Runner] whose attempts may be told to stop. Every [Tool] is one.
type Closer interface {
	// Close finds out what became of an effect whose attempt was told to stop, and
	// closes it: where it has not happened it never will, and the error is a
	// [*Failure] of kind FailedRefused. Its result is that of one which has. Nothing
	// is run; where nobody knows, the Failure says so.
	Close(ctx context.Context, t agent.Task, p Ports) (Result, error)
}

// Close makes the tool a [Closer].
//
// Where no attempt can have had the effect, it is settled as refused, so that a
// later one (of a worker that slept) is granted nothing and what is said here stays
// true. Of one that may have, only a Reconcilable tool's other side can be asked,
// once that attempt can act no more.
func (t *Tool[S, A, R]) Close(ctx context.Context, task agent.Task, p Ports) (Result, error) {
	switch t.spec.Effect {
	case agent.ReadOnly:
		return Result{}, &Failure{Kind: FailedNotApplied, Err: errStopped}
	case agent.Transactional:
		return t.closeInTx(ctx, task)
	}
	row, err := claim(ctx, task, p, Terms{Attempt: Overhead, Exclusive: t.spec.Effect == agent.Reconcilable, Grace: Grace})
	switch f := (*Failure)(nil); {
	case errors.As(err, &f) && f.Kind == FailedHeld && !f.Open:
		return Result{}, &Failure{Kind: FailedNotApplied, Err: errStopped} // nothing may start it, and nothing has
	case err != nil:
		return Result{}, err
	case row.Settled != nil:
		return row.Settled.Result, nil
	}
	if row.Open && t.spec.Effect == agent.Reconcilable {
		if err := t.askClosed(ctx, task, p, row); err == nil {
			if row, err := p.Ledger.Row(ctx, task); err == nil && row != nil && row.Settled != nil {
				return row.Settled.Result, nil
			}
		} else {
			return unanswered(ctx, task, p, row.Attempt, err)
		}
	} else if row.Open {
		return record(ctx, task, p, row.Attempt, &Failure{Kind: FailedInDoubt, Open: true,
			Err: errors.New("it was told to stop, and did not say whether it had happened")})
	}
	return record(ctx, task, p, row.Attempt, &Failure{Kind: FailedRefused, Err: errStopped})
}

// askClosed asks the other side about the attempts before, and settles or releases
// them.
func (t *Tool[S, A, R]) askClosed(ctx context.Context, task agent.Task, p Ports, row Row) error {
	args, err := decode[A](task.Args)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(withTask(ctx, task), t.spec.Timeout)
	defer cancel()
	r, happened, err := t.lookUp(bounded, task, args)
	switch {
	case err != nil:
		return err
	case happened:
		_, err = t.happened(ctx, task, r, p, row.Attempt)
	default:
		_, err = p.Ledger.Release(ctx, task, 1, row.Attempt-1)
	}
	return err
}

// closeInTx puts a refusal in the place of the effect, in the tool's database: a
// transaction under way is waited for there.
func (t *Tool[S, A, R]) closeInTx(ctx context.Context, task agent.Task) (Result, error) {
	table, err := t.effects(ctx)
	if err != nil {
		return Result{}, asFailure(err)
	}
	bounded, cancel := context.WithTimeout(ctx, 2*TxTimeout)
	defer cancel()
	closed, err := table.insert(bounded, table.db, task, errStopped.Error())
	switch {
	case err == nil && closed:
		return Result{}, &Failure{Kind: FailedRefused, Err: errStopped}
	case err == nil:
		err = errTaken
	}
	return table.instead(ctx, task, err)
}
