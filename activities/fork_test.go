package activities_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/activities"
	"interlock/agent"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/tool"
)

// forked drives machines over one ledger and one other side, as workers do.
type forked struct {
	t        *testing.T
	def      *agent.Definition
	store    store.Store
	happened map[string]int // by tool and arguments
	now      time.Time
}

type note struct {
	Sent string `json:"sent" set:"tool"`
	Text string `json:"text" set:"model"`
}

func newForked(t *testing.T) *forked {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "interlock.db"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	f := &forked{t: t, store: s, happened: map[string]int{}, now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	does := func(name string) func(context.Context, tool.Key, args) (args, error) {
		return func(_ context.Context, _ tool.Key, a args) (args, error) {
			f.happened[name+" "+a.Text]++
			return a, nil
		}
	}
	commit := func(s *note, _, r args) error { s.Sent = r.Text; return nil }
	lookUp := func(_ context.Context, _ tool.Key, a args) (args, bool, error) {
		return a, f.happened["book "+a.Text] > 0, nil
	}
	once := func(ctx context.Context, a args) (args, error) { return does("shoot")(ctx, "", a) }
	f.def = agent.Define(agent.Spec[struct{}, note]{Name: "lab", Version: 1, Instructions: "Try.",
		Init: func(struct{}) (note, error) { return note{}, nil },
		Phases: []agent.Phase[note]{{Name: "work", Moves: []agent.Move[note]{{To: "end"}}, Tools: []agent.Tool[note]{
			tool.Keyed("send", does("send"), commit), tool.Reconcilable("book", does("book"), lookUp, commit), tool.Once("shoot", once, commit)}},
			{Name: "end", Final: true}}})
	_, err = agent.NewRegistry(f.def)
	require.NoError(t, err)
	return f
}

// branch is one machine, with all events of its run.
type branch struct {
	*forked
	m      *agent.Machine
	events []agent.Event
}

func (f *forked) start(key string) *branch {
	b := &branch{forked: f, m: agent.NewMachine(f.def)}
	b.step(agent.Started{Tenant: "acme", Key: key, FirstRunID: "r-" + key, Rules: agent.Rules, Limits: f.def.Limits(), User: "u", Body: agent.JSON(`{}`)})
	b.step(agent.Message{ID: "m1", Text: "go"})
	return b
}

// from goes on from a branch as it was after an event: a reset of it, or under
// another key a fork, which keeps its scope unless its effects are to be fresh.
func (b *branch) from(seq int64, key string, fresh bool) *branch {
	b.t.Helper()
	run, err := agent.Reduce(b.events[:seq])
	require.NoError(b.t, err)
	if key != "" {
		scope := run.Scope()
		run.Key, run.FirstRunID = key, "r-"+key
		if !fresh {
			run.ScopeOf = scope
		}
	}
	hash := ""
	for _, e := range b.events[:seq] {
		hash = e.Chain("", hash)
	}
	m, err := agent.Restore(b.def, agent.Snapshot{V: agent.SnapshotSchema, Run: run, Hash: hash, Before: hash})
	require.NoError(b.t, err)
	out := &branch{forked: b.forked, m: m, events: slices.Clone(b.events[:seq])}
	out.step(agent.SnapshotLoaded{Rules: agent.Rules, RunID: "r2"})
	return out
}

// propose is the model's answer to the call that is under way.
func (b *branch) propose(calls ...string) {
	b.t.Helper()
	require.True(b.t, b.m.Run().Calling, "no model call is under way: %s", b.m.Run().Reason)
	p := agent.Proposed{Turn: b.m.Run().Turn, Finish: agent.FinishCalls}
	for _, c := range calls {
		var name, text string
		_, err := fmt.Sscan(c, &name, &text)
		require.NoError(b.t, err)
		p.Calls = append(p.Calls, agent.RawCall{Tool: name, Args: fmt.Sprintf(`{"text":%q}`, text)})
	}
	b.step(p)
}

// step takes an input, and runs what follows from it.
func (b *branch) step(in agent.Input) {
	b.now = b.now.Add(time.Second)
	commands, _ := b.m.Step(b.now, "", in)
	batch := b.m.Batch()
	b.events = append(b.events, batch.Events...)
	b.m.Ack(batch.Last())
	for _, c := range commands {
		run, ok := c.(agent.RunStep)
		if !ok {
			continue
		}
		runner, _ := tool.RunnerOf(b.def, run.Task.Tool)
		r := b.m.Run()
		result, err := runner.Attempt(b.t.Context(), run.Task, tool.Ports{Ledger: activities.Ledger(b.store, store.RunRef{Tenant: r.Tenant, Address: r.Address()})})
		require.NoError(b.t, err)
		b.step(agent.StepFinished{Step: run.Task.Step, Result: result.JSON})
	}
}

// Wherever a run is taken up again, in its own name by a reset or in another by a
// fork, before its effects or after, with a turn in between or without: no effect
// happens again. With fresh effects asked for, each happens once more.
func TestFromAnEarlierPoint_NoEffectRepeats(t *testing.T) {
	effects := []string{"send a", "book a", "shoot a"}
	for name, c := range map[string]struct {
		after bool   // the point is after the effects
		extra bool   // another turn comes first, so that steps have other numbers
		key   string // "": a reset
		fresh bool
		times int // that each effect is in place in the end
	}{
		"reset before":                     {times: 1},
		"reset before, an extra turn":      {extra: true, times: 1},
		"reset after, an extra turn":       {after: true, extra: true, times: 1},
		"fork before":                      {key: "f", times: 1},
		"fork before, an extra turn":       {key: "f", extra: true, times: 1},
		"fork after":                       {key: "f", after: true, times: 1},
		"fork after, an extra turn":        {key: "f", after: true, extra: true, times: 1},
		"fresh fork before":                {key: "f", fresh: true, times: 2},
		"fresh fork before, an extra turn": {key: "f", fresh: true, extra: true, times: 2},
		"fresh fork after":                 {key: "f", fresh: true, after: true, times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForked(t)
			parent := f.start("k")
			before := int64(len(parent.events))
			parent.propose(effects...)
			point := before
			if c.after {
				point = int64(len(parent.events))
			}
			b := parent.from(point, c.key, c.fresh)
			if c.extra {
				b.propose("send other")
				require.Equal(t, 1, f.happened["send other"])
			}
			b.propose(effects...)
			for _, e := range effects {
				require.Equal(t, c.times, f.happened[e], e)
			}
			for _, e := range effects { // the same call again, whatever the branch
				b.propose(e)
			}
			for _, e := range effects {
				require.Equal(t, c.times, f.happened[e], e)
			}
			if !c.after { // what the ledger gave is a result like any other
				require.Equal(t, `{"sent":"a","text":""}`, b.m.Run().State.String())
				last := b.m.Run().Steps[len(b.m.Run().Steps)-1]
				require.Equal(t, []any{agent.StepDone, `{"text":"a"}`}, []any{last.Status, last.Result.String()})
			}
		})
	}
}
