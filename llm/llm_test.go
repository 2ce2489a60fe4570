package llm_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
)

func call(id string) llm.Call {
	return llm.Call{ID: id, Tool: "find", Args: agent.JSON(`{"q":1}`)}
}

func TestValidateAccepts(t *testing.T) {
	a, b := call("c1_1"), call("c1_2")
	opaque := llm.Message{Role: llm.RoleAssistant, Text: "hm", Model: "m", Opaque: agent.JSON(`[1]`)}
	for name, list := range map[string][]llm.Message{
		"one message":          {llm.User("hi")},
		"system and user":      {llm.System("be good"), llm.User("hi")},
		"two users in a row":   {llm.User("hi"), llm.User("there")},
		"calls answered":       {llm.User("hi"), llm.Assistant("", a, b), llm.Answer(a, "", false), llm.Answer(b, "no", true)},
		"answers out of order": {llm.User("hi"), llm.Assistant("", a, b), llm.Answer(b, "", false), llm.Answer(a, "", false), llm.User("and?")},
		"opaque items":         {llm.User("hi"), opaque, llm.User("go on")},
	} {
		require.NoError(t, llm.Validate(list), name)
	}
}

func TestValidateRefuses(t *testing.T) {
	a, b := call("c1_1"), call("c1_2")
	bad := func(change func(*llm.Call)) []llm.Message {
		c := call("c1_1")
		change(&c)
		return []llm.Message{llm.User("hi"), llm.Assistant("", c), llm.Answer(c, "", false)}
	}
	for _, tc := range []struct {
		want string
		list []llm.Message
	}{
		{"there is no user message", nil},
		{"there is no user message", []llm.Message{llm.System("x")}},
		{"message 1 (system): only the first", []llm.Message{llm.User("hi"), llm.System("x")}},
		{"must be the user's", []llm.Message{llm.System("x"), llm.Assistant("hi"), llm.User("x")}},
		{"nothing to answer", []llm.Message{llm.User("hi"), llm.Assistant("hello")}},
		{"blank text", []llm.Message{llm.User(" \n")}},
		{"neither text nor calls", []llm.Message{llm.User("hi"), llm.Assistant(" "), llm.User("x")}},
		{"after the last message: call c1_2 (find) before it has no answer", []llm.Message{llm.User("hi"), llm.Assistant("", a, b), llm.Answer(a, "", false)}},
		{"message 2 (user): call c1_1 (find) before it has no answer", []llm.Message{llm.User("hi"), llm.Assistant("", a), llm.User("stop"), llm.Answer(a, "", false)}},
		{"answered twice", []llm.Message{llm.User("hi"), llm.Assistant("", a), llm.Answer(a, "", false), llm.Answer(a, "", false)}},
		{"which nobody made", []llm.Message{llm.User("hi"), llm.Answer(a, "", false)}},
		{"used twice", []llm.Message{llm.User("hi"), llm.Assistant("", a, a), llm.Answer(a, "", false), llm.Answer(a, "", false)}},
		{"used twice", []llm.Message{llm.User("hi"), llm.Assistant("", a), llm.Answer(a, "", false), llm.Assistant("", a), llm.Answer(a, "", false)}},
		{"not valid UTF-8", []llm.Message{llm.User("a\xff")}},
		{"unknown role", []llm.Message{{Role: "boss", Text: "x"}}},
		{"only an assistant message has calls", []llm.Message{{Role: llm.RoleUser, Text: "x", Calls: []llm.Call{a}}}},
		{"only a tool message answers", []llm.Message{{Role: llm.RoleUser, Text: "x", Call: "c1_1"}}},
		{"opaque items", []llm.Message{llm.User("hi"), {Role: llm.RoleAssistant, Text: "x", Opaque: agent.JSON("{")}, llm.User("x")}},
		{"call id", bad(func(c *llm.Call) { c.ID = "" })},
		{"call id", bad(func(c *llm.Call) { c.ID = "functions.read:0|x" })},
		{"tool name", bad(func(c *llm.Call) { c.Tool = "find order" })},
		{"not a JSON object", bad(func(c *llm.Call) { c.Args = agent.JSON(`[]`) })},
		{"arguments", bad(func(c *llm.Call) { c.Args = nil })},
		{"arguments", bad(func(c *llm.Call) { c.Args = agent.JSON(`{"op": opn_tab"}`) })},
	} {
		require.ErrorContains(t, llm.Validate(tc.list), tc.want)
	}
}

func TestValidateLeavesItsInputAlone(t *testing.T) {
	a, b := call("c1_1"), call("c1_2")
	list := []llm.Message{llm.User("hi"), llm.Assistant("", a, b), llm.Answer(a, "", false), llm.Answer(b, "", false)}
	require.NoError(t, llm.Validate(list))
	require.Equal(t, []llm.Call{a, b}, list[1].Calls)
}

func TestBytes(t *testing.T) {
	req := llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: []llm.Tool{{Name: "find", Schema: agent.JSON(`{}`)}}}
	require.Equal(t, len(`{"messages":[{"role":"user","text":"hi"}],"tools":[{"name":"find","description":"","schema":{}}]}`), req.Bytes())

	with := req
	with.View = agent.View{Agent: "refund", Turn: 4}
	require.Equal(t, req.Bytes(), with.Bytes(), "the view is not sent")

	req.Tools[0].Schema = agent.JSON(`{`)
	require.Greater(t, req.Bytes(), 1<<30)
}

func TestOpaqueIsBoundToItsModel(t *testing.T) {
	m := llm.Message{Role: llm.RoleAssistant, Model: "a", Opaque: agent.JSON(`[1]`)}
	require.Equal(t, agent.JSON(`[1]`), m.OpaqueFor("a"))
	require.Empty(t, m.OpaqueFor("b"))
}

func TestError(t *testing.T) {
	cause := errors.New("connection reset")
	err := fmt.Errorf("calling: %w", &llm.Error{Kind: llm.KindRateLimited, RetryAfter: 7 * time.Second, Message: "slow down", Err: cause})
	require.EqualError(t, err, "calling: model rate_limited: slow down: connection reset")
	require.ErrorIs(t, err, cause)
	require.Equal(t, llm.KindRateLimited, llm.KindOf(err))
	require.Empty(t, llm.KindOf(cause))

	require.True(t, llm.KindUnavailable.Temporary())
	require.True(t, llm.KindRateLimited.Temporary())
	for _, k := range []llm.Kind{llm.KindRefused, llm.KindContextTooLong, llm.KindUnauthorized, llm.KindInvalidAnswer} {
		require.False(t, k.Temporary(), k)
	}
}
