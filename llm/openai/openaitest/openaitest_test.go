package openaitest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/llm/openai/openaitest"
)

func body(messages, rest string) string {
	return `{"model":"m","messages":[` + messages + `]` + rest + `}`
}

const (
	user   = `{"role":"user","content":"hi"}`
	call   = `{"role":"assistant","tool_calls":[{"id":"k1","type":"function","function":{"name":"find","arguments":"{}"}}]}`
	answer = `{"role":"tool","tool_call_id":"k1","content":""}`
	tools  = `,"tools":[{"type":"function","function":{"name":"find","parameters":{"type":"object"}}}]`
)

func TestCheckAccepts(t *testing.T) {
	for _, b := range []string{
		body(user, ""),
		body(user+","+call+","+answer, tools),
		body(user+","+call+","+answer+","+strings.ReplaceAll(call+","+answer, "k1", "k2"), tools+`,"stream":true,"stream_options":{"include_usage":true}`),
		body(user, tools+`,"tool_choice":"required","max_tokens":5,"temperature":0`),
		body(user, tools+`,"tool_choice":{"type":"function","function":{"name":"find"}}`),
		body(`{"role":"system","content":[{"type":"text","text":"a"}]},`+user, ""),
	} {
		require.Empty(t, openaitest.Check([]byte(b)), b)
	}
}

func TestCheckRefuses(t *testing.T) {
	with := func(old, new string) string {
		return body(user+","+strings.Replace(call, old, new, 1)+","+answer, tools)
	}
	for _, tc := range []struct{ says, body string }{
		{"could not parse", `{"model":`},
		{"could not parse", "{\"model\":\"\xff\"}"},
		{"Invalid type", `{"model":"m","messages":{}}`},
		{"must provide a model", `{"messages":[` + user + `]}`},
		{"empty array", body("", "")},
		{"Unrecognized request argument supplied: view", body(user, `,"view":{}`)},
		{"at the same time", body(user, `,"max_tokens":1,"max_completion_tokens":1`)},
		{"below minimum", body(user, `,"max_tokens":0`)},
		{"only allowed when 'stream'", body(user, `,"stream_options":{}`)},
		{"Invalid value: 'boss'", body(`{"role":"boss","content":"hi"}`, "")},
		{"expected a string, got null", body(`{"role":"user"}`, "")},
		{"expected a string or a list", body(`{"role":"user","content":7}`, "")},
		{"did not have response messages: k1", body(user+","+call, tools)},
		{"did not have response messages: k1", body(user+","+call+","+user+","+answer, tools)},
		{"response to a preceding message", body(user+","+answer, "")},
		{"response to a preceding message", body(user+","+call+","+answer+","+answer, tools)},
		{"must have a 'tool_call_id'", body(user+","+call+`,{"role":"tool","content":""}`, tools)},
		{"expected a string, got null", body(user+","+call+`,{"role":"tool","tool_call_id":"k1"}`, tools)},
		{"duplicate id", body(user+","+call+","+answer+","+call+","+answer, tools)},
		{"has content or tool calls", body(user+`,{"role":"assistant","content":""}`, "")},
		{"too short", body(user+`,{"role":"assistant","content":"a","tool_calls":[]}`, "")},
		{"string too long", with(`"k1"`, `"`+strings.Repeat("k", 41)+`"`)},
		{"empty string", with(`"k1"`, `""`)},
		{"does not match pattern", with(`"find"`, `"find it"`)},
		{"does not match pattern", with(`"find"`, `"`+strings.Repeat("f", 65)+`"`)},
		{"not a JSON object", with(`"{}"`, `"{"`)},
		{"not a JSON object", with(`"{}"`, `"[]"`)},
		{"Missing required parameter", with(`,"arguments":"{}"`, ``)},
		{"maximum length 1048576", with(`"{}"`, `"{\"a\":\"`+strings.Repeat("x", 1<<20)+`\"}"`)},
		{"Invalid value for", with(`"function",`, `"custom",`)},
		{"got 'type: \"string\"'", body(user, `,"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"string"}}}]`)},
		{"got 'type: \"\"'", body(user, `,"tools":[{"type":"function","function":{"name":"a","parameters":{}}}]`)},
		{"does not match pattern", body(user, `,"tools":[{"type":"function","function":{"name":"a b"}}]`)},
		{"must be unique", body(user, `,"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}]`)},
		{"only allowed when 'tools'", body(user, `,"tool_choice":"auto"`)},
		{"not found in 'tools'", body(user, tools+`,"tool_choice":{"type":"function","function":{"name":"gone"}}`)},
		{"Invalid value for 'tool_choice'", body(user, tools+`,"tool_choice":"finish"`)},
	} {
		require.Contains(t, openaitest.Check([]byte(tc.body)), tc.says, "%.300s", tc.body)
	}
}

func TestServer(t *testing.T) {
	s := openaitest.Start(t, openaitest.Sequence(openaitest.Say("one"), openaitest.Calls(openaitest.Call{ID: "k1", Name: "find", Arguments: "{}"})))
	post := func(path, key, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.BaseURL()+path, strings.NewReader(body))
		require.NoError(t, err)
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(data)
	}
	expect := func(path, key, body string, status int, says string) {
		t.Helper()
		got, text := post(path, key, body)
		require.Equal(t, status, got, text)
		require.Contains(t, text, says)
	}
	const path = "/chat/completions"
	expect("/responses", s.Key(), body(user, ""), 404, "Invalid URL")
	expect(path, "", body(user, ""), 401, "didn't provide")
	expect(path, "sk-wrong", body(user, ""), 401, "sk-wrong")
	expect(path, s.Key(), body(call, ""), 400, "response messages: k1")
	s.SetDown(true)
	expect(path, s.Key(), body(user, ""), 503, "down")
	s.SetDown(false)
	expect(path, s.Key(), body(user, ""), 200, `"content":"one"`)
	expect(path, s.Key(), body(user, `,"stream":true`), 200, "data: [DONE]")
	expect(path, s.Key(), body(user, ""), 400, "no further reply")
	require.Equal(t, 8, s.Count())
	require.Len(t, s.Broken(), 1)
	require.Equal(t, "hi", s.Requests()[0].Last("user").Content)
}
