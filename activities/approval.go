package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/activity"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
	"interlock/token"
	"interlock/tool"
)

// lapsed says whose approval of a step counts no more, since a role was taken from
// them after they gave it; "" where all still may. Nothing is started where nobody
// can say.
func (a *Activities) lapsed(ctx context.Context, task agent.Task) (string, error) {
	if task.Approved == nil || a.Trust.Directory == nil {
		return "", nil
	}
	for _, p := range task.Approved.By {
		if p.Tenant == "" {
			p.Tenant = task.Tenant
		}
		roles, err := a.Trust.Directory.Roles(ctx, p)
		if err != nil && !errors.Is(err, token.ErrRevoked) {
			return "", failed(signals.ErrUnjudged, fmt.Sprintf("which roles %s has, who approved it, cannot be looked up: %v", p.Subject, err))
		}
		if err != nil || !slices.ContainsFunc(roles, func(r string) bool { return slices.Contains(task.Approved.Roles, r) }) {
			return fmt.Sprintf("not started: %s, who approved it, has not the role %s any more", p.Subject, strings.Join(task.Approved.Roles, " or ")), nil
		}
	}
	return "", nil
}

// begun reports whether an attempt of the step may have had its effect: the
// approval was good then, and it is gone through with.
func (a *Activities) begun(ctx context.Context, task agent.Task, ref store.RunRef) (bool, error) {
	if task.Effect == agent.ReadOnly || task.Effect == agent.Transactional {
		return false, nil // nothing to go through with; its own database says so when it is closed
	}
	row, err := a.ports(ref).Ledger.Row(ctx, task)
	if err != nil {
		return false, storeError(err)
	}
	return row != nil && (row.Open || row.Settled != nil), nil
}

// unstarted closes the effect of a step that must not start, so that no attempt of
// a worker that slept makes it later. It is that step's result where it happened
// all the same.
func (a *Activities) unstarted(ctx context.Context, task agent.Task, ref store.RunRef, why string) (tool.Result, error) {
	if task.Effect == agent.ReadOnly {
		return tool.Result{}, failedForGood(signals.ErrUnapproved, why, false)
	}
	runner, _, err := a.runner(task)
	if err != nil {
		return tool.Result{}, err
	}
	closer, ok := runner.(tool.Closer)
	if !ok {
		return tool.Result{}, failedForGood(signals.ErrUnapproved, why, false)
	}
	ports := a.ports(ref)
	ports.Began = activity.GetInfo(ctx).StartedTime
	result, err := closer.Close(ctx, task, ports)
	f := (*tool.Failure)(nil)
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &f) && f.Kind == tool.FailedRefused:
		return tool.Result{}, failedForGood(signals.ErrUnapproved, why, true)
	case errors.As(err, &f) && f.Kind == tool.FailedNotApplied && !f.Open:
		return tool.Result{}, failedForGood(signals.ErrUnapproved, why, false)
	}
	return result, toolError(err)
}

// run makes an attempt, unless who approved the step may not any more.
func (a *Activities) run(ctx context.Context, task agent.Task, ref store.RunRef) (tool.Result, error) {
	why, err := a.lapsed(ctx, task)
	if err != nil {
		return tool.Result{}, err
	}
	if why != "" {
		begun, err := a.begun(ctx, task, ref)
		if err != nil {
			return tool.Result{}, err
		}
		if !begun {
			return a.unstarted(ctx, task, ref, why)
		}
	}
	return a.attempt(ctx, task, ref)
}
