// Package config is the one place where a process of Interlock is configured:
// a YAML file, INTERLOCK_* variables and explicit overrides become one typed
// [Config], read once in main. Workflow code never sees a configuration: what a
// run decides on comes with its inputs.
//
// It is strict, because a mistyped key that is silently ignored is found in
// production: an unknown key, an unknown INTERLOCK_* variable, a value of
// another type and a value out of range are all mistakes, and all of them are
// reported at once, each with its origin and with what is allowed.
//
// How to reach Temporal is not ours to configure: [TemporalOptions] reads what
// every Temporal client reads (TEMPORAL_* variables and temporal.toml), so that
// the temporal CLI and Interlock always talk to the same server. OPENAI_API_KEY
// and OPENAI_BASE_URL, a convention of others too, are read by
// worker.OpenModel. Nothing else reads the environment.
package config

import (
	"io"
	"log/slog"
	"time"
)

// Config is everything that a process is told from outside. The tags are the
// only description of a key: its name, what it means and what is allowed (shown
// when a value is refused). A [Secret] is never printed.
type Config struct {
	Store           Store         `mapstructure:"store"`
	TaskQueue       string        `mapstructure:"task_queue" doc:"Temporal task queue that workers poll and starters use" want:"a name of 1 to 200 bytes without spaces around it, not starting with /_sys/"`
	Tenant          string        `mapstructure:"tenant" doc:"whose runs and gates the commands list" want:"1 to 63 of a-z, 0-9, _ and -, starting with a letter or digit"`
	Model           Model         `mapstructure:"model"`
	Log             Log           `mapstructure:"log"`
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout" doc:"how long running work may take to end after SIGTERM" want:"a duration with its unit, such as 25s, from 1s to 1h"`
	Worker          Worker        `mapstructure:"worker"`
	Tokens          Tokens        `mapstructure:"tokens"`
	API             API           `mapstructure:"api"`
	Temporal        Temporal      `mapstructure:"temporal"`
}

// Store says where what is durable outside Temporal lives. Exactly one of Path
// and DSN is set in a valid configuration: where a DSN is given, [Load] leaves
// out the default of Path.
type Store struct {
	Path string `mapstructure:"path" doc:"SQLite file of ledger and journal" want:"the path of a file; the URL of a PostgreSQL database belongs into store.dsn"`
	DSN  Secret `mapstructure:"dsn" show:"url" doc:"URL of a PostgreSQL database, instead of store.path" want:"a URL such as postgres://user:password@host:5432/database"`
	// DSNFile is where Load has read DSN from.
	DSNFile string `mapstructure:"dsn_file" doc:"file that holds the URL, instead of store.dsn" want:"the path of a readable file that holds one line"`
}

// Model says which model proposes.
type Model struct {
	Provider string `mapstructure:"provider" doc:"who serves the model; empty is openai where model.name is set, else scripted" want:"one of scripted, openai, or nothing"`
	Name     string `mapstructure:"name" doc:"the model, as its provider names it" want:"a model's name, without spaces; the other model.* keys do nothing without it"`
	BaseURL  string `mapstructure:"base_url" doc:"where an OpenAI-compatible API is served; empty is OPENAI_BASE_URL, else OpenAI itself" want:"a URL such as https://api.openai.com/v1, without user, query and fragment, or nothing"`
	APIKey   Secret `mapstructure:"api_key" doc:"key for that API; empty is OPENAI_API_KEY" want:"a key without spaces"`
	// APIKeyFile is where Load has read APIKey from.
	APIKeyFile string `mapstructure:"api_key_file" doc:"file that holds the key, instead of model.api_key" want:"the path of a readable file that holds one line"`
	Stream     bool   `mapstructure:"stream" doc:"receive answers in pieces, for providers that end long silent requests" want:"true or false"`
	MaxOutput  int    `mapstructure:"max_output" doc:"tokens of one answer at most; 0 is the provider's default" want:"a whole number from 0 to 1000000"`
}

// The model providers there are.
const (
	Scripted = "scripted"
	OpenAI   = "openai"
)

// Serves is the provider that the configuration asks for.
func (m Model) Serves() string {
	switch {
	case m.Provider != "":
		return m.Provider
	case m.Name != "":
		return OpenAI
	}
	return Scripted
}

// Log is the form of the log lines on stderr.
type Log struct {
	Level  string `mapstructure:"level" doc:"the least important lines that are written" want:"one of debug, info, warn, error"`
	Format string `mapstructure:"format" doc:"text for people, json for machines" want:"one of text, json"`
}

// Logger writes lines of that form.
func (l Log) Logger(to io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // one of those that Validate allows
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

// Worker limits what one worker process does at a time.
type Worker struct {
	MaxActivities int `mapstructure:"max_activities" doc:"activities that run at the same time; 0 is the SDK's default" want:"a whole number from 0 to 100000"`
	CacheSize     int `mapstructure:"cache_size" doc:"runs kept in memory; -1 is the SDK's default, 0 replays every task (for tests)" want:"a whole number from -1 to 1000000"`
}

// Tokens say who decides what: signed where a person was authenticated, checked
// by workers.
type Tokens struct {
	Issuer   string `mapstructure:"issuer" doc:"who signs tokens, as they say it themselves" want:"a name without spaces, such as a URL; needed with tokens.keys and tokens.sign_with"`
	Audience string `mapstructure:"audience" doc:"who is meant by tokens: these workers" want:"a name without spaces"`
	Keys     string `mapstructure:"keys" doc:"folder of public keys, <id>.pem, whose tokens workers believe; none is believed without it" want:"the path of a folder, or nothing"`
	SignWith string `mapstructure:"sign_with" doc:"private key, <id>.key.pem, that commands sign with" want:"the path of a file that only its owner can read, or nothing"`
}

// API is the HTTP API of `interlock serve`.
type API struct {
	Listen         string `mapstructure:"listen" doc:"address that the HTTP API listens at" want:"host:port, such as 127.0.0.1:8088 or :8088"`
	AdminListen    string `mapstructure:"admin_listen" doc:"address of /livez, /readyz and /metrics, which ask for no token" want:"host:port, another than api.listen"`
	Access         string `mapstructure:"access" doc:"file of access tokens: interlock access new" want:"the path of a file, or nothing"`
	SessionKeyFile string `mapstructure:"session_key_file" doc:"file of 32 random bytes that sessions of browsers are signed with; without it they end with the process" want:"the path of a file that only its owner can read, or nothing"`
	Rate           int    `mapstructure:"rate" doc:"requests a second that each subject may send" want:"a whole number from 1 to 100000"`
}

// Temporal names where the connection is described; see [TemporalOptions].
type Temporal struct {
	ConfigFile string `mapstructure:"config_file" doc:"Temporal's own TOML file; empty is TEMPORAL_CONFIG_FILE, else the user's temporal.toml" want:"the path of an existing file, or nothing"`
	Profile    string `mapstructure:"profile" doc:"profile in that file; empty is TEMPORAL_PROFILE, else default" want:"the name of a profile, or nothing"`
}

// Default is the configuration of a process that is told nothing. All defaults
// are here and nowhere else. A tenant has none: whose runs are meant is always
// said.
func Default() Config {
	return Config{
		Store:           Store{Path: ".interlock/interlock.db"},
		TaskQueue:       "interlock",
		Log:             Log{Level: "info", Format: "text"},
		ShutdownTimeout: 25 * time.Second, // below the 30 s that Kubernetes grants
		Worker:          Worker{MaxActivities: 0, CacheSize: -1},
		Tokens:          Tokens{Audience: "interlock"},
		API:             API{Listen: "127.0.0.1:8088", AdminListen: "127.0.0.1:8089", Rate: 20},
	}
}
