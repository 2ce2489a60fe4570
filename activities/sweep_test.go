package activities_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"interlock/activities"
	"interlock/agent"
	"interlock/signals"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/store/storetest"
	"interlock/tool"
)

// stranded is a ledger whose clock a test sets, and the activities that look after
// it.
type stranded struct {
	t      *testing.T
	store  *sqlite.Store
	env    *testsuite.TestActivityEnvironment
	now    time.Time
	alive  map[string]bool // by address
	down   error           // of Temporal
	answer func() (args, bool, error)
}

func newStranded(t *testing.T) *stranded {
	t.Helper()
	s := &stranded{t: t, now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), alive: map[string]bool{}}
	var err error
	s.store, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "interlock.db"), &sqlite.Options{Now: func() time.Time { return s.now }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.store.Close()) })
	book := tool.Reconcilable[state]("book", func(_ context.Context, _ tool.Key, a args) (args, error) { return a, nil },
		func(context.Context, tool.Key, args) (args, bool, error) { return s.answer() }, nil)
	send := tool.Keyed[state]("send", func(_ context.Context, _ tool.Key, a args) (args, error) { return a, nil }, nil)
	fire := tool.Once[state]("fire", func(_ context.Context, a args) (args, error) { return a, nil }, nil)
	registry, err := agent.NewRegistry(agent.Define(agent.Spec[struct{}, state]{Name: "refund", Version: 1, Instructions: "Try.",
		Init: func(struct{}) (state, error) { return state{}, nil },
		Phases: []agent.Phase[state]{{Name: "work", Tools: []agent.Tool[state]{book, send, fire}, Moves: []agent.Move[state]{{To: "end"}}},
			{Name: "end", Final: true}}}))
	require.NoError(t, err)
	acts := &activities.Activities{Agents: registry, Store: s.store,
		Alive: func(_ context.Context, address, _ string) (bool, error) { return s.alive[address], s.down }}
	s.env = (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	for name, f := range acts.Registered() {
		s.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	return s
}

// claim is an attempt of a run's tool that died: its key is the run's.
func (s *stranded) claim(run, toolName string, kind agent.Effect, version int) {
	s.t.Helper()
	address := "acme/refund/" + run
	_, _, err := s.store.Claim(s.t.Context(), store.Claim{Tenant: "acme", Key: run, Address: address, Scope: address + "/r1", Agent: "refund",
		Version: version, Tool: toolName, Kind: kind, Step: "1.1", Args: agent.JSON(`{"text":"a"}`), Attempt: time.Minute})
	require.NoError(s.t, err)
}

func (s *stranded) sweep() (out signals.Swept) {
	s.t.Helper()
	v, err := s.env.ExecuteActivity(signals.WorkflowSweep)
	require.NoError(s.t, err)
	require.NoError(s.t, v.Get(&out))
	out.At = time.Time{}
	return out
}

func (s *stranded) effect(key string) store.Effect {
	s.t.Helper()
	e, err := s.store.Effect(s.t.Context(), "acme", key)
	require.NoError(s.t, err)
	return e
}

func TestSweep(t *testing.T) {
	s := newStranded(t)
	for run, kind := range map[string]agent.Effect{"happened": agent.Reconcilable, "not": agent.Reconcilable, "mute": agent.Reconcilable, "alive": agent.Reconcilable,
		"once": agent.Once, "keyed": agent.Keyed} {
		s.claim(run, map[agent.Effect]string{agent.Reconcilable: "book", agent.Once: "fire", agent.Keyed: "send"}[kind], kind, 1)
	}
	s.claim("gone", "book", agent.Reconcilable, 7)
	s.alive["acme/refund/alive"] = true
	require.Equal(t, signals.Swept{}, s.sweep(), "their time is not up")
	s.now = s.now.Add(time.Minute + tool.Grace + time.Second)
	s.answer = func() (args, bool, error) { return args{}, false, errors.New("no answer") }
	first := s.sweep()
	require.Equal(t, []int{7, 1, 0, 0, 2}, []int{first.Looked, first.Alive, first.Applied, first.NotApplied, first.InDoubt})
	require.Len(t, first.Unasked, 4, "three without an answer, and one whose agent no worker here has")

	for key, state := range map[string]store.EffectState{"once": store.StateInDoubt, "keyed": store.StateInDoubt, "alive": store.StateOpen, "mute": store.StateOpen} {
		require.Equal(t, state, s.effect(key).State(), key)
	}
	require.Contains(t, s.effect("once").Reason, "its run has ended (terminated), and nobody knows whether it happened")

	// The other side answers again.
	s.answer = func() (args, bool, error) { return args{"seen"}, true, nil }
	second := s.sweep()
	require.Equal(t, []int{7, 1, 3, 0, 0, 2}, []int{second.Looked, second.Alive, second.Applied, second.NotApplied, second.InDoubt, second.Waiting})
	require.Equal(t, `{"text":"seen"}`, s.effect("happened").Result.String())
	s.alive["acme/refund/alive"] = false
	s.answer = func() (args, bool, error) { return args{}, false, nil }
	third := s.sweep()
	require.Equal(t, []int{4, 1}, []int{third.Looked, third.NotApplied})
	require.Equal(t, store.StateNotApplied, s.effect("alive").State())

	s.down = errors.New("no connection")
	s.claim("later", "fire", agent.Once, 1)
	s.now = s.now.Add(time.Hour)
	_, err := s.env.ExecuteActivity(signals.WorkflowSweep)
	requireError(t, err, signals.ErrUnavailable, true, "Temporal does not say whether run acme/refund/")
	require.Equal(t, store.StateOpen, s.effect("later").State(), "what cannot be known is not recorded")
}

// A run that has ended by itself needs no Temporal to say so.
func TestSweep_RunThatHasEnded(t *testing.T) {
	s := newStranded(t)
	h := storetest.NewHistory(t, "acme", "1", "r1").End()
	require.NoError(t, s.store.Append(t.Context(), h.Ref, h.Batch(1, h.Last())))
	s.claim("1", "fire", agent.Once, 1)
	s.now, s.down = s.now.Add(time.Hour), errors.New("no connection")
	require.Equal(t, 1, s.sweep().InDoubt)
	require.Contains(t, s.effect("1").Reason, "its run has ended (completed)")
}

func TestResolve(t *testing.T) {
	s := newStranded(t)
	olga := agent.Principal{Subject: "olga"}
	resolve := func(in signals.Resolution) (out signals.Resolving) {
		t.Helper()
		in.Tenant = "acme"
		v, err := s.env.ExecuteActivity(signals.WorkflowResolve, in)
		require.NoError(t, err)
		require.NoError(t, v.Get(&out))
		return out
	}
	happened := func(key, result string) signals.Resolution {
		return signals.Resolution{Key: key, Happened: true, Result: agent.JSON(result), Principal: olga, Reason: "seen in the list"}
	}
	not := func(key string) signals.Resolution {
		return signals.Resolution{Key: key, Principal: olga, Reason: "no trace"}
	}
	for _, key := range []string{"a", "b", "alive", "gone", "free"} {
		s.claim(key, "fire", agent.Once, map[bool]int{true: 7, false: 1}[key == "gone"])
	}
	_, err := s.store.Release(t.Context(), "acme", "free", 1, 1)
	require.NoError(t, err)
	require.Contains(t, resolve(not("a")).Reason, "an attempt may still act on effect a until 2026-03-01T09:01:10Z")
	s.now = s.now.Add(time.Hour)
	s.alive["acme/refund/alive"] = true

	for name, c := range map[string]struct {
		in   signals.Resolution
		code agent.Code
		says string
	}{
		"none":               {not("none"), agent.CodeNotFound, "no such key"},
		"no reason":          {signals.Resolution{Key: "a", Principal: olga}, agent.CodeInvalid, "who found it out, and how"},
		"nobody":             {signals.Resolution{Key: "a", Reason: "r"}, agent.CodeInvalid, "who found it out, and how"},
		"no result":          {happened("a", ""), agent.CodeInvalid, "needs the result"},
		"no result of fire":  {happened("a", `{"texts":1}`), agent.CodeInvalid, "this is no result of fire"},
		"no worker has it":   {happened("gone", `{"text":"x"}`), agent.CodeInvalid, "no worker here has agent refund/v7"},
		"its run is alive":   {not("alive"), agent.CodeConflict, "run acme/refund/alive is under way: say it at the step's gate"},
		"nothing to resolve": {not("free"), agent.CodeConflict, "no attempt had effect free, for certain"},
	} {
		answer := resolve(c.in)
		require.Equal(t, c.code, answer.Code, "%s: %s", name, answer.Reason)
		require.Contains(t, answer.Reason, c.says, name)
	}
	require.Equal(t, store.StateOpen, s.effect("a").State())

	for range 2 { // a repeat is harmless
		require.Equal(t, signals.Resolving{}, resolve(happened("a", `{"text": "seen"}`)))
		require.Equal(t, signals.Resolving{}, resolve(not("b")))
	}
	a, b := s.effect("a"), s.effect("b")
	require.Equal(t, store.Outcome{Status: store.EffectApplied, Result: agent.JSON(`{"text":"seen"}`), Reason: "seen in the list", By: "olga"}, a.Outcome)
	require.Equal(t, store.Outcome{Status: store.EffectRefused, Reason: "it did not happen: olga found out: no trace", By: "olga"}, b.Outcome)
	require.Equal(t, agent.CodeConflict, resolve(not("a")).Code, "it is settled otherwise")

	unchecked := happened("gone", `{"any":1}`)
	unchecked.Unchecked = true
	require.Equal(t, signals.Resolving{}, resolve(unchecked))
	require.Equal(t, `{"any":1}`, s.effect("gone").Result.String())
}
