// Package config is the one place where a process of Interlock is configured:
// a YAML file, INTERLOCK_* variables and explicit overrides become one typed
// [Config], read once in main. Nothing else reads the environment, and workflow
// code never sees a configuration: what a run decides on comes with its inputs.
//
// It is strict, because a mistyped key that is silently ignored is found in
// production: an unknown key, an unknown INTERLOCK_* variable, a value of
// another type and a value out of range are all mistakes, and all of them are
// reported at once, each with its origin and with what is allowed.
//
// How to reach Temporal is not ours to configure: [TemporalOptions] reads what
// every Temporal client reads (TEMPORAL_* variables and temporal.toml), so that
// the temporal CLI and Interlock always talk to the same server.
package config

import (
	"strings"
	"time"
)

// Config is everything that a process is told from outside. The tags are the
// only description of a key: its name, what it means and what is allowed (shown
// when a value is refused). A field tagged secret:"true" is never printed.
type Config struct {
	Store           Store         `mapstructure:"store"`
	TaskQueue       string        `mapstructure:"task_queue" doc:"Temporal task queue that workers poll and starters use" want:"a name of 1 to 200 bytes without spaces around it, not starting with /_sys/"`
	Log             Log           `mapstructure:"log"`
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout" doc:"how long running work may take to end after SIGTERM" want:"a duration with its unit, such as 25s, from 1s to 1h"`
	Worker          Worker        `mapstructure:"worker"`
	Temporal        Temporal      `mapstructure:"temporal"`
}

// Store says where what is durable outside Temporal lives.
type Store struct {
	Path string `mapstructure:"path" doc:"SQLite file of ledger and journal; its folder is created" want:"the path of a file"`
}

// Log is the form of the log lines on stderr.
type Log struct {
	Level  string `mapstructure:"level" doc:"the least important lines that are written" want:"one of debug, info, warn, error"`
	Format string `mapstructure:"format" doc:"text for people, json for machines" want:"one of text, json"`
}

// Worker limits what one worker process does at a time.
type Worker struct {
	MaxActivities int `mapstructure:"max_activities" doc:"activities that run at the same time; 0 is the SDK's default" want:"a whole number from 0 to 100000"`
	CacheSize     int `mapstructure:"cache_size" doc:"runs kept in memory; -1 is the SDK's default, 0 replays every task (for tests)" want:"a whole number from -1 to 1000000"`
}

// Temporal names where the connection is described; see [TemporalOptions].
type Temporal struct {
	ConfigFile string `mapstructure:"config_file" doc:"Temporal's own TOML file; empty is TEMPORAL_CONFIG_FILE, else the user's temporal.toml" want:"the path of an existing file, or nothing"`
	Profile    string `mapstructure:"profile" doc:"profile in that file; empty is TEMPORAL_PROFILE, else default" want:"the name of a profile, or nothing"`
}

// Default is the configuration of a process that is told nothing. All defaults
// are here and nowhere else.
func Default() Config {
	return Config{
		Store:           Store{Path: ".interlock/interlock.db"},
		TaskQueue:       "interlock",
		Log:             Log{Level: "info", Format: "text"},
		ShutdownTimeout: 25 * time.Second, // below the 30 s that Kubernetes grants
		Worker:          Worker{MaxActivities: 0, CacheSize: -1},
	}
}

// Validate reports every value that is out of range as one *[Error].
func (c Config) Validate() error {
	return errorOf(c.problems())
}

func (c Config) problems() []Problem {
	var found []Problem
	check := func(key string, ok bool) {
		if !ok {
			found = append(found, problemWith(key, c))
		}
	}
	check("store.path", c.Store.Path != "" && !strings.HasSuffix(c.Store.Path, "/"))
	check("task_queue", c.TaskQueue != "" && len(c.TaskQueue) <= 200 &&
		strings.TrimSpace(c.TaskQueue) == c.TaskQueue && !strings.HasPrefix(c.TaskQueue, "/_sys/"))
	check("log.level", oneOf(c.Log.Level, "debug", "info", "warn", "error"))
	check("log.format", oneOf(c.Log.Format, "text", "json"))
	check("shutdown_timeout", c.ShutdownTimeout >= time.Second && c.ShutdownTimeout <= time.Hour)
	check("worker.max_activities", c.Worker.MaxActivities >= 0 && c.Worker.MaxActivities <= 100_000)
	check("worker.cache_size", c.Worker.CacheSize >= -1 && c.Worker.CacheSize <= 1_000_000)
	check("temporal.profile", strings.TrimSpace(c.Temporal.Profile) == c.Temporal.Profile)
	return found
}

func oneOf(value string, allowed ...string) bool {
	for _, a := range allowed {
		if value == a {
			return true
		}
	}
	return false
}
