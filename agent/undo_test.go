package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

func charge(n int) string {
	return fmt.Sprintf(`charge {"order_id":"%d","amount":{"minor":5,"currency":"EUR"}}`, n)
}

// last is the id of the latest step.
func (tr *trial) last() string { return tr.m.Run().Steps[len(tr.m.Run().Steps)-1].ID }

// task is that of the step of a tool which was started last.
func (tr *trial) task(tool string) agent.Task {
	for _, c := range tr.cmds {
		if c, ok := c.(agent.RunStep); ok && c.Task.Tool == tool {
			return c.Task
		}
	}
	tr.t.Fatalf("no step of %s was started", tool)
	return agent.Task{}
}

func (tr *trial) undo(steps ...string) agent.Receipt {
	tr.step(agent.UndoSteps{ID: fmt.Sprintf("u%d", tr.m.Run().Seq), Principal: agent.Principal{Subject: "ops"}, Steps: steps, Reason: "wrong"})
	return tr.receipt
}

// What can be undone stays in the run when its turn goes, within a bound; beyond
// it a repair run, made from the journal, undoes it.
func TestUndo_OfOldSteps(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	for i := range 12 {
		tr.message(fmt.Sprintf("go %d", i))
		tr.model(charge(i))
		tr.done(tr.last(), fmt.Sprintf(`{"id":"r-%d"}`, i))
		tr.model()
	}
	r := tr.m.Run()
	require.Positive(t, r.Trimmed.Turns, "old turns have gone")
	require.Equal(t, agent.Accepted, tr.undo("1.1").Status)
	require.Contains(t, tr.task("void").Args.String(), `"result":{"id":"r-0"}`)
	requireReduces(t, tr.m.Batch().Events, tr.m.Run())

	// A small snapshot has room for few.
	def := deskAgent()
	limits := def.Limits()
	limits.Snapshot = 16 << 10
	small := &trial{t: t, m: agent.NewMachine(def), now: tr.now}
	small.step(agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Rules: agent.Rules, Limits: limits, User: "u", Body: agent.JSON(`{"customer_id":"c"}`)})
	for i := range 14 {
		small.message(fmt.Sprintf("go %d", i))
		small.model(charge(i))
		small.done(small.last(), fmt.Sprintf(`{"id":"r-%d"}`, i))
		small.model()
	}
	require.Equal(t, agent.RunWaiting, small.m.Run().Status, small.m.Run().Reason)
	got := small.undo("1.1")
	require.Equal(t, agent.CodeNotFound, got.Code)
	require.Contains(t, got.Reason, "ask again once the run has ended: a repair run undoes it")
	p, err := agent.RepairOf(small.m.Batch().Events, agent.UndoSteps{ID: "u", Steps: []string{"1.1", "3.1"}, Reason: "wrong"})
	require.NoError(t, err)
	_, err = agent.RepairOf(small.m.Batch().Events, agent.UndoSteps{ID: "u", Steps: []string{"1.1", "1.2"}, Reason: "wrong"})
	require.ErrorContains(t, err, "step 1.2 cannot be undone: the run has no such step")
	require.Equal(t, []string{"3.1", "1.1"}, p.StepIDs())
	require.Equal(t, `{"id":"r-0"}`, p.Steps[1].Result.String())
	requireReduces(t, small.m.Batch().Events, small.m.Run())
}

// What the model was told of a call stays told; the undo is an item of its own,
// without what the compensation was given.
func TestUndo_AsTheModelSeesIt(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(charge(77))
	tr.done("1.1", `{"id":"r-secret"}`)
	tr.model()
	seq := tr.m.Run().Turn
	require.Equal(t, agent.Accepted, tr.undo("1.1").Status)
	tr.done(tr.last(), `{"id":"v"}`)
	require.Equal(t, seq, tr.m.Run().Turn, "an undo does not call the model")
	require.Equal(t, agent.RunWaiting, tr.m.Run().Status)
	tr.message("well?")
	v := tr.lastView()
	require.Equal(t, "done", v.Turns[0].Calls[0].Answer.Status, "told as it was")
	last := v.Turns[len(v.Turns)-1]
	require.Equal(t, "Step 1.1, charge, was undone by step 2.1, void, and has no effect any more. ops asked for it: wrong.", last.Opening[0].Text)
	require.Empty(t, last.Results)
	require.NotContains(t, string(must1(json.Marshal(last))), "r-secret")

	// Undone within its turn: the call's one answer says so, without the result.
	tr = begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(charge(77), `find_order {"order_id":"77"}`)
	tr.done("1.1", `{"id":"r-secret"}`)
	require.Equal(t, agent.Accepted, tr.undo("1.1").Status)
	tr.done("1.3", `{"id":"v"}`)
	tr.done("1.2", `{"id":"77","total":{"minor":5,"currency":"EUR"}}`)
	a := tr.lastView().Turns[0].Calls[0].Answer
	require.Equal(t, "undone", a.Status)
	require.Equal(t, "it happened, and was undone by step 1.3", a.Text)
	require.Empty(t, a.Result)
}

// A result that was not kept cannot be undone: the compensation needs it.
func TestUndo_ResultNotKept(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(charge(77))
	tr.step(agent.StepFinished{Step: "1.1", Unkept: "result_too_large"})
	require.Contains(t, tr.undo("1.1").Reason, "its result was not kept, which void needs")
}

// Two steps of one effect are undone once.
func TestUndo_OneEffectTwice(t *testing.T) {
	pay := tool.Keyed("pay", keyed[mail, sent], func(*state, mail, sent) error { return nil }).
		Undo(tool.Keyed("unpay", keyed[tool.Done[mail, sent], sent], func(*state, tool.Done[mail, sent], sent) error { return nil }))
	enter := func(agent.Situation[state]) []agent.Call { return []agent.Call{pay.With(mail{"a"})} }
	tr := begin(t, agent.Define(agent.Spec[start, state]{Name: "twice", Version: 1, Instructions: "x", Init: func(start) (state, error) { return state{}, nil },
		Phases: []agent.Phase[state]{{Name: "a", Enter: enter, Moves: []agent.Move[state]{{To: "b"}}},
			{Name: "b", Enter: enter, Moves: []agent.Move[state]{{To: "end"}}}, {Name: "end", Final: true}}}), `{"customer_id":"c"}`)
	tr.done("0.1", `{"id":"p"}`)
	tr.message("go on")
	tr.model(`move {"to":"b"}`)
	tr.done(tr.last(), `{"id":"p"}`)
	again := tr.last()
	require.Equal(t, tr.m.Run().Steps[0].Key, tr.m.Run().Steps[1].Key)
	require.Contains(t, tr.undo("0.1", again).Reason, "are one effect; name one of them")
	require.Equal(t, agent.Accepted, tr.undo(again).Status)
	require.Contains(t, tr.undo("0.1").Reason, "its effect is that of step "+again+", which is undone or being undone")
}

// An undo that waits for a person does not hold the turn in which it began.
func TestUndo_DoesNotHoldTheTurn(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(charge(77), `find_order {"order_id":"77"}`)
	tr.done("1.1", `{"id":"r"}`)
	require.Equal(t, agent.Accepted, tr.undo("1.1").Status)
	tr.step(agent.StepUnknown{Step: "1.3", Reason: "lost"})
	tr.done("1.2", `{"id":"77","total":{"minor":5,"currency":"EUR"}}`)
	require.True(t, tr.m.Run().Calling)
	require.Equal(t, 2, tr.m.Run().Turn)
}

// What a cancelled run left in doubt is asked about no more, and is not undone.
func TestRepair_InDoubt(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(charge(77), charge(78))
	tr.done("1.1", `{"id":"r"}`)
	tr.step(agent.StepUnknown{Step: "1.2", Reason: "lost"})
	require.Contains(t, tr.undo("1.2").Reason, "say at gate 1.2-doubt what became of it, and ask again")
	require.Equal(t, agent.Accepted, tr.undo("1.1").Status)
	undo := tr.last()
	tr.step(agent.StepUnknown{Step: undo, Reason: "lost too"})
	tr.step(agent.CancelRun{ID: "c", Principal: agent.Principal{Subject: "ops"}})
	require.Equal(t, agent.RunCancelled, tr.m.Run().Status)
	require.Equal(t, []string{"1.2 charge: in_doubt", undo + " void: in_doubt", "1.1 charge: stands, its undo is step " + undo + ", which is in_doubt"}, tr.m.Run().FailedEnd)
	_, err := agent.RepairOf(tr.m.Batch().Events, agent.UndoSteps{ID: "u", Steps: []string{"1.2"}, Reason: "wrong"})
	require.ErrorContains(t, err, "find out, and undo it on the other side")
	p, err := agent.RepairOf(tr.m.Batch().Events, agent.UndoSteps{ID: "u", Steps: []string{"1.1"}, Reason: "wrong"})
	require.NoError(t, err, "the ledger knows, or asks, by the same key")
	require.Empty(t, p.Ordinals)
}

// The journal of a forged repair refuses to run in another agent's scope.
func TestRepair_Scope(t *testing.T) {
	def := deskAgent()
	tr := &trial{t: t, m: agent.NewMachine(def)}
	tr.step(agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Rules: agent.Rules, Limits: def.Limits(), User: "u", Principal: agent.Principal{Subject: "ops"},
		Repair: &agent.Repair{Address: "other/desk/k", Scope: "other/desk/k/r", Turn: 2, ID: "u", Reason: "x", State: agent.JSON(`{}`),
			Steps: []agent.RepairStep{{ID: "1.1", Tool: "charge", Compensation: "void", Args: agent.JSON(`{}`), Result: agent.JSON(`{}`), Key: "k"}}}})
	require.Equal(t, agent.RunFailed, tr.m.Run().Status)
	require.Contains(t, tr.m.Run().Reason, "is none of a run of agent desk of tenant acme")
}

func TestDefine_Undo(t *testing.T) {
	void := func() *tool.Tool[state, tool.Done[refundArgs, refund], sent] {
		return tool.Keyed("void", keyed[tool.Done[refundArgs, refund], sent], func(*state, tool.Done[refundArgs, refund], sent) error { return nil })
	}
	charge := func() *tool.Tool[state, refundArgs, refund] {
		return tool.Keyed("charge", keyed[refundArgs, refund], func(*state, refundArgs, refund) error { return nil })
	}
	for say, c := range map[string]agent.Tool[state]{
		"": charge().Undo(void()),
		"tool charge: its undo other takes agent_test.mail; it must take tool.Done[interlock/agent_test.refundArgs,interlock/agent_test.refund]": charge().Undo(tool.Keyed("other", keyed[mail, sent], func(*state, mail, sent) error { return nil })),
		"tool find_order: is ReadOnly and names an undo: there would be nothing to undo":                                                         findTool().Undo(tool.Keyed("void_find", keyed[tool.Done[findArgs, order], sent], func(*state, tool.Done[findArgs, order], sent) error { return nil })),
		"tool charge: its undo look is ReadOnly: it would undo nothing":                                                                          charge().Undo(tool.ReadOnly("look", none[tool.Done[refundArgs, refund], sent], func(*state, tool.Done[refundArgs, refund], sent) error { return nil })),
		"tool charge: its undo void names an undo itself: call charge again instead":                                                             charge().Undo(void().Undo(void())),
		"tool charge undo: two tools are named charge":                                                                                           charge().Undo(tool.Keyed("charge", keyed[tool.Done[refundArgs, refund], sent], func(*state, tool.Done[refundArgs, refund], sent) error { return nil })),
	} {
		def := agent.Define(agent.Spec[start, state]{Name: "a", Version: 1, Instructions: "x", Init: func(start) (state, error) { return state{}, nil },
			Phases: []agent.Phase[state]{{Name: "work", Tools: []agent.Tool[state]{c}, Moves: []agent.Move[state]{{To: "end"}}}, {Name: "end", Final: true}}})
		if say == "" {
			require.NoError(t, def.Err())
			info, ok := def.Tool("void")
			require.True(t, ok, "the compensation is a tool of the definition")
			require.Equal(t, agent.Keyed, info.Effect)
			p, _ := def.Phase("work")
			require.Equal(t, []string{"charge"}, p.Tools, "which the model cannot call")
			continue
		}
		require.ErrorContains(t, def.Err(), say)
		require.Equal(t, 1, strings.Count(def.Err().Error(), "\n"), def.Err())
	}
}

func must1[T any](v T, err error) T {
	must(err)
	return v
}
