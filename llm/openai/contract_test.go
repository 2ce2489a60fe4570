package openai_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/llm"
	"interlock/llm/llmtest"
	"interlock/llm/openai"
	"interlock/llm/openai/openaitest"
)

// environment are the variables that the SDK's client reads, and those that its
// documentation or its sub-packages name.
var environment = []string{"OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET",
	"OPENAI_CUSTOM_HEADERS", "OPENAI_ORGANIZATION", "OPENAI_LOG", "AWS_BEARER_TOKEN_BEDROCK", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"}

func TestContract(t *testing.T) {
	for name, o := range map[string]openai.Options{
		"Whole":           {},
		"Stream":          {Stream: true},
		"ShortIDs":        {ShortCallIDs: true},
		"StreamUncounted": {Stream: true, OutputLimit: openai.MaxCompletionTokens, Extra: map[string]any{"temperature": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			llmtest.Run(t, llmtest.Driver{Environment: environment,
				Fake: func(t testing.TB) llmtest.Fake { return fake{openaitest.Start(t, nil)} },
				New: func(t testing.TB, url, key string) llm.Model {
					o := o
					o.Model, o.BaseURL, o.APIKey = "test-model", url, key
					return newModel(t, o)
				}})
		})
	}
}

func newModel(t testing.TB, o openai.Options) *openai.Model {
	t.Helper()
	m, err := openai.New(o)
	require.NoError(t, err)
	return m
}

// fake is the wire fake in the suite's words.
type fake struct{ *openaitest.Server }

func (f fake) URL() string { return f.BaseURL() }

func (f fake) Sent() []llmtest.Sent {
	var out []llmtest.Sent
	for _, r := range f.Requests() {
		out = append(out, llmtest.Sent{Request: r.Neutral(), Header: r.Header, Body: r.Body, Broken: r.Broken})
	}
	return out
}

func (f fake) Reply(answer func(llm.Request) llmtest.Answer) {
	f.Handle(func(req openaitest.ChatRequest) openaitest.ChatReply {
		a := answer(req.Neutral())
		reply := faulty(a)
		if a.RetryAfter > 0 {
			reply = reply.With("Retry-After", fmt.Sprint(int(a.RetryAfter/time.Second)))
		}
		return reply
	})
}

func faulty(a llmtest.Answer) openaitest.ChatReply {
	switch a.Fault {
	case llmtest.Unavailable:
		return openaitest.Fail(http.StatusServiceUnavailable, "", "The server is down.")
	case llmtest.Overloaded:
		return openaitest.Fail(529, "", "Overloaded")
	case llmtest.RateLimited:
		return openaitest.Fail(http.StatusTooManyRequests, "rate_limit_exceeded", "Rate limit reached.")
	case llmtest.NoQuota:
		return openaitest.Fail(http.StatusTooManyRequests, "insufficient_quota", "You exceeded your current quota.")
	case llmtest.Unauthorized:
		return openaitest.Fail(http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided: "+openaitest.Key)
	case llmtest.Forbidden:
		return openaitest.Fail(http.StatusForbidden, "", "Your account has no access.")
	case llmtest.Refused:
		return openaitest.Fail(http.StatusBadRequest, "invalid_value", "Invalid value for\n'temperature'.")
	case llmtest.NoModel:
		return openaitest.Fail(http.StatusNotFound, "model_not_found", "The model does not exist.")
	case llmtest.TooLong:
		return openaitest.Fail(http.StatusBadRequest, "context_length_exceeded", "This model's maximum context length is 128000 tokens.")
	case llmtest.ErrorInside:
		return openaitest.ChatReply{Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}
	case llmtest.Garbage:
		return openaitest.ChatReply{Body: `{"hello":"world"}`}
	case llmtest.Page:
		return openaitest.ChatReply{Body: "<html><body>partial partial login</body></html>"}.With("Content-Type", "text/html")
	case llmtest.Dropped:
		return openaitest.ChatReply{Drop: true}
	case llmtest.Hang:
		return openaitest.ChatReply{Hang: true}
	}
	out := openaitest.FromResponse(a.Response)
	out.Cut = a.Fault == llmtest.Cut
	return out
}
