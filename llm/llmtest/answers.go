package llmtest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
)

var hi = llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: []llm.Tool{find, finish}}

func raw(id, tool, args string) agent.RawCall {
	return agent.RawCall{ProviderID: id, Tool: tool, Args: args}
}

// answers: what the model wrote comes back as it wrote it.
func answers(t *testing.T, d Driver) {
	for name, want := range map[string]llm.Response{
		"text":                {Text: "hello", Finish: agent.FinishStop},
		"long text":           {Text: strings.Repeat("Grüße 世界 ", 3000), Finish: agent.FinishStop},
		"unicode":             {Text: unicode, Finish: agent.FinishStop},
		"one call":            {Calls: []agent.RawCall{raw("call_abc", "find_order", `{"order_id":"1042"}`)}, Finish: agent.FinishCalls},
		"text and a call":     {Text: "I look.", Calls: []agent.RawCall{raw("call_abc", "find_order", `{"order_id":"1042"}`)}, Finish: agent.FinishCalls},
		"parallel calls":      {Calls: []agent.RawCall{raw("k1", "find_order", `{"order_id":"1"}`), raw("k2", "finish", `{"text":"x"}`), raw("k3", "find_order", `{"order_id":"2"}`)}, Finish: agent.FinishCalls},
		"empty arguments":     {Calls: []agent.RawCall{raw("k1", "finish", `{}`)}, Finish: agent.FinishCalls},
		"large integers":      {Calls: []agent.RawCall{raw("k1", "find_order", bigNumbers)}, Finish: agent.FinishCalls},
		"unicode arguments":   {Calls: []agent.RawCall{raw("k1", "find_order", `{"order_id":"世界 👩‍👩‍👧 <&> \" \\ \n"}`)}, Finish: agent.FinishCalls},
		"an unknown tool":     {Calls: []agent.RawCall{raw("k1", "find_ordr", `{}`)}, Finish: agent.FinishCalls},
		"cut off":             {Text: "once upon a", Finish: agent.FinishLength},
		"cut off in a call":   {Calls: []agent.RawCall{raw("k1", "find_order", `{"order_id":"10`)}, Finish: agent.FinishLength},
		"withheld":            {Text: "", Finish: agent.FinishFiltered},
		"withheld after text": {Text: "so", Finish: agent.FinishFiltered},
		"empty":               {Finish: agent.FinishStop},
	} {
		t.Run(name, func(t *testing.T) {
			want.Model, want.ID = "answering-model", "answer-7"
			want.Usage = agent.Usage{Input: 30, Output: 5}
			fake, model := start(t, d, Answer{Response: want})
			req, pieces := hi, []string{}
			req.Delta = func(text string) { pieces = append(pieces, text) }
			got, err := model.Generate(t.Context(), req)
			require.NoError(t, err)
			got.Opaque = nil // the provider's own
			require.Equal(t, want, got)
			require.NotContains(t, pieces, "")
			require.True(t, strings.HasPrefix(got.Text, strings.Join(pieces, "")), "the text begins with the pieces: %q", pieces)
			require.Len(t, fake.Sent(), 1)
		})
	}
	t.Run("an answer can be sent back", func(t *testing.T) {
		fake, model := start(t, d, Answer{Response: llm.Response{Text: "I look.", Calls: []agent.RawCall{raw("functions.read:0|x", "find_order", bigNumbers), raw("functions.read:0|x", "finish", `{}`)}}})
		got, err := model.Generate(t.Context(), hi)
		require.NoError(t, err)
		a := llm.Call{ID: "c1_1", ProviderID: got.Calls[0].ProviderID, Tool: got.Calls[0].Tool, Args: agent.JSON(got.Calls[0].Args)}
		b := llm.Call{ID: "c1_2", ProviderID: got.Calls[1].ProviderID, Tool: got.Calls[1].Tool, Args: agent.JSON(got.Calls[1].Args)}
		next := hi
		next.Messages = []llm.Message{llm.User("hi"), {Role: llm.RoleAssistant, Text: got.Text, Calls: []llm.Call{a, b}, Model: got.Model, Opaque: got.Opaque},
			llm.Answer(a, "one", false), llm.Answer(b, "two", true)}
		_, err = model.Generate(t.Context(), next)
		require.NoError(t, err)
		require.Empty(t, fake.Sent()[1].Broken)
		requireSame(t, next, fake.Sent()[1].Request)
	})
}

// usages: the parts are disjoint, whatever the provider counts into what.
func usages(t *testing.T, d Driver) {
	for name, want := range map[string]agent.Usage{
		"plain":          {Input: 1200, Output: 80},
		"from a cache":   {Input: 30, CacheRead: 9000, Output: 52},
		"all cached":     {CacheRead: 4096, Output: 1},
		"into a cache":   {Input: 7, CacheRead: 10, CacheWrite: 2000, Output: 9},
		"reasoning":      {Input: 10, Output: 20, Reasoning: 300},
		"only reasoning": {Input: 10, Reasoning: 300},
	} {
		t.Run(name, func(t *testing.T) {
			_, model := start(t, d, Answer{Response: llm.Response{Text: "hello", Usage: want}})
			got, err := model.Generate(t.Context(), hi)
			require.NoError(t, err)
			require.Equal(t, want.Input, got.Usage.Input)
			require.Equal(t, want.CacheRead, got.Usage.CacheRead)
			require.Equal(t, want.Output+want.Reasoning, got.Usage.Output+got.Usage.Reasoning)
			require.Equal(t, want.Total(), got.Usage.Total(), "%+v", got.Usage)
		})
	}
}
