package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

// named is a claim of acme's under a key, changed.
func named(key string, change func(*store.Claim)) store.Claim {
	c := claim("acme", key)
	if change != nil {
		change(&c)
	}
	return c
}

var effectTests = []contract{
	{"attempts that may have had the effect are told, with what they said", func(t *testing.T, s store.Store) {
		c := named("k", func(c *store.Claim) { c.Attempt, c.Branch = time.Minute, "r1" })
		first := mustClaim(t, s, c, true)
		c.Branch, c.Attempt = "r2", time.Hour
		second := mustClaim(t, s, c, false)
		mustClaim(t, s, c, false)
		release(t, s, 3)
		requireUnknown(t, s, "k", 1, "the line <went> dead 🦊")
		all, err := s.Attempts(context.Background(), "acme", "k")
		require.NoError(t, err)
		require.Equal(t, []store.Attempt{
			{N: 1, At: first.AttemptAt, Deadline: first.AttemptAt.Add(time.Minute), Branch: "r1", Reason: "the line <went> dead 🦊"},
			{N: 2, At: second.AttemptAt, Deadline: second.AttemptAt.Add(time.Hour), Branch: "r2"},
		}, all)
	}},
	{"a list by state, tool, agent, version and time, in the order of claims", func(t *testing.T, s store.Store) {
		ctx, states := context.Background(), everyState(t, s)
		for state, key := range states {
			require.Equal(t, []string{key}, effectKeys(t, s, store.EffectFilter{State: state}), state)
			require.Equal(t, state, effect(t, s, "acme", key).State())
		}
		other := mustClaim(t, s, named("other", func(c *store.Claim) {
			c.Tool, c.Agent, c.Version, c.Address = "mail", "orders", 7, "acme/orders/1"
		}), true)
		all := effectKeys(t, s, store.EffectFilter{})
		require.Equal(t, []string{"applied", "refused", "undone", "idle", "open", "doubt", "other"}, all)
		for _, f := range []store.EffectFilter{{Tool: "mail"}, {Agent: "orders"}, {Version: 7}, {Address: "acme/orders/1"}, {Since: other.ClaimedAt}} {
			require.Equal(t, []string{"other"}, effectKeys(t, s, f), "%+v", f)
		}
		require.Equal(t, all[:6], effectKeys(t, s, store.EffectFilter{Until: other.ClaimedAt}))
		require.Empty(t, effectKeys(t, s, store.EffectFilter{Tool: "mail", Agent: "refund"}))
		require.Equal(t, all[:2], effectKeys(t, s, store.EffectFilter{Limit: 2}))
		require.Equal(t, all[2:4], effectKeys(t, s, store.EffectFilter{Limit: 2, After: effect(t, s, "acme", all[1]).Cursor}))
		for _, f := range []store.EffectFilter{{State: "odd"}, {Instructions: "g%"}, {After: "first"}, {Version: -1}, {Grace: -1}, {Tool: "\x00"}} {
			_, err := s.Effects(ctx, "acme", f)
			requireCode(t, agent.CodeInvalid, err)
		}
	}},
	{"a list by the instructions that the model was given", func(t *testing.T, s store.Store) {
		for turn, digest := range map[int]string{1: "aa11", 2: "aa22", 3: "bb33"} {
			mustClaim(t, s, named(digest, func(c *store.Claim) { c.Step = fmt.Sprintf("%d.1", turn) }), true)
			m := modelCall("acme", digest)
			m.Address, m.Turn, m.Instructions = claim("acme", "").Address, turn, digest
			_, err := s.RecordModelCall(context.Background(), m)
			require.NoError(t, err)
		}
		mustClaim(t, s, named("step of no turn", func(c *store.Claim) { c.Step = "elsewhere" }), true)
		mustClaim(t, s, named("of another run", func(c *store.Claim) { c.Address, c.Step = "acme/refund/2", "1.1" }), true)
		require.ElementsMatch(t, []string{"aa11", "aa22"}, effectKeys(t, s, store.EffectFilter{Instructions: "aa"}))
		require.Equal(t, []string{"bb33"}, effectKeys(t, s, store.EffectFilter{Instructions: "bb33"}))
		require.Empty(t, effectKeys(t, s, store.EffectFilter{Instructions: "bb334"}))
	}},
	{"stranded is what no attempt can be at any more", func(t *testing.T, s store.Store) {
		everyState(t, s)
		mustClaim(t, s, named("stranded", nil), true) // its time is up at once
		mustClaim(t, s, named("runs", func(c *store.Claim) { c.Attempt = time.Hour }), true)
		require.Equal(t, []string{"open", "doubt", "stranded"}, effectKeys(t, s, store.EffectFilter{Stranded: true}))
		require.Empty(t, effectKeys(t, s, store.EffectFilter{Stranded: true, Grace: time.Hour}))
	}},
	{"tenants that have open effects", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		for _, tenant := range []string{"b", "a", "done"} {
			_, _, err := s.Claim(ctx, claim(tenant, "k"))
			require.NoError(t, err)
		}
		require.NoError(t, s.Settle(ctx, "done", "k", applied))
		all, err := s.OpenTenants(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, all)
	}},
	{"in doubt since the first mark, until a person has found out", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		mustClaim(t, s, claim("acme", "k"), true)
		require.NoError(t, s.MarkDoubt(ctx, "acme", "k", "its run was terminated"))
		e := effect(t, s, "acme", "k")
		require.NotNil(t, e.DoubtAt)
		require.Equal(t, "its run was terminated", e.Reason)
		require.NoError(t, s.MarkDoubt(ctx, "acme", "k", "again"))
		require.Equal(t, e, effect(t, s, "acme", "k"))
		found := store.Outcome{Status: store.EffectApplied, Result: agent.JSON(`{}`), By: "ann", Reason: "asked the bank"}
		require.NoError(t, s.Settle(ctx, "acme", "k", found))
		require.NoError(t, s.Settle(ctx, "acme", "k", found))
		require.Equal(t, found, effect(t, s, "acme", "k").Outcome, "who and how")
		require.Equal(t, store.StateApplied, effect(t, s, "acme", "k").State())
		require.NoError(t, s.MarkDoubt(ctx, "acme", "k", "a settled row stays"))
		require.Equal(t, found, effect(t, s, "acme", "k").Outcome)
	}},
	{"undone once, and only what happened", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		mustClaim(t, s, claim("acme", "k"), true)
		requireCode(t, agent.CodeConflict, s.MarkUndone(ctx, "acme", "k", "u"))
		require.NoError(t, s.Settle(ctx, "acme", "k", applied))
		settled := effect(t, s, "acme", "k")
		require.NoError(t, s.MarkUndone(ctx, "acme", "k", "u"))
		e := effect(t, s, "acme", "k")
		require.NotNil(t, e.UndoneAt)
		settled.UndoneAt, settled.UndoneBy = e.UndoneAt, "u"
		require.Equal(t, settled, e)
		require.NoError(t, s.MarkUndone(ctx, "acme", "k", "u"), "a repeat")
		requireCode(t, agent.CodeConflict, s.MarkUndone(ctx, "acme", "k", "another"))
		require.Equal(t, e, effect(t, s, "acme", "k"))
		require.NoError(t, s.Settle(ctx, "acme", "k", applied), "what was settled is told still")

		mustClaim(t, s, claim("acme", "no"), true)
		require.NoError(t, s.Settle(ctx, "acme", "no", store.Outcome{Status: store.EffectRefused, Reason: "no"}))
		requireCode(t, agent.CodeConflict, s.MarkUndone(ctx, "acme", "no", "u"))
	}},
}

// everyState makes one row in each state, under keys in this order: applied,
// refused, undone, idle, open, doubt.
func everyState(t testing.TB, s store.Store) map[store.EffectState]string {
	t.Helper()
	ctx := context.Background()
	for _, key := range []string{"applied", "refused", "undone", "idle", "open", "doubt"} {
		mustClaim(t, s, claim("acme", key), true)
	}
	require.NoError(t, s.Settle(ctx, "acme", "applied", applied))
	require.NoError(t, s.Settle(ctx, "acme", "refused", store.Outcome{Status: store.EffectRefused, Reason: "no"}))
	require.NoError(t, s.Settle(ctx, "acme", "undone", applied))
	require.NoError(t, s.MarkUndone(ctx, "acme", "undone", "u"))
	_, err := s.Release(ctx, "acme", "idle", 1, 1)
	require.NoError(t, err)
	require.NoError(t, s.MarkDoubt(ctx, "acme", "doubt", "terminated"))
	return map[store.EffectState]string{store.StateApplied: "applied", store.StateRefused: "refused", store.StateUndone: "undone",
		store.StateNotApplied: "idle", store.StateOpen: "open", store.StateInDoubt: "doubt"}
}

func effectKeys(t testing.TB, s store.Store, f store.EffectFilter) (out []string) {
	t.Helper()
	all, err := s.Effects(context.Background(), "acme", f)
	require.NoError(t, err)
	for _, e := range all {
		require.Equal(t, effect(t, s, "acme", e.Key), e)
		out = append(out, e.Key)
	}
	return out
}
