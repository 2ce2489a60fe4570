package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

func fence(t testing.TB, s store.Store, key string) store.Effect {
	t.Helper()
	e, err := s.Fence(context.Background(), named(key, nil), "the run was cancelled")
	require.NoError(t, err)
	require.Equal(t, e, effect(t, s, "acme", key))
	return e
}

func requireFenced(t testing.TB, e store.Effect) {
	t.Helper()
	require.True(t, e.Fenced)
	require.Equal(t, store.Outcome{Status: store.EffectRefused, Reason: "the run was cancelled"}, e.Outcome)
	require.Equal(t, store.StateRefused, e.State())
	require.NotNil(t, e.SettledAt)
}

var fenceTests = []contract{
	{"what nobody has claimed is fenced: it is refused, once and for good", func(t *testing.T, s store.Store) {
		first := fence(t, s, "k")
		requireFenced(t, first)
		require.Equal(t, named("k", nil), first.Claim)
		require.Zero(t, first.Attempts)
		again, err := s.Fence(context.Background(), named("k", nil), "for another reason")
		require.NoError(t, err)
		require.Equal(t, first, again, "a repeat changes nothing")

		e := mustClaim(t, s, named("k", nil), false)
		require.Equal(t, first, e, "no attempt is granted anything")
		requireCode(t, agent.CodeConflict, s.Settle(context.Background(), "acme", "k", applied))
	}},
	{"what was claimed and released is fenced, and only that", func(t *testing.T, s store.Store) {
		mustClaim(t, s, claim("acme", "k"), true)
		mustClaim(t, s, claim("acme", "k"), false)
		release(t, s, 1)
		before := effect(t, s, "acme", "k")
		require.Equal(t, before, fence(t, s, "k"), "one attempt may have had it: it has begun")
		release(t, s, 2)
		e := fence(t, s, "k")
		requireFenced(t, e)
		require.Equal(t, 2, e.Attempts)
		require.Equal(t, e, mustClaim(t, s, claim("acme", "k"), false))
	}},
	{"what has begun or is settled stays as it is", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		mustClaim(t, s, named("unknown", nil), true)
		unknown, err := s.MarkUnknown(ctx, "acme", "unknown", 1, "lost")
		require.NoError(t, err)
		require.Equal(t, unknown, fence(t, s, "unknown"))

		for key, o := range map[string]store.Outcome{"done": applied, "refused": {Status: store.EffectRefused, Reason: "no such card"}} {
			mustClaim(t, s, named(key, nil), true)
			require.NoError(t, s.Settle(ctx, "acme", key, o))
			settled := fence(t, s, key)
			require.Equal(t, o, settled.Outcome)
			require.False(t, settled.Fenced, "the other side refused it, nobody stopped it")
		}
	}},
	{"a hold keeps nothing from being fenced", func(t *testing.T, s store.Store) {
		hold(t, s, store.Hold{Tool: "pay"})
		require.NotNil(t, mustClaim(t, s, claim("acme", "k"), false).Held)
		requireFenced(t, fence(t, s, "k"))
		_, err := s.ReleaseHold(context.Background(), store.Hold{Tool: "pay"}, "ann")
		require.NoError(t, err)
		require.True(t, mustClaim(t, s, claim("acme", "k"), false).Fenced)
	}},
	{"a fence under another call's key is a conflict, and one without a reason is none", func(t *testing.T, s store.Store) {
		mustClaim(t, s, claim("acme", "k"), true)
		release(t, s, 1)
		other := claim("acme", "k")
		other.Tool = "mail"
		_, err := s.Fence(context.Background(), other, "stopped")
		requireCode(t, agent.CodeConflict, err)
		_, err = s.Fence(context.Background(), claim("acme", "k"), "")
		requireCode(t, agent.CodeInvalid, err)
		require.False(t, effect(t, s, "acme", "k").Fenced)
		_, err = s.Fence(context.Background(), claim("globex", "k"), "stopped")
		require.NoError(t, err)
		require.False(t, effect(t, s, "acme", "k").Fenced, "a tenant's own")
	}},
	{"of a claim and a fence at once one wins", func(t *testing.T, s store.Store) {
		var wg sync.WaitGroup
		const n = 24
		claimed, fenced, errs := make([]store.Effect, n), make([]store.Effect, n), make([]error, 2*n)
		for i := range n {
			c := named(fmt.Sprint("k", i), nil)
			wg.Go(func() { claimed[i], _, errs[i] = s.Claim(context.Background(), c) })
			wg.Go(func() { fenced[i], errs[n+i] = s.Fence(context.Background(), c, "stopped") })
		}
		wg.Wait()
		for i := range n {
			require.NoError(t, errs[i])
			require.NoError(t, errs[n+i])
			require.Equal(t, fenced[i].Fenced, claimed[i].Fenced, "both are told the same")
			require.NotEqual(t, fenced[i].Fenced, claimed[i].Status == store.EffectClaimed)
		}
	}},
	{"a claim that comes too late begins nothing; what has begun goes on", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		late := func(key string) store.Claim {
			return named(key, func(c *store.Claim) { c.NotAfter = time.Now().Add(-time.Hour) })
		}
		e := mustClaim(t, s, late("k"), false)
		require.True(t, e.Late)
		_, err := s.Effect(ctx, "acme", "k")
		requireCode(t, agent.CodeNotFound, err)

		mustClaim(t, s, named("k", func(c *store.Claim) { c.NotAfter = time.Now().Add(time.Hour) }), true)
		require.False(t, mustClaim(t, s, late("k"), false).Late, "it has begun: another attempt of it is granted")
		release(t, s, 1)
		release(t, s, 2)
		before := effect(t, s, "acme", "k")
		e = mustClaim(t, s, late("k"), false)
		require.True(t, e.Late, "after what was not applied it begins anew")
		e.Late = false
		require.Equal(t, before, e)

		require.NoError(t, s.Settle(ctx, "acme", "k", applied))
		require.Equal(t, applied, mustClaim(t, s, late("k"), false).Outcome, "what is settled is told")

		hold(t, s, store.Hold{Tool: "pay"})
		e = mustClaim(t, s, late("held"), false)
		require.NotNil(t, e.Held)
		require.False(t, e.Late, "first of all it is held")
	}},
}
