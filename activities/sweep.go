package activities

import (
	"context"
	"fmt"
	"strings"
	"time"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
)

// sweepPage is how many stranded effects are read at once.
const sweepPage = 200

// Sweep looks at all effects that may have happened and that no attempt can be at
// any more. Where their run is under way, it sees to them by itself. Where it has
// ended, or was terminated, a Reconcilable tool is asked; of every other one the
// ledger records that a person must find out. Running twice is harmless.
func (a *Activities) Sweep(ctx context.Context) (signals.Swept, error) {
	defer beat(ctx, nil)()
	report := signals.Swept{At: time.Now().UTC()}
	tenants, err := a.Store.OpenTenants(ctx)
	if err != nil {
		return report, storeError(err)
	}
	for _, tenant := range tenants {
		f := store.EffectFilter{Stranded: true, Grace: tool.Grace, Limit: sweepPage}
		for {
			page, err := a.Store.Effects(ctx, tenant, f)
			if err != nil {
				return report, storeError(err)
			}
			for _, e := range page {
				report.Looked++
				if err := a.sweep(ctx, e, &report); err != nil {
					return report, err
				}
			}
			if len(page) < sweepPage {
				break
			}
			f.After = page[len(page)-1].Cursor
		}
	}
	return report, nil
}

func (a *Activities) sweep(ctx context.Context, e store.Effect, report *signals.Swept) error {
	run, alive, err := a.ownerOf(ctx, e)
	if err != nil {
		return err
	}
	if alive {
		report.Alive++
		return nil
	}
	ref := store.RunRef{Tenant: e.Tenant, Address: e.Address}
	task := taskOf(e, run.User)
	if asker, err := a.asker(task); err != nil {
		report.Unasked = append(report.Unasked, signals.Unasked{Tenant: e.Tenant, Key: e.Key, Reason: clip(err.Error())})
		return nil
	} else if asker != nil {
		happened, err := asker.Reconcile(ctx, task, a.ports(ref), e.Attempts)
		switch {
		case err != nil:
			report.Unasked = append(report.Unasked, signals.Unasked{Tenant: e.Tenant, Key: e.Key, Reason: clip(err.Error())})
		case happened:
			report.Applied++
		default:
			report.NotApplied++
		}
		return nil
	}
	if e.State() == store.StateInDoubt {
		report.Waiting++
		return nil
	}
	reason := fmt.Sprintf("its run has ended (%s), and nobody knows whether it happened", run.Head.Status)
	if e.Reason != "" {
		reason += ": " + e.Reason
	}
	if err := a.Store.MarkDoubt(ctx, e.Tenant, e.Key, clip(reason)); err != nil {
		return storeError(err)
	}
	report.InDoubt++
	a.log().Warn("an effect is in doubt: find out whether it happened, and interlock ledger resolve "+e.Key,
		"tenant", e.Tenant, "address", e.Address, "step", e.Step, "tool", e.Tool)
	return nil
}

// asker is the runner of a tool that can be asked, nil for one that cannot.
func (a *Activities) asker(task agent.Task) (tool.Reconciler, error) {
	if task.Effect != agent.Reconcilable {
		return nil, nil
	}
	runner, _, err := a.runner(task)
	if err != nil {
		return nil, err
	}
	asker, _ := runner.(tool.Reconciler)
	return asker, nil
}

// ownerOf is the run that an effect is of, and whether it can still see to it. A
// run that the journal has as under way may have been terminated, which only
// Temporal knows.
func (a *Activities) ownerOf(ctx context.Context, e store.Effect) (run store.RunRow, alive bool, err error) {
	first, own := strings.CutPrefix(e.Scope, e.Address+"/")
	if !own {
		first = "" // its effects are of another run's scope
	}
	run, err = a.Store.RunRow(ctx, store.Chain{Tenant: e.Tenant, Address: e.Address, FirstRunID: first})
	if agent.ErrorCode(err) == agent.CodeNotFound {
		run, err = store.RunRow{FirstRunID: first}, nil
	}
	if err != nil {
		return run, false, storeError(err)
	}
	if run.Head.Status.Ended() || a.Alive == nil {
		return run, !run.Head.Status.Ended(), nil
	}
	alive, err = a.Alive(ctx, e.Address, run.FirstRunID)
	if err != nil {
		return run, false, failed(signals.ErrUnavailable, fmt.Sprintf("Temporal does not say whether run %s is under way: %v", e.Address, err))
	}
	if !alive && !run.Head.Status.Ended() {
		run.Head.Status = "terminated" // of which its journal knows nothing
	}
	return run, alive, nil
}

// taskOf is the task that an effect was claimed for.
func taskOf(e store.Effect, user string) agent.Task {
	return agent.Task{Step: e.Step, Agent: e.Agent, Version: e.Version, Tool: e.Tool, Args: e.Args, Effect: e.Kind, Key: e.Key,
		Scope: e.Scope, Ordinal: e.Ordinal, Tenant: e.Tenant, User: user, Limit: agent.DefaultLimits().Result}
}

// Resolve settles an effect in doubt whose run has ended, as a person has found
// out. The answer is a refusal where it may not be.
func (a *Activities) Resolve(ctx context.Context, in signals.Resolution) (signals.Resolving, error) {
	err := a.settle(ctx, in)
	switch code := agent.ErrorCode(err); {
	case err == nil:
		return signals.Resolving{}, nil
	case code == agent.CodeInternal || code == agent.CodeUnavailable:
		return signals.Resolving{}, failed(signals.ErrStore, err.Error())
	default:
		return signals.Resolving{Code: code, Reason: clip(err.Error())}, nil
	}
}

func (a *Activities) settle(ctx context.Context, in signals.Resolution) error {
	if strings.TrimSpace(in.Reason) == "" || in.Principal.Subject == "" {
		return agent.Errorf(agent.CodeInvalid, "a resolution needs who found it out, and how")
	}
	e, err := a.Store.Effect(ctx, in.Tenant, in.Key)
	if err != nil {
		return err
	}
	o := store.Outcome{Status: store.EffectRefused, Reason: clip("it did not happen: " + in.Principal.Subject + " found out: " + in.Reason), By: in.Principal.Subject}
	if in.Happened {
		o = store.Outcome{Status: store.EffectApplied, Reason: clip(in.Reason), By: in.Principal.Subject}
		if o.Result, err = a.checkedResult(e, in); err != nil {
			return err
		}
	}
	if e.Status != store.EffectClaimed {
		return a.Store.Settle(ctx, in.Tenant, in.Key, o) // a repeat; else a conflict
	}
	stranded, err := a.Store.Effects(ctx, in.Tenant, store.EffectFilter{Address: e.Address, Stranded: true, Grace: tool.Grace})
	if err != nil {
		return err
	}
	marked := e.State() == store.StateInDoubt
	for _, s := range stranded {
		marked = marked || s.Key == e.Key
	}
	if !e.Open() {
		return agent.Errorf(agent.CodeConflict, "no attempt had effect %s, for certain: there is nothing to find out", e.Key)
	}
	if !marked {
		return agent.Errorf(agent.CodeConflict, "an attempt may still act on effect %s until %s: wait until then", e.Key, e.Deadline.Add(tool.Grace).Format(time.RFC3339))
	}
	if _, alive, err := a.ownerOf(ctx, e); err != nil || alive {
		if alive {
			err = agent.Errorf(agent.CodeConflict, "run %s is under way: say it at the step's gate (interlock gate happened %s %s-doubt, or did-not-happen), or cancel the run first", e.Address, e.Address, e.Step)
		}
		return err
	}
	return a.Store.Settle(ctx, in.Tenant, in.Key, o)
}

// checkedResult is the result that a person gives, in canonical form, where it is
// one of the tool's.
func (a *Activities) checkedResult(e store.Effect, in signals.Resolution) (agent.JSON, error) {
	if len(in.Result) == 0 {
		return nil, agent.Errorf(agent.CodeInvalid, "happened needs the result, as the tool would have answered it")
	}
	def, err := a.Agents.Get(e.Agent, e.Version)
	if err == nil {
		return def.CheckResult(e.Tool, in.Result)
	}
	if !in.Unchecked {
		return nil, agent.Errorf(agent.CodeInvalid, "no worker here has agent %s/v%d, which knows what a result of %s looks like: deploy one, or say that the result is to be taken unchecked", e.Agent, e.Version, e.Tool)
	}
	return agent.Canonical(in.Result)
}
