package activities_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
)

// directory knows the roles that were taken from people.
type directory struct {
	taken map[string][]string // by subject
	err   error
}

func (d directory) Roles(_ context.Context, p agent.Principal) ([]string, error) {
	if p.Tenant != "acme" {
		return nil, errors.New("asked for another tenant")
	}
	return slices.DeleteFunc(slices.Clone(p.Roles), func(r string) bool { return slices.Contains(d.taken[p.Subject], r) }), d.err
}

func approvedBy(names ...string) func(*agent.Task) {
	return func(t *agent.Task) {
		t.Approved = &agent.Approved{Roles: []string{"refunds", "chief"}}
		for _, n := range names {
			t.Approved.By = append(t.Approved.By, agent.Principal{Subject: n, Roles: []string{"desk", "refunds"}})
		}
	}
}

// What was approved starts only while all who approved it still may: nothing is
// claimed where one may not.
func TestApprovals_AreJudgedWhenTheStepStarts(t *testing.T) {
	for name, c := range map[string]struct {
		by  []string
		dir *directory
		ok  bool
	}{
		"nobody is asked":            {[]string{"ann"}, nil, true},
		"still has it":               {[]string{"ann"}, &directory{}, true},
		"another role was taken":     {[]string{"ann"}, &directory{taken: map[string][]string{"ann": {"desk"}}}, true},
		"another person's was taken": {[]string{"ann"}, &directory{taken: map[string][]string{"bob": {"refunds"}}}, true},
		"it was taken":               {[]string{"ann"}, &directory{taken: map[string][]string{"ann": {"refunds"}}}, false},
		"one of two":                 {[]string{"ann", "bob"}, &directory{taken: map[string][]string{"bob": {"refunds"}}}, false},
		"nobody approved it":         {nil, &directory{taken: map[string][]string{"ann": {"refunds"}}}, true},
	} {
		for _, tl := range []string{"look", "send"} {
			t.Run(name+"/"+tl, func(t *testing.T) {
				b := acmeBench(t)
				if c.dir != nil {
					b.acts.Trust.Directory = *c.dir
				}
				_, err := b.tool(tl, approvedBy(c.by...))
				if c.ok {
					require.NoError(t, err)
					require.Equal(t, 1, b.calls)
					return
				}
				requireError(t, err, signals.ErrUnapproved, false, "who approved it, has not the role refunds or chief any more")
				require.Zero(t, b.calls)
				_, err = b.store.Effect(t.Context(), "acme", "k1")
				require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err), "nothing is claimed")
			})
		}
	}
}

// A directory that does not answer starts nothing, and refuses nothing for good.
func TestApprovals_WhenNobodyCanSay(t *testing.T) {
	b := acmeBench(t)
	b.acts.Trust.Directory = directory{err: errors.New("line 3 is no line")}
	_, err := b.tool("send", approvedBy("ann"))
	requireError(t, err, signals.ErrUnjudged, true, "which roles ann has, who approved it, cannot be looked up: line 3 is no line")
	require.Zero(t, b.calls)
	b.acts.Trust.Directory = directory{}
	_, err = b.tool("send", approvedBy("ann"))
	require.NoError(t, err)
	require.Equal(t, 1, b.calls)
}

// A step that has begun is gone through with: its approval was good then. One that
// has happened is done.
func TestApprovals_OfAStepThatHasBegun(t *testing.T) {
	for name, end := range map[string]error{"nobody knows": errors.New("lost"), "it happened": nil} {
		t.Run(name, func(t *testing.T) {
			b := acmeBench(t)
			fail := end
			b.send = func(_ context.Context, _ tool.Key, a args) (args, error) { return a, fail }
			_, err := b.tool("send", approvedBy("ann"))
			require.Equal(t, end == nil, err == nil)
			b.acts.Trust.Directory = directory{taken: map[string][]string{"ann": {"refunds"}}}
			fail = nil
			out, err := b.tool("send", approvedBy("ann"))
			require.NoError(t, err)
			require.JSONEq(t, `{"text":"a"}`, string(out.Result))
			row, err := b.store.Effect(t.Context(), "acme", "k1")
			require.NoError(t, err)
			require.Equal(t, store.EffectApplied, row.Status)
		})
	}
}

// acme is a store in which everything is acme's: a single activity has no workflow
// id to read a tenant from.
type acme struct{ store.Store }

func (s acme) Claim(ctx context.Context, c store.Claim) (store.Effect, bool, error) {
	c.Tenant, c.Address = "acme", "acme/lab/k"
	return s.Store.Claim(ctx, c)
}

func (s acme) Settle(ctx context.Context, _, key string, o store.Outcome) error {
	return s.Store.Settle(ctx, "acme", key, o)
}

func (s acme) MarkUnknown(ctx context.Context, _, key string, attempt int, reason string) (store.Effect, error) {
	return s.Store.MarkUnknown(ctx, "acme", key, attempt, reason)
}

func (s acme) Effect(ctx context.Context, _, key string) (store.Effect, error) {
	return s.Store.Effect(ctx, "acme", key)
}

// acmeBench is a bench whose ledger is acme's.
func acmeBench(t *testing.T) *bench {
	b := newBench(t)
	b.look = func(_ context.Context, a args) (args, error) { return a, nil }
	b.send = func(_ context.Context, _ tool.Key, a args) (args, error) { return a, nil }
	b.store = acme{b.store}
	b.acts.Store = b.store
	return b
}
