package scripted_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
)

var background = context.Background()

func at(turn int) llm.Request {
	return llm.Request{
		Messages: []llm.Message{llm.User("hello")},
		View:     agent.View{Agent: "refund", Version: 1, Turn: turn, Phase: "collect", State: agent.JSON(`{"order_id":"1042"}`)},
	}
}

func TestNewAnswersByTurn(t *testing.T) {
	m := scripted.New("s", scripted.Call("find_order", scripted.Args{"order_id": "1042"}), scripted.Say("done"))
	require.Equal(t, "s", m.Name())

	second, err := m.Generate(background, at(2))
	require.NoError(t, err)
	first, err := m.Generate(background, at(1))
	require.NoError(t, err)
	again, err := m.Generate(background, at(1))
	require.NoError(t, err)
	require.Equal(t, first, again, "a retry gets the same answer")

	require.Equal(t, llm.Response{
		Calls:  []agent.RawCall{{ProviderID: "s1_1", Tool: "find_order", Args: `{"order_id":"1042"}`}},
		Finish: agent.FinishCalls, Model: "s", ID: "s-1",
		Usage: agent.Usage{Input: int64(at(1).Bytes()+3) / 4, Output: 8},
	}, first)
	require.Equal(t, agent.FinishStop, second.Finish)
	require.Equal(t, int64(1), second.Usage.Output)

	_, err = m.Generate(background, at(3))
	require.Equal(t, llm.KindRefused, llm.KindOf(err))
	require.ErrorContains(t, err, `the script has 2 turns and no answer to refund/v1 turn 3 in phase collect; state {"order_id":"1042"}`)
}

func TestAnswersAreNotShared(t *testing.T) {
	m := scripted.New("s", scripted.Call("find_order", nil))
	first, err := m.Generate(background, at(1))
	require.NoError(t, err)
	first.Calls[0].Args = "spoilt"
	again, err := m.Generate(background, at(1))
	require.NoError(t, err)
	require.Equal(t, "{}", again.Calls[0].Args)
}

func TestRules(t *testing.T) {
	m := scripted.Rules("r",
		scripted.Rule{When: scripted.LastWord, Do: func(agent.View) llm.Response { return scripted.Call("finish", scripted.Args{"text": "bye"}) }},
		scripted.Rule{When: scripted.All(scripted.In("pay", "collect"), scripted.Says("REFUND")), Do: func(v agent.View) llm.Response {
			return scripted.Then(scripted.Say("I look."), scripted.Call("find_order", scripted.Args{"order_id": scripted.Field[string](v, "order_id")}))
		}},
	)
	req := at(1)
	req.View.Turns = []agent.ViewTurn{{N: 1, Opening: []agent.Item{{Kind: agent.ItemMessage, Text: "a refund please"}}}}
	got, err := m.Generate(background, req)
	require.NoError(t, err)
	require.Equal(t, "I look.", got.Text)
	require.Equal(t, `{"order_id":"1042"}`, got.Calls[0].Args)

	req.View.LastWord = true
	got, err = m.Generate(background, req)
	require.NoError(t, err)
	require.Equal(t, "finish", got.Calls[0].Tool, "the first that applies")

	req.View.LastWord, req.View.Phase = false, "done"
	req.View.Waiting = []agent.ViewGate{{ID: "1.1", Tool: "issue_refund"}}
	_, err = m.Generate(background, req)
	require.Equal(t, llm.KindRefused, llm.KindOf(err))
	require.ErrorContains(t, err, `no rule applies to refund/v1 turn 1 in phase done, issue_refund waits at gate 1.1, message "a refund please"; state`)
}

func TestFuncAndFailing(t *testing.T) {
	m := scripted.Func("f", func(req llm.Request) llm.Response { return scripted.Say(req.Messages[0].Text) })
	got, err := m.Generate(background, at(1))
	require.NoError(t, err)
	require.Equal(t, "hello", got.Text)

	cause := errors.New("down")
	down := m.Failing(func(req llm.Request) error {
		switch req.View.Turn {
		case 1:
			return cause
		case 2:
			return &llm.Error{Kind: llm.KindRateLimited, RetryAfter: time.Second}
		}
		return nil
	})
	_, err = down.Generate(background, at(1))
	require.ErrorIs(t, err, cause)
	require.Equal(t, llm.KindUnavailable, llm.KindOf(err))
	_, err = down.Generate(background, at(2))
	require.Equal(t, llm.KindRateLimited, llm.KindOf(err))
	_, err = down.Generate(background, at(3))
	require.NoError(t, err)

	ended, cancel := context.WithCancel(background)
	cancel()
	_, err = m.Generate(ended, at(1))
	require.ErrorIs(t, err, context.Canceled)
}

func TestThenAndRaw(t *testing.T) {
	got := scripted.Then(scripted.Say("a"), scripted.Raw("x", `{"op": opn"}`), scripted.Say("b"), scripted.Call("y", nil),
		llm.Response{Finish: agent.FinishLength, Usage: agent.Usage{Output: 3}})
	require.Equal(t, "a\nb", got.Text)
	require.Equal(t, []agent.RawCall{{Tool: "x", Args: `{"op": opn"}`}, {Tool: "y", Args: "{}"}}, got.Calls)
	require.Equal(t, agent.FinishLength, got.Finish)
	require.Equal(t, int64(3), got.Usage.Output)
	require.Panics(t, func() { scripted.Call("x", make(chan int)) })
}

func TestViewHelpers(t *testing.T) {
	v := agent.View{Turn: 3, State: agent.JSON(`{"n":7}`),
		Provenance: map[string]agent.ViewField{"n": {Source: "user", Shown: true, Confirmed: "yes"}},
		Turns: []agent.ViewTurn{
			{N: 1, Opening: []agent.Item{{Kind: agent.ItemMessage, Text: "one"}, {Kind: agent.ItemMessage, Text: "two"}},
				Calls: []agent.ViewCall{{Tool: "find", Answer: agent.ViewItem{Status: "failed"}}}},
			{N: 2, Calls: []agent.ViewCall{{Tool: "find", Answer: agent.ViewItem{Status: "done"}}, {Tool: "move", Answer: agent.ViewItem{Status: "done"}}},
				Results: []agent.ViewItem{{Tool: "pay", Status: "waiting"}}},
			{N: 3, Opening: []agent.Item{{Kind: agent.ItemOutcome, Step: "2.1", Text: "rejected"}}},
		}}
	require.Equal(t, "two", scripted.LastMessage(v))
	_, ok := scripted.NewMessage(v)
	require.False(t, ok)
	text, ok := scripted.NewOutcome(v, "2.1")
	require.True(t, ok)
	require.Equal(t, "rejected", text)
	_, ok = scripted.NewOutcome(v, "9.9")
	require.False(t, ok)
	require.True(t, scripted.Answered(v, "find", agent.StepDone))
	require.True(t, scripted.Answered(v, "pay", agent.StepWaiting))
	require.False(t, scripted.Answered(v, "send", agent.StepDone))
	_, ok = scripted.Waiting(v, "pay")
	require.False(t, ok)
	require.True(t, scripted.Shown(v, "n"))
	require.True(t, scripted.Confirmed(v, "n"))
	require.True(t, scripted.Set(v, "n"))
	require.False(t, scripted.Set(v, "m"))
	require.Equal(t, 7, scripted.Field[int](v, "n"))
	require.Panics(t, func() { scripted.Field[int](v, "m") })
	require.True(t, scripted.Not(scripted.Says("x"))(v))

	v.Turn = 4
	require.Zero(t, scripted.Open(v).N, "no turn is open")
	require.Empty(t, scripted.LastMessage(agent.View{}))
}
