package workflows_test

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
)

// A held effect waits visibly, its own time does not run out, and it runs once it
// is released. What has no effect goes on.
func TestHold(t *testing.T) {
	t.Parallel()
	var sent, paid, looked atomic.Int64
	agents := lab{db: labDB(t),
		look: func(_ context.Context, a text) (text, error) { looked.Add(1); return a, nil },
		send: func(_ context.Context, _ tool.Key, a text) (text, error) { sent.Add(1); return a, nil },
		pay:  func(_ context.Context, _ *sql.Tx, a text) (text, error) { paid.Add(1); return a, nil },
	}.agent()
	model := scripted.Func("scripted", func(req llm.Request) llm.Response {
		if req.View.Turn == 1 {
			r := call("send", "a")
			r.Calls = append(r.Calls, append(call("pay", "a").Calls, call("look", "a").Calls...)...)
			return r
		}
		return toEnd
	})
	w := newWorld(t, model, agents)
	hold := store.Hold{Tenant: "acme", By: "olga", Reason: "wrong amounts"}
	_, err := w.store.Hold(w.ctx, hold)
	require.NoError(t, err)
	address := w.start("k")
	w.say(address, "go")
	eventually(t, "both wait, and say so", func() bool {
		why, err := w.starter.Why(w.ctx, address)
		held := 0
		for _, a := range why.Activities {
			if err == nil && a.Kind == signals.ErrHeld {
				held++
			}
		}
		return held == 2 && looked.Load() == 1
	})
	why, err := w.starter.Why(w.ctx, address)
	require.NoError(t, err)
	require.Contains(t, why.Sentence, "waits: tenant acme is held by olga since ")
	require.Contains(t, why.Sentence, ": wrong amounts")
	require.Contains(t, why.Next, "interlock hold release")
	require.Zero(t, sent.Load()+paid.Load())
	effects, err := w.effects(address)
	require.NoError(t, err)
	require.Empty(t, effects, "nothing was claimed")

	_, err = w.store.ReleaseHold(w.ctx, hold, "olga")
	require.NoError(t, err)
	w.finished(address, agent.RunCompleted)
	require.Equal(t, []int64{1, 1}, []int64{sent.Load(), paid.Load()})
}

// A run that was terminated sees to nothing any more: a sweep finds what it left
// open, and a person resolves it.
func TestSweepAndResolve(t *testing.T) {
	t.Parallel()
	w, address, gate, shots := doubtful(t)
	var key string
	eventually(t, "the gate's record says so in the ledger", func() bool {
		effects, err := w.effects(address)
		if err != nil || len(effects) != 1 || effects[0].State() != store.StateInDoubt {
			return false
		}
		key = effects[0].Key
		return true
	})
	found := signals.Resolution{Tenant: "acme", Key: key, Happened: true, Result: agent.JSON(`{"text":"seen"}`), Principal: operator, Reason: "in the list"}

	err := w.starter.ResolveEffect(w.ctx, found)
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err))
	require.ErrorContains(t, err, "interlock gate happened "+address+" "+gate.ID)

	require.NoError(t, temporalClient.TerminateWorkflow(w.ctx, address, "", "by mistake"))
	w.later(time.Hour)
	report, err := w.starter.Sweep(w.ctx)
	require.NoError(t, err)
	require.Equal(t, []int{1, 0, 0, 0, 0, 1}, []int{report.Looked, report.Alive, report.Applied, report.NotApplied, report.InDoubt, report.Waiting})

	wrong := found
	wrong.Result = agent.JSON(`{"texts":1}`)
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(w.starter.ResolveEffect(w.ctx, wrong)))
	for range 2 {
		require.NoError(t, w.starter.ResolveEffect(w.ctx, found))
	}
	e, err := w.store.Effect(w.ctx, "acme", key)
	require.NoError(t, err)
	require.Equal(t, []any{store.StateApplied, "olga", "in the list", `{"text":"seen"}`}, []any{e.State(), e.By, e.Reason, e.Result.String()})
	report, err = w.starter.Sweep(w.ctx)
	require.NoError(t, err)
	require.Zero(t, report.Looked)
	require.EqualValues(t, 1, shots.Load())
}

// later lets the worker's store go by a clock that is ahead.
func (w *world) later(d time.Duration) {
	w.t.Helper()
	ahead, err := openStoreAt(w.ctx, w.dsn, func() time.Time { return time.Now().Add(d) })
	require.NoError(w.t, err)
	w.t.Cleanup(func() { w.stop(); require.NoError(w.t, ahead.Close()) })
	model := w.config.Model
	w.config.Store = ahead
	w.serve(model, w.agents...)
}

func TestScheduledSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, turns(toEnd), lab{db: labDB(t)}.agent())
	require.NoError(t, w.starter.ScheduleSweep(w.ctx, time.Hour))
	require.NoError(t, w.starter.ScheduleSweep(w.ctx, time.Minute), "it is changed")
	handle := temporalClient.ScheduleClient().GetHandle(w.ctx, signals.WorkflowSweep+"/"+w.config.Settings.TaskQueue)
	d, err := handle.Describe(w.ctx)
	require.NoError(t, err)
	require.Equal(t, time.Minute, d.Schedule.Spec.Intervals[0].Every)
	require.NoError(t, handle.Trigger(w.ctx, client.ScheduleTriggerOptions{}))
	eventually(t, "a sweep has run", func() bool {
		d, err := handle.Describe(w.ctx)
		return err == nil && len(d.Info.RecentActions) > 0 && len(d.Info.RunningWorkflows) == 0
	})
	for range 2 {
		require.NoError(t, w.starter.ScheduleSweep(w.ctx, 0))
	}
	_, err = handle.Describe(w.ctx)
	require.Error(t, err)
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(w.starter.ScheduleSweep(w.ctx, -1)))
}
