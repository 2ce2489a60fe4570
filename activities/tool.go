package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
)

// RunTool is every tool's activity: it dispatches on the task, so that the
// activity type can speak the team's language.
func (a *Activities) RunTool(ctx context.Context, in signals.ToolInput) (signals.ToolOutput, error) {
	past := pastOf(ctx, in)
	stop := beat(ctx, past)
	defer stop()
	// Nothing that a ReadOnly tool does rests on its events: they are committed,
	// but do not wait for the disk, and are not acknowledged, so that the next
	// activity carries them too. One wait a turn is saved.
	commit := a.Store.Append
	if in.Task.Effect == agent.ReadOnly {
		commit = a.Store.AppendSoon
	}
	carried, err := a.ride(ctx, in.Ride, commit)
	if err != nil {
		return signals.ToolOutput{}, err
	}
	if in.Task.Effect == agent.ReadOnly {
		carried.Acked, carried.Store = 0, ""
	}
	began := time.Now()
	result, stood, err := a.stoodAfterAll(ctx, in)
	ref := ref(ctx, in.FirstRunID, in.Batch.Store)
	if err == nil && !stood {
		result, err = a.run(ctx, in, ref, past)
	}
	if err == nil {
		err = a.undone(ctx, in.Task, ref)
	}
	if err != nil {
		if stop(); past.learn(err, in, began) {
			activity.RecordHeartbeat(ctx, past.Past)
		}
		return signals.ToolOutput{}, a.redacted(ctx, ref, err)
	}
	out := signals.ToolOutput{Carried: carried, ToolResult: toolResult(result)}
	out.ActiveMS = activeMS(ctx, began)
	return out, nil
}

// stoodAfterAll finds the effect that a person has said did not happen, and wants
// again by this step, but that an attempt has recorded meanwhile. Its result is
// this step's too.
func (a *Activities) stoodAfterAll(ctx context.Context, in signals.ToolInput) (tool.Result, bool, error) {
	for _, x := range in.Resolved {
		if x.Refused == "" || x.Task.Tool != in.Task.Tool || !x.Task.Args.Equal(in.Task.Args) {
			continue
		}
		row, err := a.ports(ref(ctx, in.FirstRunID, in.Batch.Store)).Ledger.Row(ctx, x.Task)
		if err != nil {
			return tool.Result{}, false, storeError(err)
		}
		if row != nil && row.Settled != nil && row.Settled.Ended() == nil {
			return row.Settled.Result, true, nil
		}
	}
	return tool.Result{}, false, nil
}

// held is the hold that keeps a Transactional tool's effect from starting: its
// claim is in the tool's own database, where no hold stands. An effect that stands
// is told all the same.
func (a *Activities) held(ctx context.Context, runner tool.Runner, task agent.Task, ref store.RunRef) error {
	h, err := a.Store.Held(ctx, ref.Tenant, task.Agent, task.Tool)
	if err != nil {
		return storeError(err)
	}
	if h == nil {
		return nil
	}
	if _, stands, err := runner.Standing(ctx, task, a.ports(ref)); err != nil || stands {
		return err
	}
	return failed(signals.ErrHeld, h.String())
}

// activeMS is how long this attempt took, where there were others: what they
// waited for is no work of the run's. 0 where the run's own clock says it.
func activeMS(ctx context.Context, began time.Time) int64 {
	if activity.GetInfo(ctx).Attempt <= 1 {
		return 0
	}
	return max(time.Since(began).Milliseconds(), 1)
}

// RunQuickTool is a quick ReadOnly tool inside the workflow's task: it carries
// nothing and has one attempt.
func (a *Activities) RunQuickTool(ctx context.Context, task agent.Task) (signals.ToolResult, error) {
	runner, _, err := a.runner(task)
	if err != nil {
		return signals.ToolResult{}, err
	}
	r, err := runner.Attempt(ctx, task, tool.Ports{})
	if err != nil {
		a.sawPanic(ctx, ref(ctx, "", ""), task, err)
		return signals.ToolResult{}, a.redacted(ctx, ref(ctx, "", ""), toolError(err))
	}
	return toolResult(r), nil
}

// attempt runs a tool once, a ReadOnly one up to three times: those tries are
// counted here, so that a worker that lacks the tool or a store that is down
// uses none of them up. A wait that the other side asks for is Temporal's, and
// holds no worker: the tries begin anew after it.
func (a *Activities) attempt(ctx context.Context, in signals.ToolInput, ref store.RunRef, past *past) (tool.Result, error) {
	task := in.Task
	runner, info, err := a.runner(task)
	if err != nil {
		return tool.Result{}, err
	}
	tries := 1
	switch info.Effect {
	case agent.ReadOnly:
		tries = tool.ReadAttempts
	case agent.Transactional:
		if err := a.held(ctx, runner, task, ref); err != nil {
			return tool.Result{}, err
		}
	}
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err() // it was stopped right before it began
	}
	runs, release := toItsEnd(ctx, info)
	defer release()
	for n := 1; ; n++ {
		bounded, cancel := context.WithTimeout(runs, info.Timeout)
		ports := a.ports(ref)
		ports.Began = activity.GetInfo(ctx).StartedTime // by the server's clock
		ports.NotAfter = notAfter(ctx, task, past)
		ports.Panicked = func(p *tool.Panicked) { a.panicked(ctx, ref, task.Step, p) }
		result, err := runner.Attempt(bounded, task, ports)
		cancel()
		a.sawPanic(ctx, ref, task, err)
		if err == nil {
			return result, nil
		}
		var f *tool.Failure
		if ctx.Err() != nil && (!errors.As(err, &f) || f.Kind != tool.FailedUnknown) {
			return tool.Result{}, ctx.Err() // the run let go of this step, or the worker stops
		}
		again := errors.As(err, &f) && f.Kind == tool.FailedNotApplied && f.Wait == 0 && n < tries
		if !again {
			return tool.Result{}, finalToolError(err, info, past.over(in, info, f), past)
		}
		select {
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		case <-time.After(time.Duration(n) * time.Second):
		}
	}
}

// toolError gives a failure its type. Whether it is tried again is decided by
// what is known: only a refusal for good is the end at once.
func toolError(err error) error {
	var f *tool.Failure
	if !errors.As(err, &f) {
		return failed(signals.ErrUnknown, err.Error(), true)
	}
	switch f.Kind {
	case tool.FailedRefused:
		return failedForGood(signals.ErrRefused, f.Error())
	case tool.FailedNotApplied:
		return failedAfter(f.Wait, signals.ErrNotApplied, f.Error(), f.Open)
	case tool.FailedFenced:
		return failedForGood(signals.ErrFenced, f.Error())
	case tool.FailedHeld:
		return failed(signals.ErrHeld, f.Error())
	case tool.FailedEarlier:
		return failedAfter(f.Wait, signals.ErrEarlier, f.Error())
	case tool.FailedInDoubt:
		return failedForGood(signals.ErrUnknown, f.Error(), true)
	case tool.FailedStore:
		if code := agent.ErrorCode(f.Err); code == agent.CodeInvalid || code == agent.CodeConflict {
			return failedForGood(signals.ErrInvalid, f.Error()) // the ledger will never take this claim
		}
		return failed(signals.ErrStore, f.Error())
	}
	return failedAfter(f.Wait, signals.ErrUnknown, f.Error(), true)
}

// failedAfter is [failed] with the wait before the next try; 0: as usual.
func failedAfter(wait time.Duration, kind, text string, details ...any) error {
	return temporal.NewApplicationErrorWithOptions(clip(text), kind, temporal.ApplicationErrorOptions{NextRetryDelay: wait, Details: details})
}

// finalToolError: a ReadOnly tool has used its tries up; one with an effect is
// tried again until its time is up, and so is what the other side put off.
func finalToolError(err error, info agent.ToolInfo, over bool, past *past) error {
	var f *tool.Failure
	if !errors.As(err, &f) {
		return toolError(err)
	}
	switch {
	case f.Kind == tool.FailedNotApplied && (info.Effect == agent.ReadOnly && f.Wait == 0 || over):
		return failedForGood(signals.ErrNotApplied, f.Error(), f.Open)
	case f.Kind == tool.FailedLate && over:
		return failedForGood(signals.ErrNotApplied, "its time is up", false)
	case f.Kind == tool.FailedLate:
		return failedForGood(signals.ErrJudgeAgain, f.Error(), past.Past)
	case f.Kind == tool.FailedUnknown && over:
		return failedForGood(signals.ErrUnknown, f.Error(), true)
	}
	return toolError(err)
}

// clip makes of an error's text what Temporal and every store take: valid, and
// small enough for a history.
func clip(s string) string {
	const most, kept = 2000, 1900
	size := len(s)
	if size > most {
		n := kept
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = fmt.Sprintf("%s … (%d bytes)", s[:n], size)
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}

func (a *Activities) ports(ref store.RunRef) tool.Ports {
	return tool.Ports{
		Ledger: Ledger(a.Store, ref),
		Keep: func(ctx context.Context, whole []byte) (agent.Blob, error) {
			return a.Store.PutBlob(ctx, ref.Tenant, whole)
		},
	}
}

// Ledger is the store's ledger, bound to one run.
func Ledger(s store.Ledger, ref store.RunRef) tool.Ledger { return ledger{s, ref} }

type ledger struct {
	store store.Ledger
	ref   store.RunRef
}

// claim names a task's effect.
func (l ledger) claim(t agent.Task) store.Claim {
	return store.Claim{Tenant: l.ref.Tenant, Key: t.Key, Address: l.ref.Address, Scope: t.Scope, Agent: t.Agent,
		Version: t.Version, Tool: t.Tool, Kind: t.Effect, Step: t.Step, Ordinal: t.Ordinal, Args: t.Args, Branch: l.ref.Branch, Store: l.ref.Store}
}

func (l ledger) Fence(ctx context.Context, t agent.Task, reason string) (tool.Row, error) {
	c := l.claim(t)
	c.Grace = tool.Grace
	e, err := l.store.Fence(ctx, c, clip(reason))
	return rowOf(e), err
}

func (l ledger) Claim(ctx context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	c := l.claim(t)
	c.Attempt, c.Began, c.Exclusive, c.Grace, c.NotAfter = by.Attempt, by.Began, by.Exclusive, by.Grace, by.NotAfter
	e, fresh, err := l.store.Claim(ctx, c)
	if err != nil {
		return tool.Row{}, err
	}
	row := rowOf(e)
	if row.Wait == 0 && row.Held == "" && !row.Late { // this attempt is counted, and is no earlier one
		row.Open = !fresh && e.Attempts-1 > e.Released
	}
	return row, nil
}

func (l ledger) Settle(ctx context.Context, t agent.Task, s tool.Settlement) error {
	o := store.Outcome{Status: store.EffectApplied, Result: s.Result.Stored(), Whole: s.Result.Whole, Reason: clip(s.How), By: s.By}
	if s.Refused != "" {
		o = store.Outcome{Status: store.EffectRefused, Reason: clip(s.Refused), By: s.By}
	}
	return l.store.Settle(ctx, l.ref.Tenant, t.Key, o)
}

func (l ledger) Unknown(ctx context.Context, t agent.Task, attempt int, reason string) (tool.Row, error) {
	e, err := l.store.MarkUnknown(ctx, l.ref.Tenant, t.Key, attempt, clip(reason))
	return rowOf(e), err
}

func (l ledger) Release(ctx context.Context, t agent.Task, first, last int) (tool.Row, error) {
	e, err := l.store.Release(ctx, l.ref.Tenant, t.Key, first, last)
	return rowOf(e), err
}

func (l ledger) Row(ctx context.Context, t agent.Task) (*tool.Row, error) {
	e, err := l.store.Effect(ctx, l.ref.Tenant, t.Key)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	row := rowOf(e)
	return &row, nil
}

func (l ledger) Undone(ctx context.Context, t agent.Task, by string) error {
	return l.store.MarkUndone(ctx, l.ref.Tenant, t.Key, by)
}

func rowOf(e store.Effect) tool.Row {
	row := tool.Row{Attempt: e.Attempts, Open: e.Open(), Wait: e.Wait, Late: e.Late, Tried: e.AttemptAt.Sub(e.ClaimedAt)}
	if e.Held != nil {
		row.Held = e.Held.String()
	}
	switch e.Status {
	case store.EffectRefused:
		row.Settled = &tool.Settlement{Refused: e.Reason, Fenced: e.Fenced}
	case store.EffectApplied:
		row.Settled = &tool.Settlement{Result: tool.FromStored(e.Result, e.Whole), Undone: e.UndoneBy}
	}
	return row
}

// Registered is what an activity of a given type runs; for workers.
func (a *Activities) Registered() map[string]any {
	out := map[string]any{signals.ActivityCallModel: a.CallModel, signals.ActivityRecord: a.Record, signals.ActivityFence: a.Fence,
		signals.ActivityCheckToken: a.CheckToken, signals.WorkflowSweep: a.Sweep, signals.WorkflowResolve: a.Resolve,
		signals.ActivityDeliver: a.Deliver, signals.ActivityBury: a.Bury, signals.ActivityMarkNoticed: a.MarkNoticed}
	for _, name := range a.Agents.Names() {
		for _, def := range a.Agents.Versions(name) {
			for _, t := range def.Tools() {
				out[signals.ToolActivity(name, t.Name)] = a.RunTool
				if t.Quick {
					out[signals.QuickActivity(name, t.Name)] = a.RunQuickTool
				}
			}
		}
	}
	return out
}
