package agent_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// seats is an agent whose code releases the seat that it holds when it enters choose,
// with the result as the state has it. said is what the state makes of it.
func seats(said func(id string) string, limits agent.Limits, gate ...tool.Gate[state, tool.Done[mail, sent]]) *agent.Definition {
	hold := tool.Keyed("hold", keyed[mail, sent], func(s *state, _ mail, r sent) error { s.ReceiptID = r.ID; return nil })
	release := tool.Keyed("release", keyed[tool.Done[mail, sent], sent], func(s *state, _ tool.Done[mail, sent], r sent) error { s.ReceiptID, s.Trace = "", r.ID; return nil })
	for _, g := range gate {
		release.Gate(g)
	}
	hold.Undo(release)
	enter := func(s agent.Situation[state]) []agent.Call {
		return []agent.Call{release.With(tool.Done[mail, sent]{Args: mail{s.State.Note}, Result: sent{said(s.State.ReceiptID)}})}
	}
	return agent.Define(agent.Spec[start, state]{Name: "seats", Version: 1, Instructions: "x", Limits: limits,
		Init: func(start) (state, error) { return state{Note: "12A"}, nil },
		Phases: []agent.Phase[state]{
			{Name: "work", Tools: []agent.Tool[state]{hold, release}, Moves: []agent.Move[state]{{To: "choose"}, {To: "end"}}},
			{Name: "choose", Tools: []agent.Tool[state]{hold}, Enter: enter, Moves: []agent.Move[state]{{To: "work"}}},
			{Name: "end", Final: true, Say: func(agent.Situation[state]) string { return "Done." }}}})
}

func same(id string) string { return id }

// held is such a run in which hold 12A has happened as step 1.1.
func held(t *testing.T, def *agent.Definition) *trial {
	tr := begin(t, def, `{"customer_id":"c"}`)
	tr.message("hold it")
	tr.model(`hold {"refund_id":"12A"}`)
	tr.done("1.1", `{"id":"h-1"}`)
	return tr
}

// byOperator is the task by which an operator's undo of the same step runs.
func byOperator(t *testing.T, def *agent.Definition) agent.Task {
	tr := held(t, def)
	tr.model()
	require.Equal(t, agent.Accepted, tr.undo("1.1").Status)
	return tr.task("release")
}

// A compensation that code, or the model, calls for an effect is the undo of that
// effect: the key is the one of an operator's undo, and a later undo does nothing.
func TestUndo_OneKeyWhoeverAsks(t *testing.T) {
	for name, ask := range map[string]struct {
		said func(string) string
		call string
	}{
		"code, on entering":                    {same, `move {"to":"choose"}`},
		"code, with a result that it reworded": {func(id string) string { return "seat " + id }, `move {"to":"choose"}`},
		"the model":                            {same, `release {"args":{"refund_id":"12A"},"result":{"id":"h-1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			def := seats(ask.said, agent.Limits{})
			tr := held(t, def)
			tr.model(ask.call)
			task, want := tr.task("release"), byOperator(t, def)
			require.Equal(t, want.Key, task.Key)
			require.Equal(t, want.Args.String(), task.Args.String(), "what was recorded, byte for byte")
			require.Equal(t, want.Undoes, task.Undoes, "the ledger marks the original")
			original, marked := task.Undone()
			require.True(t, marked)
			require.Equal(t, tr.stepOf("1.1").Key, original.Key)
			require.Contains(t, tr.undo("1.1").Reason, "step "+task.Step+" undoes it, and is running")
			tr.done(task.Step, `{"id":"rel"}`)
			require.Equal(t, agent.StepDone, tr.stepOf(task.Step).Status)
			require.Equal(t, agent.StepUndone, tr.stepOf("1.1").Status)
			require.Equal(t, task.Step, tr.stepOf("1.1").UndoneBy)
			require.Equal(t, "rel", tr.state().Trace, "its Commit ran")
			require.Contains(t, tr.undo("1.1").Reason, "it was undone by step "+task.Step+" already")
			tr.cancel(agent.UndoRun)
			require.Equal(t, agent.RunCancelled, tr.m.Run().Status)
			require.Empty(t, tr.m.Run().FailedEnd, "nothing stands")
			require.Len(t, tr.m.Run().Steps, 2, "nothing was run again")
			tr.reduces()
			_, err := agent.RepairOf(tr.m.Batch().Events, agent.UndoSteps{ID: "u", Steps: []string{"1.1"}, Reason: "wrong"})
			require.ErrorContains(t, err, "undone by step "+task.Step+" already")
		})
	}
}

// Entering twice asks for one effect twice: the second is given what stands.
func TestUndo_CalledTwice(t *testing.T) {
	tr := held(t, seats(func(string) string { return "h-1" }, agent.Limits{}))
	tr.model(`move {"to":"choose"}`)
	first := tr.task("release")
	tr.done(first.Step, `{"id":"rel"}`)
	tr.model(`move {"to":"work"}`)
	tr.model(`move {"to":"choose"}`)
	second := tr.task("release")
	require.NotEqual(t, first.Step, second.Step)
	require.Equal(t, first.Key, second.Key, "the ledger answers with the result that stands")
	tr.done(second.Step, `{"id":"rel"}`)
	require.Equal(t, first.Step, tr.stepOf("1.1").UndoneBy)
	tr.model(`move {"to":"work"}`)
	tr.model(`hold {"refund_id":"12A"}`, `release {"args":{"refund_id":"12A"},"result":{"id":"h-1"}}`)
	require.Equal(t, 1, tr.task("hold").Ordinal, "it was undone: a new effect")
	again := tr.task("hold")
	tr.done(again.Step, `{"id":"h-2"}`)
	tr.model(`release {"args":{"refund_id":"12A"},"result":{"id":"h-2"}}`)
	third := tr.task("release")
	require.NotEqual(t, first.Key, third.Key)
	require.Equal(t, again.Step, third.Undoes.Step)
	tr.reduces()
}

// One undo at a time: what an operator has asked for is not called beside it.
func TestUndo_NotBesideAnOperators(t *testing.T) {
	tr := held(t, seats(same, agent.Limits{}))
	require.Equal(t, agent.Accepted, tr.undo("1.1").Status)
	tr.model(`move {"to":"choose"}`)
	refused := tr.stepOf(tr.last())
	require.Equal(t, agent.StepRefused, refused.Status)
	require.Equal(t, "step 1.1 is being undone, as ops asked", refused.Reason)
	require.Equal(t, agent.ByUndo, tr.m.Run().Steps[1].By)
	tr.reduces()
}

// One that waits for a person is closed by a cancel, which undoes by itself, under
// the same key; a rollback does not say that nothing stands.
func TestUndo_CalledByCodeAndCut(t *testing.T) {
	boss := tool.Gate[state, tool.Done[mail, sent]]{Roles: []string{"boss"}}
	tr := held(t, seats(same, agent.Limits{}, boss))
	tr.model(`move {"to":"choose"}`)
	waits := tr.stepOf(tr.last())
	require.Equal(t, agent.StepWaiting, waits.Status)
	require.Equal(t, "1.1", waits.Undoes)
	require.Contains(t, tr.undo("1.1").Reason, "undoes it, and is waiting")
	tr.cancel(agent.UndoRun)
	require.Equal(t, agent.StepCancelled, tr.stepOf(waits.ID).Status)
	own := tr.stepOf(tr.last())
	require.Equal(t, agent.ByUndo, own.By)
	require.Equal(t, waits.Key, own.Key)
	tr.reduces()

	tr = held(t, seats(same, agent.Limits{}))
	tr.model(`move {"to":"choose"}`)
	release := tr.task("release").Step
	tr.done(release, `{"id":"rel"}`)
	tr.step(agent.Message{ID: "stop", Principal: agent.Principal{Subject: "u"}, Text: "no", Policy: agent.MessageRollback})
	require.Equal(t, agent.StepDone, tr.stepOf(release).Status)
	require.Equal(t, agent.StepUndone, tr.stepOf("1.1").Status)
	require.Nil(t, tr.m.Run().Cut)
	tr.reduces()
}

// In doubt is in doubt: nobody runs it beside the doubt, and an operator's word that
// it happened counts for the original, too.
func TestUndo_CalledByCodeInDoubt(t *testing.T) {
	tr := held(t, seats(same, agent.Limits{}))
	tr.model(`move {"to":"choose"}`)
	release := tr.task("release").Step
	tr.step(agent.StepUnknown{Step: release, Reason: "lost"})
	require.Contains(t, tr.undo("1.1").Reason, "step "+release+" undoes it, and is in_doubt")
	tr.by(agent.Principal{Subject: "ops", Roles: []string{agent.DefaultOperator}}, release+"-doubt", agent.Verdict{Verdict: agent.Happened, Reason: "seen", Result: agent.JSON(`{"id":"rel"}`)})
	require.Equal(t, agent.StepUndone, tr.stepOf("1.1").Status)
	tr.reduces()
}

// Of two that were called alike the result says which is meant.
func TestUndo_WhichOneIsMeant(t *testing.T) {
	ping := tool.Keyed("ping", keyed[mail, sent], func(*state, mail, sent) error { return nil }).Repeatable()
	unping := tool.Keyed("unping", keyed[tool.Done[mail, sent], sent], func(*state, tool.Done[mail, sent], sent) error { return nil })
	ping.Undo(unping)
	tr := begin(t, agent.Define(agent.Spec[start, state]{Name: "pings", Version: 1, Instructions: "x", Init: func(start) (state, error) { return state{}, nil },
		Phases: []agent.Phase[state]{{Name: "work", Tools: []agent.Tool[state]{ping, unping}, Moves: []agent.Move[state]{{To: "end"}}}, {Name: "end", Final: true}}}), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`ping {"refund_id":"a"}`, `ping {"refund_id":"a"}`)
	tr.done("1.1", `{"id":"p-1"}`)
	tr.done("1.2", `{"id":"p-2"}`)
	tr.model(`unping {"args":{"refund_id":"a"},"result":{"id":"p-3"}}`, `unping {"args":{"refund_id":"a"},"result":{"id":"p-1"}}`)
	require.Contains(t, tr.m.Run().Turns[1].Proposal.Calls[0].Text, "steps 1.1 and 1.2 were called so, and neither gave this result")
	require.Equal(t, "1.1", tr.task("unping").Undoes.Step)
	tr.reduces()
}

// What the run has let go of is undone under the key that a repair of it has.
func TestUndo_OfWhatTheRunHasLetGo(t *testing.T) {
	limits := agent.Limits{Snapshot: 16 << 10}
	tr := held(t, seats(func(string) string { return "h-1" }, limits))
	tr.model()
	for i := range 14 {
		tr.message(fmt.Sprintf("go %d", i))
		tr.model(fmt.Sprintf(`hold {"refund_id":"%d"}`, i))
		tr.done(tr.last(), fmt.Sprintf(`{"id":"h-%d"}`, i+2))
		tr.model()
	}
	require.Contains(t, tr.undo("1.1").Reason, "let go of")
	tr.message("release the first")
	tr.model(`move {"to":"choose"}`)
	task := tr.task("release")
	p, err := agent.RepairOf(tr.m.Batch().Events, agent.UndoSteps{ID: "u", Steps: []string{"1.1"}, Reason: "wrong"})
	require.NoError(t, err)
	def := tr.m.Definition()
	repair := &trial{t: t, m: agent.NewMachine(def), now: tr.now}
	repair.step(agent.Started{Tenant: "acme", Key: "k/repair", FirstRunID: "r2", Rules: agent.Rules, Limits: def.Limits(), User: "u", Principal: agent.Principal{Subject: "ops"}, Repair: p})
	require.Equal(t, task.Key, repair.task("release").Key)
}
