package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/openai"
	"interlock/llm/openai/openaitest"
)

var hi = llm.Request{Messages: []llm.Message{llm.User("hi")}}

// serve is a model whose server answers every request alike.
func serve(t *testing.T, o openai.Options, reply openaitest.ChatReply) (*openai.Model, *openaitest.Server) {
	t.Helper()
	server := openaitest.Start(t, openaitest.Always(reply))
	o.Model, o.BaseURL, o.APIKey = "test-model", server.BaseURL(), server.Key()
	return newModel(t, o), server
}

func streamed(t *testing.T, events ...string) (llm.Response, error) {
	t.Helper()
	m, _ := serve(t, openai.Options{Stream: true}, openaitest.ChatReply{Events: events})
	return m.Generate(t.Context(), hi)
}

func quote(s string) string { data, _ := json.Marshal(s); return string(data) }

// chunk is an event with one choice.
func chunk(delta, finish string) string {
	return fmt.Sprintf(`data: {"id":"c1","model":"m2","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, finish)
}

func text(s string) string { return chunk(`{"content":`+quote(s)+`}`, "null") }

// piece is an event with a piece of a call; what is "" is absent.
func piece(index, id, name, args string) string { return pieces([4]string{index, id, name, args}) }

func pieces(list ...[4]string) string {
	var out []string
	for _, p := range list {
		var members []string
		if p[0] != "" {
			members = append(members, `"index":`+p[0])
		}
		if p[1] != "" {
			members = append(members, `"id":`+quote(p[1]))
		}
		function := `"arguments":` + quote(p[3])
		if p[2] != "" {
			function += `,"name":` + quote(p[2])
		}
		out = append(out, "{"+strings.Join(append(members, `"function":{`+function+`}`), ",")+"}")
	}
	return chunk(`{"tool_calls":[`+strings.Join(out, ",")+`]}`, "null")
}

const (
	stop      = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	toolCalls = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	done      = `data: [DONE]`
)

func calls(list ...[3]string) []agent.RawCall {
	var out []agent.RawCall
	for _, c := range list {
		out = append(out, agent.RawCall{ProviderID: c[0], Tool: c[1], Args: c[2]})
	}
	return out
}

func TestStream_Calls(t *testing.T) {
	three := calls([3]string{"k1", "write", `{"p":1}`}, [3]string{"k2", "write", `{"p":2}`}, [3]string{"k3", "write", `{"p":3}`})
	two := calls([3]string{"k1", "read", `{"p":1}`}, [3]string{"k2", "write", `{"q":[2,3]}`})
	for name, tc := range map[string]struct {
		events []string
		want   []agent.RawCall
	}{
		"index always 0":        {[]string{piece("0", "k1", "write", `{"p":1}`), piece("0", "k2", "write", `{"p":2}`), piece("0", "k3", "write", `{"p":3}`)}, three},
		"no index":              {[]string{piece("", "k1", "write", `{"p":1}`), piece("", "k2", "write", `{"p":2}`), piece("", "k3", "write", `{"p":3}`)}, three},
		"null index":            {[]string{piece("null", "k1", "write", `{"p":1}`), piece("null", "k2", "write", `{"p":2}`), piece("null", "k3", "write", `{"p":3}`)}, three},
		"all in one chunk":      {[]string{pieces([4]string{"0", "k1", "write", `{"p":1}`}, [4]string{"1", "k2", "write", `{"p":2}`}, [4]string{"2", "k3", "write", `{"p":3}`})}, three},
		"by index, interleaved": {[]string{piece("0", "k1", "read", ""), piece("1", "k2", "write", `{"q"`), piece("0", "", "", `{"p"`), piece("1", "", "", `:[2,`), piece("0", "", "", `:1}`), piece("1", "", "", `3]}`)}, two},
		"by id, interleaved":    {[]string{piece("0", "k1", "read", `{"p"`), piece("0", "k2", "write", `{"q"`), piece("0", "k1", "", `:1}`), piece("0", "k2", "", `:[2,3]}`)}, two},
		"pieces without index":  {[]string{piece("", "k1", "read", ""), piece("", "", "", `{"p":`), piece("", "", "", `1}`), piece("", "k2", "write", `{"q":[2,`), piece("", "", "", `3]}`)}, two},
		"id in every piece":     {[]string{piece("0", "k1", "read", `{"p":`), piece("0", "k1", "", `1}`), piece("1", "k2", "write", `{"q":[2,`), piece("1", "k2", "", `3]}`)}, two},
		"name in every piece":   {[]string{piece("0", "k1", "read", `{"p":`), piece("0", "k1", "read", `1}`), piece("1", "k2", "write", `{"q":[2,`), piece("1", "k2", "write", `3]}`), piece("1", "k2", "write", ``)}, two},
		"the same again":        {[]string{piece("0", "k1", "read", `{"p":1}`), piece("1", "k2", "write", `{"q":[2,3]}`), piece("0", "k1", "read", `{"p":1}`), piece("1", "k2", "write", `{"q":[2,3]}`)}, two},
		"name before arguments": {[]string{piece("0", "k1", "read", ""), piece("0", "", "", `{"p":1}`)}, two[:1]},
		"name after arguments":  {[]string{piece("0", "", "", `{"p":1}`), piece("0", "k1", "read", ``)}, two[:1]},
		"name in pieces":        {[]string{piece("0", "k1", "re", ""), piece("0", "", "ad", ""), piece("0", "", "", `{"p":1}`)}, two[:1]},
		"no ids, index 0":       {[]string{piece("0", "", "read", `{"p":1}`), piece("0", "", "read", `{"p":2}`)}, calls([3]string{"", "read", `{"p":1}`}, [3]string{"", "read", `{"p":2}`})},
		"no ids, no index":      {[]string{piece("", "", "read", `{"p":1}`), piece("", "", "write", `{"p":2}`)}, calls([3]string{"", "read", `{"p":1}`}, [3]string{"", "write", `{"p":2}`})},
		"repeated ids":          {[]string{piece("0", "call_1", "read", `{"p":1}`), piece("1", "call_1", "read", `{"p":2}`)}, calls([3]string{"call_1", "read", `{"p":1}`}, [3]string{"call_1", "read", `{"p":2}`})},
		"repeated ids, index 0": {[]string{piece("0", "call_1", "read", `{"p":1}`), piece("0", "call_1", "read", `{"p":2}`)}, calls([3]string{"call_1", "read", `{"p":1}`}, [3]string{"call_1", "read", `{"p":2}`})},
		"no arguments":          {[]string{piece("0", "k1", "read", ""), piece("1", "k2", "read", "")}, calls([3]string{"k1", "read", ""}, [3]string{"k2", "read", ""})},
		"broken arguments":      {[]string{piece("0", "k1", "read", `{"op": opn`), piece("0", "", "", `_tab"}`)}, calls([3]string{"k1", "read", `{"op": opn_tab"}`})},
		"an object for a text":  {[]string{chunk(`{"tool_calls":[{"index":0,"id":7,"function":{"name":"read","arguments":{"p":9007199254740993}}}]}`, "null")}, calls([3]string{"7", "read", `{"p":9007199254740993}`})},
		"the older form":        {[]string{chunk(`{"function_call":{"name":"read","arguments":""}}`, "null"), chunk(`{"function_call":{"arguments":"{\"p\":"}}`, "null"), chunk(`{"function_call":{"arguments":"1}"}}`, "null")}, calls([3]string{"", "read", `{"p":1}`})},
		"an empty place":        {[]string{piece("0", "", "", ""), piece("1", "k1", "read", `{"p":1}`)}, two[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			for _, end := range [][]string{{toolCalls, done}, {stop, done}, {toolCalls, toolCalls, done}} {
				got, err := streamed(t, append(tc.events, end...)...)
				require.NoError(t, err)
				require.Equal(t, tc.want, got.Calls)
				require.Equal(t, agent.FinishCalls, got.Finish, "that it calls is decided by the calls")
			}
		})
	}
	t.Run("on the last chunk", func(t *testing.T) {
		last := strings.Replace(pieces([4]string{"0", "k1", "write", `{"p":1}`}, [4]string{"1", "k2", "write", `{"p":2}`}, [4]string{"2", "k3", "write", `{"p":3}`}),
			`"finish_reason":null`, `"finish_reason":"tool_calls"`, 1)
		got, err := streamed(t, last, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`, done)
		require.NoError(t, err)
		require.Equal(t, three, got.Calls)
		require.Equal(t, agent.Usage{Input: 3, Output: 4}, got.Usage)
	})
}

func TestStream_Text(t *testing.T) {
	for name, tc := range map[string]struct {
		events []string
		want   llm.Response
	}{
		"comments and keep-alives": {[]string{": OPENROUTER PROCESSING", ":", text("hel"), ": ping", "event: ping\ndata:", "data: ", text("lo"), stop, done}, llm.Response{Text: "hello", Finish: "stop"}},
		"nulls":                    {[]string{chunk(`{"role":"assistant","content":null,"refusal":null,"tool_calls":null,"function_call":null}`, "null"), chunk("null", "null"), `data: {"id":null,"choices":null,"usage":null,"error":null}`, text("hello"), stop, done}, llm.Response{Text: "hello", Finish: "stop"}},
		"empty reasons":            {[]string{chunk(`{"content":"hello"}`, `""`), stop, done}, llm.Response{Text: "hello", Finish: "stop"}},
		"no reason":                {[]string{text("hello"), done}, llm.Response{Text: "hello", Finish: "stop"}},
		"cut off":                  {[]string{text("hello"), chunk("{}", `"length"`), done}, llm.Response{Text: "hello", Finish: "length"}},
		"cut off in a call":        {[]string{piece("0", "k1", "read", `{"p`), chunk("{}", `"length"`), done}, llm.Response{Calls: calls([3]string{"k1", "read", `{"p`}), Finish: "length"}},
		"withheld":                 {[]string{text("he"), chunk("{}", `"content_filter"`), done}, llm.Response{Text: "he", Finish: "filtered"}},
		"refusal":                  {[]string{chunk(`{"refusal":"I can"}`, "null"), chunk(`{"refusal":"not."}`, "null"), stop, done}, llm.Response{Text: "I cannot.", Finish: "filtered"}},
		"another choice":           {[]string{text("hello"), `data: {"choices":[{"index":1,"delta":{"content":"other"}}]}`, stop, done}, llm.Response{Text: "hello", Finish: "stop"}},
		"parts":                    {[]string{chunk(`{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"hello"}]}`, "null"), stop, done}, llm.Response{Text: "hello", Finish: "stop"}},
		"filter results first":     {[]string{`data: {"choices":[],"prompt_filter_results":[{}]}`, text("hello"), stop, done}, llm.Response{Text: "hello", Finish: "stop"}},
		"empty":                    {[]string{stop, done}, llm.Response{Finish: "stop"}},
		"windows line ends":        {[]string{text("hello") + "\r\n\r", stop + "\r\n\r", done + "\r\n\r"}, llm.Response{Text: "hello", Finish: "stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := streamed(t, tc.events...)
			require.NoError(t, err)
			require.Equal(t, tc.want.Text, got.Text)
			require.Equal(t, tc.want.Calls, got.Calls)
			require.Equal(t, tc.want.Finish, got.Finish)
		})
	}
	t.Run("no blank line at the end", func(t *testing.T) {
		body := text("hello") + "\n\n" + stop + "\n\n" + done
		m, _ := serve(t, openai.Options{Stream: true}, openaitest.ChatReply{Body: body}.With("Content-Type", "text/event-stream; charset=utf-8"))
		got, err := m.Generate(t.Context(), hi)
		require.NoError(t, err)
		require.Equal(t, "hello", got.Text)
	})
	t.Run("a whole answer where a stream was asked for", func(t *testing.T) {
		m, server := serve(t, openai.Options{Stream: true}, openaitest.ChatReply{Body: `{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}`})
		got, err := m.Generate(t.Context(), hi)
		require.NoError(t, err)
		require.Equal(t, "hello", got.Text)
		require.Equal(t, "test-model", got.Model, "it did not name one")
		require.True(t, server.Requests()[0].Stream)
	})
}

func TestStream_Usage(t *testing.T) {
	with := func(usage string) string { return `data: {"choices":[],"usage":` + usage + `}` }
	for name, tc := range map[string]struct {
		events []string
		want   agent.Usage
	}{
		"at the end":        {[]string{with("null"), text("a"), stop, with(`{"prompt_tokens":30,"completion_tokens":52,"total_tokens":82}`)}, agent.Usage{Input: 30, Output: 52}},
		"running totals":    {[]string{with(`{"prompt_tokens":30,"completion_tokens":5}`), text("a"), with(`{"prompt_tokens":30,"completion_tokens":10}`), stop, with(`{"prompt_tokens":30,"completion_tokens":60}`)}, agent.Usage{Input: 30, Output: 60}},
		"the last has less": {[]string{with(`{"prompt_tokens":30,"prompt_tokens_details":{"cached_tokens":20},"completion_tokens":3}`), text("a"), stop, with(`{"completion_tokens":52}`)}, agent.Usage{Input: 10, CacheRead: 20, Output: 52}},
		"none":              {[]string{text("a"), stop}, agent.Usage{}},
		"no numbers":        {[]string{text("a"), stop, with(`{"prompt_tokens":"many","completion_tokens":-3,"prompt_tokens_details":null}`)}, agent.Usage{}},
		"no object":         {[]string{text("a"), stop, with(`"free"`)}, agent.Usage{}},
		"DeepSeek's cache":  {[]string{text("a"), stop, with(`{"prompt_tokens":100,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36,"completion_tokens":1}`)}, agent.Usage{Input: 36, CacheRead: 64, Output: 1}},
		"reasoning inside":  {[]string{text("a"), stop, with(`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60,"completion_tokens_details":{"reasoning_tokens":40}}`)}, agent.Usage{Input: 10, Output: 10, Reasoning: 40}},
		"reasoning beside":  {[]string{text("a"), stop, with(`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":100,"completion_tokens_details":{"reasoning_tokens":40}}`)}, agent.Usage{Input: 10, Output: 50, Reasoning: 40}},
		"never negative":    {[]string{text("a"), stop, with(`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":90,"cache_write_tokens":7},"completion_tokens_details":{"reasoning_tokens":9}}`)}, agent.Usage{CacheRead: 90, Reasoning: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := streamed(t, append(tc.events, done)...)
			require.NoError(t, err)
			require.Equal(t, tc.want, got.Usage)
		})
	}
}

func TestStream_Broken(t *testing.T) {
	for name, tc := range map[string]struct {
		events []string
		want   llm.Kind
		says   string
	}{
		"no end":                       {[]string{text("partial"), stop}, llm.KindUnavailable, "cut off"},
		"nothing":                      {[]string{": ping"}, llm.KindUnavailable, "cut off"},
		"half a chunk":                 {[]string{text("partial"), `data: {"choices":[{"ind`}, llm.KindUnavailable, "cut off"},
		"an error":                     {[]string{text("partial"), text("partial"), `data: {"error":{"type":"overloaded_error","message":"Overloaded"}}`}, llm.KindUnavailable, "Overloaded"},
		"an error event":               {[]string{text("partial"), "event: error\n" + `data: {"message":"boom"}`}, llm.KindUnavailable, "boom"},
		"an error with a status":       {[]string{text("partial"), `data: {"error":{"code":429,"message":"slow down"},"choices":[{"delta":{},"finish_reason":"error"}]}`, done}, llm.KindRateLimited, "slow down"},
		"an error in a choice":         {[]string{text("partial"), `data: {"choices":[{"error":{"code":502,"message":"upstream"},"finish_reason":"error"}]}`, done}, llm.KindUnavailable, "upstream"},
		"the reason is an error":       {[]string{text("partial"), chunk("{}", `"error"`), done}, llm.KindUnavailable, "broke the answer off"},
		"a chunk of another form":      {[]string{text("partial"), `data: {"choices":7}`, done}, llm.KindUnavailable, "cannot be read"},
		"the context, late":            {[]string{`data: {"error":{"message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}}`, done}, llm.KindContextTooLong, "maximum context"},
		"refused, late":                {[]string{`data: {"object":"error","message":"bad sampling","type":"BadRequestError","code":400}`, done}, llm.KindRefused, "bad sampling"},
		"a line without end of 32 MiB": {[]string{"data: " + strings.Repeat("x", 33<<20)}, llm.KindInvalidAnswer, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := streamed(t, tc.events...)
			require.Equal(t, tc.want, llm.KindOf(err), "%v", err)
			require.ErrorContains(t, err, tc.says)
			require.NotContains(t, err.Error(), "partial")
			require.Zero(t, got)
		})
	}
}
