package activities_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"interlock/activities"
	"interlock/agent"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
)

// runner is a tool whose attempts end as the test says.
type runner struct {
	failure *tool.Failure // nil: it happened
	calls   int
}

func (r *runner) Attempt(context.Context, agent.Task, tool.Ports) (tool.Result, error) {
	r.calls++
	if r.failure == nil {
		return tool.Result{JSON: agent.JSON("{}")}, nil
	}
	return tool.Result{}, r.failure
}

func (r *runner) Standing(context.Context, agent.Task, tool.Ports) (tool.Result, bool, error) {
	return tool.Result{}, false, nil
}

func (r *runner) Undone(context.Context, agent.Task, string, tool.Ports) error {
	return errors.New("nothing here is undone")
}

// spec is a tool as a definition sees it; Source runs it.
type spec struct{ agent.ToolSpec[state] }

func (s spec) Spec() agent.ToolSpec[state] { return s.ToolSpec }

func specOf(name string, effect agent.Effect, source any) spec {
	return spec{agent.ToolSpec[state]{Name: name, Effect: effect, Timeout: time.Second, Deadline: time.Minute, Args: reflect.TypeFor[args](),
		Result: reflect.TypeFor[args](), Source: source, Commit: func(*state, agent.JSON, agent.JSON) error { return nil }}}
}

// toolBench runs the activities "lab.look" and "lab.send" of two tools.
func toolBench(t *testing.T, s store.Store, look, send any) *bench {
	t.Helper()
	b := newBench(t)
	if s == nil {
		s = b.store
	}
	registry, err := agent.NewRegistry(agent.Define(agent.Spec[struct{}, state]{Name: "lab", Version: 1, Instructions: "Try.",
		Init: func(struct{}) (state, error) { return state{}, nil },
		Phases: []agent.Phase[state]{{Name: "work", Moves: []agent.Move[state]{{To: "end"}},
			Tools: []agent.Tool[state]{specOf("look", agent.ReadOnly, look), specOf("send", agent.Keyed, send)}}, {Name: "end", Final: true}}}))
	require.NoError(t, err)
	b.acts = &activities.Activities{Agents: registry, Store: s}
	b.env = (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	for name, f := range b.acts.Registered() {
		b.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	return b
}

func TestFailuresHaveTypesAndWaits(t *testing.T) {
	r := &runner{}
	b := toolBench(t, nil, &runner{}, r)
	for _, tc := range []struct {
		failure tool.Failure
		kind    string
		retried bool
		open    any // the detail; nil: none
	}{
		{tool.Failure{Kind: tool.FailedRefused}, signals.ErrRefused, false, nil},
		{tool.Failure{Kind: tool.FailedNotApplied}, signals.ErrNotApplied, true, false},
		{tool.Failure{Kind: tool.FailedNotApplied, Open: true, Wait: 13 * time.Second}, signals.ErrNotApplied, true, true},
		{tool.Failure{Kind: tool.FailedUnknown, Open: true}, signals.ErrUnknown, true, true},
		{tool.Failure{Kind: tool.FailedUnknown, Open: true, Wait: 7 * time.Second}, signals.ErrUnknown, true, true},
		{tool.Failure{Kind: tool.FailedStore}, signals.ErrStore, true, nil},
		{tool.Failure{Kind: tool.FailedEarlier, Open: true, Wait: 34*time.Second + time.Millisecond}, signals.ErrEarlier, true, nil},
	} {
		r.calls, tc.failure.Err = 0, errors.New("so it is")
		r.failure = &tc.failure
		_, err := b.tool("send")
		app := requireError(t, err, tc.kind, tc.retried, "so it is")
		require.Equal(t, tc.failure.Wait, app.NextRetryDelay(), "exactly as the failure says")
		require.Equal(t, tc.open != nil, app.HasDetails())
		if tc.open != nil {
			var open bool
			require.NoError(t, app.Details(&open))
			require.Equal(t, tc.open, open)
		}
		require.Equal(t, 1, r.calls, "a tool with an effect has one try an attempt")
	}
}

// A wait that the other side asks for is no try, and no worker sits it out.
func TestReadOnly_AWaitIsTemporals(t *testing.T) {
	r := &runner{failure: &tool.Failure{Kind: tool.FailedNotApplied, Err: errors.New("slow down"), Wait: time.Hour}}
	b := toolBench(t, nil, r, &runner{})
	began := time.Now()
	_, err := b.tool("look")
	app := requireError(t, err, signals.ErrNotApplied, true, "slow down")
	require.Equal(t, time.Hour, app.NextRetryDelay())
	require.Equal(t, 1, r.calls)
	require.Less(t, time.Since(began), 10*time.Second)
}

// exclusive is a ledger that answers claims as the test says, and keeps them.
type exclusive struct {
	store.Store
	claim store.Claim
	row   store.Effect
	fresh bool
	calls []string
}

func (s *exclusive) Claim(_ context.Context, c store.Claim) (store.Effect, bool, error) {
	s.claim = c
	s.row.Status = store.EffectClaimed
	return s.row, s.fresh, nil
}

func (s *exclusive) Settle(context.Context, string, string, store.Outcome) error {
	s.calls = append(s.calls, "settle")
	return nil
}

func (s *exclusive) MarkUnknown(_ context.Context, _, _ string, attempt int, _ string) (store.Effect, error) {
	s.calls = append(s.calls, fmt.Sprint("unknown ", attempt))
	return s.row, nil
}

func (s *exclusive) Release(_ context.Context, _, _ string, first, last int) (store.Effect, error) {
	s.calls = append(s.calls, fmt.Sprintf("release %d-%d", first, last))
	return s.row, nil
}

func TestClaims(t *testing.T) {
	s := &exclusive{}
	var asked []string
	commit := func(*state, args, args) error { return nil }
	run := func(_ context.Context, _ tool.Key, a args) (args, error) {
		asked = append(asked, "run")
		return a, errors.New("no answer")
	}
	lookUp := func(context.Context, tool.Key, args) (args, bool, error) {
		asked = append(asked, "look up")
		return args{Text: "found"}, true, nil
	}
	keyed := tool.Keyed("send", run, commit).Within(time.Second, time.Minute)
	reconcilable := tool.Reconcilable("send", run, lookUp, commit).Within(time.Second, time.Minute)
	attempt := func(source any, fresh bool, row store.Effect) error {
		b := toolBench(t, nil, &runner{}, source)
		s.Store, s.fresh, s.row, s.calls, asked = b.store, fresh, row, nil, nil
		b.acts.Store = s
		_, err := b.tool("send")
		return err
	}
	requireError(t, attempt(keyed, true, store.Effect{Attempts: 1}), signals.ErrUnknown, true, "no answer")
	require.Equal(t, []any{time.Second + tool.Overhead, false}, []any{s.claim.Attempt, s.claim.Exclusive}, "rows show deadlines")

	requireError(t, attempt(reconcilable, true, store.Effect{Attempts: 1}), signals.ErrUnknown, true, "no answer")
	require.Equal(t, []any{time.Second + tool.Overhead, true, tool.Grace}, []any{s.claim.Attempt, s.claim.Exclusive, s.claim.Grace})
	require.Equal(t, []string{"run"}, asked, "a fresh claim asks nobody")
	require.Equal(t, []string{"unknown 1"}, s.calls, "by its number")

	err := attempt(reconcilable, false, store.Effect{Attempts: 1, Wait: 31234 * time.Millisecond})
	app := requireError(t, err, signals.ErrEarlier, true, "an earlier attempt may still act, for 31.234s")
	require.Equal(t, 31234*time.Millisecond, app.NextRetryDelay())
	require.Empty(t, asked)
	require.Empty(t, s.calls, "nothing is counted or marked")

	require.NoError(t, attempt(reconcilable, false, store.Effect{Attempts: 2}))
	require.Equal(t, []string{"look up"}, asked)
	require.Equal(t, []string{"settle"}, s.calls)

	requireError(t, attempt(reconcilable, false, store.Effect{Attempts: 2, Released: 1}), signals.ErrUnknown, true, "no answer")
	require.Equal(t, []string{"run"}, asked, "the earlier attempt certainly did nothing")

	held := &store.Hold{Tool: "send", By: "ann", Reason: "it sends twice", At: time.Unix(0, 0)}
	for _, source := range []any{keyed, reconcilable} {
		app = requireError(t, attempt(source, false, store.Effect{Held: held}), signals.ErrHeld, true, "tool send is held by ann since 1970-01-01 00:00:00 UTC: it sends twice")
		require.Zero(t, app.NextRetryDelay(), "it backs off as its policy says")
		require.Empty(t, asked)
		require.Empty(t, s.calls)
	}
}
