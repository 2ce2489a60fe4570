package worker

import (
	"fmt"
	"os"

	"interlock/config"
	"interlock/llm"
	"interlock/llm/openai"
)

// OpenModel opens the model that the configuration names. It makes no call. A
// configuration that names none, or lacks a key, is a *[config.Error].
//
// Where neither model.api_key nor model.base_url is set, OPENAI_API_KEY and
// OPENAI_BASE_URL count, as for every client of that API. They belong together:
// a key from there is never sent to a model.base_url.
func OpenModel(c config.Config) (llm.Model, error) {
	m := c.Model
	if m.Serves() == config.Scripted {
		return nil, problem("model.name", "a model: set it (INTERLOCK_MODEL_NAME), and model.api_key_file or OPENAI_API_KEY; a scripted model is made by code, as worker.Config.Model")
	}
	from := accessOf(m)
	if from.key == "" && (from.base == "" || from.base == openai.DefaultBaseURL) {
		return nil, problem("model.api_key", "a key: set model.api_key_file, INTERLOCK_MODEL_API_KEY or OPENAI_API_KEY; for a server that needs none set model.base_url")
	}
	model, err := openai.New(openai.Options{Model: m.Name, APIKey: from.key.Reveal(), BaseURL: from.base, Stream: m.Stream, MaxOutput: m.MaxOutput})
	if err != nil {
		return nil, problem("model", "what its provider takes; "+err.Error())
	}
	return model, nil
}

// access is how a model is reached, and where that was written.
type access struct {
	key             config.Secret
	base            string
	keyAt, serverAt string
}

// accessOf is the one place that reads OPENAI_* variables.
func accessOf(m config.Model) access {
	a := access{key: m.APIKey, base: m.BaseURL, keyAt: "model.api_key", serverAt: "model.base_url"}
	if a.base == "" {
		a.base, a.serverAt = os.Getenv("OPENAI_BASE_URL"), "OPENAI_BASE_URL"
		if a.key == "" {
			a.key, a.keyAt = config.Secret(os.Getenv("OPENAI_API_KEY")), "OPENAI_API_KEY"
		}
	}
	if a.base == "" {
		a.serverAt = "the provider's default"
	}
	if a.key == "" {
		a.keyAt = "nowhere"
	}
	return a
}

// DescribeModel says in a line which model the configuration names, and where
// its address and key come from; it shows neither.
func DescribeModel(c config.Config) string {
	if c.Model.Serves() == config.Scripted {
		return "scripted, by code"
	}
	a := accessOf(c.Model)
	return fmt.Sprintf("%s of %s, address from %s, key from %s", c.Model.Name, c.Model.Serves(), a.serverAt, a.keyAt)
}

func problem(key, want string) error {
	return &config.Error{Problems: []config.Problem{{Key: key, Want: want}}}
}
