package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
)

// withheld stands for a text of which it cannot be found out whether it holds anything
// sensitive.
const withheld = "the reason is not shown: the run's journal, which says what is sensitive, cannot be read"

// redaction hides the run's sensitive values; nil where it has recorded nothing yet.
func (a *Activities) redaction(ctx context.Context, ref store.RunRef) (*agent.Redaction, error) {
	x, err := store.Redaction(context.WithoutCancel(ctx), a.Store, store.Chain{Tenant: ref.Tenant, Address: ref.Address, FirstRunID: ref.FirstRunID})
	if code := agent.ErrorCode(err); code == agent.CodeNotFound || code == agent.CodeInvalid { // of an address that is none
		return nil, nil
	}
	return x, err
}

// redacted is an error as logs, Temporal and people are told it: the texts of tools and
// providers may repeat what is sensitive.
func (a *Activities) redacted(ctx context.Context, ref store.RunRef, err error) error {
	var e *temporal.ApplicationError
	if !errors.As(err, &e) || e.Type() == signals.ErrStore || e.Type() == signals.ErrJudgeAgain {
		return err
	}
	text := e.Message()
	if x, failed := a.redaction(ctx, ref); failed != nil {
		text = withheld
	} else if text = x.Text(text); text == e.Message() {
		return err
	}
	options := temporal.ApplicationErrorOptions{NonRetryable: e.NonRetryable(), NextRetryDelay: e.NextRetryDelay()}
	var open bool
	if e.HasDetails() && e.Details(&open) == nil {
		options.Details = []any{open}
	}
	return temporal.NewApplicationErrorWithOptions(clip(text), e.Type(), options)
}

// panicked logs where a tool's code panicked, without what is sensitive: all others are
// told that it did, and to look here.
func (a *Activities) panicked(ctx context.Context, ref store.RunRef, step string, p *tool.Panicked) {
	what, stack := fmt.Sprint(p.Value), string(p.Stack)
	if x, err := a.redaction(ctx, ref); err != nil {
		what = withheld
	} else {
		what, stack = x.Text(what), x.Text(stack)
	}
	a.log().Error(p.Error(), "address", ref.Address, "step", step, "panic", what, "stack", stack)
}

// sawPanic logs an attempt's panic, where it ended by one.
func (a *Activities) sawPanic(ctx context.Context, ref store.RunRef, task agent.Task, err error) {
	if p := (*tool.Panicked)(nil); errors.As(err, &p) {
		a.panicked(ctx, ref, task.Step, p)
	}
}
