package main

import (
	"context"
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/config"
	"interlock/worker"
)

// bad is a command line that must fail: with which code, and saying what.
type bad struct {
	args string // words; '~' stands for a space in one
	code int
	says string
}

func (b bad) words() []string {
	words := strings.Fields(b.args)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "~", " ")
	}
	return words
}

// noDigest is of no gate.
var noDigest = strings.Repeat("0", digestLength)

const someRun = "acme/refund/k"

// usageCases begin nothing: neither a store nor Temporal is there.
var usageCases = []bad{
	{"bogus", exitUsage, "unknown command"},
	{"run", exitUsage, "a command is missing: interlock run has start, get"},
	{"run bogus", exitUsage, `unknown command "bogus": interlock run has start`},
	{"gate", exitUsage, "a command is missing"},
	{"config bogus", exitUsage, "unknown command"},
	{"worker extra", exitUsage, "unknown command"},
	{"migrate extra", exitUsage, "unknown command"},
	{"run list", exitUsage, "no tenant is named: give --tenant, or set INTERLOCK_TENANT"},
	{"gate list", exitUsage, "no tenant is named"},
	{"run resume --all --reason model", exitUsage, "no tenant is named"},
	{"run list --tenant Acme", exitUsage, "tenant"},
	{"run list --tenant acme --status dead", exitUsage, "want one of running, waiting"},
	{"run list --tenant acme --limit 0", exitUsage, "give 1 to 500"},
	{"run list --tenant acme --limit many", exitUsage, "invalid argument"},
	{"run list --tenant acme extra", exitUsage, "unknown command"},
	{"gate list --tenant acme --status shut", exitUsage, "want one of open"},
	{"gate list --tenant acme --older-than yesterday", exitUsage, "invalid argument"},
	{"gate list --tenant acme --older-than -4h", exitUsage, "such as 4h"},
	{"gate list --tenant acme --limit 501", exitUsage, "give 1 to 500"},
	{"run watch " + someRun + " --from 0", exitUsage, "the first is 1"},
	{"run start " + someRun + " --body {", exitUsage, "--body is no JSON that is accepted"},
	{"run start " + someRun + ` --body {"a":1,"a":2}`, exitUsage, "--body is no JSON that is accepted"},
	{"run start " + someRun + " --body @/nowhere/x.json", exitUsage, "/nowhere/x.json"},
	{"run start " + someRun + " --as ~", exitUsage, "is no subject, role or id"},
	{"run start " + someRun + " --id a\u202eb", exitUsage, `"a\\u202eb" is no subject, role or id`},
	{"run start " + someRun + " --agent-version x", exitUsage, "invalid argument"},
	{"run message " + someRun, exitUsage, "accepts 2 arg(s)"},
	{"run message " + someRun + " hi --wait=soon", exitUsage, "invalid argument"},
	{"run message " + someRun + " hi --policy sometimes", exitUsage, "want one of queue, reject, interrupt, rollback"},
	{"run cancel " + someRun + " --undo all", exitUsage, "want one of none, turn, run"},
	{"demo --scenario chaos", exitUsage, "want one of refund, interrupt"},
	{"demo --scenario interrupt --decide reject", exitUsage, "--decide belongs to the scenario refund"},
	{"run amend " + someRun, exitUsage, "name the fields"},
	{"run amend " + someRun + " order_id", exitUsage, "write FIELD=VALUE"},
	{"run amend " + someRun + " a=1 --fields {}", exitUsage, "name the fields"},
	{"run amend " + someRun + " --fields []", exitUsage, "--fields"},
	{"run amend " + someRun + " =1", exitUsage, "write FIELD=VALUE"},
	{"run amend " + someRun + " a=1 a=2", exitUsage, "set twice"},
	{"run resume", exitUsage, "Give its address, or --all with --reason"},
	{"run resume --all --tenant acme", exitUsage, "--all needs --reason"},
	{"run resume --all --tenant acme --reason x " + someRun, exitUsage, "name the runs, or give --all"},
	{"run resume " + someRun + " --reason x", exitUsage, "they need --all"},
	{"run resume " + someRun + " here", exitUsage, "no run's address"},
	{"run export " + someRun, exitUsage, "name at least one file"},
	{"gate approve " + someRun + " 3.1", exitUsage, "give the --digest"},
	{"gate approve " + someRun + " 3.1 --digest 59441b719165", exitUsage, "is cut short: it has 32 digits"},
	{"gate approve " + someRun, exitUsage, "accepts 2 arg(s)"},
	{"gate reject " + someRun + " 3.1 --digest " + noDigest, exitUsage, "a reject needs --reason"},
	{"gate reject " + someRun + " 3.1 --reason no", exitUsage, "give the --digest"},
	{"gate happened " + someRun + " 3.1-doubt --digest " + noDigest, exitUsage, "--result is no JSON"},
	{"gate happened " + someRun + " 3.1-doubt --result {\"id\": --digest " + noDigest, exitUsage, "--result is no JSON"},
	{"gate happened " + someRun + " 3.1-doubt --result {} --digest " + noDigest, exitUsage, "needs --reason: how you found out"},
	{"gate happened " + someRun + " 3.1-doubt --result {} --reason seen", exitUsage, "give the --digest"},
	{"gate did-not-happen " + someRun + " 3.1-doubt --digest " + noDigest, exitUsage, "needs --reason: how you found out"},
	{"gate did-not-happen " + someRun + " 3.1-doubt --again=maybe", exitUsage, "invalid argument"},
	{"gate return " + someRun + " 3.1 --digest " + noDigest, exitUsage, "a return needs --reason"},
	{"gate return " + someRun + " 3.1 --reason x", exitUsage, "give the --digest"},
	{"gate return " + someRun, exitUsage, "accepts 2 arg(s)"},
	{"gate edit " + someRun + " 3.1 --reason x --digest " + noDigest, exitUsage, "--args is no JSON that is accepted"},
	{"gate edit " + someRun + " 3.1 --args {\"a\":1,\"a\":2} --reason x --digest " + noDigest, exitUsage, "--args is no JSON that is accepted"},
	{"gate edit " + someRun + " 3.1 --args {} --digest " + noDigest, exitUsage, "an edit needs --reason"},
	{"gate edit " + someRun + " 3.1 --args {} --reason x", exitUsage, "give the --digest"},
	{"gate answer " + someRun, exitUsage, "requires at least 2 arg(s)"},
	{"gate answer " + someRun + " 2.1 --digest " + noDigest, exitUsage, "say what you answer"},
	{"gate answer " + someRun + " 2.1 --yes --no --digest " + noDigest, exitUsage, "not both"},
	{"gate answer " + someRun + " 2.1 --yes", exitUsage, "give the --digest"},
	{"gate answer " + someRun + " 2.1 --digest " + noDigest + " --fields []", exitUsage, "--fields"},
	{"gate answer " + someRun + " 2.1 port --digest " + noDigest, exitUsage, "write FIELD=VALUE"},
	{"ruling", exitUsage, "a command is missing: interlock ruling has list, lift"},
	{"ruling list", exitUsage, "accepts 1 arg(s)"},
	{"ruling list k", exitUsage, "no run's address"},
	{"ruling lift " + someRun + " --reason x", exitUsage, "accepts 2 arg(s)"},
	{"ruling lift " + someRun + " 3.1", exitUsage, "a lift needs --reason"},
	{"ruling confirm " + someRun, exitUsage, "accepts 2 arg(s)"},
	{"ledger", exitUsage, "a command is missing: interlock ledger has list, show"},
	{"ledger list", exitUsage, "no tenant is named"},
	{"ledger show k", exitUsage, "no tenant is named"},
	{"ledger list --tenant acme --state odd", exitUsage, "want one of any, applied"},
	{"ledger list --tenant acme --since yesterday", exitUsage, "is no time: give one such as"},
	{"ledger list --tenant acme --since -1h", exitUsage, "is no time: give one such as"},
	{"ledger list --tenant acme --limit 0", exitUsage, "give 1 to 500"},
	{"ledger list --tenant acme --agent-version -1", exitUsage, "neither is negative"},
	{"ledger list --tenant acme --instructions v3", exitUsage, "is not the beginning of a digest"},
	{"ledger list --tenant acme --address k", exitUsage, "no run's address"},
	{"ledger show --tenant acme", exitUsage, "accepts 1 arg(s)"},
	{"ledger resolve k --tenant acme --reason r", exitUsage, "say either --happened"},
	{"ledger resolve k --tenant acme --reason r --happened {} --did-not-happen", exitUsage, "say either --happened"},
	{"ledger resolve k --tenant acme --did-not-happen", exitUsage, "needs --reason: how you found out"},
	{"ledger resolve k --tenant acme --reason r --did-not-happen=false", exitUsage, "say either --happened"},
	{"ledger resolve k --tenant acme --reason r --happened {", exitUsage, "no JSON that is accepted"},
	{"ledger resolve k --tenant acme --reason r --happened= ", exitUsage, "needs the result"},
	{"ledger sweep --every 5s", exitUsage, "give 1m or more"},
	{"ledger sweep now", exitUsage, "unknown command"},
	{"hold", exitUsage, "say what is meant: --agent, --tool or --tenant"},
	{"hold --everything --tool t --reason r", exitUsage, "say what is meant"},
	{"hold --tool t", exitUsage, "needs --reason: whoever waits is told why"},
	{"hold release", exitUsage, "say what is meant"},
	{"hold everything", exitUsage, "unknown command"},
	{"demo --model m --timeout x", exitUsage, "invalid argument"},
	{"dev --port x", exitUsage, "invalid argument"},
	{"worker --model-name m", exitUsage, "OPENAI_API_KEY"},
	{"worker --shutdown-timeout 1", exitUsage, "a duration with its unit"},
	{"worker --store-dsn-file /nowhere/x", exitUsage, "store.dsn_file"},
	{"config show --temporal-config-file /nowhere/x.toml", exitUsage, "temporal.config_file"},
	{"run get " + someRun + " --timeout 0s", exitUsage, "such as 20s"},
	{"run get " + someRun + " --temporal-profile nobody", exitUsage, "nobody"},
}

// addressCases are commands about a run that name none.
func addressCases() (cases []bad) {
	for _, command := range []string{"run start", "run get", "run watch", "run why", "run cancel", "run pause", "gate show", "gate approve", "run message", "run export"} {
		for _, address := range []string{"k", "acme/refund", "acme/Refund/k", "/refund/k", "acme/refund/k/l"} {
			rest := map[string]string{"gate show": " 3.1", "gate approve": " 3.1 --digest " + noDigest, "run message": " hi", "run export": " --journal x"}[command]
			cases = append(cases, bad{command + " " + address + rest, exitUsage, "no run's address: it is <tenant>/<agent>/<key>"})
		}
	}
	return cases
}

// flagCases are flags that no command takes, and forms that none writes.
func flagCases() (cases []bad) {
	for _, command := range []string{"demo", "dev", "worker", "migrate", "version", "config show", "run start", "run get", "run list", "run watch", "run why", "run message",
		"run amend", "run pause", "run resume", "run cancel", "run export", "gate list", "gate show", "gate approve", "gate reject", "gate happened", "gate did-not-happen",
		"gate return", "gate edit", "gate answer", "ruling list", "ruling lift", "ruling confirm",
		"ledger list", "ledger show", "ledger resolve", "ledger sweep", "hold", "hold list", "hold release", "serve", "access new", "access list", "access revoke"} {
		cases = append(cases, bad{command + " --nope", exitUsage, "unknown flag: --nope"})
		if command != "dev" && command != "worker" && command != "serve" && command != "run export" {
			cases = append(cases, bad{command + " -o yaml", exitUsage, "want one of text, json, jsonl"})
		}
		if command != "version" {
			cases = append(cases, bad{command + " --config", exitUsage, "flag needs an argument"})
		}
	}
	return cases
}

// None of these begins anything: neither a store nor Temporal is there.
func TestBad_Usage(t *testing.T) {
	cases := slices.Concat(usageCases, addressCases(), flagCases())
	t.Chdir(t.TempDir())
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	for _, c := range cases {
		r := command{temporal: "127.0.0.1:1"}.run(t, c.words()...)
		require.Equal(t, c.code, r.code, "%s: %s", c.args, r.err)
		require.Contains(t, r.err, c.says, c.args)
		require.Empty(t, r.out, c.args)
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left, "nothing was begun")
}

func TestBad_WhatIsAskedForIsNotThere(t *testing.T) {
	w := newWorld(t)
	address := w.atGate(t, "bad-input")
	w.do(t, "run", "start", "acme/refund/bad-ended", "--body", `{"customer_id":"c-017"}`, "--as", "c-017", "--wait")
	w.do(t, "run", "cancel", "acme/refund/bad-ended", "--as", "ann", "--wait")
	for _, c := range []bad{
		{"run get acme/refund/nobody", exitNotFound, "acme/refund/nobody"},
		{"run why acme/refund/nobody", exitNotFound, "acme/refund/nobody"},
		{"run watch acme/refund/nobody", exitNotFound, "acme/refund/nobody"},
		{"run message acme/refund/nobody hi", exitNotFound, "there is no run acme/refund/nobody"},
		{"run amend acme/refund/nobody order_id=1", exitNotFound, "there is no run acme/refund/nobody"},
		{"run pause acme/refund/nobody", exitNotFound, "there is no run acme/refund/nobody"},
		{"run cancel acme/refund/nobody", exitNotFound, "there is no run acme/refund/nobody"},
		{"run resume acme/refund/nobody", exitNotFound, "there is no run acme/refund/nobody"},
		{"run export acme/refund/nobody --journal -", exitNotFound, "acme/refund/nobody"},
		{"run export acme/refund/nobody --script -", exitNotFound, "acme/refund/nobody"},
		{"run export acme/refund/nobody --history -", exitNotFound, "acme/refund/nobody"},
		{"gate show acme/refund/nobody 3.1", exitNotFound, "acme/refund/nobody"},
		{"gate show " + address + " 9.9", exitNotFound, `has no gate "9.9"`},
		{"gate approve acme/refund/nobody 3.1 --digest " + noDigest, exitNotFound, "there is no run acme/refund/nobody"},
		{"gate approve " + address + " 3.1 --digest " + noDigest + " --role refunds", exitConflict, "decided nothing"},
		{"run start acme/refnd/k", exitNotFound, "deployed are [refund/v1]"},
		{"run start acme/refund/k --agent-version 9", exitNotFound, "refund/v9"},
		{"run start " + address + ` --body {"customer_id":"c-018"} --as c-017`, exitConflict, "use a new key"},
		{"run amend " + address + " amount=1", exitDenied, "amount is set by tool only"},
		{"run amend " + address + " nothing=1", exitUsage, "there is no field nothing"},
		{"run amend " + address + ` --fields {"order_id":7}`, exitUsage, "order_id"},
		{"run resume " + address, exitConflict, "the run is not paused"},
		{"run message acme/refund/bad-ended hi", exitEnded, "has ended (cancelled)"},
		{"run pause acme/refund/bad-ended", exitEnded, "has ended (cancelled)"},
		{"run amend acme/refund/bad-ended order_id=1", exitEnded, "has ended (cancelled)"},
		{"gate approve acme/refund/bad-ended 3.1 --digest " + noDigest, exitEnded, "has ended (cancelled)"},
		{"run export " + address + " --journal /nowhere/at/all", exitUsage, "/nowhere/at/all"},
		{"run list --after nonsense", exitUsage, "cursor"},
		{"ledger list --after nonsense", exitUsage, "cursor"},
		{"ledger show nothing", exitNotFound, "no such key"},
	} {
		r := w.command().run(t, c.words()...)
		require.Equal(t, c.code, r.code, "%s: %s", c.args, r.err)
		require.Contains(t, r.err, c.says, c.args)
	}
	r := w.command().run(t, "run", "message", address, strings.Repeat("x", 100_000), "--as", "c-017")
	require.Equal(t, exitUsage, r.code, r.err)
	r = w.command().run(t, "run", "message", address, "late", "--as", "c-017", "--wait=1ms")
	require.Equal(t, exitUnavailable, r.code, r.err)
	require.Contains(t, r.err, "What was sent stands; see `interlock run why "+address+"`")
}

// What the store knows is told while Temporal is down; what it does not is
// refused in time, with the id to send it again.
func TestBad_TemporalIsDown(t *testing.T) {
	w := newWorld(t)
	address := w.atGate(t, "bad-down")
	c := w.command()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c.temporal = l.Addr().String()
	require.NoError(t, l.Close())
	for args, says := range map[string]string{
		"run list":                               address,
		"gate list":                              address,
		"gate show " + address + " 3.1":          "issue_refund",
		"run get " + address:                     "waiting for gate",
		"run why " + address:                     "3.1",
		"ledger list --tool none":                "There are no such effects.",
		"hold list":                              "Nothing is held.",
		"run export " + address + " --journal -": `"seq"`,
	} {
		r := c.run(t, append(strings.Fields(args), "--timeout", "5s")...)
		require.Equal(t, exitOK, r.code, "%s: %s", args, r.err)
		require.Contains(t, r.out, says, args)
	}
	for _, args := range []string{"run message " + address + " hi", "run cancel " + address, "run pause " + address, "run resume " + address,
		"gate approve " + address + " 3.1 --digest " + noDigest, "run start acme/refund/new", "run export " + address + " --history -"} {
		if !strings.Contains(args, "export") {
			args += " --as ann"
		}
		began := time.Now()
		r := c.run(t, append(strings.Fields(args), "--timeout", "300ms")...)
		require.Equal(t, exitUnavailable, r.code, "%s: %s", args, r.err)
		require.Less(t, time.Since(began), 8*time.Second, args)
		if !strings.Contains(args, "export") {
			require.Contains(t, r.err, "give --id ", args)
		}
	}
	r := c.run(t, "worker", "--data", t.TempDir())
	require.Equal(t, exitUnavailable, r.code, r.err)
	require.Contains(t, r.err, "cannot be reached")
	require.Contains(t, r.err, "TEMPORAL_ADDRESS")
}

func TestBad_Stores(t *testing.T) {
	newWorld(t)
	dir := t.TempDir()
	migratedTo := func(name string) string {
		cfg := config.Default()
		cfg.Store.Path = filepath.Join(dir, name)
		_, _, err := worker.Migrate(context.Background(), cfg)
		require.NoError(t, err)
		return cfg.Store.Path
	}
	change := func(path, statement string) {
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		defer db.Close()
		_, err = db.Exec(statement)
		require.NoError(t, err)
	}
	behind, newer, foreign := migratedTo("behind.db"), migratedTo("newer.db"), filepath.Join(dir, "foreign.db")
	change(behind, `DELETE FROM interlock_schema WHERE version_id > 0`)
	change(newer, `INSERT INTO interlock_schema (version_id, is_applied) VALUES (9999, 1)`)
	change(foreign, `CREATE TABLE t (a)`)
	text := filepath.Join(dir, "text.db")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("no database ", 100)), 0o600))

	for _, c := range []struct {
		path string
		code int
		says string
	}{
		{filepath.Join(dir, "absent.db"), exitUnavailable, "interlock migrate"},
		{behind, exitUnavailable, "interlock migrate"},
		{newer, exitUsage, "newer Interlock"},
		{foreign, exitUsage, "another program"},
		{text, exitUsage, "not an SQLite database"},
		{dir, exitUsage, "directory"},
	} {
		for _, args := range []string{"run list", "gate list", "run watch acme/refund/k", "gate show acme/refund/k 1.1", "worker --data " + dir} {
			r := command{env: []string{"INTERLOCK_STORE_PATH=" + c.path, "INTERLOCK_TENANT=acme"}}.run(t, strings.Fields(args)...)
			require.Equal(t, c.code, r.code, "%s at %s: %s", args, c.path, r.err)
			require.Contains(t, r.err, c.says, args)
		}
	}
	require.NoFileExists(t, filepath.Join(dir, "absent.db"), "reading makes no store")

	t.Chdir(t.TempDir())
	r := command{}.run(t, "run", "list", "--tenant", "acme")
	require.Equal(t, exitUnavailable, r.code)
	require.Contains(t, r.err, "there is no store at .interlock/interlock.db: name the one that the workers use")
}

// A store that another process holds: the command ends in time and says so.
func TestBad_StoreIsLocked(t *testing.T) {
	newWorld(t)
	cfg := config.Default()
	cfg.Store.Path = filepath.Join(t.TempDir(), "interlock.db")
	_, _, err := worker.Migrate(context.Background(), cfg)
	require.NoError(t, err)
	db, err := sql.Open("sqlite", cfg.Store.Path+"?_txlock=exclusive")
	require.NoError(t, err)
	defer db.Close()
	tx, err := db.Begin()
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	r := command{env: []string{"INTERLOCK_STORE_PATH=" + cfg.Store.Path}}.run(t, "run", "list", "--tenant", "acme", "--timeout", "500ms")
	require.Equal(t, exitUnavailable, r.code, r.err)
	require.Contains(t, r.err, "locked by another process")
	require.Contains(t, r.err, "try again")
}

// Whoever only sends needs no store; one that is named and broken is told where
// it matters.
func TestBad_SendingWithoutAStore(t *testing.T) {
	w := newWorld(t)
	t.Chdir(t.TempDir())
	none := command{}
	r := none.run(t, "run", "start", "acme/refund/storeless", "--body", `{"customer_id":"c-017"}`, "--as", "c-017", "--wait")
	require.Equal(t, exitOK, r.code, r.err)
	broken := command{env: []string{"INTERLOCK_STORE_PATH=/nowhere/at/all.db"}}
	r = broken.run(t, "run", "start", "acme/refund/other", "--as", "c-017")
	require.Equal(t, exitUnavailable, r.code, "it may have been started before")
	r = broken.run(t, "run", "why", "acme/refund/storeless")
	require.Equal(t, exitOK, r.code, r.err)
	require.Contains(t, r.out, "not seen: ")
	r = broken.run(t, "run", "cancel", "acme/refund/storeless", "--as", "c-017")
	require.Equal(t, exitOK, r.code, r.err)
	_ = w
}

// Secrets in every place where one can be written do not come out of any
// command.
func TestBad_NoSecretIsTold(t *testing.T) {
	newWorld(t)
	const secret = "S3CR3T-1"
	env := []string{"INTERLOCK_STORE_DSN=postgres://u:" + secret + "@127.0.0.1:1/db?connect_timeout=1", "INTERLOCK_MODEL_API_KEY=" + secret,
		"INTERLOCK_MODEL_NAME=m", "INTERLOCK_MODEL_BASE_URL=http://127.0.0.1:1/v1", "INTERLOCK_TENANT=acme"}
	t.Setenv("TEMPORAL_API_KEY", "")
	for _, args := range []string{"config show", "config show -o json", "run list", "gate list", "run why acme/refund/k --timeout 1s", "migrate", "migrate --status",
		"worker", "run get acme/refund/k --timeout 1s", "dev"} {
		for _, extra := range [][]string{nil, {"INTERLOCK_LOG_LEVEL=loud"}, {"INTERLOCK_STORE_PATH=postgres://u:" + secret + "@h/db"}, {"INTERLOCK_MODEL_API_KEY=a " + secret}} {
			t.Chdir(t.TempDir())
			r := command{env: append(append([]string{}, env...), extra...)}.run(t, strings.Fields(args)...)
			require.NotContains(t, r.out+r.err, secret, args)
			if extra != nil {
				require.Equal(t, exitUsage, r.code, args)
			}
		}
	}
	r := command{env: env}.run(t, "config", "show")
	require.Contains(t, r.out, "postgres://[redacted]@127.0.0.1:1/db?…")
	require.Contains(t, r.out, "environment INTERLOCK_STORE_DSN")
	require.Regexp(t, `model\.api_key +\[redacted\] +environment INTERLOCK_MODEL_API_KEY`, r.out)
}
