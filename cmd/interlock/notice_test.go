package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

const hookSecret = "whsec_S3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR"

func targetsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "targets.yaml")
	require.NoError(t, os.WriteFile(path, []byte("targets:\n"+text), 0o600))
	return path
}

// noticeCases begin nothing, as usageCases.
var noticeCases = []bad{
	{"notice", exitUsage, "a command is missing: interlock notice has targets, test, dead"},
	{"notice dead bogus", exitUsage, "interlock notice dead has list, retry, drop"},
	{"notice targets", exitUsage, "it is not known which file the workers read"},
	{"notice targets --notices-targets /nowhere/targets.yaml", exitUsage, "there is no file of targets at /nowhere/targets.yaml"},
	{"notice test", exitUsage, "accepts 1 arg(s)"},
	{"notice dead list", exitUsage, "no tenant is named"},
	{"notice dead list --tenant acme --limit 0", exitUsage, "give 1 to 500"},
	{"notice dead retry --tenant acme", exitUsage, "say which: the ID of one, or --all"},
	{"notice dead drop x --all --tenant acme", exitUsage, "say which: the ID of one, or --all"},
	{"notice dead drop x y --tenant acme", exitUsage, "accepts at most 1 arg(s)"},
	{"notice dead drop x", exitUsage, "no tenant is named"},
}

// A file of targets is checked and a test is sent without a store and a Temporal, and
// no secret is shown.
func TestNotice_TargetsAndTest(t *testing.T) {
	w, err := standardwebhooks.NewWebhook(hookSecret)
	require.NoError(t, err)
	status := http.StatusNoContent
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if w.Verify(body, r.Header) != nil {
			status = http.StatusForbidden
		}
		rw.WriteHeader(status)
	}))
	t.Cleanup(srv.Close)
	file := targetsFile(t, "  - {name: ops, kind: webhook, url: '"+srv.URL+"/in?S3CR3T', secrets: ['env:HOOK'], kinds: [gate.opened], roles: [refunds], allow_private: true}\n"+
		"  - {name: chat, kind: slack, url: 'env:CHAT'}\n")
	run := func(args ...string) result {
		r := command{env: []string{"HOOK=" + hookSecret, "CHAT=https://hooks.slack.com/services/S3CR3T", "INTERLOCK_NOTICES_TARGETS=" + file}, temporal: "127.0.0.1:1"}.run(t, args...)
		require.NotContains(t, r.out+r.err, "S3CR3T")
		return r
	}
	listed := run("notice", "targets")
	require.Equal(t, exitOK, listed.code, listed.err)
	for _, want := range []string{"ops   webhook  " + srv.URL + "/in?…  gate.opened; gates of roles refunds; private addresses allowed", "chat  slack    https://hooks.slack.com/…", "everything"} {
		require.Contains(t, listed.out, want)
	}
	rows := lines(t, run("notice", "targets", "-o", "jsonl").out)
	require.Len(t, rows, 2)
	require.Equal(t, []any{"ops", []any{"gate.opened"}, true}, []any{rows[0]["name"], rows[0]["kinds"], rows[0]["allow_private"]})

	sent := run("notice", "test", "ops")
	require.Equal(t, exitOK, sent.code, sent.err)
	require.Contains(t, sent.out, "has taken it: 204 No Content")
	status = http.StatusTeapot
	refused := run("notice", "test", "ops")
	require.Equal(t, exitFailure, refused.code)
	require.Contains(t, refused.err, "did not take it: 418 I'm a teapot")
	require.Equal(t, exitNotFound, run("notice", "test", "nobody").code)

	file = targetsFile(t, "  - {name: ops, kind: pigeon, secrets: ["+hookSecret+"]}\n  - {name: ops, kind: slack, url: 'env:NONE'}\n")
	wrong := run("notice", "targets")
	require.Equal(t, exitUsage, wrong.code)
	for _, want := range []string{"3 to mend", `kind: "pigeon"`, "another target of this name", `variable "NONE" is not set`} {
		require.Contains(t, wrong.err, want)
	}
	file = targetsFile(t, "  []\n")
	require.Contains(t, run("notice", "targets").out, "nobody is told")
}

func TestNotice_Dead(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	for _, d := range []store.DeadNotice{{ID: "cli-1", Target: "ops"}, {ID: "cli-1", Target: "chat"}, {ID: "cli-2", Target: "ops"}} {
		d.Tenant, d.Kind, d.Address, d.Reason, d.Notice = "acme", "run.ended", "acme/refund/x", "it is\x1b[2J down", agent.JSON(`{"id":"`+d.ID+`"}`)
		require.NoError(t, w.store.Bury(ctx, d))
	}
	list := func(args ...string) []deadLine {
		return decoded[struct{ Notices []deadLine }](t, w, append([]string{"notice", "dead", "list"}, args...)...).Notices
	}
	fails := func(code int, says string, args ...string) {
		t.Helper()
		r := w.command().run(t, append([]string{"notice", "dead"}, args...)...)
		require.Equal(t, code, r.code, r.err)
		require.Contains(t, r.err, says)
	}
	all := list()
	require.Len(t, all, 3)
	require.Len(t, list("--target", "ops"), 2)
	require.Len(t, list("--limit", "1"), 1)
	require.Empty(t, list("--after", all[2].Cursor))
	text := w.do(t, "notice", "dead", "list")
	require.Contains(t, text, `it is\u001b[2J down`)
	other := command{env: append(w.command().env, "INTERLOCK_TENANT=globex")}.run(t, "notice", "dead", "list")
	require.Contains(t, other.out, "There are no such notices.")

	fails(exitUsage, "2 targets did not take notice cli-1", "retry", "cli-1")
	fails(exitNotFound, "there is no dead notice nope", "drop", "nope")
	require.Contains(t, w.do(t, "notice", "dead", "retry", "cli-2", "--as", "olga"), "Told again: cli-2")
	fails(exitConflict, "is being told again already", "retry", "cli-2")
	id := signals.Telling{Target: "ops", ID: "cli-2", Retry: 1}.WorkflowID()
	described, err := w.client.DescribeWorkflow(ctx, id, "")
	require.NoError(t, err)
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, described.Status, "this worker has no targets: it waits for one that has")
	require.NoError(t, w.client.TerminateWorkflow(ctx, id, "", "by mistake"))
	w.do(t, "notice", "dead", "retry", "cli-2")

	require.Contains(t, w.do(t, "notice", "dead", "drop", "cli-1", "--target", "chat", "--as", "olga"), "Dropped: cli-1 of acme/refund/x to chat")
	fails(exitConflict, "was dropped before, by olga", "drop", "cli-1", "--target", "chat")
	fails(exitConflict, "was dropped before, by olga", "retry", "cli-1", "--target", "chat")
	left := w.command().run(t, "notice", "dead", "retry", "--all", "--target", "ops")
	require.Equal(t, exitOK, left.code, left.err)
	require.Contains(t, left.err, "Left out: notice cli-2")
	require.Contains(t, left.out, "Told again: cli-1")
	w.do(t, "notice", "dead", "drop", "--all")
	require.Empty(t, list())
	ended := list("--ended")
	require.Len(t, ended, 3)
	require.Equal(t, []any{store.DeadDropped, "olga"}, []any{ended[1].End, ended[1].EndedBy})
	for _, retry := range []string{"cli-1", "cli-2"} {
		require.NoError(t, w.client.TerminateWorkflow(ctx, signals.Telling{Target: "ops", ID: retry, Retry: 1}.WorkflowID(), "", "the test ends"))
	}
}
