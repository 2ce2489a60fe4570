// Package activities is the I/O of a run: the model call, one activity a tool,
// and the record. Every one of them first commits the events that it carries
// to the journal; what then fails has them recorded already.
package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"interlock/agent"
	"interlock/llm"
	"interlock/signals"
	"interlock/store"
	"interlock/token"
	"interlock/tool"
)

// HeartbeatEvery is how often a running activity says that it is alive, and
// hears of a cancel. With the workflow's heartbeat timeout it bounds how long a
// dead worker's steps wait.
const HeartbeatEvery = time.Second

// Activities holds what activities need. All fields are required but Alive, Trust,
// Notices and Log.
type Activities struct {
	Agents *agent.Registry
	Store  store.Store
	// Model is the model that runs an agent.
	Model func(def *agent.Definition) (llm.Model, error)
	// Alive says whether Temporal has a chain of runs under way. nil: what the
	// journal says is taken for true.
	Alive func(ctx context.Context, address, firstRunID string) (bool, error)
	// Trust is what tokens are checked by. Without it none is believed.
	Trust token.Trust
	// Notices is what notices are told by. Without it another worker tells them.
	Notices *Notices
	Log     *slog.Logger
}

// beat heartbeats until stop is called, with what the attempts before have said.
// Local activities cannot.
func beat(ctx context.Context, past *past) (stop func()) {
	if activity.GetInfo(ctx).IsLocalActivity {
		return func() {}
	}
	var details []any
	if past != nil && !past.nothing() {
		details = []any{past.Past}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(HeartbeatEvery)
		defer t.Stop()
		for { // the first after a second: most activities are done by then
			select {
			case <-done:
				return
			case <-t.C:
				activity.RecordHeartbeat(ctx, details...)
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
	})
}

// ref is the journal's name of the run that an activity belongs to, with the identity
// of the store that the run knew when the activity was scheduled.
func ref(ctx context.Context, firstRunID, storeID string) store.RunRef {
	w := activity.GetInfo(ctx).WorkflowExecution
	tenant, _, _, _ := signals.SplitAddress(w.ID)
	return store.RunRef{Tenant: tenant, Address: w.ID, FirstRunID: firstRunID, Branch: w.RunID, Store: storeID}
}

// ride commits the events that an activity carries, by the journal's Append or
// AppendSoon, and looks up the effects that it was asked about.
func (a *Activities) ride(ctx context.Context, r signals.Ride, commit func(context.Context, store.RunRef, agent.Batch) error) (signals.Carried, error) {
	ref := ref(ctx, r.FirstRunID, r.Batch.Store)
	if err := commit(ctx, ref, r.Batch); err != nil {
		return signals.Carried{}, appendError(err)
	}
	out := signals.Carried{Acked: r.Batch.Last(), Store: a.Store.Acknowledges()}
	for _, x := range r.Resolved {
		if err := a.resolve(ctx, x, ref); err != nil {
			return out, err
		}
	}
	for _, task := range r.Lookups {
		runner, _, err := a.runner(task)
		if err != nil {
			return out, err
		}
		result, ok, err := runner.Standing(ctx, task, a.ports(ref))
		if err != nil {
			return out, failed(signals.ErrStore, fmt.Sprintf("look-up of the effect of step %s: %v", task.Step, err))
		}
		switch {
		case ok:
			if err := a.undone(ctx, task, ref); err != nil {
				return out, err
			}
			out.Standing = append(out.Standing, signals.Standing{Step: task.Step, ToolResult: toolResult(result)})
		case slices.Contains(r.Doubts, task.Step):
			err := a.Store.MarkDoubt(ctx, ref.Tenant, task.Key, "no attempt has said whether it happened: a person must find out")
			if err != nil && agent.ErrorCode(err) != agent.CodeNotFound { // a Transactional tool's row is in its own database
				return out, failed(signals.ErrStore, fmt.Sprintf("mark of the doubt about step %s: %v", task.Step, err))
			}
		}
	}
	return out, nil
}

// resolve tells the ledger what a person has found out. What the ledger holds
// otherwise stays: an attempt has settled it meanwhile, and knew better.
func (a *Activities) resolve(ctx context.Context, x signals.Resolved, ref store.RunRef) error {
	err := a.ports(ref).Ledger.Settle(ctx, x.Task, tool.Settlement{Refused: x.Refused, Result: tool.Result{JSON: x.Result}, By: x.By, How: x.How})
	switch code := agent.ErrorCode(err); {
	case code == agent.CodeConflict:
		a.log().Warn("an operator's word differs from the ledger, which stays", "address", ref.Address, "step", x.Task.Step, "error", err)
	case code == agent.CodeNotFound: // a Transactional tool's row is in its own database
	case err != nil:
		return failed(signals.ErrStore, fmt.Sprintf("settlement of step %s: %v", x.Task.Step, err))
	}
	if x.Refused == "" {
		return a.undone(ctx, x.Task, ref)
	}
	return nil
}

func (a *Activities) log() *slog.Logger {
	if a.Log != nil {
		return a.Log
	}
	return slog.Default()
}

// appendError gives each refusal of the journal its type. A divergence is
// retried, and so is whatever else the store says: the run stands still, with
// the reason on its pending activity, until that is mended.
func appendError(err error) error {
	var r *store.Refusal
	if !errors.As(err, &r) {
		return failed(signals.ErrStore, err.Error())
	}
	switch r.Kind {
	case store.KeyUsed:
		return failedForGood(signals.ErrKeyUsed, r.Error())
	case store.Conflict:
		return failedForGood(signals.ErrConflict, r.Error())
	case store.Superseded:
		return failedForGood(signals.ErrSuperseded, r.Error())
	case store.Lost:
		return failed(signals.ErrLost, r.Message)
	}
	return failed(signals.ErrDiverged, fmt.Sprintf("%v; deploy the code that wrote the journal, or reset the run to before its journal's event %d", r, r.Seq))
}

// storeError: a store that cannot be reached is waited for; what it will never
// take is for good.
func storeError(err error) error {
	switch agent.ErrorCode(err) {
	case agent.CodeInvalid, agent.CodeConflict:
		return failedForGood(signals.ErrInvalid, err.Error())
	}
	return failed(signals.ErrStore, err.Error())
}

// failed is an error that an activity is tried again after. Its text is short
// and valid, whatever it was made from: Temporal drops a failure that is not,
// and the activity would seem to run until its time is up. For the same reason
// no error here has a cause, which would be sent as it is.
func failed(kind, text string, details ...any) error {
	return temporal.NewApplicationError(clip(text), kind, details...)
}

// failedForGood is [failed] without another try.
func failedForGood(kind, text string, details ...any) error {
	return temporal.NewNonRetryableApplicationError(clip(text), kind, nil, details...)
}

// Record only carries.
func (a *Activities) Record(ctx context.Context, in signals.RecordInput) (signals.RecordResult, error) {
	defer beat(ctx, nil)()
	c, err := a.ride(ctx, in.Ride, a.Store.Append)
	return signals.RecordResult{Carried: c}, err
}

func (a *Activities) definition(name string, version int) (*agent.Definition, error) {
	def, err := a.Agents.Get(name, version)
	if err != nil {
		return nil, failed(signals.ErrNotDeployed, err.Error())
	}
	return def, nil
}

func (a *Activities) runner(t agent.Task) (tool.Runner, agent.ToolInfo, error) {
	def, err := a.definition(t.Agent, t.Version)
	if err != nil {
		return nil, agent.ToolInfo{}, err
	}
	info, _ := def.Tool(t.Tool)
	r, ok := tool.RunnerOf(def, t.Tool)
	if !ok {
		return nil, info, failed(signals.ErrNotDeployed, fmt.Sprintf("agent %s/v%d has no tool %s on this worker", t.Agent, t.Version, t.Tool))
	}
	return r, info, nil
}

func toolResult(r tool.Result) signals.ToolResult {
	return signals.ToolResult{Result: r.JSON, Whole: r.Whole, Unkept: r.Unkept}
}
