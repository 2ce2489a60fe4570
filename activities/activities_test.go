package activities_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"interlock/activities"
	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/tool"
)

type state struct {
	Text string `json:"text" set:"tool"`
}

type args struct {
	Text string `json:"text"`
}

// bench runs single activities, without a workflow.
type bench struct {
	t     *testing.T
	env   *testsuite.TestActivityEnvironment
	acts  *activities.Activities
	store store.Store
	look  func(context.Context, args) (args, error)
	send  func(context.Context, tool.Key, args) (args, error)
	calls int
	model llm.Model
	fault error // of the store's appends
}

type faulty struct {
	store.Store
	b *bench
}

func (f faulty) Append(ctx context.Context, ref store.RunRef, batch agent.Batch) error {
	if f.b.fault != nil {
		return f.b.fault
	}
	return f.Store.Append(ctx, ref, batch)
}

func (f faulty) AppendSoon(ctx context.Context, ref store.RunRef, batch agent.Batch) error {
	if f.b.fault != nil {
		return f.b.fault
	}
	return f.Store.AppendSoon(ctx, ref, batch)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t}
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "interlock.db"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	b.store = faulty{s, b}
	commit := func(s *state, _, r args) error { s.Text = r.Text; return nil }
	look := tool.ReadOnly("look", func(ctx context.Context, a args) (args, error) { b.calls++; return b.look(ctx, a) }, commit).Within(time.Second, time.Minute)
	send := tool.Keyed("send", func(ctx context.Context, k tool.Key, a args) (args, error) { b.calls++; return b.send(ctx, k, a) }, commit).Within(time.Second, time.Minute)
	glance := tool.ReadOnly("glance", func(ctx context.Context, a args) (args, error) { b.calls++; return b.look(ctx, a) }, commit).Quick()
	registry, err := agent.NewRegistry(agent.Define(agent.Spec[struct{}, state]{Name: "lab", Version: 1, Instructions: "Try.",
		Init: func(struct{}) (state, error) { return state{}, nil },
		Phases: []agent.Phase[state]{{Name: "work", Tools: []agent.Tool[state]{look, send, glance}, Moves: []agent.Move[state]{{To: "end"}}},
			{Name: "end", Final: true}}}))
	require.NoError(t, err)
	b.acts = &activities.Activities{Agents: registry, Store: b.store, Model: func(*agent.Definition) (llm.Model, error) {
		if b.model == nil {
			return nil, errors.New("no model here")
		}
		return b.model, nil
	}}
	b.env = (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	for name, f := range b.acts.Registered() {
		b.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	return b
}

// run executes an activity once.
func (b *bench) run(name string, in, out any) error {
	v, err := b.env.ExecuteActivity(name, in)
	if err != nil {
		return err
	}
	return v.Get(out)
}

func (b *bench) tool(name string, change ...func(*agent.Task)) (signals.ToolOutput, error) {
	task := agent.Task{Step: "1.1", Agent: "lab", Version: 1, Tool: name, Args: agent.JSON(`{"text":"a"}`), Effect: agent.ReadOnly, Tenant: "acme", Limit: 1000}
	if name == "send" {
		task.Effect, task.Key, task.Scope = agent.Keyed, "k1", "scope"
	}
	for _, c := range change {
		c(&task)
	}
	var out signals.ToolOutput
	err := b.run("lab."+name, signals.ToolInput{Task: task}, &out)
	return out, err
}

// requireError checks how Temporal is told of a failure.
func requireError(t *testing.T, err error, kind string, retried bool, says string) *temporal.ApplicationError {
	t.Helper()
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, kind, app.Type(), app.Message())
	require.Equal(t, !retried, app.NonRetryable(), app.Message())
	require.Contains(t, app.Message(), says)
	require.True(t, utf8.ValidString(app.Message()))
	require.LessOrEqual(t, len(app.Message()), 2100)
	require.NoError(t, app.Unwrap(), "a cause would be sent as it is, at any size")
	return app
}

func TestJournalRefusalsHaveTypes(t *testing.T) {
	b := newBench(t)
	for _, tc := range []struct {
		err     error
		kind    string
		retried bool
	}{
		{&store.Refusal{Kind: store.Lost, Seq: 7, Message: "the store has lost events"}, signals.ErrLost, true},
		{&store.Refusal{Kind: store.Diverged, Seq: 7, Message: "event 7 is another"}, signals.ErrDiverged, true},
		{&store.Refusal{Kind: store.Superseded, Message: "a newer run"}, signals.ErrSuperseded, false},
		{&store.Refusal{Kind: store.KeyUsed, Message: "used"}, signals.ErrKeyUsed, false},
		{&store.Refusal{Kind: store.Conflict, Message: "another body"}, signals.ErrConflict, false},
		{agent.Errorf(agent.CodeUnavailable, "locked"), signals.ErrStore, true},
		{errors.New("anything else \xff"), signals.ErrStore, true},
		{errors.New(strings.Repeat("🙂", 1_000_000)), signals.ErrStore, true},
	} {
		b.fault = tc.err
		requireError(t, b.run(signals.ActivityRecord, signals.RecordInput{}, &signals.RecordResult{}), tc.kind, tc.retried, "")
		_, err := b.tool("send")
		requireError(t, err, tc.kind, tc.retried, "")
		requireError(t, b.run(signals.ActivityCallModel, signals.CallModelInput{}, &signals.CallModelResult{}), tc.kind, tc.retried, "")
	}
	b.fault = &store.Refusal{Kind: store.Diverged, Seq: 7, Message: "event 7 is another"}
	requireError(t, b.run(signals.ActivityRecord, signals.RecordInput{}, &signals.RecordResult{}), signals.ErrDiverged, true, "before its journal's event 7")
	require.Zero(t, b.calls, "nothing runs before its events are recorded")
}

func TestReadOnly_Tries(t *testing.T) {
	b := newBench(t)
	b.look = func(context.Context, args) (args, error) { return args{}, errors.New("no connection") }
	_, err := b.tool("look")
	requireError(t, err, signals.ErrNotApplied, false, "no connection")
	require.Equal(t, tool.ReadAttempts, b.calls)

	b.calls = 0
	b.look = func(_ context.Context, a args) (args, error) {
		if b.calls < 2 {
			panic("first")
		}
		return a, nil
	}
	out, err := b.tool("look")
	require.NoError(t, err)
	require.Equal(t, `{"text":"a"}`, out.Result.String())
	require.Equal(t, 2, b.calls)

	b.calls = 0
	b.look = func(context.Context, args) (args, error) { return args{}, tool.Refused(errors.New("no such page")) }
	_, err = b.tool("look")
	requireError(t, err, signals.ErrRefused, false, "no such page")
	require.Equal(t, 1, b.calls)
}

func TestKeyed_WhatIsKnown(t *testing.T) {
	b := newBench(t)
	effect := func() store.Effect {
		e, err := b.store.Effect(context.Background(), "acme", "k1")
		require.NoError(t, err)
		return e
	}
	// The environment's workflow id is no address of ours: the ledger needs a tenant.
	b.acts.Store = tenantOf{b.store}
	b.send = func(context.Context, tool.Key, args) (args, error) {
		return args{}, tool.NotApplied(errors.New("not sent"))
	}
	_, err := b.tool("send")
	app := requireError(t, err, signals.ErrNotApplied, true, "not sent")
	var open bool
	require.NoError(t, app.Details(&open))
	require.False(t, open, "certainly nothing happened")

	b.send = func(context.Context, tool.Key, args) (args, error) { return args{}, errors.New("no answer") }
	_, err = b.tool("send")
	requireError(t, err, signals.ErrUnknown, true, "no answer")
	require.True(t, effect().Unknown)

	b.send = func(context.Context, tool.Key, args) (args, error) {
		return args{}, tool.NotApplied(errors.New("not sent"))
	}
	_, err = b.tool("send")
	app = requireError(t, err, signals.ErrNotApplied, true, "not sent")
	require.NoError(t, app.Details(&open))
	require.True(t, open, "an earlier attempt may have had it")

	b.send = func(ctx context.Context, _ tool.Key, a args) (args, error) { <-ctx.Done(); return a, ctx.Err() }
	_, err = b.tool("send")
	requireError(t, err, signals.ErrUnknown, true, "deadline")

	b.send = func(context.Context, tool.Key, args) (args, error) {
		return args{}, tool.Refused(fmt.Errorf("no \xff\x00 %s", strings.Repeat("x", 5000)))
	}
	for range 2 { // the second is told what the ledger knows
		_, err = b.tool("send")
		requireError(t, err, signals.ErrRefused, false, "no ")
	}
	require.Equal(t, store.EffectRefused, effect().Status)
	require.Equal(t, 5, b.calls)
}

func TestNotDeployed(t *testing.T) {
	b := newBench(t)
	_, err := b.tool("look", func(t *agent.Task) { t.Version = 2 })
	requireError(t, err, signals.ErrNotDeployed, true, "agent lab/v2 is not deployed")
	_, err = b.tool("look", func(t *agent.Task) { t.Tool = "gone" })
	requireError(t, err, signals.ErrNotDeployed, true, "has no tool gone")
	b.acts.Store = tenantOf{b.store}
	view := agent.View{Agent: "lab", Version: 1, Turn: 1, Phase: "gone", State: agent.JSON("{}")}
	requireError(t, b.run(signals.ActivityCallModel, signals.CallModelInput{View: view}, &signals.CallModelResult{}), signals.ErrNotDeployed, true, "no phase gone")
	view.Phase, view.Version = "work", 9
	requireError(t, b.run(signals.ActivityCallModel, signals.CallModelInput{View: view}, &signals.CallModelResult{}), signals.ErrNotDeployed, true, "lab/v9")
	require.Zero(t, b.calls)
}

func view() agent.View {
	return agent.View{Agent: "lab", Version: 1, Turn: 1, Phase: "work", State: agent.JSON(`{"text":""}`), Limit: 24 << 10,
		Turns: []agent.ViewTurn{{N: 1, Opening: []agent.Item{{Kind: agent.ItemMessage, Text: "hello", By: "c"}}}}}
}

func TestCallModel(t *testing.T) {
	b := newBench(t)
	b.acts.Store = tenantOf{b.store}
	call := func() (signals.CallModelResult, error) {
		var out signals.CallModelResult
		return out, b.run(signals.ActivityCallModel, signals.CallModelInput{View: view()}, &out)
	}
	_, err := call()
	requireError(t, err, signals.ErrNotDeployed, true, "no model here")
	for _, tc := range []struct {
		err     error
		kind    string
		retried bool
		delay   time.Duration // 0: the retry policy's
	}{
		{&llm.Error{Kind: llm.KindUnavailable, Message: "down"}, signals.ErrUnavailable, true, 0},
		{&llm.Error{Kind: llm.KindUnavailable, RetryAfter: 90 * time.Second}, signals.ErrUnavailable, true, 90 * time.Second},
		{&llm.Error{Kind: llm.KindRateLimited, RetryAfter: 7 * time.Second}, signals.ErrUnavailable, true, 7 * time.Second},
		{&llm.Error{Kind: llm.KindRateLimited}, signals.ErrUnavailable, true, 0},
		{&llm.Error{Kind: llm.KindUnauthorized, Message: "key \xff"}, signals.ErrUnavailable, true, time.Minute},
		{&llm.Error{Kind: llm.KindQuota, RetryAfter: time.Hour}, signals.ErrUnavailable, true, time.Hour},
		{&llm.Error{Kind: llm.KindQuota, RetryAfter: time.Second}, signals.ErrUnavailable, true, time.Minute},
		{fmt.Errorf("calling: %w", &llm.Error{Kind: llm.KindRateLimited, RetryAfter: time.Millisecond}), signals.ErrUnavailable, true, time.Millisecond},
		{&llm.Error{Kind: llm.KindRefused, Message: "no"}, signals.ErrModel, false, 0},
		{&llm.Error{Kind: llm.KindContextTooLong, Message: "long"}, signals.ErrModel, false, 0},
		{&llm.Error{Kind: llm.KindInvalidAnswer, Message: strings.Repeat("x", 3_000_000)}, signals.ErrModel, false, 0},
	} {
		b.model = scripted.Func("m", nil).Failing(func(llm.Request) error { return tc.err })
		_, err := call()
		app := requireError(t, err, tc.kind, tc.retried, "model ")
		require.Equal(t, tc.delay, app.NextRetryDelay(), app.Message())
		require.Contains(t, app.Message(), string(llm.KindOf(tc.err)), "a pause says why")
	}
	b.model = scripted.Func("m", func(llm.Request) llm.Response { return scripted.Say(strings.Repeat("x", 100_000)) })
	_, err = call()
	requireError(t, err, signals.ErrModel, false, "the limit is 65536")

	asked := 0
	b.model = scripted.Func("m", func(llm.Request) llm.Response { asked++; return scripted.Say("hello") })
	for range 3 {
		out, err := call()
		require.NoError(t, err)
		require.Equal(t, "hello", out.Answer.Text)
		require.NotEmpty(t, out.Answer.Instructions)
		require.Positive(t, out.Answer.Bytes)
	}
	require.Equal(t, 1, asked, "a recorded answer is used again")
}

// tenantOf gives the tenant that the test environment's workflow id has not.
type tenantOf struct{ store.Store }

func (s tenantOf) Claim(ctx context.Context, c store.Claim) (store.Effect, bool, error) {
	c.Tenant = "acme"
	return s.Store.Claim(ctx, c)
}

func (s tenantOf) Settle(ctx context.Context, _, key string, o store.Outcome) error {
	return s.Store.Settle(ctx, "acme", key, o)
}

func (s tenantOf) MarkUnknown(ctx context.Context, _, key string, attempt int, reason string) (store.Effect, error) {
	return s.Store.MarkUnknown(ctx, "acme", key, attempt, reason)
}

func (s tenantOf) Release(ctx context.Context, _, key string, first, last int) (store.Effect, error) {
	return s.Store.Release(ctx, "acme", key, first, last)
}

func (s tenantOf) Held(ctx context.Context, _, agent, tool string) (*store.Hold, error) {
	return s.Store.Held(ctx, "acme", agent, tool)
}

func (s tenantOf) ModelCall(ctx context.Context, _, key string) (store.ModelCall, error) {
	return s.Store.ModelCall(ctx, "acme", key)
}

func (s tenantOf) RecordModelCall(ctx context.Context, m store.ModelCall) (store.ModelCall, error) {
	m.Tenant = "acme"
	return s.Store.RecordModelCall(ctx, m)
}
