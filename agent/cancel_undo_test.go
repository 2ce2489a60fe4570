package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

func (tr *trial) cancel(undo agent.UndoScope) []agent.Event {
	return tr.step(agent.CancelRun{ID: "cancel " + string(undo), Principal: agent.Principal{Subject: "u"}, Undo: undo})
}

// A cancel that undoes does not wait for an undo in doubt, whose gate it closes: what
// that was to undo is listed, the others are undone, and the run ends.
func TestCancel_AnUndoInDoubt(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(charge(77), `shot {"refund_id":"a"}`)
	tr.done("1.1", `{"id":"r"}`)
	tr.done("1.2", `{"id":"m"}`)
	tr.model()
	require.Equal(t, agent.Accepted, tr.undo("1.2").Status)
	tr.step(agent.StepUnknown{Step: "2.1", Reason: "lost"})
	require.Equal(t, "operator", tr.m.Run().Reason)
	tr.cancel(agent.UndoRun)
	require.Equal(t, agent.GateVoid, tr.gate("2.1-doubt").Status)
	require.Equal(t, []string{"2.2"}, tr.started(), "the next undo begins")
	tr.done("2.2", `{"id":"v"}`)
	require.Equal(t, agent.RunCancelled, tr.m.Run().Status)
	require.Equal(t, []string{"2.1 unshoot: in_doubt", "1.2 shot: stands, nobody knows whether its undo, step 2.1, unshoot, happened"}, tr.m.Run().FailedEnd)
	tr.reduces()
}

// Nor does one that undoes nothing but what it tells to stop.
func TestCancel_AnUndoInDoubtAndAStepThatIsCut(t *testing.T) {
	tr := begin(t, boothAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(charge(77))
	tr.done("1.1", `{"id":"r"}`)
	tr.model()
	tr.undo("1.1")
	tr.step(agent.StepUnknown{Step: "2.1", Reason: "lost"})
	tr.message("another")
	tr.model(charge(78))
	tr.cancel("")
	tr.done("3.1", `{"id":"r"}`)
	require.Equal(t, []string{"3.2"}, tr.started(), "the charge was told to stop, and had happened")
	tr.done("3.2", `{"id":"v"}`)
	require.Equal(t, agent.RunCancelled, tr.m.Run().Status)
	require.Contains(t, tr.m.Run().FailedEnd, "1.1 charge: stands, nobody knows whether its undo, step 2.1, void, happened")
	tr.reduces()
}

// A second cancel that undoes more has what the first one closed at its gate undone
// after all.
func TestCancel_UndoesWhatAnEarlierCancelClosed(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(charge(78), `shot {"refund_id":"a"}`)
	tr.done("1.1", `{"id":"r"}`)
	tr.undo("1.1") // at a gate; the shot runs
	tr.cancel("")
	require.Equal(t, agent.GateVoid, tr.gate("1.3").Status)
	tr.cancel(agent.UndoRun)
	require.Equal(t, agent.TookMerged, tr.receipt.Took.How)
	tr.done("1.2", `{"id":"m"}`)
	tr.done("1.4", `{"id":"u"}`) // the shot's
	tr.verdict("1.5", agent.Approve, "")
	tr.done("1.5", `{"id":"v"}`)
	require.Equal(t, agent.RunCancelled, tr.m.Run().Status)
	require.Equal(t, agent.StepUndone, tr.stepOf("1.1").Status)
	require.Empty(t, tr.m.Run().FailedEnd)
	tr.reduces()
}
