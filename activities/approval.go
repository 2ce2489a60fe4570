package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
		return false, nil // nothing to go through with; its own database says so when it is fenced
	}
	row, err := a.ports(ref).Ledger.Row(ctx, task)
	if err != nil {
		return false, storeError(err)
	}
	return row != nil && (row.Open || row.Settled != nil), nil
}

// run makes an attempt, unless who approved the step may not any more: then nothing
// is claimed.
func (a *Activities) run(ctx context.Context, in signals.ToolInput, ref store.RunRef, past *past) (tool.Result, error) {
	why, err := a.lapsed(ctx, in.Task)
	if err != nil {
		return tool.Result{}, err
	}
	if why != "" {
		begun, err := a.begun(ctx, in.Task, ref)
		if err != nil {
			return tool.Result{}, err
		}
		if !begun {
			return tool.Result{}, failedForGood(signals.ErrUnapproved, why)
		}
	}
	return a.attempt(ctx, in, ref, past)
}
