package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/starter"
	"interlock/tool"
)

// short makes a run go on in a new Temporal run every few turns.
var short = agent.Limits{History: 120}

// everyFourth answers three turns of four with a call, and the fourth with words.
func everyFourth(tool string) llm.Model {
	return scripted.Func("scripted", func(req llm.Request) llm.Response {
		if req.View.Turn%4 == 0 {
			return scripted.Say(fmt.Sprintf("turn %d", req.View.Turn))
		}
		return call(tool, fmt.Sprintf("of turn %d", req.View.Turn))
	})
}

// A run outlives its Temporal runs: state, gates with their timers, ids and
// counts go on, and a verdict from before is judged after.
func TestContinue(t *testing.T) {
	t.Parallel()
	sends := newCounter()
	w := newWorld(t, everyFourth("send"), lab{db: labDB(t), send: sends.tool, limits: short}.agent())
	address := w.start("k")
	for n := 1; n <= 12; n++ {
		run := w.chat(address, fmt.Sprintf("go on, %d", n))
		require.Equal(t, 4*n, run.Turn)
		require.Equal(t, fmt.Sprintf("turn %d", 4*n), run.Reply.Text)
	}
	require.Greater(t, len(w.chain(address)), 3, "Temporal runs")
	require.Equal(t, 36, sends.total())
	require.Len(t, sends.keys, 36)
	// An id from many Temporal runs ago is known.
	r, err := w.starter.Message(w.ctx, address, signals.Message{ID: "m1", Principal: customer, Text: "go on, 1"})
	require.NoError(t, err)
	require.Equal(t, agent.Repeated, r.Status)
	_, err = w.starter.Message(w.ctx, address, signals.Message{ID: "m1", Principal: customer, Text: "something else"})
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err))
	// So is its start, by Temporal alone.
	again, err := starter.New(temporalClient, starter.WithTaskQueue(w.config.Settings.TaskQueue)).Start(w.ctx, w.startInput("k"))
	require.NoError(t, err)
	chain := w.chain(address)
	require.Equal(t, starter.Started{Address: address, FirstRunID: chain[len(chain)-1]}, again)
	for _, run := range w.chain(address) {
		require.Less(t, len(w.history(address, run)), short.History+100)
	}
	w.cancelled(address)
}

func (w *world) cancelled(address string) *agent.Run {
	w.t.Helper()
	_, err := w.starter.Cancel(w.ctx, address, signals.Cancel{ID: w.id("c"), Principal: customer})
	require.NoError(w.t, err)
	return w.finished(address, agent.RunCancelled)
}

// A gate that is open when the run is continued expires on time, and another
// one is decided.
func TestContinue_Gates(t *testing.T) {
	t.Parallel()
	gate := tool.Gate[labState, text]{Roles: []string{"refunds"}, Expires: 20 * time.Second, When: func(_ agent.Situation[labState], a text) bool { return strings.HasPrefix(a.Text, "gated") }}
	sends := newCounter()
	model := scripted.Func("scripted", func(req llm.Request) llm.Response {
		switch n := req.View.Turn; {
		case n == 1:
			return scripted.Then(call("pay", "a"), call("send", "gated b"))
		case n%4 == 0:
			return scripted.Say("Done.")
		default:
			return call("send", fmt.Sprintf("of turn %d", n))
		}
	})
	db := labDB(t)
	patient := tool.Gate[labState, text]{Roles: []string{"refunds"}} // however busy the machine is, it is open
	w := newWorld(t, model, lab{db: db, gate: &patient, send: sends.tool, sendGate: &gate, limits: short}.agent())
	address := w.start("k")
	w.say(address, "go")
	run := w.until(address, "two gates", func(r *agent.Run) bool { return waiting("gate")(r) && len(r.Gates) == 2 })
	first := run.Gates[0]
	for n := 0; len(w.chain(address)) < 2; n++ {
		require.Less(t, n, 12)
		w.chat(address, fmt.Sprintf("more, %d", n))
	}
	require.Equal(t, agent.Accepted, w.decide(address, first, agent.Approve, "").Status)
	w.until(address, "the other gate expires", func(r *agent.Run) bool {
		return len(recorded[agent.GateClosedData](w, address, agent.EventGateClosed)) == 2
	})
	closed := map[string]agent.GateStatus{}
	for _, c := range recorded[agent.GateClosedData](w, address, agent.EventGateClosed) {
		closed[c.Gate] = c.Status
	}
	require.Equal(t, map[string]agent.GateStatus{first.ID: agent.GateApproved, run.Gates[1].ID: agent.GateExpired}, closed)
	require.Equal(t, 1, payments(t, db))
	require.Zero(t, sends.calls["gated b"])
	w.cancelled(address)
}

// What arrives in the instant of a continue-as-new is there in the next run,
// once, in order; whoever waits is answered.
func TestContinue_WhileMessagesArrive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everyFourth("look"), lab{db: labDB(t), limits: agent.Limits{History: 60, Message: 64 << 10}}.agent())
	address := w.start("k")
	ctx, stop := context.WithCancel(w.ctx)
	var wg sync.WaitGroup
	wg.Go(func() { // somebody waits all the time
		for after := int64(0); ctx.Err() == nil; {
			var n signals.News
			h, err := temporalClient.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: address, UpdateName: signals.UpdateWait,
				Args: []any{signals.Wait{AfterSeq: after}}, WaitForStage: client.WorkflowUpdateStageCompleted})
			if err == nil && h.Get(ctx, &n) == nil && !n.Again {
				after = n.Seq
			}
		}
	})
	var sent []string
	for n := range 150 {
		m := signals.Message{ID: fmt.Sprintf("s%d", n), Principal: customer, Text: fmt.Sprintf("message %d", n)}
		w.signal(address, signals.NameMessage, m)
		if n%10 == 0 {
			w.signal(address, signals.NameMessage, m) // a repeat
		}
		sent = append(sent, m.ID)
		<-time.After(20 * time.Millisecond)
	}
	eventually(t, "all messages stand", func() bool {
		return len(recorded[agent.MessageData](w, address, agent.EventMessage)) >= len(sent)
	})
	stop()
	wg.Wait()
	var got []string
	for _, m := range recorded[agent.MessageData](w, address, agent.EventMessage) {
		got = append(got, m.ID)
	}
	require.Equal(t, sent, got)
	require.Greater(t, len(w.chain(address)), 2, "Temporal runs")
	w.cancelled(address)
}

// Whoever sends by update in the instant of a continue-as-new is answered with what
// became of it, and it stands once; so do signals of another name.
func TestContinue_WhileSendersWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everyFourth("look"), lab{db: labDB(t), limits: agent.Limits{History: 60, Message: 64 << 10}}.agent())
	address := w.start("k")
	const senders, each = 4, 30
	errs := make([]error, senders)
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for n := 0; n < each && errs[s] == nil; n++ {
				id := fmt.Sprintf("u%d-%d", s, n)
				var r agent.Receipt
				if r, errs[s] = w.starter.Message(w.ctx, address, signals.Message{ID: id, Principal: customer, Text: id}); r.Status == agent.Refused {
					errs[s] = fmt.Errorf("%s: %s", id, r.Reason)
				}
				a := signals.Amend{ID: "a-" + id, Principal: ops, Fields: agent.JSON(fmt.Sprintf(`{"news":%q}`, id))}
				errs[s] = errors.Join(errs[s], temporalClient.SignalWorkflow(w.ctx, address, "", signals.NameAmend, a))
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	eventually(t, "all stand", func() bool {
		return len(recorded[agent.MessageData](w, address, agent.EventMessage)) >= senders*each &&
			len(recorded[agent.AmendedData](w, address, agent.EventAmended)) >= senders*each
	})
	next := map[string]int{}
	for _, m := range recorded[agent.MessageData](w, address, agent.EventMessage) {
		who, _, _ := strings.Cut(m.ID, "-")
		require.Equal(t, fmt.Sprintf("%s-%d", who, next[who]), m.ID, "each once, in order")
		next[who]++
	}
	require.Len(t, recorded[agent.AmendedData](w, address, agent.EventAmended), senders*each)
	require.Greater(t, len(w.chain(address)), 2, "Temporal runs")
	w.cancelled(address)
}

// 500 turns, with messages, verdicts and duplicates arriving all the time.
func TestContinue_500Turns(t *testing.T) {
	t.Parallel()
	const turns = 500
	gate := tool.Gate[labState, text]{Roles: []string{"refunds"}, When: func(_ agent.Situation[labState], a text) bool { return strings.HasPrefix(a.Text, "gated") }}
	sends := newCounter()
	model := scripted.Func("scripted", func(req llm.Request) llm.Response {
		switch n := req.View.Turn; {
		case n >= turns:
			return toEnd
		case n%10 == 0:
			return call("send", fmt.Sprintf("gated, of turn %d", n))
		default:
			return call("send", fmt.Sprintf("of turn %d", n))
		}
	})
	w := newWorld(t, model, lab{db: labDB(t), send: sends.tool, sendGate: &gate, budget: agent.Budget{Turns: -1, ModelCalls: -1}, limits: agent.Limits{History: 800}}.agent())
	address := w.start("k")
	w.say(address, "go")
	decided, messages := map[string]bool{}, 1
	for run := (&agent.Run{}); !run.Status.Ended(); <-time.After(50 * time.Millisecond) {
		var err error
		run, err = w.starter.Get(w.ctx, address)
		require.NoError(t, err, w.failures(address))
		if run.Status == agent.RunPaused {
			require.FailNow(t, "paused", run.Reason)
		}
		for _, g := range run.Gates {
			if g.Status != agent.GateOpen || decided[g.ID] {
				continue
			}
			v := signals.Verdict{ID: "v-" + g.ID, Gate: g.ID, Digest: g.Digest, Verdict: agent.Approve, Principal: ann}
			r, err := w.starter.Decide(w.ctx, address, v)
			require.NoError(t, err)
			require.Contains(t, []agent.ReceiptStatus{agent.Accepted, agent.KeptBack}, r.Status, r.Reason)
			w.signal(address, signals.NameVerdict, v) // a repeat
			decided[g.ID] = true
		}
		if !run.Status.Ended() && !run.Final && run.Turn < turns-20 {
			m := signals.Message{ID: fmt.Sprintf("n%d", messages), Principal: customer, Text: "hm"}
			w.signal(address, signals.NameMessage, m)
			w.signal(address, signals.NameMessage, m)
			messages++
		}
	}
	run := w.finished(address, agent.RunCompleted)
	require.GreaterOrEqual(t, run.Turn, turns)
	require.Len(t, recorded[agent.MessageData](w, address, agent.EventMessage), messages)
	require.Equal(t, sends.total(), len(sends.keys), "each effect ran once")
	require.Greater(t, len(w.chain(address)), 4, "Temporal runs")
	for _, n := range sends.calls {
		require.Equal(t, 1, n)
	}
	snapshot, err := agent.Encode(run)
	require.NoError(t, err)
	require.Less(t, len(snapshot), run.Limits.Snapshot)
}

// A budget counts over all Temporal runs of a run: the same call again and again
// ends in a pause, however often the run was continued.
func TestContinue_Budget(t *testing.T) {
	t.Parallel()
	looks := newCounter()
	const most = 20
	model := scripted.Func("scripted", func(llm.Request) llm.Response { return call("look", "the same") })
	w := newWorld(t, model, lab{db: labDB(t), look: looks.look, limits: agent.Limits{History: 60}, budget: agent.Budget{Turns: most, SameCall: -1}}.agent())
	address := w.start("k")
	w.say(address, "look")
	run := w.until(address, "pause", paused)
	require.Equal(t, "budget:turns", run.Reason)
	require.Equal(t, most, run.Turn)
	require.Equal(t, most, looks.total())
	require.Greater(t, len(w.chain(address)), 2, "Temporal runs")
	w.requireJournal(run)
}

// What is no snapshot ends the run at once, with the reason: never in a loop.
func TestContinue_NoSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everyFourth("look"), lab{db: labDB(t)}.agent())
	in := w.startInput("k")
	body, err := agent.Encode(in.Body)
	require.NoError(t, err)
	for _, second := range []any{"x", map[string]any{}, map[string]any{"snapshot": map[string]any{"v": 1, "run": map[string]any{"v": 1, "agent": "lab", "version": 1}}}} {
		key := w.name() + w.id("k")
		run, err := temporalClient.ExecuteWorkflow(w.ctx, client.StartWorkflowOptions{ID: signals.Address("acme", "lab", key), TaskQueue: w.config.Settings.TaskQueue},
			"lab", signals.Start{Agent: "lab", Tenant: "acme", Key: key, Principal: customer, Body: body}, second)
		require.NoError(t, err)
		require.ErrorContains(t, run.Get(w.ctx, nil), "the run cannot go on")
	}
}
