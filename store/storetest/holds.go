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

func hold(t testing.TB, s store.Store, h store.Hold) store.Hold {
	t.Helper()
	h.By, h.Reason = "ann", "the bank <doubles> 🦊"
	stands, err := s.Hold(context.Background(), h)
	require.NoError(t, err)
	require.False(t, stands.At.IsZero())
	h.At = stands.At
	require.Equal(t, h, stands)
	return stands
}

var holdTests = []contract{
	{"a hold is on what its tenant, agent and tool name", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		for i, c := range []struct {
			hold store.Hold
			on   bool
		}{
			{store.Hold{}, true}, {store.Hold{Tenant: "acme"}, true}, {store.Hold{Agent: "refund"}, true}, {store.Hold{Tool: "pay"}, true},
			{store.Hold{Tenant: "acme", Agent: "refund", Tool: "pay"}, true},
			{store.Hold{Tenant: "globex"}, false}, {store.Hold{Agent: "orders"}, false}, {store.Hold{Tool: "mail"}, false},
			{store.Hold{Tenant: "acme", Agent: "refund", Tool: "mail"}, false},
		} {
			stands := hold(t, s, c.hold)
			key := fmt.Sprint("k", i)
			e, fresh, err := s.Claim(ctx, claim("acme", key))
			require.NoError(t, err)
			require.Equal(t, !c.on, fresh, "%+v", c.hold)
			held, err := s.Held(ctx, "acme", "refund", "pay")
			require.NoError(t, err)
			if c.on {
				require.Equal(t, &stands, held)
				require.Equal(t, []any{&stands, 0}, []any{e.Held, e.Attempts})
				_, err := s.Effect(ctx, "acme", key)
				requireCode(t, agent.CodeNotFound, err)
			} else {
				require.Nil(t, held)
			}
			ended, err := s.ReleaseHold(ctx, c.hold, "bob")
			require.NoError(t, err)
			require.Equal(t, []any{"ann", "bob"}, []any{ended.By, ended.ReleasedBy})
			require.NotNil(t, ended.ReleasedAt)
		}
	}},
	{"what was claimed before is not counted again, and what is settled is told", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		before := mustClaim(t, s, named("k", func(c *store.Claim) { c.Attempt = time.Hour }), true)
		settled := mustClaim(t, s, named("done", nil), true)
		require.NoError(t, s.Settle(ctx, "acme", "done", applied))
		stands := hold(t, s, store.Hold{Tool: "pay"})
		e := mustClaim(t, s, named("k", nil), false)
		require.Equal(t, &stands, e.Held)
		e.Held = nil
		require.Equal(t, before, e)
		e = mustClaim(t, s, named("done", nil), false)
		require.Nil(t, e.Held)
		require.Equal(t, []any{settled.Key, applied}, []any{e.Key, e.Outcome})
		require.NoError(t, s.Settle(ctx, "acme", "k", applied), "what runs may end")

		_, err := s.ReleaseHold(ctx, store.Hold{Tool: "pay"}, "ann")
		require.NoError(t, err)
		require.Nil(t, mustClaim(t, s, named("later", nil), true).Held)
	}},
	{"a hold stands once, and only the same three release it", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		first := hold(t, s, store.Hold{Agent: "refund"})
		again, err := s.Hold(ctx, store.Hold{Agent: "refund", By: "bob", Reason: "too"})
		require.NoError(t, err)
		require.Equal(t, first, again)
		for _, other := range []store.Hold{{}, {Agent: "refund", Tool: "pay"}, {Tenant: "acme", Agent: "refund"}} {
			_, err := s.ReleaseHold(ctx, other, "bob")
			requireCode(t, agent.CodeNotFound, err)
		}
		_, err = s.ReleaseHold(ctx, first, "bob")
		require.NoError(t, err)
		_, err = s.ReleaseHold(ctx, first, "bob")
		requireCode(t, agent.CodeNotFound, err)
		hold(t, s, store.Hold{Agent: "refund"})
	}},
	{"holds are listed, those of others are not", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		all := []store.Hold{hold(t, s, store.Hold{}), hold(t, s, store.Hold{Tenant: "globex"}), hold(t, s, store.Hold{Tenant: "acme", Tool: "pay"})}
		requireHolds(t, s, "", false, all...)
		requireHolds(t, s, "acme", false, all[0], all[2])
		var err error
		all[0], err = s.ReleaseHold(ctx, all[0], "bob")
		require.NoError(t, err)
		requireHolds(t, s, "acme", false, all[2])
		requireHolds(t, s, "acme", true, all[0], all[2])
	}},
	{"a hold without a name or a reason is none", func(t *testing.T, s store.Store) {
		for _, h := range []store.Hold{{Reason: "r"}, {By: "ann"}, {By: "ann", Reason: "r", Tool: "\x00"}} {
			_, err := s.Hold(context.Background(), h)
			requireCode(t, agent.CodeInvalid, err)
		}
		_, err := s.ReleaseHold(context.Background(), store.Hold{}, "")
		requireCode(t, agent.CodeInvalid, err)
		requireHolds(t, s, "", true)
	}},
	{"when a hold has returned, no claim is granted that is not listed", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		var wg sync.WaitGroup
		listed := map[string]bool{}
		granted := make([][]string, 8)
		errs := make([]error, 8)
		for i := range granted {
			wg.Go(func() {
				for n := range 40 {
					key := string(rune('a'+i)) + string(rune('a'+n))
					e, fresh, err := s.Claim(ctx, claim("acme", key))
					if errs[i] = err; err != nil || e.Held != nil {
						return
					}
					if fresh {
						granted[i] = append(granted[i], key)
					}
				}
			})
		}
		hold(t, s, store.Hold{Tool: "pay"})
		for _, key := range effectKeys(t, s, store.EffectFilter{}) {
			listed[key] = true
		}
		wg.Wait()
		for i := range granted {
			require.NoError(t, errs[i])
			for _, key := range granted[i] {
				require.True(t, listed[key], key)
			}
		}
	}},
}

func requireHolds(t testing.TB, s store.Store, tenant string, ended bool, want ...store.Hold) {
	t.Helper()
	all, err := s.AllHolds(context.Background(), tenant, ended)
	require.NoError(t, err)
	require.Equal(t, want, all)
}
