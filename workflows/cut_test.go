package workflows_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
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
	require.Equal(t, &agent.Took{How: agent.TookInterrupted, Turn: 2, Stopping: []string{"1.1"}}, r.Took)
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

// The model call itself is let go: nobody waits for it, and its late answer starts
// nothing.
func TestCut_ModelCall(t *testing.T) {
	t.Parallel()
	slow, db := slowModel{newBlocking()}, labDB(t)
	model := watch(asked(func(req llm.Request) llm.Model {
		if req.View.Turn == 1 {
			return slow
		}
		return says(scripted.Say("Tell me."))
	}))
	w := newWorld(t, model, lab{db: db, onMessage: agent.MessageInterrupt}.agent())
	address := w.start("k")
	w.say(address, "pay")
	slow.awaitBegun(t)
	began := time.Now()
	require.Equal(t, &agent.Took{How: agent.TookInterrupted, Turn: 2}, w.say(address, "wait").Took, "the agent's own policy")
	run := w.until(address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 2 })
	require.Less(t, time.Since(began), 20*time.Second, "the next call does not wait for the one that was let go")
	require.ErrorIs(t, await(t, slow.ended, "the call is cut"), context.Canceled)
	require.Equal(t, "a message of c-017 came", run.Turns[0].Cut)
	require.Zero(t, payments(t, db))
	model.seen(t)
	w.cancelled(address)
}

// Messages that cut, one after the other: taken in order, merged while the first is
// settling, and each sender is told.
func TestCut_SeveralAtOnce(t *testing.T) {
	t.Parallel()
	b := newBusyLab(t)
	first := b.interrupt(b.address, "stop", agent.MessageInterrupt)
	second := b.interrupt(b.address, "no, take it back", agent.MessageRollback)
	queued := b.interrupt(b.address, "and tell me", agent.MessageQueue)
	require.Equal(t, []agent.Took{{How: agent.TookInterrupted, Turn: 2, Stopping: []string{"1.2", "1.3"}}, {How: agent.TookMerged, Turn: 2}, {How: agent.TookQueued, Turn: 2}},
		[]agent.Took{*first.Took, *second.Took, *queued.Took})
	_, err := b.starter.Message(b.ctx, b.address, signals.Message{ID: "r", Principal: customer, Text: "hello?", Policy: agent.MessageReject})
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err))
	require.ErrorContains(t, err, "the run is busy (step 1.2, send, is being stopped; step 1.3, pay, is being stopped)")
	close(b.pay.free)
	close(b.send.free)
	run := b.until(b.address, "the next turn", func(r *agent.Run) bool { return r.Turn == 2 })
	require.Equal(t, map[string]agent.StepStatus{"look": agent.StepAbandoned, "send": agent.StepDone, "pay": agent.StepDone}, statuses(run))
	var texts []string
	for _, it := range run.Turns[1].Opening {
		texts = append(texts, it.Text)
	}
	require.Equal(t, []string{"stop", "no, take it back", "and tell me"}, texts[:3])
	require.Contains(t, texts[3], "send: done, and it stands: send names no compensation")
}

// A worker that is killed while a cancel undoes: the next one goes on, and the undo
// happens once.
func TestCrash_CancelThatUndoes(t *testing.T) {
	t.Parallel()
	w := idleWorld(t, false)
	db := openLabDB(t, w.file("product.db"))
	t.Cleanup(func() { _ = db.Close() })
	kill := w.child("after lab.unsend", true)
	address := w.start("k")
	w.chat(address, "send 1")
	_, err := w.starter.Cancel(w.ctx, address, signals.Cancel{ID: "c", Principal: ops, Undo: agent.UndoRun, Reason: "all back"})
	require.NoError(t, err)
	w.awaitBarrier()
	kill()
	w.serve(obeying(nil), lab{db: db, undo: &labUndo{unsend: func(context.Context, tool.Key, doneText) (text, error) { return text{"gone"}, shoot(w.dir) }}}.agent())
	run := w.finished(address, agent.RunCancelled)
	require.Equal(t, agent.StepUndone, stepOf(run, "1.1").Status)
	require.Empty(t, run.FailedEnd)
	shots, err := os.ReadFile(w.file("shots"))
	require.NoError(t, err)
	require.Equal(t, "x", string(shots), "the compensation ran once")
}

// The first message comes with the start, and waits for what that began, whatever
// the agent's policy and its own are: its sender could not be told of a refusal.
func TestCut_FirstMessage(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	l := lab{db: db, opening: []string{"1"}, undo: &labUndo{}, onMessage: agent.MessageReject}
	w := newWorld(t, watch(says(scripted.Say("Hello."))), l.agent())
	in := w.startInput("k")
	in.Message = &signals.Message{ID: "m0", Principal: customer, Text: "hi", Policy: "sometimes"}
	_, err := w.starter.Start(w.ctx, in)
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err))
	in.Message.Policy = agent.MessageRollback
	s, err := w.starter.Start(w.ctx, in)
	require.NoError(t, err)
	run := w.until(s.Address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 1 })
	require.Equal(t, agent.StepDone, run.Steps[0].Status)
	require.Equal(t, 1, payments(t, db))
	require.Empty(t, recorded[agent.InterruptedData](w, s.Address, agent.EventInterrupted))
	require.True(t, recorded[agent.MessageData](w, s.Address, agent.EventMessage)[0].First)
	again, err := w.starter.Start(w.ctx, in)
	require.NoError(t, err)
	require.False(t, again.New)
	_, err = w.starter.Say(w.ctx, s.Address, signals.Message{ID: "m1", Principal: customer, Text: "and?", Policy: agent.MessageQueue})
	require.NoError(t, err)
	w.cancelled(s.Address)
}
