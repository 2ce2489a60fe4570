package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// rollback checks a turn that was rolled back: nothing that it did stands, no yes
// that it took counts, and each field and the phase are what they were when it
// began, but for what others have set since. Mutations: return "" from stillStands;
// note a field again where it is noted; keep the confirmations in applyInterruptSettled.
func (w *watcher) rollback(e agent.Event) {
	if e.Type != agent.EventInterruptSettled || !data[agent.InterruptSettledData](e).RolledBack {
		return
	}
	at := len(w.events)
	began := at - 1
	for began > 0 && w.events[began].Type != agent.EventTurnStarted {
		began--
	}
	before, err := agent.Reduce(w.events[:began+1])
	require.NoError(w.t, err)
	after, err := agent.Reduce(w.events[:at])
	require.NoError(w.t, err)
	others, moved := map[string]bool{}, false
	for _, c := range w.events[began+1 : at] {
		foreign := c.Step != "" && !w.ofTurn(after, c.Step, e.Turn)
		switch c.Type {
		case agent.EventAmended:
			for _, f := range data[agent.AmendedData](c).Fields {
				others[f] = true
			}
		case agent.EventStateSet:
			d := data[agent.StateSetData](c)
			for _, f := range append(d.Fields, d.Reset...) {
				others[f] = others[f] || foreign || d.By != "" || d.Source == agent.SourceAmend
			}
		case agent.EventPhaseEntered:
			d := data[agent.PhaseEnteredData](c)
			moved = moved || d.Step != "" && !w.ofTurn(after, d.Step, e.Turn)
		}
	}
	was, is := fieldsOf(w, before.State), fieldsOf(w, after.State)
	for f := range was {
		if !others[f] {
			require.Equal(w.t, was[f].String(), is[f].String(), "field %s after the rollback of turn %d", f, e.Turn)
		}
	}
	if !moved {
		require.Equal(w.t, before.Phase, after.Phase)
		require.Equal(w.t, before.PhaseSeq, after.PhaseSeq)
	}
	for f, c := range after.Confirmed {
		require.NotEqual(w.t, e.Turn, c.Turn, "the yes to %s", f)
	}
	for _, s := range after.Steps {
		earlier := slices.ContainsFunc(after.Steps, func(o agent.Step) bool { return o.Key == s.Key && o.Turn < s.Turn && o.Status == agent.StepDone })
		if w.ofTurn(after, s.ID, e.Turn) && s.Key != "" && s.Undoes == "" && !earlier {
			require.NotContains(w.t, []agent.StepStatus{agent.StepDone, agent.StepInDoubt}, s.Status, "step %s", s.ID)
		}
	}
}

// ofTurn reports whether a step, or what it undoes or stands in the place of, was begun
// in a turn.
func (w *watcher) ofTurn(r *agent.Run, step string, turn int) bool {
	for _, s := range slices.Backward(r.Steps) { // what it names is older
		if s.ID == step && s.Undoes != "" {
			step = s.Undoes
		} else if s.ID == step && s.Replaces != "" {
			step = s.Replaces
		}
	}
	return strings.HasPrefix(step, fmt.Sprintf("%d.", turn))
}

func fieldsOf(w *watcher, state agent.JSON) map[string]agent.JSON {
	var out map[string]agent.JSON
	require.NoError(w.t, json.Unmarshal(state, &out))
	return out
}

// paidTwice is a run that has entered a phase whose Enter pays, has left it, and has
// entered it once more: the same call is the same effect.
func paidTwice(t *testing.T) *trial {
	tr := begin(t, boothAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`move {"to":"paid"}`)
	tr.done("1.1", `{"id":"r"}`)
	tr.done("1.2", `{"id":"m"}`)
	tr.model(`move {"to":"work"}`)
	tr.model(`ping {"refund_id":"a"}`)
	tr.done("3.1", `{"id":"p"}`)
	tr.model()
	tr.message("again")
	tr.model(`move {"to":"paid"}`)
	require.Equal(t, tr.stepOf("1.1").Key, tr.stepOf("5.1").Key)
	tr.done("5.1", `{"id":"r"}`)
	return tr
}

// What an earlier turn did is not undone with a turn that was given its standing
// result, and does not keep that turn's fields and phase from being set back.
func TestRollback_OfACallThatHadHappened(t *testing.T) {
	tr := paidTwice(t)
	tr.step(agent.Message{ID: "back", Principal: agent.Principal{Subject: "u"}, Text: "no", Policy: agent.MessageRollback})
	tr.done("5.2", `{"id":"m"}`)
	require.Empty(t, tr.started(), "nothing is undone")
	require.Equal(t, agent.StepDone, tr.stepOf("1.1").Status)
	require.Equal(t, "work", tr.m.Run().Phase)
	turns := tr.lastView().Turns
	require.Contains(t, turns[len(turns)-1].Opening[len(turns[len(turns)-1].Opening)-1].Text, "Set back to what it was before: the phase, work.")
	tr.reduces()
}

// A cancel that undoes the run undoes each effect where it happened, the last first.
func TestCancel_UndoesAnEffectWhereItHappened(t *testing.T) {
	tr := paidTwice(t)
	tr.done("5.2", `{"id":"m"}`)
	tr.cancel(agent.UndoRun)
	var undone []string
	for range 2 {
		for _, c := range tr.cmds {
			if c, ok := c.(agent.OpenGate); ok {
				tr.verdict(c.Gate, agent.Approve, "")
			}
		}
		for _, s := range tr.m.Run().Steps {
			if s.Undoes != "" && s.Status == agent.StepRunning {
				undone = append(undone, s.Undoes)
				tr.done(s.ID, `{"id":"u"}`)
				break
			}
		}
	}
	require.Equal(t, []string{"3.1", "1.1"}, undone)
	require.Equal(t, agent.RunCancelled, tr.m.Run().Status)
}

// A phase that the turn left and entered again is entered as it was before.
func TestRollback_OfAPhaseLeftAndEnteredAgain(t *testing.T) {
	tr := begin(t, boothAgent(), `{"customer_id":"c"}`)
	was := tr.m.Run().PhaseSeq
	tr.message("go")
	tr.model(`move {"to":"paid"}`, `move {"to":"work"}`)
	tr.step(agent.Message{ID: "back", Principal: agent.Principal{Subject: "u"}, Text: "no", Policy: agent.MessageRollback})
	tr.step(agent.StepNotApplied{Step: "1.1", Reason: "no"})
	tr.step(agent.StepNotApplied{Step: "1.2", Reason: "no"})
	require.Equal(t, 2, tr.m.Run().Turn)
	require.Equal(t, "work", tr.m.Run().Phase)
	require.Equal(t, was, tr.m.Run().PhaseSeq)
	tr.reduces()
}

// A message that would roll back does not touch a turn that has ended, where only an
// undo runs that somebody has asked for: no turn is under way.
func TestRollback_WhileOnlyAnUndoRuns(t *testing.T) {
	tr := begin(t, boothAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(charge(77))
	tr.done("1.1", `{"id":"r"}`)
	tr.model(charge(79), `ask {"question":"Well?"}`)
	tr.done("2.1", `{"id":"s"}`)
	require.Equal(t, agent.RunWaiting, tr.m.Run().Status)
	require.Equal(t, agent.Accepted, tr.undo("1.1").Status)
	tr.message("fine") // this agent rolls back by default
	require.Equal(t, &agent.Took{How: agent.TookQueued, Turn: 3}, tr.receipt.Took)
	tr.done(tr.last(), `{"id":"v"}`)
	require.Equal(t, agent.StepUndone, tr.stepOf("1.1").Status)
	require.Equal(t, agent.StepDone, tr.stepOf("2.1").Status, "nobody asked for that")
	require.Equal(t, 3, tr.m.Run().Turn)
	tr.reduces()
}

// A step that a person edited belongs to the turn whose call it stands in the place of:
// a later turn goes on while it waits, and a rollback of that turn leaves it alone.
func TestEdit_BelongsToItsTurn(t *testing.T) {
	tr := bank(t, bankPolicy{roles: []string{"teller"}, quorum: 2})
	tr.message("and do that")
	tr.model(`deep {"n":1}`)
	tr.by(teller("ann"), "1.1", agent.Verdict{Verdict: agent.Edit, Reason: "less", Args: agent.JSON(payArgs(400))})
	require.Equal(t, agent.GateOpen, tr.gate("2.2").Status, "in the place of 1.1, and waits for a second person")
	tr.by(teller("ann"), "2.1", agent.Verdict{Verdict: agent.Approve})
	tr.done("2.1", `{"id":"d-1"}`)
	require.True(t, tr.m.Run().Calling, "an older call's gate does not hold this turn")
	require.Equal(t, 3, tr.m.Run().Turn)

	tr.model(`look {"refund_id":"c"}`, `deep {"n":2}`)
	tr.by(teller("cid"), "2.2", agent.Verdict{Verdict: agent.Edit, Reason: "less", Args: agent.JSON(payArgs(300))})
	again := tr.last()
	require.Equal(t, "3.3", again)
	tr.by(teller("bob"), again, agent.Verdict{Verdict: agent.Approve})
	tr.done(again, `{"id":"r-1"}`)
	tr.step(agent.Message{ID: "back", Principal: agent.Principal{Subject: "c"}, Text: "no, not that", Policy: agent.MessageRollback})
	require.Equal(t, agent.TookRollingBack, tr.receipt.Took.How)
	require.Equal(t, agent.StepCancelled, tr.stepOf("3.2").Status)
	require.Equal(t, agent.StepDone, tr.stepOf(again).Status, "two people approved it for the first turn")
	require.Empty(t, tr.m.Run().Undo)
	tr.reduces()
}
