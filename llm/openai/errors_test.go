package openai_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/openai"
	"interlock/llm/openai/openaitest"
)

const (
	page     = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head></html>"
	rate     = `{"error":{"message":"Rate limit reached for m","type":"requests","param":null,"code":"rate_limit_exceeded"}}`
	internal = `{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}`
)

func failure(message, class, code string) string {
	return `{"error":{"message":` + quote(message) + `,"type":` + quote(class) + `,"param":null,"code":` + quote(code) + `}}`
}

func TestErrors(t *testing.T) {
	date := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return date.Add(d).Format(http.TimeFormat) }
	for _, tc := range []struct {
		name   string
		status int
		header string // name: value, several by |
		body   string
		kind   llm.Kind
		after  time.Duration
		says   string
	}{
		{"429, seconds", 429, "Retry-After: 13", rate, llm.KindRateLimited, 13 * time.Second, "HTTP 429 rate_limit_exceeded: Rate limit reached for m, try again in 13s"},
		{"429, a date", 429, "Retry-After: " + at(20*time.Second) + "|Date: " + at(0), rate, llm.KindRateLimited, 20 * time.Second, "try again in 20s"},
		{"429, a date that has passed", 429, "Retry-After: " + at(-time.Minute) + "|Date: " + at(0), rate, llm.KindRateLimited, 0, ""},
		{"429, milliseconds", 429, "Retry-After-Ms: 1500", rate, llm.KindRateLimited, 1500 * time.Millisecond, ""},
		{"429, both", 429, "Retry-After-Ms: 1500|Retry-After: 2", rate, llm.KindRateLimited, 1500 * time.Millisecond, ""},
		{"429, garbage and seconds", 429, "Retry-After-Ms: soon|Retry-After: 2", rate, llm.KindRateLimited, 2 * time.Second, ""},
		{"429, a fraction", 429, "Retry-After: 0.25", rate, llm.KindRateLimited, 250 * time.Millisecond, ""},
		{"429, garbage", 429, "Retry-After: soon", rate, llm.KindRateLimited, 0, ""},
		{"429, negative", 429, "Retry-After: -5", rate, llm.KindRateLimited, 0, ""},
		{"429, not a number", 429, "Retry-After: NaN", rate, llm.KindRateLimited, 0, ""},
		{"429, beyond all measure", 429, "Retry-After: 1e300", rate, llm.KindRateLimited, 0, ""},
		{"429, hours", 429, "Retry-After: 7200", rate, llm.KindRateLimited, 2 * time.Hour, "try again in 2h0m0s"},
		{"429, no header", 429, "", rate, llm.KindRateLimited, 0, ""},
		{"429, told not to retry", 429, "X-Should-Retry: false", rate, llm.KindRateLimited, 0, ""},
		{"429, an empty body", 429, "", "", llm.KindRateLimited, 0, "HTTP 429"},
		{"429, Google's list", 429, "", `[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}]`, llm.KindRateLimited, 0, "RESOURCE_EXHAUSTED: You exceeded"},
		{"429, quota", 429, "", failure("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), llm.KindQuota, 0, "insufficient_quota"},
		{"429, billing", 429, "", failure("Billing hard limit has been reached", "insufficient_quota", "billing_hard_limit_reached"), llm.KindQuota, 0, ""},
		{"402", 402, "", `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`, llm.KindQuota, 0, "Insufficient Balance"},
		{"429, more than a minute's tokens at once", 429, "", failure("Request too large for gpt-4 in organization org-1 on tokens per min (TPM): Limit 30000, Requested 50000.", "tokens", "rate_limit_exceeded"), llm.KindContextTooLong, 0, ""},

		{"500", 500, "", internal, llm.KindUnavailable, 0, "HTTP 500 server_error: The server had an error"},
		{"500, told not to retry", 500, "X-Should-Retry: false", internal, llm.KindUnavailable, 0, ""},
		{"502, a page", 502, "Content-Type: text/html", page, llm.KindUnavailable, 0, "HTTP 502: a page, not the provider's answer"},
		{"503, throttled, no header", 503, "", `{"message":"throttled, try again"}`, llm.KindUnavailable, 0, "throttled"},
		{"503, seconds", 503, "Retry-After: 30", internal, llm.KindUnavailable, 30 * time.Second, ""},
		{"503, llama.cpp loads", 503, "", `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, llm.KindUnavailable, 0, "unavailable_error: Loading model"},
		{"504, text", 504, "Content-Type: text/plain", "upstream request timeout", llm.KindUnavailable, 0, "upstream request timeout"},
		{"529", 529, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.KindUnavailable, 0, "overloaded_error"},
		{"408", 408, "", failure("timeout", "timeout", ""), llm.KindUnavailable, 0, ""},
		{"409", 409, "", failure("conflict", "invalid_request_error", ""), llm.KindUnavailable, 0, ""},
		{"404, a proxy's page", 404, "Content-Type: text/html", page, llm.KindUnavailable, 0, "a page"},

		{"400", 400, "X-Request-Id: req_7", failure("Invalid value: 'x'.\nSee the docs.", "invalid_request_error", "invalid_value"), llm.KindRefused, 0, "HTTP 400 invalid_value: Invalid value: 'x'. See the docs. (request req_7)"},
		{"404, no model", 404, "", failure("The model `m` does not exist", "invalid_request_error", "model_not_found"), llm.KindRefused, 0, "model_not_found"},
		{"404, Ollama", 404, "", `{"error":{"message":"model \"m\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`, llm.KindRefused, 0, "try pulling"},
		{"404, text", 404, "Content-Type: text/plain", "404 page not found", llm.KindRefused, 0, "page not found"},
		{"422, FastAPI", 422, "", `{"detail":[{"loc":["body","messages"],"msg":"field required"}]}`, llm.KindRefused, 0, "field required"},
		{"400, content policy", 400, "", failure("The response was filtered", "invalid_request_error", "content_filter"), llm.KindRefused, 0, "content_filter"},
		{"403, moderation", 403, "", `{"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["x"]}}}`, llm.KindRefused, 0, "flagged"},
		{"400, a limit on tokens", 400, "", failure("max_tokens is too large: 100000. This model supports at most 16384 completion tokens", "invalid_request_error", "invalid_value"), llm.KindRefused, 0, ""},
		{"400, a long id", 400, "", failure("Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40", "invalid_request_error", "string_above_max_length"), llm.KindRefused, 0, ""},
		{"400, a text for an error", 400, "", `{"error":"no such option"}`, llm.KindRefused, 0, "no such option"},

		{"401", 401, "", failure("Incorrect API key provided: "+openaitest.Key+". You can", "invalid_request_error", "invalid_api_key"), llm.KindUnauthorized, 0, "Incorrect API key provided: [key]. You can"},
		{"401, no body", 401, "", "", llm.KindUnauthorized, 0, "HTTP 401"},
		{"403, a region", 403, "", failure("Country not supported", "request_forbidden", "unsupported_country_region_territory"), llm.KindUnauthorized, 0, ""},
		{"400, Google's key", 400, "", `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, llm.KindUnauthorized, 0, ""},

		{"too long, OpenAI", 400, "", failure("This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.", "invalid_request_error", "context_length_exceeded"), llm.KindContextTooLong, 0, ""},
		{"too long, vLLM", 400, "", `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}`, llm.KindContextTooLong, 0, "HTTP 400 BadRequestError: This model's"},
		{"too long, vLLM's newer", 400, "", `{"error":{"message":"The decoder prompt (length 9000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}}`, llm.KindContextTooLong, 0, ""},
		{"too long, llama.cpp", 400, "", `{"error":{"code":400,"message":"request (4476 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4476,"n_ctx":4096}}`, llm.KindContextTooLong, 0, ""},
		{"too long, Ollama", 400, "", `{"error":{"message":"prompt too long; exceeded max context length by 7 tokens","type":"invalid_request_error"}}`, llm.KindContextTooLong, 0, ""},
		{"too long, Ollama's 500", 500, "", `{"error":"the input length exceeds the context length"}`, llm.KindContextTooLong, 0, ""},
		{"too long, Mistral", 400, "", `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":3051}`, llm.KindContextTooLong, 0, ""},
		{"too long, xAI", 400, "", `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, llm.KindContextTooLong, 0, ""},
		{"too long, Gemini", 400, "", `[{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, llm.KindContextTooLong, 0, ""},
		{"too long, Anthropic behind a gateway", 400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, llm.KindContextTooLong, 0, ""},
		{"too long, TGI", 422, "", "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096\",\"error_type\":\"validation\"}", llm.KindContextTooLong, 0, ""},
		{"413", 413, "Content-Type: text/html", page, llm.KindContextTooLong, 0, ""},

		{"200, an error", 200, "", failure("Overloaded", "overloaded_error", ""), llm.KindUnavailable, 0, "an error in the answer overloaded_error: Overloaded"},
		{"200, an error with a status", 200, "", `{"error":{"code":429,"message":"Rate limited upstream"}}`, llm.KindRateLimited, 0, "429: Rate limited upstream"},
		{"200, a rate limit", 200, "Retry-After: 9", failure("slow", "rate_limit_error", ""), llm.KindRateLimited, 9 * time.Second, ""},
		{"200, an invalid request", 200, "", failure("bad", "invalid_request_error", ""), llm.KindRefused, 0, ""},
		{"200, an error in the choice", 200, "", `{"choices":[{"error":{"code":502,"message":"upstream"},"finish_reason":"error","message":{"content":""}}]}`, llm.KindUnavailable, 0, "upstream"},
		{"200, a page", 200, "Content-Type: text/html", page, llm.KindUnavailable, 0, "not the provider"},
		{"200, nothing", 200, "", " ", llm.KindUnavailable, 0, "empty"},
		{"200, half", 200, "", `{"choices":[{"message":{"content":"hel`, llm.KindUnavailable, 0, "cut off"},
		{"200, no choices", 200, "", `{"id":"x","choices":[],"usage":{"prompt_tokens":3}}`, llm.KindInvalidAnswer, 0, "no chat completion"},
		{"200, another service", 200, "", `{"status":"ok"}`, llm.KindInvalidAnswer, 0, "no chat completion"},
		{"200, a list", 200, "", `[]`, llm.KindInvalidAnswer, 0, "no chat completion"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reply := openaitest.ChatReply{Status: tc.status, Body: tc.body}
			for _, h := range strings.Split(tc.header, "|") {
				if name, value, ok := strings.Cut(h, ": "); ok {
					reply = reply.With(name, value)
				}
			}
			for _, stream := range []bool{false, true} {
				m, server := serve(t, openai.Options{Stream: stream}, reply)
				got, err := m.Generate(t.Context(), hi)
				var e *llm.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, tc.kind, e.Kind, "%v", err)
				require.Equal(t, tc.after, e.RetryAfter)
				require.Contains(t, e.Message, tc.says)
				require.NotContains(t, err.Error(), openaitest.Key)
				require.NotContains(t, err.Error(), "\n")
				require.Less(t, len(err.Error()), 600)
				require.Zero(t, got)
				require.Equal(t, 1, server.Count())
			}
		})
	}
}

func TestErrors_OnTheWay(t *testing.T) {
	m, _ := serve(t, openai.Options{Timeout: 100 * time.Millisecond}, openaitest.ChatReply{Hang: true})
	began := time.Now()
	_, err := m.Generate(t.Context(), hi)
	require.EqualError(t, err, "model unavailable: no answer within 100ms: context deadline exceeded")
	require.Less(t, time.Since(began), 2*time.Second)

	m, _ = serve(t, openai.Options{}, openaitest.ChatReply{Drop: true})
	_, err = m.Generate(t.Context(), hi)
	require.EqualError(t, err, "model unavailable: the connection was dropped: EOF")

	m, _ = serve(t, openai.Options{}, openaitest.ChatReply{Status: 503, Body: strings.Repeat("x", 1000), Cut: true})
	_, err = m.Generate(t.Context(), hi)
	require.Equal(t, llm.KindUnavailable, llm.KindOf(err))
	require.ErrorContains(t, err, "HTTP 503", "the status stands, whatever became of the body")

	m, _ = serve(t, openai.Options{}, openaitest.ChatReply{Status: 400, Body: strings.Repeat("x", 3<<20)})
	_, err = m.Generate(t.Context(), hi)
	require.Equal(t, llm.KindRefused, llm.KindOf(err), "a huge refusal is one all the same")

	m, _ = serve(t, openai.Options{}, openaitest.ChatReply{Body: strings.Repeat(" ", 65<<20)})
	_, err = m.Generate(t.Context(), hi)
	require.Equal(t, llm.KindInvalidAnswer, llm.KindOf(err), "a huge answer is not read to its end")
}

// A key is taken out before a text is cut short: half a key is too much.
func TestErrors_KeyAtTheCut(t *testing.T) {
	for n := 250; n < 310; n++ {
		m, _ := serve(t, openai.Options{}, openaitest.Fail(400, "x", strings.Repeat("a", n)+openaitest.Key))
		_, err := m.Generate(t.Context(), hi)
		require.NotContains(t, err.Error(), openaitest.Key[:6])
	}
}

func TestWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		choice string
		want   llm.Response
	}{
		"nulls":                  {`{"message":{"role":"assistant","content":"hello","refusal":null,"tool_calls":null,"function_call":null},"finish_reason":null}`, llm.Response{Text: "hello", Finish: "stop"}},
		"calls and stop":         {`{"message":{"content":null,"tool_calls":[{"id":"k1","type":"function","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"stop"}`, llm.Response{Calls: calls([3]string{"k1", "read", "{}"}), Finish: "calls"}},
		"no calls and calls":     {`{"message":{"content":"hello","tool_calls":[]},"finish_reason":"tool_calls"}`, llm.Response{Text: "hello", Finish: "stop"}},
		"empty arguments":        {`{"message":{"tool_calls":[{"id":"","function":{"name":"read","arguments":""}},{"function":{"name":"read","arguments":null}},{"function":{"name":"read"}}]}}`, llm.Response{Calls: calls([3]string{"", "read", ""}, [3]string{"", "read", ""}, [3]string{"", "read", ""}), Finish: "calls"}},
		"the same id":            {`{"message":{"tool_calls":[{"id":"call_1","function":{"name":"read","arguments":"{}"}},{"id":"call_1","function":{"name":"read","arguments":"{}"}}]}}`, llm.Response{Calls: calls([3]string{"call_1", "read", "{}"}, [3]string{"call_1", "read", "{}"}), Finish: "calls"}},
		"an object for a text":   {`{"message":{"tool_calls":[{"id":1,"function":{"name":"read","arguments":{"n": 9007199254740993}}}]}}`, llm.Response{Calls: calls([3]string{"1", "read", `{"n": 9007199254740993}`}), Finish: "calls"}},
		"an empty place":         {`{"message":{"tool_calls":[{"id":"","function":{"name":"","arguments":""}},null,{"id":"k1","function":{"name":"read","arguments":"{}"}}]}}`, llm.Response{Calls: calls([3]string{"k1", "read", "{}"}), Finish: "calls"}},
		"the older form":         {`{"message":{"content":null,"function_call":{"name":"read","arguments":"{\"p\":1}"}},"finish_reason":"function_call"}`, llm.Response{Calls: calls([3]string{"", "read", `{"p":1}`}), Finish: "calls"}},
		"length":                 {`{"message":{"content":"he"},"finish_reason":"length"}`, llm.Response{Text: "he", Finish: "length"}},
		"Mistral's length":       {`{"message":{"content":"he"},"finish_reason":"model_length"}`, llm.Response{Text: "he", Finish: "length"}},
		"filtered":               {`{"message":{"content":""},"finish_reason":"content_filter"}`, llm.Response{Finish: "filtered"}},
		"refusal":                {`{"message":{"content":null,"refusal":"I cannot."},"finish_reason":"stop"}`, llm.Response{Text: "I cannot.", Finish: "filtered"}},
		"refusal after text":     {`{"message":{"content":"Well.","refusal":"I cannot."},"finish_reason":"stop"}`, llm.Response{Text: "Well.\nI cannot.", Finish: "filtered"}},
		"a list of parts":        {`{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hel"},{"type":"text","text":"lo"}]},"finish_reason":"stop"}`, llm.Response{Text: "hello", Finish: "stop"}},
		"a reason of its own":    {`{"message":{"content":"hello"},"finish_reason":"eos"}`, llm.Response{Text: "hello", Finish: "stop"}},
		"half a surrogate":       {`{"message":{"content":"a\ud800b"},"finish_reason":"stop"}`, llm.Response{Text: "a\uFFFDb", Finish: "stop"}},
		"empty is no invention":  {`{"message":{"content":null},"finish_reason":"stop"}`, llm.Response{Finish: "stop"}},
		"reasoning is not shown": {`{"message":{"content":"hello","reasoning_content":"hm","reasoning":"hm"},"finish_reason":"stop"}`, llm.Response{Text: "hello", Finish: "stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := serve(t, openai.Options{}, openaitest.ChatReply{Body: `{"id":"r1","model":"m2","choices":[` + tc.choice + `],"usage":{"prompt_tokens":3,"completion_tokens":2}}`})
			got, err := m.Generate(t.Context(), hi)
			require.NoError(t, err)
			tc.want.ID, tc.want.Model, tc.want.Usage = "r1", "m2", agent.Usage{Input: 3, Output: 2}
			require.Equal(t, tc.want, got)
		})
	}
}
