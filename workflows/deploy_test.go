package workflows_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/starter"
	"interlock/tool"
	"interlock/worker"
)

// impatient is a starter whose calls give up soon.
func (w *world) impatient() *starter.Starter {
	return starter.New(temporalClient, starter.WithReader(w.store), starter.WithTaskQueue(w.config.Settings.TaskQueue), starter.WithDeadline(3*time.Second))
}

// A panic in the agent's code blocks the run, which says so, and a worker with
// the mended code lets it go on: no input is lost and none counts twice.
func TestDeploy_MendedGuard(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	model := watch(turns(scripted.Then(call("pay", "1"), toEnd), scripted.Say("Not yet.")))
	w := newWorld(t, model, lab{db: db, guard: func(agent.Situation[labState]) error { panic("nobody thought of this") }}.agent())
	address := w.start("k")
	w.say(address, "pay and end")
	eventually(t, "the task fails", func() bool {
		d, err := describe(w.ctx, address)
		return err == nil && d.GetPendingWorkflowTask().GetAttempt() > 1
	})
	m := signals.Message{ID: "second", Principal: customer, Text: "hello?"}
	_, err := w.impatient().Message(w.ctx, address, m)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.Contains(t, err.Error(), "workflow task has failed")
	require.Zero(t, payments(t, db), "nothing of the proposal was done")
	require.Equal(t, "RUNNING", strings.ToUpper(w.status(address).String()))

	w.serve(model, lab{db: db, guard: func(agent.Situation[labState]) error { return errors.New("not yet") }}.agent())
	w.until(address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn >= 2 })
	r, err := w.starter.Message(w.ctx, address, m)
	require.NoError(t, err)
	require.Contains(t, []agent.ReceiptStatus{agent.Accepted, agent.Repeated}, r.Status)
	require.Equal(t, 1, model.calls(1), "the recorded answer is used")
	require.Equal(t, 1, payments(t, db))
	require.Len(t, recorded[agent.Proposal](w, address, agent.EventProposal)[0].Calls, 2)
}

// A run pins its version: a worker without it blocks the run, one with it goes
// on, whatever newer version it has beside.
func TestDeploy_MissingVersion(t *testing.T) {
	t.Parallel()
	model := watch(turns(scripted.Say("One."), scripted.Say("Two.")))
	db := labDB(t)
	one, two := lab{db: db, version: 1}.agent(), lab{db: db, version: 2, taken: func(*labState, text, text) error { return errors.New("two") }}.agent()
	w := newWorld(t, model, one)
	address := w.start("k")
	w.chat(address, "hello")
	w.serve(model, two)
	m := signals.Message{ID: "second", Principal: customer, Text: "and now?"}
	_, err := w.impatient().Message(w.ctx, address, m)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.Len(t, model.seen(t), 1)
	w.serve(model, one, two)
	_, err = w.starter.Message(w.ctx, address, m)
	require.NoError(t, err)
	run := w.until(address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 2 })
	require.Equal(t, 1, run.Version)
	w.requireJournal(run)
	w.requireReplay(address)
	newer := w.start("k2")
	require.Equal(t, 2, w.until(newer, "started", waiting("user")).Version)
}

// A tool whose code is not deployed is waited for, outside of its attempts.
func TestDeploy_MissingTool(t *testing.T) {
	t.Parallel()
	sends := newCounter()
	full := lab{db: labDB(t), send: sends.tool}
	model := watch(turns(call("send", "1"), scripted.Say("Sent.")))
	block := newBlocking()
	blocked := full
	blocked.send = func(ctx context.Context, k tool.Key, a text) (text, error) {
		if err := block.wait(ctx); err != nil {
			return a, err
		}
		return sends.tool(ctx, k, a)
	}
	w := newWorld(t, model, blocked.agent())
	address := w.start("k")
	w.say(address, "send")
	block.awaitBegun(t)
	// The step's activity is under way; its attempt ends with this worker.
	other := lab{db: full.db, version: 2, send: sends.tool}.agent()
	w.serve(model, other)
	eventually(t, "the activity says what is missing", func() bool {
		return strings.Contains(w.failures(address), "agent lab/v1 is not deployed on this worker; it serves lab/v2")
	})
	require.Zero(t, sends.total())
	w.serve(model, full.agent(), other)
	run := w.until(address, "sent", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 2 })
	require.Equal(t, 1, sends.total())
	w.requireJournal(run)
}

// Temporal's replay cannot see a changed Commit. The journal's chain does: the
// next activity is refused before anything has an effect, and says where; with
// the old code, a reset to before it lets the run go on.
func TestDeploy_DivergedIsCaughtBeforeTheNextEffect(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	model := watch(turns(call("look", "a"), scripted.Say("Seen."), call("pay", "1"), scripted.Say("Paid.")))
	was := lab{db: db}.agent()
	w := newWorld(t, model, was)
	address := w.start("k")
	w.chat(address, "look")
	w.quiet(address)
	w.serve(model, lab{db: db, taken: func(s *labState, _, r text) error { s.Seen = r.Text + ", changed"; return nil }}.agent())
	_, err := w.starter.Message(w.ctx, address, signals.Message{ID: "pay", Principal: customer, Text: "pay"})
	require.NoError(t, err)
	eventually(t, "the pending activity says why", func() bool { return strings.Contains(w.failures(address), "diverged") })
	failure := w.failures(address)
	require.Contains(t, failure, "follows another history")
	require.Contains(t, failure, "event ")
	require.Contains(t, failure, "reset the run to before its journal")
	require.Zero(t, payments(t, db))
	require.Len(t, model.seen(t), 2, "the model is not asked on a state that nobody recorded")
	_, err = w.impatient().Cancel(w.ctx, address, signals.Cancel{ID: "c", Principal: agent.Principal{Subject: strings.Repeat("x", 300)}})
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "it answers: %v", err)

	w.serve(model, was)
	first := w.runID(address)
	second := w.reset(address, first, taskOf(t, w.history(address, first), "CallModel", 3))
	run := w.until(address, "paid", func(r *agent.Run) bool { return w.runID(address) == second && waiting("user")(r) && r.Turn == 4 })
	require.Equal(t, 1, payments(t, db))
	require.Contains(t, run.State.String(), `"seen":"a"`)
	w.requireJournal(run)
}

// A worker that stops lets a running tool end, within its time.
func TestStop_LetsAToolEnd(t *testing.T) {
	t.Parallel()
	w := idleWorld(t, false)
	w.config.Settings.ShutdownTimeout = time.Minute
	block, sends := newBlocking(), newCounter()
	l := lab{db: labDB(t), send: func(ctx context.Context, k tool.Key, a text) (text, error) {
		if err := block.wait(ctx); err != nil {
			return a, err
		}
		return sends.tool(ctx, k, a)
	}}
	model := turns(call("send", "1"), scripted.Say("Sent."))
	w.serve(model, l.agent())
	address := w.start("k")
	w.say(address, "send")
	block.awaitBegun(t)
	stopped := make(chan struct{})
	go func() { defer close(stopped); w.worker.Stop() }()
	eventually(t, "the worker takes nothing new", func() bool { return goroutines("baseWorker).Stop") > 0 })
	close(block.free)
	await(t, stopped, "the worker stops")
	require.Equal(t, 1, sends.total())
	w.serve(model, l.agent())
	w.until(address, "sent", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 2 })
	require.Equal(t, 1, sends.total(), "its result was reported")
	effects, err := w.effects(address)
	require.NoError(t, err)
	require.Equal(t, 1, effects[0].Attempts)
}

// A tool that takes longer is told to end, and handed over at once: the next
// worker need not wait for a heartbeat to be missed, and has the same key.
func TestStop_HandsAToolOver(t *testing.T) {
	t.Parallel()
	w := idleWorld(t, false)
	w.config.Settings.ShutdownTimeout = time.Second
	block, sends := newBlocking(), newCounter()
	var first atomic.Value
	db := labDB(t)
	model := turns(call("send", "1"), scripted.Say("Sent."))
	w.serve(model, lab{db: db, send: func(ctx context.Context, k tool.Key, a text) (text, error) {
		first.Store(k)
		return a, block.wait(ctx)
	}}.agent())
	address := w.start("k")
	w.say(address, "send")
	block.awaitBegun(t)
	began := time.Now()
	w.worker.Stop()
	require.ErrorIs(t, await(t, block.ended, "the tool is told"), context.Canceled)
	w.serve(model, lab{db: db, send: sends.tool}.agent())
	w.until(address, "sent", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 2 })
	t.Logf("handed over within %s", time.Since(began).Round(time.Millisecond))
	require.Equal(t, 1, sends.total())
	require.True(t, sends.keys[first.Load().(tool.Key)], "the same key")
}

// A worker that has stopped leaves no goroutine of ours behind. This test is
// not parallel: while it runs, no other worker is up.
func TestStop_LeavesNothing(t *testing.T) {
	w := newWorld(t, refund.Model())
	address := w.start("k")
	w.decide(address, w.toGate(address), agent.Approve, "")
	w.finished(address, agent.RunCompleted)
	w.stop()
	for _, ours := range []string{"interlock/activities.", "interlock/workflows.", "interlock/worker.", "interlock/tool.", "interlock/agent."} {
		eventually(t, "no goroutine is left in "+ours, func() bool { return goroutines(ours) == 0 })
	}
}

// Run serves until its context ends, then stops and returns.
func TestWorker_RunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := idleWorld(t, false)
	config := w.config
	config.Model = turns(scripted.Say("Hello."))
	served, err := worker.New(config, lab{db: labDB(t)}.agent())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- served.Run(ctx) }()
	started, err := w.starter.Start(w.ctx, w.startInput("k"))
	require.NoError(t, err)
	w.say(started.Address, "hi")
	w.until(started.Address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 1 })
	cancel()
	require.NoError(t, <-ended)
}
