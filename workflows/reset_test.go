package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/llm/scripted"
	"interlock/store"
	"interlock/tool"
)

// reset makes a new Temporal run that goes on at a workflow task of an old one,
// and returns its id.
func (w *world) reset(address, runID string, task int64) string {
	w.t.Helper()
	r, err := temporalClient.ResetWorkflowExecution(w.ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: &common.WorkflowExecution{WorkflowId: address, RunId: runID},
		Reason: "a test", RequestId: w.id("reset"), WorkflowTaskFinishEventId: task})
	require.NoError(w.t, err)
	return r.GetRunId()
}

// taskOf is the workflow task that scheduled the n-th activity of a type.
func taskOf(t *testing.T, events []*history.HistoryEvent, activity string, n int) int64 {
	t.Helper()
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == activity {
			if n--; n == 0 {
				return a.GetWorkflowTaskCompletedEventId()
			}
		}
	}
	require.FailNow(t, "no such activity", "%s", activity)
	return 0
}

func tasks(events []*history.HistoryEvent) (out []int64) {
	for _, e := range events {
		if e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			out = append(out, e.GetEventId())
		}
	}
	return out
}

// recording are the tasks from which on a run still has something to record.
func recording(events []*history.HistoryEvent) []int64 {
	last := int64(0)
	for _, e := range events {
		last = max(last, e.GetActivityTaskScheduledEventAttributes().GetWorkflowTaskCompletedEventId())
	}
	return slices.DeleteFunc(tasks(events), func(task int64) bool { return task > last })
}

func (w *world) approved(address string) (first string, events []*history.HistoryEvent) {
	w.t.Helper()
	w.decide(address, w.toGate(address), agent.Approve, "")
	w.finished(address, agent.RunCompleted)
	first = w.runID(address)
	return first, w.history(address, first)
}

// drive answers all that a run asks for, until it ends.
func (w *world) drive(address string) *agent.Run {
	w.t.Helper()
	for {
		run := w.until(address, "something to do, or the end", func(r *agent.Run) bool { return r.Status != agent.RunRunning })
		switch {
		case run.Status.Ended():
			return w.finished(address, agent.RunCompleted)
		case run.Reason == "gate":
			// Its effect is looked up meanwhile: the verdict may come too late.
			w.decide(address, lastGate(run), agent.Approve, "")
		case len(run.Shown) == 2:
			w.say(address, "yes, that one")
		default:
			w.say(address, "Please refund order 1042")
		}
		w.until(address, "progress", func(r *agent.Run) bool { return r.Seq > run.Seq && r.Status != agent.RunRunning })
	}
}

// After a reset to before its gate, the approved refund stands: the gate closes
// by itself, and nothing happens again.
func TestReset_BeforeTheGateOfAnEffectThatHappened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refund.Model())
	address := w.start("k")
	first, events := w.approved(address)
	second := w.reset(address, first, taskOf(t, events, "CallModel", 3))
	w.until(address, "the new run", func(r *agent.Run) bool { return w.runID(address) == second && r.Status.Ended() })
	run := w.finished(address, agent.RunCompleted)
	require.Len(t, w.refunds(), 1)
	require.Len(t, w.receipts(), 1)
	gate := gateOf(run, "3.1")
	require.Equal(t, agent.GateVoid, gate.Status)
	require.Contains(t, gate.Reason, "happened already")
	require.Nil(t, gate.By)
	require.Contains(t, run.State.String(), `"refund_id":"r-1042"`)
	branches, err := w.store.Branches(w.ctx, store.Chain{Tenant: "acme", Address: address})
	require.NoError(t, err)
	require.Len(t, branches, 2)
	require.Equal(t, first, branches[0].RunID)
	require.Equal(t, second, branches[0].SupersededBy)
	require.Positive(t, branches[0].Superseded)
	require.Equal(t, second, branches[1].RunID)
	require.Empty(t, branches[1].SupersededBy)
	for _, v := range recorded[agent.VerdictData](w, address, agent.EventVerdict) {
		require.Equal(t, "void", v.Judgement, "it came again before the gate was open")
	}
}

// A reset to any task of the run has no effect a second time, wherever it goes
// on; every branch runs to an end.
func TestReset_ToEveryTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refund.Model())
	address := w.start("k")
	first, events := w.approved(address)
	requireOnce := func(what string, n int) {
		t.Helper()
		require.Len(t, w.refunds(), 1, "%s %d", what, n)
		require.Len(t, w.receipts(), 1, "%s %d", what, n)
		effects, err := w.effects(address)
		require.NoError(t, err)
		require.Len(t, effects, 1, "%s %d", what, n)
	}
	// Of the first run, from its end to its beginning: there all messages come
	// again at once.
	all, forward := tasks(events), recording(events)
	backward := slices.Clone(all)
	slices.Reverse(backward)
	// Then towards its end again: each goes on with events that the reset before
	// it superseded. A task that leaves nothing to record cannot tell the journal
	// so, and is left out.
	for _, task := range append(backward, forward...) {
		w.reset(address, first, task)
		require.Equal(t, "done", w.drive(address).Phase)
		requireOnce("after a reset of the first run to event", int(task))
	}
	// Each of the run before it, to a later task each time.
	for n := range len(all) {
		latest := w.runID(address)
		at := tasks(w.history(address, latest))
		w.reset(address, latest, at[min(n, len(at)-1)])
		require.Equal(t, "done", w.drive(address).Phase)
		requireOnce("after a reset of the latest run to task", n)
	}
	branches, err := w.store.Branches(w.ctx, store.Chain{Tenant: "acme", Address: address})
	require.NoError(t, err)
	require.Greater(t, len(branches), len(all)+len(forward))
}

// What a person rejected did not happen: after a reset it is decided anew.
func TestReset_BeforeAnEffectThatDidNotHappen(t *testing.T) {
	t.Parallel()
	sends := newCounter()
	w := newWorld(t, turns(call("send", "1"), scripted.Say("Done."), scripted.Say("Done.")),
		lab{db: labDB(t), send: sends.tool, sendGate: &tool.Gate[labState, text]{Roles: []string{"refunds"}, Expires: time.Hour}}.agent())
	address := w.start("k")
	w.say(address, "send it")
	gate := lastGate(w.until(address, "gate", waiting("gate")))
	w.decide(address, gate, agent.Reject, "no")
	w.until(address, "told", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 2 })
	w.quiet(address)
	first := w.runID(address)
	second := w.reset(address, first, taskOf(t, w.history(address, first), "CallModel", 1))
	run := w.until(address, "the gate again", func(r *agent.Run) bool { return w.runID(address) == second && waiting("gate")(r) })
	w.quiet(address)
	require.Empty(t, run.Rulings)
	require.Zero(t, sends.total())
	require.Equal(t, agent.Accepted, w.decide(address, lastGate(run), agent.Approve, "").Status)
	run = w.until(address, "sent", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 2 })
	require.Equal(t, map[string]agent.StepStatus{"send": agent.StepDone}, statuses(run))
	require.Equal(t, 1, sends.total())
	w.requireJournal(run)

	// And now that it has happened, once more: no gate stays open.
	w.quiet(address)
	third := w.reset(address, second, taskOf(t, w.history(address, second), "CallModel", 1))
	run = w.until(address, "the third", func(r *agent.Run) bool { return w.runID(address) == third && waiting("user")(r) && r.Turn == 2 })
	require.Equal(t, agent.GateVoid, run.Gates[0].Status)
	require.Equal(t, map[string]agent.StepStatus{"send": agent.StepDone}, statuses(run))
	require.Equal(t, 1, sends.total())
	w.requireJournal(run)
}

// A reset of an older Temporal run of a chain goes on from there: what happened
// later is known to the ledger and does not happen again.
func TestReset_OfAContinuedRun(t *testing.T) {
	t.Parallel()
	sends := newCounter()
	w := newWorld(t, everyFourth("send"), lab{db: labDB(t), send: sends.tool, limits: short}.agent())
	address := w.start("k")
	for n := range 9 {
		w.chat(address, "go on, "+string(rune('a'+n)))
	}
	w.quiet(address)
	chain := w.chain(address)
	require.Greater(t, len(chain), 2)
	for _, of := range []string{chain[1], chain[len(chain)-1], chain[0]} {
		events := w.history(address, of)
		at := tasks(events)
		newest := w.reset(address, of, at[len(at)/2])
		run := w.until(address, "the reset run is idle", func(r *agent.Run) bool {
			return r.Status == agent.RunWaiting && r.Owed == 0 && slices.Contains(w.chain(address), newest)
		})
		for run.Turn < 40 {
			run = w.chat(address, "and on")
		}
		w.quiet(address)
		run = w.until(address, "it is idle, also where it was continued meanwhile", waiting("user"))
		w.requireJournal(run)
		w.requireReplay(address)
		require.Equal(t, sends.total(), len(sends.keys), "an effect happened again after the reset of %s", of)
	}
	w.cancelled(address)
}
