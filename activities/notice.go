package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"interlock/agent"
	"interlock/notice"
	"interlock/signals"
	"interlock/store"
)

// Notices is what a worker tells notices by.
type Notices struct {
	Targets *notice.File
	Sender  *notice.Sender
}

// withoutTargets is how soon a worker that tells no notices gives one back, for
// another worker.
const withoutTargets = 15 * time.Second

// Deliver makes one attempt to tell a notice. Who is told, and by which secrets, is
// looked up now: a target that was taken out of the file is told nothing more.
func (a *Activities) Deliver(ctx context.Context, in signals.Telling) error {
	if a.Notices == nil {
		return later(signals.ErrNotDeployed, "this worker has no file of targets (notices.targets), and another one on its task queue has", withoutTargets)
	}
	n, err := notice.Decode(in.Notice)
	if err != nil {
		return failedForGood(signals.ErrInvalid, "the notice cannot be read")
	}
	targets, err := a.Notices.Targets.Targets()
	if err != nil {
		return failed(signals.ErrUnavailable, err.Error())
	}
	target, ok := notice.Find(targets, in.Target)
	if !ok {
		return failedForGood(signals.ErrNoTarget, fmt.Sprintf("the file of targets names no %s any more", in.Target))
	}
	_, err = a.Notices.Sender.Send(ctx, target, n)
	f, ok := errors.AsType[*notice.Failure](err)
	attempt := activity.GetInfo(ctx).Attempt
	switch {
	case err == nil:
		return nil
	case !ok:
		return failed(signals.ErrUnavailable, err.Error())
	case f.Gone:
		a.log().Warn("a target wants no notices any more: take it out of the file of targets", "target", in.Target, "notice", in.ID)
		return failedForGood(signals.ErrGone, f.Text)
	}
	text := fmt.Sprintf("attempt %d: %s", attempt, f.Text)
	if f.RetryAfter > 0 {
		return later(signals.ErrUnavailable, text, f.RetryAfter)
	}
	return failed(signals.ErrUnavailable, text)
}

// later is [failed] with the time of the next attempt.
func later(kind, text string, in time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(clip(text), kind, temporal.ApplicationErrorOptions{NextRetryDelay: in})
}

// Bury keeps a notice that nobody has taken, for an operator.
func (a *Activities) Bury(ctx context.Context, in signals.Burial) error {
	n, _ := notice.Decode(in.Notice) // what of it can be read is in the list
	d := store.DeadNotice{Tenant: in.Tenant, ID: in.ID, Target: in.Target, Kind: string(n.Kind), Address: n.Address, FirstRunID: n.FirstRunID,
		Notice: in.Notice, Reason: clip(in.Reason), Retry: in.Retry}
	if err := a.Store.Bury(ctx, d); err != nil {
		return storeError(err)
	}
	a.log().Warn("a notice was not taken: interlock notice dead list", "tenant", in.Tenant, "target", in.Target, "notice", in.ID, "reason", d.Reason)
	return nil
}

// MarkNoticed records that a dead notice was told after all. What an operator has
// said of it meanwhile stays.
func (a *Activities) MarkNoticed(ctx context.Context, in signals.Telling) error {
	_, err := a.Store.SettleDead(ctx, in.Tenant, in.ID, in.Target, store.DeadSent, in.By)
	switch agent.ErrorCode(err) {
	case agent.CodeConflict, agent.CodeNotFound:
		return nil
	}
	if err != nil {
		return storeError(err)
	}
	return nil
}
