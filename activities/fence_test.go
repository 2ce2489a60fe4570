package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
)

func (s acme) Fence(ctx context.Context, c store.Claim, reason string) (store.Effect, error) {
	c.Tenant, c.Address = "acme", "acme/lab/k"
	return s.Store.Fence(ctx, c, reason)
}

func (s acme) Release(ctx context.Context, _, key string, first, last int) (store.Effect, error) {
	return s.Store.Release(ctx, "acme", key, first, last)
}

// stop has the step of [bench.tool] fenced.
func (b *bench) stop(t *testing.T, tl string) signals.Fenced {
	t.Helper()
	task := agent.Task{Step: "1.1", Agent: "lab", Version: 1, Tool: tl, Args: agent.JSON(`{"text":"a"}`), Effect: agent.ReadOnly, Tenant: "acme", Limit: 1000}
	if tl == "send" {
		task.Effect, task.Key, task.Scope = agent.Keyed, "k1", "scope"
	}
	var out signals.FenceResult
	require.NoError(t, b.run(signals.ActivityFence, signals.FenceInput{Steps: []signals.Fence{{Task: task, Reason: "the run was cancelled"}}}, &out))
	require.Len(t, out.Steps, 1)
	require.Equal(t, "1.1", out.Steps[0].Step)
	return out.Steps[0]
}

// A step that was stopped before it began never happens, whoever tries; one that has
// begun or happened is told as it is.
func TestFence(t *testing.T) {
	b := acmeBench(t)
	require.Equal(t, signals.StandsFenced, b.stop(t, "send").Stands)
	_, err := b.tool("send")
	requireError(t, err, signals.ErrFenced, false, "the run was cancelled")
	require.Zero(t, b.calls)
	require.Equal(t, signals.StandsFenced, b.stop(t, "send").Stands, "again is harmless")

	b = acmeBench(t)
	_, err = b.tool("send")
	require.NoError(t, err)
	done := b.stop(t, "send")
	require.Equal(t, signals.StandsDone, done.Stands)
	require.JSONEq(t, `{"text":"a"}`, string(done.Result))

	for says, want := range map[error]signals.FenceStand{errors.New("lost"): signals.StandsBegun,
		tool.Refused(errors.New("no")): signals.StandsRefused, tool.NotApplied(errors.New("no line")): signals.StandsFenced} {
		b = acmeBench(t)
		b.send = func(context.Context, tool.Key, args) (args, error) { return args{}, says }
		_, err = b.tool("send")
		require.Error(t, err)
		require.Equal(t, want, b.stop(t, "send").Stands, "%v", says)
	}
	require.Equal(t, signals.StandsFenced, acmeBench(t).stop(t, "look").Stands, "what only reads is dropped")
}

// What may not begin any more by its approval's end begins nothing: the run judges
// anew. What has begun goes on.
func TestTool_AfterItsTime(t *testing.T) {
	past := time.Now().Add(-time.Hour)
	late := func(t *agent.Task) { t.NotAfter = &past }
	b := acmeBench(t)
	_, err := b.tool("send", late)
	requireError(t, err, signals.ErrJudgeAgain, false, "judged anew")
	require.Zero(t, b.calls)
	fail := errors.New("lost")
	b.send = func(_ context.Context, _ tool.Key, a args) (args, error) { return a, fail }
	_, err = b.tool("send")
	requireError(t, err, signals.ErrUnknown, true, "lost")
	fail = nil
	_, err = b.tool("send", late)
	require.NoError(t, err, "it had begun")
}
