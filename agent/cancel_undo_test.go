package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
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

// guardedAgent pays, and pays back at a gate that reads a field and is escalated.
func guardedAgent() *agent.Definition {
	pay := tool.Keyed("pay", keyed[mail, sent], func(s *state, _ mail, m sent) error { s.ReceiptID = m.ID; return nil }).
		Undo(tool.Keyed("unpay", keyed[tool.Done[mail, sent], sent], func(s *state, _ tool.Done[mail, sent], _ sent) error { s.ReceiptID = ""; return nil }).
			Gate(tool.Gate[state, tool.Done[mail, sent]]{Roles: []string{"boss"}, Reads: []string{"note"}, Expires: 48 * time.Hour,
				Escalate: agent.Escalate{After: time.Hour, Roles: []string{"lead"}}}))
	return agent.Define(agent.Spec[start, state]{Name: "shop", Version: 1, Instructions: "x",
		Init: func(in start) (state, error) { return state{CustomerID: in.CustomerID}, nil },
		Phases: []agent.Phase[state]{
			{Name: "work", Tools: []agent.Tool[state]{pay}, Moves: []agent.Move[state]{{To: "end"}}},
			{Name: "end", Final: true}}})
}

func paid(t *testing.T) *trial {
	tr := begin(t, guardedAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`pay {"refund_id":"a"}`)
	tr.done("1.1", `{"id":"r"}`)
	tr.model()
	return tr
}

// The gate of an undo is escalated in its time, also where a cancelled run waits for it.
func TestCancel_EscalatesTheGateOfAnUndo(t *testing.T) {
	tr := paid(t)
	tr.cancel(agent.UndoRun)
	tr.now = tr.now.Add(2 * time.Hour)
	require.Equal(t, []agent.EventType{agent.EventGateEscalated}, types(tr.step(agent.GateTimerFired{Gate: "2.1"})))
	require.Equal(t, []string{"boss", "lead"}, tr.gate("2.1").Roles)
}

// An undo whose gate is void, since what it shows has changed, is asked for anew:
// the model cannot withdraw it by setting a field.
func TestUndo_IsAskedForAnewWhereWhatItReadsChanges(t *testing.T) {
	tr := paid(t)
	require.Equal(t, agent.Accepted, tr.undo("1.1").Status)
	tr.message("wait")
	tr.model(`set_fields {"fields":{"note":"not that one"}}`)
	require.Equal(t, agent.GateVoid, tr.gate("2.1").Status)
	require.Equal(t, agent.GateOpen, tr.gate("3.1").Status)
	require.Equal(t, `"not that one"`, tr.gate("3.1").Shown["note"].String())
	tr.verdict("3.1", agent.Approve, "")
	tr.model()
	tr.done("3.1", `{"id":"v"}`)
	require.Equal(t, agent.StepUndone, tr.stepOf("1.1").Status)
	tr.reduces()
}
