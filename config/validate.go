package config

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"interlock/signals"
)

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
	if c.Store.Path != "" && c.Store.DSN != "" {
		p := problemWith("store.dsn", c)
		p.Want = "one database: store.path or store.dsn, not both"
		found = append(found, p)
	} else {
		check("store.path", c.Store.DSN != "" || isPath(c.Store.Path))
		check("store.dsn", c.Store.DSN == "" || isDSN(c.Store.DSN.Reveal()))
	}
	check("task_queue", c.TaskQueue != "" && len(c.TaskQueue) <= 200 &&
		strings.TrimSpace(c.TaskQueue) == c.TaskQueue && !strings.HasPrefix(c.TaskQueue, "/_sys/"))
	check("tenant", c.Tenant == "" || signals.CheckAddress(c.Tenant, "a", "k") == nil)
	check("model.provider", oneOf(c.Model.Provider, "", Scripted, OpenAI))
	check("model.name", c.Model.named() && isWord(c.Model.Name))
	check("model.base_url", c.Model.BaseURL == "" || isBaseURL(c.Model.BaseURL))
	check("model.api_key", isWord(c.Model.APIKey.Reveal()))
	check("model.max_output", c.Model.MaxOutput >= 0 && c.Model.MaxOutput <= 1_000_000)
	check("log.level", oneOf(c.Log.Level, "debug", "info", "warn", "error"))
	check("log.format", oneOf(c.Log.Format, "text", "json"))
	check("shutdown_timeout", c.ShutdownTimeout >= time.Second && c.ShutdownTimeout <= time.Hour)
	check("worker.max_activities", c.Worker.MaxActivities >= 0 && c.Worker.MaxActivities <= 100_000)
	check("worker.cache_size", c.Worker.CacheSize >= -1 && c.Worker.CacheSize <= 1_000_000)
	signs := c.Tokens.Keys != "" || c.Tokens.SignWith != ""
	check("tokens.issuer", isWord(c.Tokens.Issuer) && (c.Tokens.Issuer != "" || !signs))
	check("tokens.audience", isWord(c.Tokens.Audience) && (c.Tokens.Audience != "" || !signs))
	check("api.listen", isAddress(c.API.Listen))
	check("api.admin_listen", isAddress(c.API.AdminListen) && (c.API.AdminListen != c.API.Listen || strings.HasSuffix(c.API.Listen, ":0")))
	check("api.access", c.API.Access == "" || isPath(c.API.Access))
	check("api.session_key_file", c.API.SessionKeyFile == "" || isPath(c.API.SessionKeyFile))
	check("api.rate", c.API.Rate >= 1 && c.API.Rate <= 100_000)
	check("temporal.profile", strings.TrimSpace(c.Temporal.Profile) == c.Temporal.Profile)
	return found
}

// named: whoever says how to reach a model must say which, or the scripted one
// would answer in its place.
func (m Model) named() bool {
	told := m.Provider == OpenAI || m.BaseURL != "" || m.APIKey != ""
	return m.Name != "" || !told || m.Provider == Scripted
}

func oneOf(value string, allowed ...string) bool { return slices.Contains(allowed, value) }

func isPath(s string) bool {
	return s != "" && !strings.HasSuffix(s, "/") && !strings.Contains(s, "://") && !strings.ContainsRune(s, 0)
}

// isWord reports a text without spaces and control characters; "" is one.
func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

func isDSN(s string) bool {
	u, err := url.Parse(s)
	return err == nil && oneOf(u.Scheme, "postgres", "postgresql") && strings.Trim(u.Path, "/") != "" && isWord(s)
}

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	n, wrong := strconv.Atoi(port)
	return err == nil && wrong == nil && n >= 0 && n <= 65535 && isWord(s)
}

func isBaseURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && oneOf(u.Scheme, "http", "https") && u.Host != "" && u.User == nil && !strings.ContainsAny(s, "?#")
}
