package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"interlock/agent"
	"interlock/signals"
	"interlock/tool"
)

// JudgedFor is how long a decision holds that a step may begin: an attempt that asks
// for its claim later after its scheduling begins nothing, and has the run judge anew.
const JudgedFor = time.Minute

type past struct{ signals.Past }

func pastOf(ctx context.Context, in signals.ToolInput) *past {
	p := &past{}
	if activity.HasHeartbeatDetails(ctx) {
		_ = activity.GetHeartbeatDetails(ctx, &p.Past)
	}
	if p.Since.IsZero() {
		p.Since = in.Since
	}
	return p
}

func (p past) nothing() bool { return !p.Held && p.Since.IsZero() }

// learn takes the end of an attempt, and reports whether the next must know of it.
func (p *past) learn(err error, in signals.ToolInput, began time.Time) bool {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.NonRetryable() {
		return false
	}
	switch app.Type() {
	case signals.ErrHeld:
		p.Held = true
		return true
	case signals.ErrNotApplied, signals.ErrUnknown:
		if p.Since.IsZero() && in.Waited { // else the activity has an end of its own
			p.Since = began
			return true
		}
	}
	return false
}

// over reports whether the time of a tool is up whose activity has no end of its own.
func (p *past) over(in signals.ToolInput, info agent.ToolInfo, f *tool.Failure) bool {
	if !in.Waited || f == nil {
		return false
	}
	tried := f.Tried
	if !p.Since.IsZero() {
		tried = max(tried, time.Since(p.Since))
	}
	_, all := tool.Times(info)
	return tried > all
}

// notAfter is until when an effect may begin by this activity.
func notAfter(ctx context.Context, task agent.Task, p *past) time.Time {
	if task.Effect == agent.ReadOnly {
		return time.Time{}
	}
	scheduled := activity.GetInfo(ctx).ScheduledTime
	if scheduled.IsZero() {
		return time.Time{}
	}
	if p.Held {
		return scheduled
	}
	until := scheduled.Add(JudgedFor)
	if task.NotAfter != nil && task.NotAfter.Before(until) {
		until = *task.NotAfter
	}
	return until
}

// toItsEnd is the context of a tool's function. One with an effect that is not to be
// interrupted does not hear that its step was stopped: it has begun, and says itself
// what became of it. When the worker stops it is told as any other is.
func toItsEnd(ctx context.Context, info agent.ToolInfo) (context.Context, context.CancelFunc) {
	if info.Effect == agent.ReadOnly || info.OnCut != agent.CutWait {
		return ctx, func() {}
	}
	runs, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stops := activity.GetWorkerStopChannel(ctx)
	unhook := context.AfterFunc(ctx, func() {
		select {
		case <-stops:
			cancel()
		default:
		}
	})
	return runs, func() { unhook(); cancel() }
}
