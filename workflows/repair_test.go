package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"interlock/agent"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/tool"
)

// The steps of a run that has ended are undone by a run of its own, in its scope:
// the same request is the same run, and an effect is undone once.
func TestRepair(t *testing.T) {
	t.Parallel()
	u := &labUndo{}
	w, model := undoWorld(t, u, lab{})
	address := w.start("k")
	w.chat(address, "send 1")
	w.chat(address, "pay 2")
	w.chat(address, "end")
	parent := w.finished(address, agent.RunCompleted)
	calls := len(model.seen(t))

	_, err := starter.New(temporalClient, starter.WithTaskQueue(w.config.Settings.TaskQueue)).Undo(w.ctx, address, signals.Undo{ID: "x", Principal: ops, Steps: []string{"1.1"}, Reason: "x"})
	require.ErrorContains(t, err, "a starter.WithReader can undo them")
	_, err = w.starter.Undo(w.ctx, address, signals.Undo{ID: "x", Principal: ops, Steps: []string{"9.1"}, Reason: "x"})
	require.ErrorContains(t, err, "the run has no such step")

	out := w.undo(address, "1.1", "3.1")
	require.NotNil(t, out.Repair)
	require.True(t, out.Repair.New)
	require.Equal(t, agent.Accepted, out.Receipt.Status)
	repair := w.finished(out.Repair.Address, agent.RunCompleted)
	require.Equal(t, "unpay:2 unsend:1:1", u.noted())
	require.Empty(t, repair.FailedEnd)
	require.Equal(t, &agent.Repaired{Address: address, FirstRunID: parent.FirstRunID}, repair.Repairs)
	require.Equal(t, parent.Scope(), repair.Scope())
	require.Contains(t, repair.State.String(), `"name":"c-017"`)
	require.Contains(t, repair.State.String(), `"paid":"","seen":"","sent":""`)
	require.Zero(t, payments(t, w.db))
	require.Len(t, model.seen(t), calls, "no model")
	require.Equal(t, map[string]string{"send": stepOf(repair, stepOf(repair, "1.1").UndoneBy).Key}, w.undoneBy(address), "in the row of the run that had the effect")

	why, err := w.starter.Why(w.ctx, address)
	require.NoError(t, err)
	require.Contains(t, why.Sentence, "; repaired by "+repair.Address()+", completed: 3.1 pay undone, 1.1 send undone")
	require.Len(t, why.RepairedBy, 1)
	require.Equal(t, []starter.RepairedStep{{Step: "3.1", Tool: "pay", Status: agent.StepUndone}, {Step: "1.1", Tool: "send", Status: agent.StepUndone}}, why.RepairedBy[0].Steps)
	own, err := w.starter.Why(w.ctx, repair.Address())
	require.NoError(t, err)
	require.Empty(t, own.RepairedBy)
	again := w.undo(address, "3.1", "1.1")
	require.Equal(t, agent.Repeated, again.Receipt.Status)
	require.Equal(t, agent.RunCompleted, again.Receipt.Run)
	require.Equal(t, out.Repair.Address, again.Repair.Address)
	other := w.undo(address, "1.1")
	require.NotEqual(t, out.Repair.Address, other.Repair.Address)
	second := w.finished(other.Repair.Address, agent.RunCompleted)
	require.Empty(t, second.FailedEnd)
	require.Equal(t, "unpay:2 unsend:1:1", u.noted(), "two repairs of one step are one effect")

	_, err = w.starter.Message(w.ctx, out.Repair.Address, signals.Message{ID: "m", Principal: customer, Text: "hello?"})
	require.Equal(t, agent.CodeEnded, agent.ErrorCode(err))
	row, err := w.store.RunRow(w.ctx, store.Chain{Tenant: "acme", Address: out.Repair.Address})
	require.NoError(t, err)
	require.Equal(t, agent.RunCompleted, row.Head.Status)
}

// A gate of a repair is decided as any; what it leaves standing its end says, and a
// repair of the repair undoes it.
func TestRepair_LeavesStanding(t *testing.T) {
	t.Parallel()
	u := &labUndo{gate: &tool.Gate[labState, doneText]{Roles: []string{"refunds"}}}
	w, _ := undoWorld(t, u, lab{})
	address := w.start("k")
	w.chat(address, "send 1")
	require.NoError(t, temporalClient.TerminateWorkflow(w.ctx, address, "", "gone wrong"))
	w.until(address, "the workflow's end", func(*agent.Run) bool { return w.status(address) == enums.WORKFLOW_EXECUTION_STATUS_TERMINATED })
	out := w.undo(address, "1.1")
	require.NotNil(t, out.Repair, "one that was terminated is undone as an ended one")
	run := w.until(out.Repair.Address, "gate", waiting("gate"))
	_, err := w.starter.Message(w.ctx, out.Repair.Address, signals.Message{ID: "m", Principal: customer, Text: "hello?"})
	require.ErrorContains(t, err, "only undoes steps of "+address)
	why, err := w.starter.Why(w.ctx, out.Repair.Address)
	require.NoError(t, err)
	require.Contains(t, why.Sentence, "waits for a person with role refunds at gate "+lastGate(run).ID)
	w.decide(out.Repair.Address, lastGate(run), agent.Reject, "they wanted it")
	repair := w.finished(out.Repair.Address, agent.RunCompleted)
	require.Equal(t, []string{"1.1 send: stands, its undo, step " + lastGate(run).ID + ", unsend, was rejected by ann: they wanted it"}, repair.FailedEnd)

	third := w.undo(out.Repair.Address, "1.1")
	run = w.until(third.Repair.Address, "gate", waiting("gate"))
	w.decide(third.Repair.Address, lastGate(run), agent.Approve, "")
	repair = w.finished(third.Repair.Address, agent.RunCompleted)
	require.Empty(t, repair.FailedEnd)
	require.Equal(t, "unsend:1:1", u.noted())
	require.Equal(t, map[string]string{"send": stepOf(repair, stepOf(repair, "1.1").UndoneBy).Key}, w.undoneBy(address))
}
