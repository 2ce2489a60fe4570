package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/openai"
	"interlock/llm/openai/openaitest"
	"interlock/llm/scripted"
)

func TestNew_Refuses(t *testing.T) {
	for says, o := range map[string]openai.Options{
		"a model is required":             {},
		"API key has characters":          {Model: "m", APIKey: "sk-a b"},
		"base URL must begin with":        {Model: "m", BaseURL: "localhost:8080/v1"},
		"base URL cannot be read":         {Model: "m", BaseURL: "http://[::1"},
		"must have no user and no query":  {Model: "m", BaseURL: "http://user:secret-password@localhost/v1"},
		"no user and no query":            {Model: "m", BaseURL: "http://localhost/v1?key=secret-password"},
		"unknown output limit \"tokens\"": {Model: "m", OutputLimit: "tokens"},
		"Extra cannot set messages":       {Model: "m", Extra: map[string]any{"messages": 1}},
	} {
		_, err := openai.New(o)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "secret-password")
	}
}

func TestNew_Defaults(t *testing.T) {
	server := openaitest.Start(t, openaitest.Always(openaitest.Say("ok")))
	m := newModel(t, openai.Options{Model: "m", Name: "cheap", BaseURL: server.BaseURL() + "/", APIKey: server.Key() + "\n", MaxOutput: 7,
		Organization: "org-1", Project: "proj-1", Headers: map[string]string{"X-Title": "interlock"}})
	require.Equal(t, "cheap", m.Name())
	_, err := m.Generate(t.Context(), hi)
	require.NoError(t, err, "a key from a file ends with a line end")
	sent := server.Requests()[0]
	require.Equal(t, "m", sent.Model)
	require.Contains(t, string(sent.Body), `"max_tokens":7`)
	require.Equal(t, []string{"org-1", "proj-1", "interlock"}, []string{sent.Header.Get("OpenAI-Organization"), sent.Header.Get("OpenAI-Project"), sent.Header.Get("X-Title")})

	keyless := newModel(t, openai.Options{Model: "m", BaseURL: server.BaseURL()})
	_, err = keyless.Generate(t.Context(), hi)
	require.ErrorContains(t, err, "You didn't provide an API key", "no header where there is no key")

	official := newModel(t, openai.Options{Model: "m", MaxOutput: 7, HTTPClient: &http.Client{Transport: refuse(func(r *http.Request) {
		require.Equal(t, "https://api.openai.com/v1/chat/completions", r.URL.String())
		var body bytes.Buffer
		_, err := body.ReadFrom(r.Body)
		require.NoError(t, err)
		require.Contains(t, body.String(), `"max_completion_tokens":7`)
	})}})
	_, err = official.Generate(t.Context(), hi)
	require.Equal(t, llm.KindUnavailable, llm.KindOf(err))
	require.NotContains(t, err.Error(), "https://")
}

// refuse is a transport that looks at a request and fails.
type refuse func(*http.Request)

func (f refuse) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return nil, fmt.Errorf("no network for %s", r.Header.Get("Authorization"))
}

func TestKeysAreNotShown(t *testing.T) {
	const key, token = "sk-secret-0123456789", "token-secret-9876543210"
	o := openai.Options{Model: "m", BaseURL: "http://u:password-of-url@localhost", APIKey: key, Headers: map[string]string{"X-Auth": "Basic " + token}}
	good := o
	good.BaseURL = "http://localhost/v1"
	good.HTTPClient = &http.Client{Transport: refuse(func(*http.Request) {})}
	m := newModel(t, good)
	_, err := m.Generate(t.Context(), hi)
	require.ErrorContains(t, err, "no network for Bearer [key]")

	var out strings.Builder
	for _, v := range []any{o, &o, m, *m, err, struct{ M *openai.Model }{m}, []any{o, m}, map[string]any{"o": o}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		data, _ := json.Marshal(v)
		out.Write(data)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
	}
	for _, secret := range []string{key, token} {
		require.NotContains(t, out.String(), secret)
		require.NotContains(t, strings.ToLower(out.String()), fmt.Sprintf("%x", secret))
	}
	require.Contains(t, out.String(), "openai.Options{m at http://u:xxxxx@localhost with a key}")
	require.Contains(t, out.String(), "openai.Model{m at http://localhost/v1}")
}

// Redirects do not carry the key to another host.
func TestRedirectsKeepTheKey(t *testing.T) {
	other := openaitest.Start(t, openaitest.Always(openaitest.Say("stolen")))
	m, _ := serve(t, openai.Options{}, openaitest.ChatReply{Status: http.StatusTemporaryRedirect}.With("Location", other.BaseURL()+"/chat/completions"))
	got, err := m.Generate(t.Context(), hi)
	require.Error(t, err)
	require.Zero(t, got)
	for _, r := range other.Requests() {
		require.Empty(t, r.Header.Get("Authorization"))
	}
}

// A script that sees only what came over the wire carries a conversation on.
func TestScriptOverTheWire(t *testing.T) {
	script := scripted.Func("scripted", func(req llm.Request) llm.Response {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case last.Role == llm.RoleTool:
			return scripted.Say("It costs " + last.Text)
		case strings.Contains(last.Text, "1042"):
			return scripted.Then(scripted.Say("I look."), scripted.Call("find_order", scripted.Args{"order_id": "1042"}))
		}
		return scripted.Say("Which order?")
	})
	server := openaitest.Start(t, openaitest.Answers(script))
	m := newModel(t, openai.Options{Model: "m", BaseURL: server.BaseURL(), APIKey: server.Key(), Stream: true})
	messages := []llm.Message{llm.User("hello")}
	say := func(want string) llm.Response {
		t.Helper()
		got, err := m.Generate(t.Context(), llm.Request{Messages: messages, Tools: refundTools})
		require.NoError(t, err)
		require.Equal(t, want, got.Text)
		return got
	}
	say("Which order?")
	messages = append(messages, llm.Assistant("Which order?"), llm.User("1042"))
	got := say("I look.")
	call := llm.Call{ID: "c2_1", Tool: got.Calls[0].Tool, Args: agent.JSON(got.Calls[0].Args)}
	messages = append(messages, llm.Assistant(got.Text, call), llm.Answer(call, "89.90 EUR", false))
	require.Positive(t, say("It costs 89.90 EUR").Usage.Input)

	server.SetDown(true)
	_, err := m.Generate(t.Context(), llm.Request{Messages: messages})
	require.Equal(t, llm.KindUnavailable, llm.KindOf(err))
	server.SetDown(false)
	require.Empty(t, server.Broken())
	require.Equal(t, 4, server.Count())
	text, ok := server.Requests()[2].Answer("find_order")
	require.True(t, ok)
	require.Equal(t, "89.90 EUR", text)
}
