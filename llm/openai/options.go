package openai

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// OutputLimit is the member of a request that limits the answer's tokens.
type OutputLimit string

const (
	// MaxCompletionTokens is OpenAI's own; its reasoning models know no other.
	MaxCompletionTokens OutputLimit = "max_completion_tokens"
	// MaxTokens is what most other servers know.
	MaxTokens OutputLimit = "max_tokens"
)

// Options say which model, where. Only Model is required.
type Options struct {
	Model   string // as the server names it
	Name    string // as configuration names it. Defaults to Model
	APIKey  string `json:"-"` // none is sent where there is none
	BaseURL string // with the version, such as http://localhost:11434/v1. Defaults to DefaultBaseURL

	Stream      bool          // answers come piece by piece, so that a connection never idles for long
	MaxOutput   int           // tokens of an answer, where the request says none; 0 is the server's own limit
	OutputLimit OutputLimit   // Defaults to MaxCompletionTokens at api.openai.com, to MaxTokens elsewhere
	Timeout     time.Duration // of one call, from first to last byte. Defaults to 5 minutes

	NoStreamUsage bool // for servers that refuse stream_options; usage is then not known
	ShortCallIDs  bool // for servers that want call ids of exactly 9 letters and digits (Mistral)

	Organization string
	Project      string
	Headers      map[string]string `json:"-"` // added to every request; they can hold keys
	Extra        map[string]any    // members added to every request, such as temperature or reasoning_effort
	HTTPClient   *http.Client      // Defaults to one of its own
}

// ours are the members of a request that Extra cannot set.
var ours = []string{"model", "messages", "tools", "tool_choice", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"}

func (o Options) complete() (Options, error) {
	if o.Model == "" {
		return o, errors.New("openai: a model is required")
	}
	if o.Name == "" {
		o.Name = o.Model
	}
	o.APIKey = strings.TrimSpace(o.APIKey) // keys come from files
	if strings.ContainsFunc(o.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return o, errors.New("openai: the API key has characters that no header can hold")
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	u, err := url.Parse(o.BaseURL)
	switch {
	case err != nil:
		return o, errors.New("openai: the base URL cannot be read") // the parser's error repeats it
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return o, errors.New("openai: the base URL must begin with http:// or https:// and a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return o, errors.New("openai: the base URL must have no user and no query: keys belong into APIKey or Headers")
	}
	switch o.OutputLimit {
	case "":
		o.OutputLimit = MaxTokens
		if u.Hostname() == "api.openai.com" {
			o.OutputLimit = MaxCompletionTokens
		}
	case MaxTokens, MaxCompletionTokens:
	default:
		return o, fmt.Errorf("openai: unknown output limit %q", o.OutputLimit)
	}
	for _, name := range ours {
		if _, set := o.Extra[name]; set {
			return o, fmt.Errorf("openai: Extra cannot set %s", name)
		}
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Minute
	}
	if o.HTTPClient == nil {
		o.HTTPClient = httpClient()
	}
	return o, nil
}

// httpClient keeps more connections than the default one: a worker's runs all
// call the same host.
func httpClient() *http.Client {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return &http.Client{}
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = 64
	return &http.Client{Transport: t}
}

func (o Options) builder() builder {
	return builder{model: o.Model, limit: o.OutputLimit, output: o.MaxOutput, usage: o.Stream && !o.NoStreamUsage, shortIDs: o.ShortCallIDs,
		extra: maps.Clone(o.Extra)}
}

// redactor takes keys out of a text: servers repeat them in their errors.
func redactor(o Options) func(string) string {
	var pairs []string
	add := func(secret string) {
		if len(secret) >= 6 { // what is shorter would blank out words
			pairs = append(pairs, secret, "[key]")
		}
	}
	add(o.APIKey)
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		value := o.Headers[name]
		add(value)
		if _, token, ok := strings.Cut(value, " "); ok { // a scheme before a token
			add(token)
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// String shows no key.
func (o Options) String() string {
	key := "no key"
	if o.APIKey != "" {
		key = "a key"
	}
	base := o.BaseURL
	if base == "" {
		base = DefaultBaseURL
	}
	if u, err := url.Parse(base); err == nil {
		base = u.Redacted()
	}
	return fmt.Sprintf("openai.Options{%s at %s with %s}", o.Model, base, key)
}

// GoString is [Options.String].
func (o Options) GoString() string { return o.String() }

// Format is [Options.String] for every verb.
func (o Options) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(o.String())) }

// LogValue is [Options.String].
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// String shows no key.
func (m *Model) String() string { return fmt.Sprintf("openai.Model{%s at %s}", m.name, m.address) }

// GoString is [Model.String].
func (m *Model) GoString() string { return m.String() }

// Format is [Model.String] for every verb.
func (m *Model) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(m.String())) }

// LogValue is [Model.String].
func (m *Model) LogValue() slog.Value { return slog.StringValue(m.String()) }
