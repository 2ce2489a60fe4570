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

// Fence keeps steps that were stopped from ever happening, as far as they have not
// begun, and says how each stands. Again is harmless.
func (a *Activities) Fence(ctx context.Context, in signals.FenceInput) (signals.FenceResult, error) {
	defer beat(ctx, nil)()
	carried, err := a.ride(ctx, in.Ride, a.Store.Append)
	if err != nil {
		return signals.FenceResult{}, err
	}
	out := signals.FenceResult{Carried: carried}
	for _, s := range in.Steps {
		stands, err := a.fence(ctx, s, ref(ctx, in.FirstRunID, in.Batch.Store))
		if err != nil {
			return signals.FenceResult{}, err
		}
		out.Steps = append(out.Steps, stands)
	}
	return out, nil
}

func (a *Activities) fence(ctx context.Context, s signals.Fence, ref store.RunRef) (signals.Fenced, error) {
	out := signals.Fenced{Step: s.Task.Step}
	runner, _, err := a.runner(s.Task)
	if err != nil {
		return out, err
	}
	fencer, ok := runner.(tool.Fencer)
	if !ok {
		out.Stands, out.Reason = signals.StandsBegun, "its runner cannot say whether it has begun"
		return out, nil
	}
	ports := a.ports(ref)
	ports.Panicked = func(p *tool.Panicked) { a.panicked(ctx, ref, s.Task.Step, p) }
	result, err := fencer.Fence(ctx, s.Task, s.Reason, ports)
	a.sawPanic(ctx, ref, s.Task, err)
	var f *tool.Failure
	switch {
	case err == nil:
		out.Stands, out.ToolResult = signals.StandsDone, toolResult(result)
		return out, a.undone(ctx, s.Task, ref)
	case !errors.As(err, &f):
		return out, failed(signals.ErrStore, fmt.Sprintf("fence of step %s: %v", s.Task.Step, err))
	case f.Kind == tool.FailedFenced:
		out.Stands = signals.StandsFenced
	case f.Kind == tool.FailedRefused:
		out.Stands, out.Reason = signals.StandsRefused, a.known(ctx, ref, f)
	case f.Kind == tool.FailedStore && agent.ErrorCode(f.Err) != agent.CodeConflict && agent.ErrorCode(f.Err) != agent.CodeInvalid:
		return out, failed(signals.ErrStore, f.Error())
	default:
		out.Stands, out.Reason, out.Wait = signals.StandsBegun, a.known(ctx, ref, f), f.Wait
	}
	return out, nil
}

// known is what a failure says, as a run may be told.
func (a *Activities) known(ctx context.Context, ref store.RunRef, f *tool.Failure) string {
	var app *temporal.ApplicationError
	if errors.As(a.redacted(ctx, ref, failed(signals.ErrUnknown, f.Error())), &app) {
		return app.Message()
	}
	return clip(f.Error())
}
