package main

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm/openai/openaitest"
)

// call is a call with its arguments as they stand.
func call(tool, args string) openaitest.Call {
	return openaitest.Call{ID: "call_" + tool, Name: tool, Arguments: args}
}

// refunding answers as a good model would, one answer for each request.
func refunding() openaitest.Handler {
	var n atomic.Int32
	answers := []openaitest.ChatReply{
		openaitest.Say("Hello! Which order do you mean, and shall I look it up?"), // without ask: the customer must help
		openaitest.Calls(call("set_fields", `{"fields":{"order_id":"1042"},"quote":"1042"}`), call("find_order", `{"order_id":"1042"}`)),
		openaitest.Calls(call("ask", `{"question":"Refund this order?","fields":["order_id","amount"]}`)),
		openaitest.Calls(call("confirm", `{"fields":["order_id","amount"]}`), call("move", `{"to":"pay"}`)),
		openaitest.Calls(call("finish", `{"text":"Done.\n  3.1  rejected \u001b[31m"}`)),
	}
	return func(openaitest.ChatRequest) openaitest.ChatReply {
		i := int(n.Add(1)) - 1
		return answers[min(i, len(answers)-1)]
	}
}

func TestDemo_OnAModel(t *testing.T) {
	s := openaitest.Start(t, refunding())
	t.Setenv("OPENAI_BASE_URL", s.BaseURL())
	t.Setenv("OPENAI_API_KEY", s.Key())
	r := play(t, context.Background(), nil, "demo", "--model", "gpt-test", "--decide", "approve")
	require.Equal(t, exitOK, r.code, r.out+r.err)
	require.Empty(t, s.Broken())
	require.Contains(t, r.out, "The model is gpt-test.")
	require.Contains(t, r.out, "refund r-1042: 89.90 EUR")
	require.NotContains(t, r.out, "\x1b", "a terminal obeys no model")
	require.NotContains(t, r.out+r.err, s.Key())
}

// A real model may take any way: the demo ends, says how far it came, and never
// pays what was not approved.
func TestDemo_OnAModelThatDeviates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler openaitest.Handler
		says    []string
	}{
		"talks and talks": {func(openaitest.ChatRequest) openaitest.ChatReply { return openaitest.Say("How is the weather?") },
			[]string{"the run did not end: it is waiting for user", "How far it came"}},
		"declines": {func(r openaitest.ChatRequest) openaitest.ChatReply {
			if r.Only == agent.CallFinish {
				return openaitest.Calls(call("finish", `{"text":"No."}`))
			}
			return openaitest.Calls(call("move", `{"to":"declined"}`))
		}, []string{"the model ended the run without the refund that was asked for", "no refund"}},
		"calls what is not there": {func(openaitest.ChatRequest) openaitest.ChatReply {
			return openaitest.Calls(call("issue_refund", `{"order_id":"1042","amount":{"minor":8990,"currency":"EUR"}}`))
		}, []string{"the run did not end: it is paused (budget:", "How far it came"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openaitest.Start(t, c.handler)
			r := playWith(t, context.Background(), []string{"INTERLOCK_MODEL_API_KEY=" + s.Key()}, nil,
				"demo", "--model", "gpt-test", "--model-base-url", s.BaseURL(), "--decide", "approve")
			require.Equal(t, exitFailure, r.code, r.out+r.err)
			for _, want := range c.says {
				require.Contains(t, r.out+r.err, want)
			}
			require.Less(t, s.Count(), 60)
			require.NotContains(t, r.out, "refund r-")
		})
	}
}

func TestDemo_OnAModelWithAWrongKey(t *testing.T) {
	t.Parallel()
	s := openaitest.Start(t, refunding())
	r := playWith(t, context.Background(), []string{"INTERLOCK_MODEL_API_KEY=sk-wrong-S3CR3T"}, nil, "demo", "--model", "gpt-test", "--model-base-url", s.BaseURL())
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "the model's provider does not serve this key")
	require.NotContains(t, r.out+r.err, "S3CR3T")
}

func TestDemo_OnAModelWithoutAKey(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "INTERLOCK_MODEL_API_KEY"} {
		t.Setenv(name, "")
	}
	r := play(t, context.Background(), nil, "demo", "--model", "gpt-test")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "OPENAI_API_KEY")
	require.Empty(t, r.out, "nothing was started")
	r = play(t, context.Background(), nil, "demo", "--model", "gpt test")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, strings.ToLower(r.err), "without spaces")
}
