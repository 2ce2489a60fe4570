package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
)

// interrupt is a message with a policy of its own.
func (w *world) interrupt(address, text string, policy agent.MessagePolicy) agent.Receipt {
	w.t.Helper()
	r, err := w.starter.Message(w.ctx, address, signals.Message{ID: w.id("m"), Principal: customer, Text: text, Policy: policy})
	require.NoError(w.t, err)
	return r
}

// A cooperative tool with an effect is told to stop within two seconds. Where it
// says that it did nothing, its step is cancelled, and its effect closed: the
// ledger refuses it from then on.
func TestCut_ToolIsToldWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	begun, told := make(chan struct{}, 1), make(chan time.Time, 1)
	l := lab{db: labDB(t), undo: &labUndo{}, cut: agent.CutUndo, send: func(ctx context.Context, _ tool.Key, a text) (text, error) {
		begun <- struct{}{}
		<-ctx.Done()
		told <- time.Now()
		return text{}, tool.NotApplied(ctx.Err())
	}}
	model := watch(turns(call("send", "1"), scripted.Say("I stopped.")))
	w := newWorld(t, model, l.agent())
	address := w.start("k")
	w.say(address, "send 1")
	await(t, begun, "the tool begins")
	asked := time.Now()
	r := w.interrupt(address, "stop", agent.MessageInterrupt)
	require.Equal(t, &agent.Took{How: agent.TookInterrupted, Turn: 2}, r.Took)
	took := await(t, told, "the tool is told").Sub(asked)
	require.Less(t, took, 3*time.Second, "a heartbeat a second, throttled to one and a half")
	t.Logf("the tool was told after %s", took)
	run := w.until(address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 2 })
	require.Equal(t, agent.StepCancelled, run.Steps[0].Status, run.Steps[0].Reason)
	effects, err := w.effects(address)
	require.NoError(t, err)
	require.Equal(t, store.EffectRefused, effects[0].Status)
	model.seen(t)
	w.cancelled(address)
}

// A tool that does not listen runs to its end, and what it did is undone; one that
// does not say what it did leaves its step in doubt.
func TestCut_ToolThatHappened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    func(context.Context) error
		status agent.StepStatus
	}{
		"happened": {func(context.Context) error { return nil }, agent.StepUndone},
		"unknown":  {func(ctx context.Context) error { return ctx.Err() }, agent.StepInDoubt},
		"refused":  {func(ctx context.Context) error { return tool.Refused(ctx.Err()) }, agent.StepCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := make(chan struct{}, 1)
			u := &labUndo{}
			l := lab{db: labDB(t), undo: u, cut: agent.CutUndo, send: func(ctx context.Context, _ tool.Key, a text) (text, error) {
				begun <- struct{}{}
				<-ctx.Done()
				return a, c.err(ctx)
			}}
			model := watch(turns(call("send", "1"), scripted.Say("I see.")))
			w := newWorld(t, model, l.agent())
			address := w.start("k")
			w.say(address, "send 1")
			await(t, begun, "the tool begins")
			w.interrupt(address, "stop", agent.MessageInterrupt)
			run := w.until(address, "an answer", func(r *agent.Run) bool { return r.Status == agent.RunWaiting && r.Turn == 2 && r.Owed == 0 })
			require.Equal(t, c.status, run.Steps[0].Status, run.Steps[0].Reason)
			require.Equal(t, c.status == agent.StepUndone, u.noted() == "unsend:1:1", u.noted())
			model.seen(t)
			w.requireJournal(run)
			w.requireReplay(address)
			if c.status == agent.StepInDoubt {
				require.Equal(t, "operator", run.Reason)
				return
			}
			w.cancelled(address)
		})
	}
}

// A step whose attempts fail is cut between two of them: nothing runs, and only the
// ledger knows.
func TestCut_BetweenAttempts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		status agent.StepStatus
	}{
		"nothing happened": {tool.RetryAfter(tool.NotApplied(context.DeadlineExceeded), time.Minute), agent.StepCancelled},
		"nobody knows":     {tool.RetryAfter(context.DeadlineExceeded, time.Minute), agent.StepInDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := make(chan struct{}, 1)
			l := lab{db: labDB(t), undo: &labUndo{}, cut: agent.CutUndo, send: func(context.Context, tool.Key, text) (text, error) {
				begun <- struct{}{}
				return text{}, c.err
			}}
			w := newWorld(t, turns(call("send", "1"), scripted.Say("I see.")), l.agent())
			address := w.start("k")
			w.say(address, "send 1")
			await(t, begun, "the tool begins")
			eventually(t, "the attempt has ended", func() bool { return w.failures(address) != "" })
			w.interrupt(address, "stop", agent.MessageInterrupt)
			run := w.until(address, "an answer", func(r *agent.Run) bool { return r.Status == agent.RunWaiting && r.Turn == 2 && r.Owed == 0 })
			require.Equal(t, c.status, run.Steps[0].Status, run.Steps[0].Reason)
			w.requireJournal(run)
			w.requireReplay(address)
		})
	}
}
