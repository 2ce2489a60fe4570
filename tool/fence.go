package tool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"interlock/agent"
)

// Fencer is a [Runner] whose effects can be stopped before they begin. Every
// [Tool] is one.
type Fencer interface {
	// Fence keeps an effect that has not begun from ever happening, with the reason,
	// whatever is held: the error is a [*Failure] of kind FailedFenced. The result is
	// that of an effect which has happened. FailedRefused is the other side's word.
	// FailedUnknown says that it has begun, and that nobody knows what became of it;
	// FailedEarlier that this can be found out after Wait. Nothing is run.
	Fence(ctx context.Context, t agent.Task, reason string, p Ports) (Result, error)
}

// Fence makes the tool a [Fencer]. Of an effect that has begun a Reconcilable tool's
// other side is asked, once no attempt can act any more: what has not happened then
// is fenced too.
func (t *Tool[S, A, R]) Fence(ctx context.Context, task agent.Task, reason string, p Ports) (Result, error) {
	switch t.spec.Effect {
	case agent.ReadOnly:
		return Result{}, &Failure{Kind: FailedFenced, Err: errors.New(reason)}
	case agent.Transactional:
		return t.fenceInTx(ctx, task, reason)
	}
	row, err := p.Ledger.Fence(ctx, task, reason)
	if err != nil {
		return Result{}, &Failure{Kind: FailedStore, Err: fmt.Errorf("fence: %w", err)}
	}
	if row.Settled == nil && t.spec.Effect == agent.Reconcilable {
		if row.Wait > 0 {
			return Result{}, &Failure{Kind: FailedEarlier, Open: true, Wait: row.Wait,
				Err: fmt.Errorf("it has begun, and an attempt may still act, for %s", row.Wait.Round(time.Millisecond))}
		}
		if _, err := t.Reconcile(ctx, task, p, row.Attempt); err != nil {
			return Result{}, &Failure{Kind: FailedUnknown, Open: true, Err: fmt.Errorf("it has begun: %w", err)}
		}
		if row, err = p.Ledger.Fence(ctx, task, reason); err != nil {
			return Result{}, &Failure{Kind: FailedStore, Err: fmt.Errorf("fence: %w", err)}
		}
	}
	switch {
	case row.Settled == nil:
		return Result{}, &Failure{Kind: FailedUnknown, Open: true, Err: errors.New("it has begun, and did not say whether it happened")}
	case row.Settled.Ended() != nil:
		return Result{}, ended(row.Settled)
	}
	return row.Settled.Result, nil
}

// fenceInTx puts the fence in the place of the effect, in the tool's database: a
// transaction under way is waited for there.
func (t *Tool[S, A, R]) fenceInTx(ctx context.Context, task agent.Task, reason string) (Result, error) {
	table, err := t.effects(ctx)
	if err != nil {
		return Result{}, asFailure(err)
	}
	bounded, cancel := context.WithTimeout(ctx, 2*TxTimeout)
	defer cancel()
	fenced, err := table.insert(bounded, table.db, task, refusedRow{reason: text(reason), fenced: true})
	switch {
	case err == nil && fenced:
		return Result{}, &Failure{Kind: FailedFenced, Err: errors.New(reason)}
	case err == nil:
		err = errTaken
	}
	return table.instead(ctx, task, err)
}
