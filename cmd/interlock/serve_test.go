package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMigrate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "interlock.db")
	c := command{env: []string{"INTERLOCK_STORE_PATH=" + path}, temporal: "127.0.0.1:1"}
	status := func() (m migrated) {
		r := c.run(t, "migrate", "--status", "-o", "json")
		require.Equal(t, exitOK, r.code, r.err)
		require.NoError(t, json.Unmarshal([]byte(r.out), &m))
		return m
	}
	none := status()
	require.Zero(t, none.After)
	require.Positive(t, none.Newest)
	require.NoFileExists(t, path, "--status makes nothing")
	require.Contains(t, c.run(t, "migrate", "--status").out, "There is no store yet; `interlock migrate` makes one.")

	require.Contains(t, c.run(t, "migrate").out, "from version 0 to ")
	require.Equal(t, migrated{none.Newest, none.Newest, none.Newest}, status())
	require.Contains(t, c.run(t, "migrate").out, "The schema is up to date: version ")

	r := command{env: []string{"INTERLOCK_STORE_PATH=/proc/none/interlock.db"}, temporal: "127.0.0.1:1"}.run(t, "migrate")
	require.Equal(t, exitUnavailable, r.code, r.err)
	require.Contains(t, r.err, "/proc/none")
}

func TestConfigShow(t *testing.T) {
	t.Setenv("TEMPORAL_NAMESPACE", "agents")
	t.Setenv("OPENAI_API_KEY", "S3CR3T")
	t.Setenv("OPENAI_BASE_URL", "")
	r := command{env: []string{"INTERLOCK_TENANT=acme", "INTERLOCK_MODEL_NAME=gpt-x"}, temporal: "t.example:7233"}.run(t, "config", "show", "--log-level", "warn", "-o", "json")
	require.Equal(t, exitOK, r.code, r.err)
	var shown shownConfig
	require.NoError(t, json.Unmarshal([]byte(r.out), &shown))
	origins := map[string]string{}
	for _, s := range shown.Settings {
		origins[s.Key] = s.Value + " " + s.Origin
	}
	require.Equal(t, `"acme" environment INTERLOCK_TENANT`, origins["tenant"])
	require.Equal(t, `"warn" override`, origins["log.level"])
	require.Equal(t, `".interlock/interlock.db" default`, origins["store.path"])
	require.Equal(t, temporalShown{Address: "t.example:7233", Namespace: "agents"}, shown.Temporal)
	require.Equal(t, "gpt-x of openai, address from the provider's default, key from OPENAI_API_KEY", shown.Model)
	require.NotContains(t, r.out, "S3CR3T")
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := command{temporal: "127.0.0.1:1"}.run(t, "completion", shell)
		require.Equal(t, exitOK, r.code)
		require.Contains(t, r.out, "interlock")
	}
}

// The worker of the samples, as it is run in a container: it serves what the
// commands start, and SIGTERM ends it well.
func TestWorker(t *testing.T) {
	w := newWorld(t)
	store := filepath.Join(t.TempDir(), "interlock.db")
	c := command{env: []string{"INTERLOCK_STORE_PATH=" + store, "INTERLOCK_TASK_QUEUE=other"}}
	require.Equal(t, exitOK, c.run(t, "migrate").code)
	t.Setenv("INTERLOCK_STORE_PATH", store)
	t.Setenv("INTERLOCK_TASK_QUEUE", "other")
	t.Setenv("TEMPORAL_ADDRESS", w.temporal.Address())
	p := start(t, "worker", "--log-format", "json")
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "worker polls") }, wait, tick, "%s", &p.err)
	r := c.run(t, "run", "start", "acme/refund/worker-1", "--body", `{"customer_id":"c-017"}`, "--as", "c-017", "--message", "Please refund order 1017", "--wait")
	require.Equal(t, exitOK, r.code, r.err)
	require.Contains(t, r.out, "order_id = 1017")
	require.Equal(t, exitOK, p.end(t, syscall.SIGTERM), &p.err)
	require.Empty(t, p.out.String(), "stdout is for results")
}
