package llmtest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
)

// Numbers that a float64 does not hold.
const bigNumbers = `{"a":9007199254740993,"b":9223372036854775807,"c":-9223372036854775808,"d":123456789012345678901234567890}`

const unicode = "Grüße, 世界 👩‍👩‍👧 \u202Eabc\u202C \"quoted\" <tag> & \\ \n\ttab\u2028"

var find = llm.Tool{Name: "find_order", Description: "Finds an order.",
	Schema: agent.JSON(`{"additionalProperties":false,"properties":{"order_id":{"type":"string"},"max":{"maximum":9007199254740993,"type":"integer"}},"required":["order_id"],"type":"object"}`)}

var finish = llm.Tool{Name: "finish", Description: "Ends the run.", Schema: agent.JSON(`{"properties":{"text":{"type":"string"}},"type":"object"}`)}

// Conversations are requests that every driver can send, by name: what a run's
// contexts are made of.
func Conversations() map[string]llm.Request {
	tools := []llm.Tool{find, {Name: "issue-refund", Description: "", Schema: agent.JSON(`{"type":"object"}`)}}
	c := func(id, args string) llm.Call {
		return llm.Call{ID: id, ProviderID: "call_1", Tool: "find_order", Args: agent.JSON(args)}
	}
	var many []llm.Call
	var answered []llm.Message
	for i, text := range []string{"step 1.1: done\nresult: []", "step 1.2: failed: it did not happen. the reason", "step 1.3: cancelled: it did not happen",
		"step 1.4: waiting: at gate 1.4 for a person with role leads. It has not run", "refused: no such order", "step 1.6: expired: nobody decided in time", ""} {
		many = append(many, c(fmt.Sprintf("c1_%d", i+1), fmt.Sprintf(`{"order_id":"%d"}`, i)))
		answered = append(answered, llm.Answer(many[i], text, strings.Contains(text, "failed")))
	}
	long := strings.Repeat("l", 64)
	out := map[string]llm.Request{
		"one_message":     {Messages: []llm.Message{llm.User("hi")}},
		"tools":           {Messages: []llm.Message{llm.System("be good"), llm.User("refund 1042")}, Tools: tools, MaxOutput: 700},
		"two_users":       {Messages: []llm.Message{llm.User("hi"), llm.User("there")}},
		"parallel_calls":  {Messages: append([]llm.Message{llm.User("hi"), llm.Assistant("I try all.", many...)}, answered...), Tools: tools},
		"only_finish":     {Messages: []llm.Message{llm.System("be good"), llm.User("hi")}, Tools: []llm.Tool{finish}, Only: "finish"},
		"unicode":         {Messages: []llm.Message{llm.System(unicode), llm.User(unicode), llm.Assistant(unicode, c("c1_1", `{"text":"Grüße \n 世界 👩‍👩‍👧 <&>"}`)), llm.Answer(c("c1_1", ""), unicode, false)}, Tools: tools},
		"large_integers":  {Messages: []llm.Message{llm.User("hi"), llm.Assistant("", c("c1_1", bigNumbers)), llm.Answer(c("c1_1", ""), bigNumbers, false)}, Tools: tools},
		"no_arguments":    {Messages: []llm.Message{llm.User("hi"), llm.Assistant("", c("c1_1", `{}`)), llm.Answer(c("c1_1", ""), "done", false)}, Tools: tools},
		"longest_call_id": {Messages: []llm.Message{llm.User("hi"), llm.Assistant("", c(long, `{}`), c(long[1:]+"k", `{}`)), llm.Answer(c(long[1:]+"k", ""), "two", false), llm.Answer(c(long, ""), "one", false)}, Tools: tools},
	}
	var turns []llm.Message
	for n := range 12 {
		call := c(fmt.Sprintf("c%d_1", n+1), fmt.Sprintf(`{"order_id":"%d"}`, n))
		turns = append(turns, llm.User(fmt.Sprintf("message %d", n)), llm.Assistant("", call), llm.Answer(call, "done", false), llm.Assistant("there you are"))
	}
	out["many_turns"] = llm.Request{Messages: append(turns, llm.User("and now?")), Tools: tools}
	return out
}

// requests: what the provider reads is what was said, and it accepts it.
func requests(t *testing.T, d Driver) {
	for name, req := range Conversations() {
		t.Run(name, func(t *testing.T) {
			fake, model := start(t, d, Answer{Response: llm.Response{Text: "ok"}})
			for range 2 {
				_, err := model.Generate(t.Context(), req)
				require.NoError(t, err)
			}
			sent := fake.Sent()
			require.Len(t, sent, 2)
			require.Empty(t, sent[0].Broken)
			require.True(t, bytes.Equal(sent[0].Body, sent[1].Body), "equal requests have equal bodies")
			requireSame(t, req, sent[0].Request)
		})
	}
	t.Run("a longer conversation begins alike", func(t *testing.T) {
		fake, model := start(t, d, Answer{Response: llm.Response{Text: "ok"}})
		long := Conversations()["many_turns"]
		short := long
		short.Messages = short.Messages[:9]
		for _, req := range []llm.Request{short, long} {
			_, err := model.Generate(t.Context(), req)
			require.NoError(t, err)
		}
		sent := fake.Sent()
		require.Equal(t, sent[0].Messages, sent[1].Messages[:len(sent[0].Messages)])
	})
	t.Run("the view is not sent", func(t *testing.T) {
		fake, model := start(t, d, Answer{Response: llm.Response{Text: "ok"}})
		_, err := model.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi")}, View: agent.View{Agent: "agent-of-the-view", State: agent.JSON(`{"secret":"state-of-the-view"}`)}})
		require.NoError(t, err)
		require.NotContains(t, string(fake.Sent()[0].Body), "of-the-view")
	})
}

// requireSame compares what was said with what the provider reads. Call ids can
// differ, one for one.
func requireSame(t *testing.T, want, got llm.Request) {
	t.Helper()
	require.Equal(t, want.Only, got.Only)
	require.Len(t, got.Messages, len(want.Messages))
	ids, taken := map[string]string{}, map[string]bool{}
	for i, w := range want.Messages {
		g := got.Messages[i]
		require.Equal(t, w.Role, g.Role, "message %d", i)
		require.Equal(t, w.Text, g.Text, "message %d", i)
		require.Len(t, g.Calls, len(w.Calls), "message %d", i)
		for n, c := range w.Calls {
			require.Equal(t, c.Tool, g.Calls[n].Tool)
			require.Equal(t, string(c.Args), string(g.Calls[n].Args), "arguments are sent byte for byte")
			require.False(t, taken[g.Calls[n].ID], "call ids stay different")
			ids[c.ID], taken[g.Calls[n].ID] = g.Calls[n].ID, true
		}
		if w.Role == llm.RoleTool {
			require.Equal(t, ids[w.Call], g.Call, "message %d answers its call", i)
		}
	}
	require.Len(t, got.Tools, len(want.Tools))
	for i, w := range want.Tools {
		g := got.Tools[i]
		require.Equal(t, w.Name, g.Name)
		require.Equal(t, w.Description, g.Description)
		schema, err := agent.Canonical(g.Schema)
		require.NoError(t, err)
		wanted, err := agent.Canonical(w.Schema)
		require.NoError(t, err)
		require.Equal(t, string(wanted), string(schema), "the schema of %s, numbers exact", w.Name)
	}
	if want.MaxOutput > 0 {
		require.Equal(t, want.MaxOutput, got.MaxOutput)
	}
}

// refusedUnsent: what no provider takes is not sent.
func refusedUnsent(t *testing.T, d Driver) {
	dangling := llm.Call{ID: "c1_1", Tool: "find_order", Args: agent.JSON(`{}`)}
	for name, req := range map[string]llm.Request{
		"nothing":                    {},
		"an unanswered call":         {Messages: []llm.Message{llm.User("hi"), llm.Assistant("", dangling), llm.User("stop")}},
		"an empty answer":            {Messages: []llm.Message{llm.User("hi"), llm.Assistant(""), llm.User("go on")}},
		"a tool that is not offered": {Messages: []llm.Message{llm.User("hi")}, Only: "finish"},
		"no schema":                  {Messages: []llm.Message{llm.User("hi")}, Tools: []llm.Tool{{Name: "x", Schema: agent.JSON(`[]`)}}},
		"a bad name":                 {Messages: []llm.Message{llm.User("hi")}, Tools: []llm.Tool{{Name: "a b", Schema: agent.JSON(`{"type":"object"}`)}}},
	} {
		t.Run(name, func(t *testing.T) {
			fake, model := start(t, d, Answer{Response: llm.Response{Text: "ok"}})
			_, err := model.Generate(t.Context(), req)
			require.Equal(t, llm.KindRefused, llm.KindOf(err), "%v", err)
			require.Empty(t, fake.Sent())
		})
	}
}
