package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store/pgtest"
	"interlock/tool"
)

// effectsCases begin nothing: neither a database nor Temporal is there. None tells
// what may be a password.
var effectsCases = []bad{
	{"effects", exitUsage, "a command is missing: interlock effects has install, list"},
	{"effects bogus", exitUsage, `unknown command "bogus"`},
	{"effects postgres://u:S3CR3T@h/db", exitUsage, "a URL is no command"},
	{"effects install", exitUsage, "name the product's database once, by a DSN or by --dsn-file"},
	{"effects list", exitUsage, "name the product's database once"},
	{"effects list a.db --dsn-file b", exitUsage, "name the product's database once"},
	{"effects list a.db b.db", exitUsage, "accepts at most 1 arg(s)"},
	{"effects list nothing.db", exitUsage, "there is no such file: nothing.db"},
	{"effects install nothing.db", exitUsage, "there is no such file: nothing.db"},
	{"effects install file:nothing.db", exitUsage, "there is no such file: nothing.db"},
	{"effects install file://elsewhere/nothing.db", exitUsage, "the file: URL cannot be read"},
	{"effects install file:nothing.db?mode=%zz", exitUsage, "the query of the file: URL cannot be read"},
	{"effects install :memory:", exitUsage, "the DSN names no file"},
	{"effects install file::memory:?cache=shared", exitUsage, "the DSN names no file"},
	{"effects install . ", exitUsage, "the DSN names a folder"},
	{"effects install host=h~password=S3CR3T", exitUsage, "there is no such file: (what stands there is no path, it seems)"},
	{"effects install mysql://u:S3CR3T@h/db", exitUsage, "Transactional tools work in SQLite and PostgreSQL"},
	{"effects list postgres://u:S3CR3T@h:port/db", exitUsage, "the DSN cannot be read: a DSN is like postgres://"},
	{"effects list postgres://u:S3CR3T/x@h/db", exitUsage, "the DSN cannot be read"},
	{"effects list postgres://u:S3CR3T@h/db?sslmode=bogus", exitUsage, "the DSN cannot be read"},
	{"effects list --dsn-file /nowhere/x", exitUsage, "--dsn-file cannot be read: no such file or directory"},
	{"effects list --dsn-file /dev/null", exitUsage, "--dsn-file must hold one line"},
	{"effects list x.db --limit 0", exitUsage, "give 1 to 500"},
	{"effects list x.db --limit 501", exitUsage, "give 1 to 500"},
	{"effects list x.db --since yesterday", exitUsage, "--since \"yesterday\" is no time"},
	{"effects list x.db --until -4h", exitUsage, "is no time"},
	{"effects list x.db --since 2026-04-01 --until 2026-03-01", exitUsage, "--since must be before --until"},
	{"effects list x.db --agent-version 0", exitUsage, "the first is 1"},
	{"effects list x.db --agent-version one", exitUsage, "invalid argument"},
	{"effects list x.db --nope", exitUsage, "unknown flag: --nope"},
	{"effects install x.db -o yaml", exitUsage, "want one of text, json, jsonl"},
	{"effects list x.db -o yaml", exitUsage, "want one of text, json, jsonl"},
	{"effects list postgres://u:S3CR3T@127.0.0.1:1/db?connect_timeout=1", exitUnavailable, "the tool's database does not answer"},
	{"effects install postgres://u:S3CR3T@127.0.0.1:1/db?connect_timeout=1", exitUnavailable, "the tool's database does not answer"},
}

func TestEffects_Bad(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range effectsCases {
		r := command{temporal: "127.0.0.1:1"}.run(t, c.words()...)
		require.Equal(t, c.code, r.code, "%s: %s", c.args, r.err)
		require.Contains(t, r.err, c.says, c.args)
		require.NotContains(t, r.err, "S3CR3T", c.args)
		require.Empty(t, r.out, c.args)
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left, "nothing was begun")
}

func TestEffects_NoDatabase(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("notes.txt", []byte(strings.Repeat("no database at all. ", 100)), 0o600))
	require.NoError(t, os.WriteFile("empty.db", nil, 0o600))
	for _, c := range []bad{
		{"effects list notes.txt", exitUnavailable, "file is not a database"},
		{"effects install notes.txt", exitUnavailable, "file is not a database"},
		{"effects list empty.db", exitNotFound, "has no table interlock_effects"},
	} {
		r := command{temporal: "127.0.0.1:1"}.run(t, c.words()...)
		require.Equal(t, c.code, r.code, "%s: %s", c.args, r.err)
		require.Contains(t, r.err, c.says, c.args)
	}
}

type paid struct {
	N int `json:"n"`
}

// pay runs a tool of a run.
func pay(t *testing.T, db *sql.DB, tenant, key string, n int) {
	t.Helper()
	args, err := agent.Encode(paid{n})
	require.NoError(t, err)
	r := tool.Transactional("issue_refund", db, func(_ context.Context, _ *sql.Tx, p paid) (paid, error) { return p, nil }, func(*struct{}, paid, paid) error { return nil })
	_, err = r.Attempt(context.Background(), agent.Task{Step: "3.1", Agent: "refund", Version: 1, Tool: "issue_refund", Args: args, Key: key,
		Scope: tenant + "/refund/k/run-1", Tenant: tenant}, tool.Ports{})
	require.NoError(t, err)
	if key == "undone" {
		require.NoError(t, r.Undone(context.Background(), agent.Task{Key: key, Scope: tenant + "/refund/k/run-1", Tenant: tenant, Tool: "issue_refund", Args: args}, "undo-1", tool.Ports{}))
	}
}

func TestEffects(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Chdir(t.TempDir())
			do := func(args ...string) string {
				t.Helper()
				r := command{temporal: "127.0.0.1:1"}.run(t, args...)
				require.Equal(t, exitOK, r.code, r.err)
				require.NotContains(t, r.out+r.err, "geheim")
				return r.out
			}
			driver, dsn, where := "sqlite", "./shop.db", "in the SQLite database"
			install := []string{"effects", "install", "./shop.db", "--create"}
			if engine == "postgres" {
				u, err := url.Parse(pgtest.New(t))
				require.NoError(t, err)
				u.User = url.UserPassword("postgres", "geheim") // its server asks for none
				driver, dsn, where = "pgx", u.String(), "in schema public of the PostgreSQL database"
				require.NoError(t, os.WriteFile("dsn", []byte(dsn+"\n"), 0o600))
				install = []string{"effects", "install", "--dsn-file", "dsn"}
			}
			require.Equal(t, "The table interlock_effects was made "+where+".\n", do(install...))
			require.Equal(t, "The table interlock_effects "+where+" is up to date.\n", do("effects", "install", dsn))
			require.Equal(t, "There are no such effects.\n", do("effects", "list", dsn))

			db, err := sql.Open(driver, dsn)
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			pay(t, db, "acme", "k1", 1)
			pay(t, db, "acme", "undone", 2)
			pay(t, db, "other", "k3", 3)

			var got struct{ Effects []map[string]any }
			require.NoError(t, json.Unmarshal([]byte(do("effects", "list", dsn, "-o", "json")), &got))
			require.Len(t, got.Effects, 3)
			first := got.Effects[2]
			require.NotEmpty(t, first["at"])
			delete(first, "at")
			require.Equal(t, map[string]any{"tenant": "acme", "key": "k1", "address": "acme/refund/k", "first_run_id": "run-1", "agent": "refund", "version": 1.0,
				"tool": "issue_refund", "step": "3.1", "ordinal": 0.0, "args": map[string]any{"n": 1.0}, "status": "applied", "result": map[string]any{"n": 1.0}}, first)
			require.Equal(t, "undo-1", got.Effects[1]["undone_by"])
			require.Len(t, strings.Split(strings.TrimSpace(do("effects", "list", dsn, "-o", "jsonl", "--tenant", "acme")), "\n"), 2)
			text := do("effects", "list", dsn, "--tool", "issue_refund", "--agent", "refund", "--agent-version", "1", "--since", "1h", "--limit", "2")
			require.Contains(t, text, "undone")
			require.Contains(t, text, "by effect undo-1")
			require.Contains(t, text, `{"n":3}`)
			require.NotContains(t, text, `{"n":1}`)
			require.Equal(t, "There are no such effects.\n", do("effects", "list", dsn, "--until", "2026-01-01"))
		})
	}
}

// A list opens no file for writing, and leaves none behind.
func TestEffects_ListChangesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	r := command{temporal: "127.0.0.1:1"}.run(t, "effects", "install", "shop.db", "--create")
	require.Equal(t, exitOK, r.code, r.err)
	before, err := os.ReadFile("shop.db")
	require.NoError(t, err)
	require.NoError(t, os.Chmod("shop.db", 0o400))
	r = command{temporal: "127.0.0.1:1"}.run(t, "effects", "list", "shop.db")
	require.Equal(t, exitOK, r.code, r.err)
	after, err := os.ReadFile("shop.db")
	require.NoError(t, err)
	require.Equal(t, before, after)
	left, err := filepath.Glob("*")
	require.NoError(t, err)
	require.Equal(t, []string{"shop.db"}, left)
}
