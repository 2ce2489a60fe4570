package activities_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"interlock/activities"
	"interlock/agent"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
)

// unmarkable is a store that cannot mark effects as undone, for a while.
type unmarkable struct {
	store.Store
	fails int
}

func (s *unmarkable) MarkUndone(ctx context.Context, _, key, by string) error {
	if s.fails--; s.fails >= 0 {
		return errors.New("the disk is full")
	}
	return s.Store.MarkUndone(ctx, "acme", key, by)
}

// The workflow id of a test's activities has no tenant.
func (s *unmarkable) Claim(ctx context.Context, c store.Claim) (store.Effect, bool, error) {
	c.Tenant = "acme"
	return s.Store.Claim(ctx, c)
}

func (s *unmarkable) Settle(ctx context.Context, _, key string, o store.Outcome) error {
	return s.Store.Settle(ctx, "acme", key, o)
}

func (s *unmarkable) Effect(ctx context.Context, _, key string) (store.Effect, error) {
	return s.Store.Effect(ctx, "acme", key)
}

// undoBench has a tool send and its compensation unsend, which counts its calls.
func undoBench(t *testing.T, fails int) (b *bench, undone *int) {
	b, undone = newBench(t), new(int)
	commit := func(*state, args, args) error { return nil }
	send := tool.Keyed("send", func(_ context.Context, _ tool.Key, a args) (args, error) { return a, nil }, commit)
	unsend := tool.Keyed("unsend", func(context.Context, tool.Key, tool.Done[args, args]) (args, error) { *undone++; return args{}, nil },
		func(*state, tool.Done[args, args], args) error { return nil })
	registry, err := agent.NewRegistry(agent.Define(agent.Spec[struct{}, state]{Name: "lab", Version: 1, Instructions: "Try.",
		Init: func(struct{}) (state, error) { return state{}, nil },
		Phases: []agent.Phase[state]{{Name: "work", Moves: []agent.Move[state]{{To: "end"}}, Tools: []agent.Tool[state]{send.Undo(unsend)}},
			{Name: "end", Final: true}}}))
	require.NoError(t, err)
	b.acts = &activities.Activities{Agents: registry, Store: &unmarkable{b.store, fails}}
	b.env = (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	for name, f := range b.acts.Registered() {
		b.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	return b, undone
}

func undoTask(task *agent.Task) {
	task.Step, task.Args, task.Effect, task.Key, task.Scope = "2.1", agent.JSON(`{"args":{"text":"a"},"result":{"text":"a"}}`), agent.Keyed, "k2", "scope"
	task.Undoes = &agent.Undoes{Step: "1.1", Tool: "send", Effect: agent.Keyed, Key: "k1"}
}

// The mark comes after the compensation and before its answer. A store that does
// not take it is waited for, and the compensation is not run again.
func TestUndone_AStoreThatFails(t *testing.T) {
	b, undone := undoBench(t, 1)
	_, err := b.tool("send")
	require.NoError(t, err)
	_, err = b.tool("unsend", undoTask)
	requireError(t, err, signals.ErrStore, true, "record that step 1.1 was undone: the disk is full")
	_, err = b.tool("unsend", undoTask)
	require.NoError(t, err)
	require.Equal(t, 1, *undone)
	row, err := b.store.Effect(t.Context(), "acme", "k1")
	require.NoError(t, err)
	require.Equal(t, "k2", row.UndoneBy)
	_, err = b.tool("send")
	requireError(t, err, signals.ErrRefused, false, "it happened and was undone")
}

// What cannot be marked holds nothing up: the ledger knows nothing of it, or of
// another undo.
func TestUndone_NothingToMark(t *testing.T) {
	b, undone := undoBench(t, 0)
	_, err := b.tool("unsend", undoTask)
	require.NoError(t, err)
	require.Equal(t, 1, *undone)
}

// A look-up that finds the compensation done marks too, and so does an operator who
// has found out that it happened.
func TestUndone_ByARide(t *testing.T) {
	b, _ := undoBench(t, 1)
	_, err := b.tool("send")
	require.NoError(t, err)
	_, err = b.tool("unsend", undoTask)
	require.Error(t, err)
	task := agent.Task{Agent: "lab", Version: 1, Tool: "unsend", Tenant: "acme", Limit: 1000}
	undoTask(&task)
	var out signals.RecordResult
	require.NoError(t, b.run(signals.ActivityRecord, signals.RecordInput{Ride: signals.Ride{Lookups: []agent.Task{task}}}, &out))
	require.Len(t, out.Standing, 1)
	row, err := b.store.Effect(t.Context(), "acme", "k1")
	require.NoError(t, err)
	require.Equal(t, "k2", row.UndoneBy)

	b, _ = undoBench(t, 0)
	_, err = b.tool("send")
	require.NoError(t, err)
	require.NoError(t, b.run(signals.ActivityRecord, signals.RecordInput{Ride: signals.Ride{Resolved: []signals.Resolved{{Task: task, Result: agent.JSON(`{"text":""}`)}}}}, &out))
	row, err = b.store.Effect(t.Context(), "acme", "k1")
	require.NoError(t, err)
	require.Equal(t, "k2", row.UndoneBy)
}
