package workflows_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"interlock/agent"
	"interlock/signals"
	"interlock/workflows"
)

// noticing runs the workflow of a notice in time that is skipped, and says when it
// was tried.
type noticing struct {
	tried  []time.Duration // since the first
	buried []signals.Burial
	marked []signals.Telling
	err    error
}

func notice(in signals.Telling, deliver func(n int) error) (out noticing) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	var began time.Time
	register := func(name string, f any) { env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name}) }
	register(signals.ActivityDeliver, func(_ context.Context, _ signals.Telling) error {
		if began.IsZero() {
			began = env.Now()
		}
		out.tried = append(out.tried, env.Now().Sub(began).Round(time.Millisecond))
		return deliver(len(out.tried))
	})
	register(signals.ActivityBury, func(_ context.Context, b signals.Burial) error { out.buried = append(out.buried, b); return nil })
	register(signals.ActivityMarkNoticed, func(_ context.Context, t signals.Telling) error { out.marked = append(out.marked, t); return nil })
	env.ExecuteWorkflow(workflows.Notice, in)
	out.err = env.GetWorkflowError()
	return out
}

var told = signals.Telling{Tenant: "acme", Target: "ops", ID: "n1", Notice: agent.JSON(`{"id":"n1"}`)}

func TestNotice_Schedule(t *testing.T) {
	down := func(int) error { return temporal.NewApplicationError("attempt: 500", signals.ErrUnavailable) }
	out := notice(told, down)
	require.NoError(t, out.err)
	s := time.Second
	require.Len(t, out.tried, 10, "more are not made in a test's environment")
	require.Equal(t, []time.Duration{0, 5 * s, 30 * s, 155 * s, 780 * s, 3905 * s, 19530 * s, 19530*s + 10*time.Hour, 19530*s + 20*time.Hour}, out.tried[:9])
	require.Equal(t, []signals.Burial{{Telling: told, Reason: "attempt: 500"}}, out.buried)

	short := told // and its end
	short.FirstMS, short.GiveUpMS = 1000, 10_000
	out = notice(short, down)
	require.Equal(t, []time.Duration{0, s, 6 * s}, out.tried)
	require.Len(t, out.buried, 1)
}

func TestNotice_Ends(t *testing.T) {
	out := notice(told, func(n int) error {
		if n == 1 { // it asks to be left alone
			return temporal.NewApplicationErrorWithOptions("429", signals.ErrUnavailable, temporal.ApplicationErrorOptions{NextRetryDelay: 42 * time.Minute})
		}
		return nil
	})
	require.NoError(t, out.err)
	require.Equal(t, []time.Duration{0, 42 * time.Minute}, out.tried)
	require.Empty(t, out.buried)
	require.Empty(t, out.marked, "it was never dead")

	out = notice(told, func(int) error {
		return temporal.NewNonRetryableApplicationError("410 Gone", signals.ErrGone, errors.New("x"))
	})
	require.NoError(t, out.err)
	require.Len(t, out.tried, 1)
	require.Equal(t, "410 Gone", out.buried[0].Reason)

	again := told
	again.Retry, again.By = 2, "olga"
	out = notice(again, func(int) error { return nil })
	require.NoError(t, out.err)
	require.Equal(t, []signals.Telling{again}, out.marked)
	require.Equal(t, []string{"interlock.notice/ops/n1", "interlock.notice/ops/n1/retry/2"}, []string{told.WorkflowID(), again.WorkflowID()})
}
