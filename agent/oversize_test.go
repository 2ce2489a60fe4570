package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// What is too large for one view or one proposal must neither vanish nor make
// the run grow without a bound.

func TestView_OversizedProposalIsShownInPart(t *testing.T) {
	big := strings.Repeat("é", 700)
	small := agent.Limits{View: 3000}
	view := viewWithin(t, small, big)
	require.Len(t, view.Turns, 2, "the turn whose answers are new is there")
	require.Equal(t, "the very first message", view.Turns[0].Opening[0].Text)
	for _, c := range view.Turns[0].Calls {
		require.NotEmpty(t, c.Answer.Status)
		require.Contains(t, c.Answer.Text, "are not shown")
		require.Equal(t, "{}", c.Args.String())
	}
	require.LessOrEqual(t, len(encoded(t, view)), 3000+1024)
}

// viewWithin runs one turn of two large calls under limits, and returns the
// next view.
func viewWithin(t *testing.T, limits agent.Limits, big string) agent.View {
	look := tool.ReadOnly("look", none[findArgs, sent], func(*state, findArgs, sent) error { return nil })
	def := agent.Define(agent.Spec[start, state]{Name: "look", Version: 1, Instructions: "x", Limits: limits,
		Init: func(in start) (state, error) { return state{CustomerID: in.CustomerID}, nil },
		Phases: []agent.Phase[state]{{Name: "work", Tools: []agent.Tool[state]{look}, Moves: []agent.Move[state]{{To: "end"}}},
			{Name: "end", Final: true}}})
	require.NoError(t, def.Err())
	tr := begin(t, def, `{"customer_id":"c-1"}`)
	tr.message("the very first message")
	tr.model(`look {"order_id":"77","hint":"`+big+`"}`, `look {"order_id":"78","hint":"`+big+`"}`)
	tr.done("1.1", `{"id":"`+big+`"}`)
	tr.done("1.2", `{"id":"`+big+`"}`)
	v := tr.lastView()
	require.Equal(t, 2, v.Turn)
	return v
}

func TestMachine_TooManyCallsAreNotTaken(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c-1"}`)
	tr.message("go")
	calls := make([]string, 3000)
	for i := range calls {
		calls[i] = `ping {"refund_id":"a"}`
	}
	tr.model(calls...)
	run := tr.m.Run()
	require.Empty(t, run.Steps)
	require.Equal(t, 2, run.Turn, "the model is told, and asked again")
	require.Contains(t, run.Turns[1].Opening[0].Text, "it made 3000 calls, at most 32")
	require.Equal(t, 1, run.Used.Refusals)
}

func TestMachine_OpenStepsAreBounded(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c-1"}`)
	for n := range 3 {
		tr.message("go")
		var calls []string
		for i := range 20 {
			calls = append(calls, `risky {"order_id":"`+string(rune('a'+n))+string(rune('a'+i))+`","amount":{"minor":500,"currency":"EUR"}}`)
		}
		tr.model(calls...)
	}
	open := 0
	for _, g := range tr.m.Run().Gates {
		if g.Status == agent.GateOpen {
			open++
		}
	}
	require.Equal(t, 32, open)
}

func TestMachine_MessageBeforeTheLastWordOfCode(t *testing.T) {
	note := tool.Keyed("note", keyed[mail, sent], func(*state, mail, sent) error { return nil })
	def := agent.Define(agent.Spec[start, state]{Name: "closing", Version: 1, Instructions: "x",
		Init: func(in start) (state, error) { return state{CustomerID: in.CustomerID}, nil },
		Phases: []agent.Phase[state]{
			{Name: "work", Moves: []agent.Move[state]{{To: "end", Auto: true, When: func(agent.Situation[state]) error { return errors.New("no") }}, {To: "over"}}},
			{Name: "over", Final: true, Say: func(agent.Situation[state]) string { return "Over." },
				Enter: func(agent.Situation[state]) []agent.Call { return []agent.Call{note.With(mail{"x"})} }},
			{Name: "end", Final: true}}})
	require.NoError(t, def.Err())
	tr := begin(t, def, `{"customer_id":"c-1"}`)
	tr.message("close it")
	tr.model(`move {"to":"over"}`)
	tr.message("wait, one more thing")
	tr.done("1.1", `{"id":"n"}`)
	require.Equal(t, 2, tr.m.Run().Turn, "the model answers the message first")
	require.Equal(t, "wait, one more thing", tr.lastView().Turns[1].Opening[0].Text)
	tr.step(agent.Proposed{Turn: 2, Text: "Too late, sorry.", Finish: agent.FinishStop})
	require.Equal(t, agent.RunCompleted, tr.m.Run().Status)
}

func TestBudget_NegativeIsNoLimit(t *testing.T) {
	none := agent.Budget{Turns: -1, ModelCalls: -1, Tokens: -1, Active: -1, Refusals: -1, ToolErrors: -1, SameCall: -1}
	def := agent.Define(agent.Spec[start, state]{Name: "free", Version: 1, Instructions: "x", Budget: none,
		Init:   func(start) (state, error) { return state{}, nil },
		Phases: []agent.Phase[state]{{Name: "work", Moves: []agent.Move[state]{{To: "end"}}}, {Name: "end", Final: true}}})
	tr := begin(t, def, `{"customer_id":"c"}`)
	tr.message("go")
	require.Equal(t, agent.RunRunning, tr.m.Run().Status)
	require.Nil(t, tr.lastView().Left.Turns)
}

// A verdict that decides nothing is recorded whole, and activities carry it: what it
// brings is bounded as what a valid one brings.
func TestVerdict_Oversized(t *testing.T) {
	tr := bank(t, bankPolicy{roles: []string{"teller"}})
	big := agent.JSON(`{"id":"` + strings.Repeat("x", 1<<20) + `"}`)
	for _, v := range []agent.Verdict{
		{Verdict: agent.Edit, Reason: "so", Args: big, Digest: "stale"},
		{Verdict: agent.Happened, Reason: "so", Result: big},
		{Verdict: agent.GiveAnswer, Answer: &agent.Answer{Fields: big}},
	} {
		require.Empty(t, tr.by(teller("ann"), "1.1", v))
		require.Equal(t, agent.Refused, tr.receipt.Status)
		require.Contains(t, tr.receipt.Reason, "the verdict brings 1048585 bytes, the limit is 65536")
	}
	require.Equal(t, agent.GateOpen, tr.gate("1.1").Status)
}
