package worker_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/config"
	"interlock/llm"
	"interlock/llm/openai/openaitest"
	"interlock/worker"
)

// OPENAI_* count only where nothing of ours says otherwise, and a key from
// there reaches no other server than the one it belongs to.
func TestWhereTheKeyComesFrom(t *testing.T) {
	const foreign = "sk-foreign-key"
	for name, c := range map[string]struct {
		ours        config.Model // BaseURL "here": the server's
		key, base   string       // OPENAI_API_KEY, OPENAI_BASE_URL
		sent        string       // the header; "" where no model can be opened
		wantProblem string
	}{
		"all by convention":            {config.Model{}, openaitest.Key, "here", "Bearer " + openaitest.Key, ""},
		"all of ours":                  {config.Model{BaseURL: "here", APIKey: openaitest.Key}, foreign, "http://127.0.0.1:1", "Bearer " + openaitest.Key, ""},
		"our key for their server":     {config.Model{APIKey: openaitest.Key}, foreign, "here", "Bearer " + openaitest.Key, ""},
		"their key is not for ours":    {config.Model{BaseURL: "here"}, foreign, "", "none", ""},
		"a server that needs no key":   {config.Model{}, "", "here", "none", ""},
		"no key at all":                {config.Model{}, "", "", "", "model.api_key"},
		"no key for OpenAI itself":     {config.Model{BaseURL: "https://api.openai.com/v1"}, foreign, "", "", "model.api_key"},
		"a broken address of theirs":   {config.Model{}, foreign, "nowhere", "", "http:// or https://"},
		"a broken key of theirs":       {config.Model{}, "sk-foreign key", "here", "", "no header can hold"},
		"nothing but a script":         {config.Model{Provider: config.Scripted}, foreign, "here", "", "model.name"},
		"no model is named, of course": {config.Model{Name: "none"}, foreign, "here", "", "model.name"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openaitest.Start(t, func(openaitest.ChatRequest) openaitest.ChatReply { return openaitest.Say("hello") })
			here := func(base string) string {
				if base == "here" {
					return s.BaseURL()
				}
				return base
			}
			t.Setenv("OPENAI_API_KEY", c.key)
			t.Setenv("OPENAI_BASE_URL", here(c.base))
			cfg := config.Default()
			cfg.Model = c.ours
			cfg.Model.BaseURL = here(c.ours.BaseURL)
			if cfg.Model.Name == "none" {
				cfg.Model.Name = ""
			} else {
				cfg.Model.Name = "m"
			}
			m, err := worker.OpenModel(cfg)
			if c.sent == "" {
				var e *config.Error
				require.ErrorAs(t, err, &e)
				require.ErrorContains(t, err, c.wantProblem)
				require.NotContains(t, err.Error(), "foreign")
				return
			}
			require.NoError(t, err)
			require.Equal(t, "m", m.Name())
			_, err = m.Generate(context.Background(), llm.Request{Messages: []llm.Message{llm.System("be brief"), llm.User("hi")}})
			if c.sent == "none" {
				require.Equal(t, llm.KindUnauthorized, llm.KindOf(err), "%v", err)
				require.Empty(t, s.Requests()[0].Header.Get("Authorization"))
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.sent, s.Requests()[0].Header.Get("Authorization"))
		})
	}
}
