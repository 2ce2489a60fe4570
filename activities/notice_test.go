package activities_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"interlock/activities"
	"interlock/agent"
	"interlock/notice"
	"interlock/signals"
	"interlock/store"
	"interlock/store/sqlite"
)

func noticeEnv(t *testing.T, a *activities.Activities) *testsuite.TestActivityEnvironment {
	t.Helper()
	var err error
	a.Store, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "interlock.db"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Store.Close()) })
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	for name, f := range map[string]any{signals.ActivityDeliver: a.Deliver, signals.ActivityBury: a.Bury, signals.ActivityMarkNoticed: a.MarkNoticed} {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	return env
}

var telling = signals.Telling{Tenant: "acme", Target: "ops", ID: "n1",
	Notice: agent.JSON(`{"address":"acme/refund/k","id":"n1","tenant":"acme","title":"<b>&ä🦊","type":"run.ended"}`), By: "olga"}

// What an attempt says decides whether, and when, there is another one.
func TestDeliver(t *testing.T) {
	code, after := 0, 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", strconv.Itoa(after))
		w.WriteHeader(code)
	}))
	t.Cleanup(srv.Close)
	t.Setenv("HOOK", "whsec_S3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR")
	path := filepath.Join(t.TempDir(), "targets.yaml")
	require.NoError(t, os.WriteFile(path, []byte("targets:\n  - {name: ops, kind: webhook, url: '"+srv.URL+"/S3CR3T', secrets: ['env:HOOK'], allow_private: true}\n"), 0o600))
	file, err := notice.Open(path, nil)
	require.NoError(t, err)
	told := &activities.Activities{Notices: &activities.Notices{Targets: file, Sender: notice.NewSender(notice.Options{})}}
	env := noticeEnv(t, told)
	deliver := func(in signals.Telling) *temporal.ApplicationError {
		_, err := env.ExecuteActivity(signals.ActivityDeliver, in)
		var said *temporal.ApplicationError
		if err != nil {
			require.True(t, errors.As(err, &said), "%v", err)
			require.NotContains(t, err.Error(), "S3CR3T")
		}
		return said
	}
	for _, c := range []struct {
		code, after int
		kind        string
		forGood     bool
		wait        time.Duration
		says        string
	}{
		{500, 9, signals.ErrUnavailable, false, 0, "attempt 1: 500"},
		{503, 9, signals.ErrUnavailable, false, 9 * time.Second, "attempt 1: 503"},
		{429, 1 << 30, signals.ErrUnavailable, false, time.Hour, "429"},
		{410, 9, signals.ErrGone, true, 0, "410 Gone"},
	} {
		code, after = c.code, c.after
		said := deliver(telling)
		require.NotNil(t, said, c.says)
		require.Equal(t, []any{c.kind, c.forGood, c.wait}, []any{said.Type(), said.NonRetryable(), said.NextRetryDelay()}, c.says)
		require.Contains(t, said.Message(), c.says)
	}
	code = 200
	require.Nil(t, deliver(telling))
	other := telling
	other.Target = "gone"
	said := deliver(other)
	require.Equal(t, []any{signals.ErrNoTarget, true}, []any{said.Type(), said.NonRetryable()})
	other = telling
	other.Notice = agent.JSON(`[]`)
	require.True(t, deliver(other).NonRetryable())

	env = noticeEnv(t, &activities.Activities{})
	said = deliver(telling)
	require.Equal(t, []any{signals.ErrNotDeployed, false}, []any{said.Type(), said.NonRetryable()}, "another worker has targets")
	require.Positive(t, said.NextRetryDelay())
}

func TestBuryAndMarkNoticed(t *testing.T) {
	a := &activities.Activities{}
	env := noticeEnv(t, a)
	do := func(name string, in any) {
		t.Helper()
		_, err := env.ExecuteActivity(name, in)
		require.NoError(t, err)
	}
	do(signals.ActivityMarkNoticed, telling) // there is none
	for range 2 {
		do(signals.ActivityBury, signals.Burial{Telling: telling, Reason: "410"})
	}
	all, err := a.Store.DeadNotices(t.Context(), "acme", store.DeadFilter{})
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, []any{"run.ended", "acme/refund/k", "410", telling.Notice}, []any{all[0].Kind, all[0].Address, all[0].Reason, all[0].Notice})
	for range 2 { // the answer to the first may be lost
		do(signals.ActivityMarkNoticed, telling)
	}
	all, err = a.Store.DeadNotices(t.Context(), "acme", store.DeadFilter{Ended: true})
	require.NoError(t, err)
	require.Equal(t, []any{store.DeadSent, "olga"}, []any{all[0].End, all[0].EndedBy})
}
