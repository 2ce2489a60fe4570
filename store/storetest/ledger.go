package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

func claim(tenant, key string) store.Claim {
	return store.Claim{Tenant: tenant, Key: key, Address: "acme/refund/1", Scope: "acme/refund/1/r1", Agent: "refund", Version: 3, Tool: "pay",
		Kind: agent.Once, Step: "3.1", Ordinal: 2, Args: agent.JSON(awkward)}
}

var applied = store.Outcome{Status: store.EffectApplied, Result: agent.JSON(awkward), Whole: &agent.Blob{Ref: "abc", Bytes: 7}}

var ledgerTests = []contract{
	{"a claim is fresh once, and what is claimed is read back byte for byte", func(t *testing.T, s store.Store) {
		ctx, c := context.Background(), claim("acme", "k")
		e, fresh, err := s.Claim(ctx, c)
		require.NoError(t, err)
		require.True(t, fresh)
		require.Equal(t, c, e.Claim)
		require.NotEmpty(t, e.Cursor)
		require.Equal(t, []any{store.EffectClaimed, 1, false}, []any{e.Status, e.Attempts, e.Unknown})
		require.False(t, e.ClaimedAt.IsZero())
		require.Nil(t, e.SettledAt)

		again := c
		again.Step, again.Address, again.Version = "4.1", "acme/refund/fork", 4
		stands, fresh, err := s.Claim(ctx, again)
		require.NoError(t, err)
		require.False(t, fresh)
		require.False(t, stands.AttemptAt.Before(e.AttemptAt))
		e.Attempts, e.AttemptAt, e.Deadline = 2, stands.AttemptAt, stands.Deadline
		require.Equal(t, e, stands)
		require.Equal(t, e, effect(t, s, "acme", "k"))
	}},
	{"of many claims at once exactly one is fresh", func(t *testing.T, s store.Store) {
		var wg sync.WaitGroup
		fresh, errs := make([]bool, 16), make([]error, 16)
		for i := range fresh {
			wg.Go(func() { _, fresh[i], errs[i] = s.Claim(context.Background(), claim("acme", "k")) })
		}
		wg.Wait()
		n := 0
		for i := range fresh {
			require.NoError(t, errs[i])
			if fresh[i] {
				n++
			}
		}
		require.Equal(t, 1, n)
		require.Equal(t, 16, effect(t, s, "acme", "k").Attempts)
	}},
	{"a key never stands for another call", func(t *testing.T, s store.Store) {
		for name, change := range map[string]func(*store.Claim){
			"tool": func(c *store.Claim) { c.Tool = "mail" }, "scope": func(c *store.Claim) { c.Scope = "other" }, "args": func(c *store.Claim) { c.Args = nil }} {
			c := claim("acme", name)
			first, _, err := s.Claim(context.Background(), c)
			require.NoError(t, err)
			change(&c)
			_, _, err = s.Claim(context.Background(), c)
			requireCode(t, agent.CodeConflict, err)
			require.Equal(t, first, effect(t, s, "acme", name))
		}
	}},
	{"a settled row never changes", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		_, _, err := s.Claim(ctx, claim("acme", "k"))
		require.NoError(t, err)
		require.NoError(t, s.Settle(ctx, "acme", "k", applied))
		settled := effect(t, s, "acme", "k")
		require.Equal(t, applied, settled.Outcome)
		require.NotNil(t, settled.SettledAt)

		require.NoError(t, s.Settle(ctx, "acme", "k", applied), "an equal outcome")
		requireUnknown(t, s, "k", 1, "lost")
		for _, other := range []store.Outcome{
			{Status: store.EffectRefused, Reason: "no"},
			{Status: store.EffectApplied, Result: agent.JSON(`{}`), Whole: applied.Whole},
			{Status: store.EffectApplied, Result: applied.Result},
		} {
			requireCode(t, agent.CodeConflict, s.Settle(ctx, "acme", "k", other))
		}
		e, fresh, err := s.Claim(ctx, claim("acme", "k"))
		require.NoError(t, err)
		require.False(t, fresh)
		require.Equal(t, settled, e, "not even its attempts")
		require.Equal(t, settled, effect(t, s, "acme", "k"))
	}},
	{"a refusal for good is an outcome", func(t *testing.T, s store.Store) {
		ctx, o := context.Background(), store.Outcome{Status: store.EffectRefused, Reason: "no such <card> & 🦊"}
		_, _, err := s.Claim(ctx, claim("acme", "k"))
		require.NoError(t, err)
		require.NoError(t, s.Settle(ctx, "acme", "k", o))
		require.NoError(t, s.Settle(ctx, "acme", "k", o))
		require.Equal(t, o, effect(t, s, "acme", "k").Outcome)
	}},
	{"two different outcomes at once: one stands", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		_, _, err := s.Claim(ctx, claim("acme", "k"))
		require.NoError(t, err)
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				errs[i] = s.Settle(ctx, "acme", "k", store.Outcome{Status: store.EffectApplied, Result: agent.JSON(fmt.Sprint(i))})
			})
		}
		wg.Wait()
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
				require.Equal(t, fmt.Sprint(i), effect(t, s, "acme", "k").Result.String())
				continue
			}
			requireCode(t, agent.CodeConflict, err)
		}
		require.Equal(t, 1, won)
	}},
	{"unknown is marked until it is settled", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		_, _, err := s.Claim(ctx, claim("acme", "k"))
		require.NoError(t, err)
		requireUnknown(t, s, "k", 1, "the line went dead")
		e := effect(t, s, "acme", "k")
		require.Equal(t, []any{store.EffectClaimed, true, "the line went dead"}, []any{e.Status, e.Unknown, e.Reason})
		require.NoError(t, s.Settle(ctx, "acme", "k", applied))
		e = effect(t, s, "acme", "k")
		require.Equal(t, applied, e.Outcome)
		require.True(t, e.Unknown, "it was so")
	}},
	{"an attempt that had no effect is released; one that died is not", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		e, _, err := s.Claim(ctx, claim("acme", "k"))
		require.NoError(t, err)
		require.True(t, e.Open())
		require.False(t, release(t, s, 1).Open())
		require.Equal(t, 1, release(t, s, 1).Released, "a repeat counts once")
		for range 2 { // of two more attempts one is released, one dies
			_, _, err = s.Claim(ctx, claim("acme", "k"))
			require.NoError(t, err)
		}
		require.True(t, release(t, s, 2).Open())
		require.True(t, release(t, s, 2).Open(), "a repeat is not the other one's")
		require.True(t, release(t, s, 7).Open(), "there is no such attempt")
		require.NoError(t, s.Settle(ctx, "acme", "k", applied))
		require.Equal(t, applied, release(t, s, 3).Outcome, "a settled row stays, and is told")
		require.Equal(t, applied, effect(t, s, "acme", "k").Outcome)
		_, err = s.Release(ctx, "acme", "none", 1, 1)
		requireCode(t, agent.CodeNotFound, err)
	}},
	{"attempts before one are released together", func(t *testing.T, s store.Store) {
		for n := range 4 {
			mustClaim(t, s, claim("acme", "k"), n == 0)
		}
		release(t, s, 2)
		e, err := s.Release(context.Background(), "acme", "k", 1, 3)
		require.NoError(t, err)
		require.Equal(t, []any{4, 3, true}, []any{e.Attempts, e.Released, e.Open()})
		all, err := s.Attempts(context.Background(), "acme", "k")
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, 4, all[0].N)
	}},
	{"a run's effects, oldest first", func(t *testing.T, s store.Store) {
		for _, key := range []string{"k3", "k1", "k2"} {
			_, _, err := s.Claim(context.Background(), claim("acme", key))
			require.NoError(t, err)
		}
		other := claim("acme", "other")
		other.Address = "acme/refund/2"
		_, _, err := s.Claim(context.Background(), other)
		require.NoError(t, err)
		all, err := s.Effects(context.Background(), "acme", store.EffectFilter{Address: "acme/refund/1"})
		require.NoError(t, err)
		var keys []string
		for _, e := range all {
			keys = append(keys, e.Key)
		}
		require.Equal(t, []string{"k3", "k1", "k2"}, keys)
	}},
	{"what is not claimed is not found", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		_, err := s.Effect(ctx, "acme", "none")
		requireCode(t, agent.CodeNotFound, err)
		requireCode(t, agent.CodeNotFound, s.Settle(ctx, "acme", "none", applied))
		_, err = s.MarkUnknown(ctx, "acme", "none", 1, "lost")
		requireCode(t, agent.CodeNotFound, err)
		requireCode(t, agent.CodeNotFound, s.MarkDoubt(ctx, "acme", "none", "lost"))
		requireCode(t, agent.CodeNotFound, s.MarkUndone(ctx, "acme", "none", "u"))
		attempts, err := s.Attempts(ctx, "acme", "none")
		require.NoError(t, err)
		require.Empty(t, attempts)
		all, err := s.Effects(ctx, "acme", store.EffectFilter{Address: "none"})
		require.NoError(t, err)
		require.Empty(t, all)
	}},
	{"claimed is no outcome", func(t *testing.T, s store.Store) {
		_, _, err := s.Claim(context.Background(), claim("acme", "k"))
		require.NoError(t, err)
		requireCode(t, agent.CodeInvalid, s.Settle(context.Background(), "acme", "k", store.Outcome{Status: store.EffectClaimed}))
	}},
}

func effect(t testing.TB, s store.Store, tenant, key string) store.Effect {
	t.Helper()
	e, err := s.Effect(context.Background(), tenant, key)
	require.NoError(t, err)
	return e
}

// release and requireUnknown are what an attempt of acme's k says of itself.
func release(t testing.TB, s store.Store, attempt int) store.Effect {
	t.Helper()
	e, err := s.Release(context.Background(), "acme", "k", attempt, attempt)
	require.NoError(t, err)
	require.Equal(t, effect(t, s, "acme", "k"), e)
	return e
}

func requireUnknown(t testing.TB, s store.Store, key string, attempt int, reason string) {
	t.Helper()
	e, err := s.MarkUnknown(context.Background(), "acme", key, attempt, reason)
	require.NoError(t, err)
	require.Equal(t, effect(t, s, "acme", key), e)
}
