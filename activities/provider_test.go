package activities_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/openai"
	"interlock/llm/openai/openaitest"
	"interlock/signals"
)

// What a provider answers, as Temporal is told of it: one request an attempt,
// and a wait that is Temporal's and not a sleeping worker's.
func TestCallModel_Provider(t *testing.T) {
	b := newBench(t)
	b.acts.Store = tenantOf{b.store}
	server := openaitest.Start(t, nil)
	model, err := openai.New(openai.Options{Model: "m", BaseURL: server.BaseURL(), APIKey: server.Key()})
	require.NoError(t, err)
	b.model = model
	call := func() (signals.CallModelResult, error) {
		var out signals.CallModelResult
		return out, b.run(signals.ActivityCallModel, signals.CallModelInput{View: view()}, &out)
	}
	limited := openaitest.Fail(http.StatusTooManyRequests, "rate_limit_exceeded", "slow down")
	for _, tc := range []struct {
		name    string
		reply   openaitest.ChatReply
		kind    string
		retried bool
		delay   time.Duration
		says    string
	}{
		{"a delay in seconds", limited.With("Retry-After", "13"), signals.ErrUnavailable, true, 13 * time.Second, "model rate_limited: HTTP 429"},
		{"garbage for a delay", limited.With("Retry-After", "soon"), signals.ErrUnavailable, true, 0, "model rate_limited"},
		{"throttled without a header", openaitest.Fail(http.StatusServiceUnavailable, "", "throttled, try again"), signals.ErrUnavailable, true, 0, "throttled"},
		{"a dropped connection", openaitest.ChatReply{Drop: true}, signals.ErrUnavailable, true, 0, "dropped"},
		{"a rotated key", openaitest.Fail(http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided"), signals.ErrUnavailable, true, time.Minute, "model unauthorized"},
		{"an empty account", openaitest.Fail(http.StatusTooManyRequests, "insufficient_quota", "You exceeded your current quota"), signals.ErrUnavailable, true, time.Minute, "model quota"},
		{"too long a context", openaitest.Fail(http.StatusBadRequest, "context_length_exceeded", "maximum context length"), signals.ErrModel, false, 0, "model context_too_long"},
		{"an invalid request", openaitest.Fail(http.StatusUnprocessableEntity, "", "no such field"), signals.ErrModel, false, 0, "model refused"},
		{"another service", openaitest.ChatReply{Body: `{}`}, signals.ErrModel, false, 0, "model invalid_answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := server.Count()
			server.Handle(openaitest.Always(tc.reply))
			_, err := call()
			app := requireError(t, err, tc.kind, tc.retried, tc.says)
			require.Equal(t, tc.delay, app.NextRetryDelay())
			requests := 1
			if tc.name == "too long a context" {
				requests = 2 // once more, with half of the room
			}
			require.Equal(t, requests, server.Count()-before)
		})
	}
	server.Handle(openaitest.Sequence(openaitest.Fail(http.StatusBadRequest, "context_length_exceeded", "maximum context length"), openaitest.Say("hello")))
	before := server.Count()
	out, err := call()
	require.Equal(t, 2, server.Count()-before)
	require.NoError(t, err)
	require.Equal(t, "hello", out.Answer.Text)
	require.Equal(t, agent.FinishStop, out.Answer.Finish)
	require.Empty(t, server.Broken(), "what is rendered keeps the provider's rules")
	require.Positive(t, out.Answer.Usage.Input)
	require.Equal(t, llm.RoleSystem, server.Requests()[0].Neutral().Messages[0].Role)
}
