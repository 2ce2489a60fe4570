package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

var tenantTests = []contract{
	{"the same address and keys in two tenants are two things", func(t *testing.T, s store.Store) {
		tenants := []string{"acme", "globex"}
		for i, tenant := range tenants {
			fill(t, s, tenant, i)
		}
		for i, tenant := range tenants {
			requireFilled(t, s, tenant, i)
		}
		// What one does to its rows, the other's do not show.
		h := history(t, "globex", 1)
		r2 := h.Reset("r2", 1).Say(1, "otherwise")
		require.NoError(t, s.Append(context.Background(), r2.Ref, r2.Batch(2, 2)))
		require.NoError(t, s.Settle(context.Background(), "globex", "k", store.Outcome{Status: store.EffectRefused}))
		requireFilled(t, s, "acme", 0)
	}},
	{"a tenant without rows sees none", func(t *testing.T, s store.Store) {
		fill(t, s, "acme", 0)
		ctx, address := context.Background(), history(t, "acme", 0).Ref.Address
		const stranger = "stranger"
		for name, look := range map[string]func() (int, error){
			"events": func() (int, error) {
				x, err := s.Events(ctx, store.Chain{Tenant: stranger, Address: address}, 1, 0)
				return len(x), err
			},
			"branches": func() (int, error) {
				x, err := s.Branches(ctx, store.Chain{Tenant: stranger, Address: address})
				return len(x), err
			},
			"runs": func() (int, error) { x, err := s.RunRows(ctx, stranger, store.RunFilter{}); return len(x), err },
			"gates": func() (int, error) {
				x, err := s.GateRows(ctx, stranger, store.GateFilter{Address: address})
				return len(x), err
			},
			"effects": func() (int, error) {
				x, err := s.Effects(ctx, stranger, store.EffectFilter{Address: address})
				return len(x), err
			},
			"attempts":    func() (int, error) { x, err := s.Attempts(ctx, stranger, "k"); return len(x), err },
			"all effects": func() (int, error) { x, err := s.Effects(ctx, stranger, store.EffectFilter{}); return len(x), err },
			"usage":       func() (int, error) { x, err := s.ModelUsage(ctx, stranger, address); return x.Calls, err },
		} {
			n, err := look()
			require.NoError(t, err, name)
			require.Zero(t, n, name)
		}
		_, err := s.RunRow(ctx, store.Chain{Tenant: stranger, Address: address})
		requireCode(t, agent.CodeNotFound, err)
		_, err = s.Effect(ctx, stranger, "k")
		requireCode(t, agent.CodeNotFound, err)
		_, err = s.ModelCall(ctx, stranger, "m")
		requireCode(t, agent.CodeNotFound, err)
		_, err = s.GetBlob(ctx, stranger, shared(t, s), 0, -1)
		requireCode(t, agent.CodeNotFound, err)
		requireCode(t, agent.CodeNotFound, s.Settle(ctx, stranger, "k", applied))
		_, err = s.MarkUnknown(ctx, stranger, "k", 1, "lost")
		requireCode(t, agent.CodeNotFound, err)
		_, err = s.Release(ctx, stranger, "k", 1, 1)
		requireCode(t, agent.CodeNotFound, err)
		requireCode(t, agent.CodeNotFound, s.MarkDoubt(ctx, stranger, "k", "lost"))
		requireCode(t, agent.CodeNotFound, s.MarkUndone(ctx, stranger, "k", "u"))
		requireFilled(t, s, "acme", 0)
	}},
	{"no method works without a tenant", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		for name, call := range map[string]func() error{
			"claim":        func() error { _, _, err := s.Claim(ctx, claim("", "k")); return err },
			"settle":       func() error { return s.Settle(ctx, "", "k", applied) },
			"mark":         func() error { _, err := s.MarkUnknown(ctx, "", "k", 1, "lost"); return err },
			"release":      func() error { _, err := s.Release(ctx, "", "k", 1, 1); return err },
			"doubt":        func() error { return s.MarkDoubt(ctx, "", "k", "lost") },
			"undo":         func() error { return s.MarkUndone(ctx, "", "k", "u") },
			"attempts":     func() error { _, err := s.Attempts(ctx, "", "k"); return err },
			"held":         func() error { _, err := s.Held(ctx, "", "refund", "pay"); return err },
			"effect":       func() error { _, err := s.Effect(ctx, "", "k"); return err },
			"effects":      func() error { _, err := s.Effects(ctx, "", store.EffectFilter{Address: "a"}); return err },
			"record":       func() error { _, err := s.RecordModelCall(ctx, modelCall("", "m")); return err },
			"model call":   func() error { _, err := s.ModelCall(ctx, "", "m"); return err },
			"model usage":  func() error { _, err := s.ModelUsage(ctx, "", "a"); return err },
			"put blob":     func() error { _, err := s.PutBlob(ctx, "", []byte("x")); return err },
			"get blob":     func() error { _, err := s.GetBlob(ctx, "", "x", 0, -1); return err },
			"events":       func() error { _, err := s.Events(ctx, store.Chain{Tenant: "", Address: "a"}, 1, 0); return err },
			"branches":     func() error { _, err := s.Branches(ctx, store.Chain{Tenant: "", Address: "a"}); return err },
			"run row":      func() error { _, err := s.RunRow(ctx, store.Chain{Tenant: "", Address: "a"}); return err },
			"list of runs": func() error { _, err := s.RunRows(ctx, "", store.RunFilter{}); return err },
			"gates":        func() error { _, err := s.GateRows(ctx, "", store.GateFilter{}); return err },
		} {
			require.Equal(t, agent.CodeInvalid, agent.ErrorCode(call()), name)
		}
	}},
}

// history is tenant i's run: the same address, chain and keys for each, and
// other content.
func history(t testing.TB, tenant string, i int) *History {
	return NewHistory(t, tenant, "1", "r1").Say(1+i, "of "+tenant).Open("1.1", tenant)
}

func fill(t testing.TB, s store.Store, tenant string, i int) {
	ctx := context.Background()
	appendAll(t, s, history(t, tenant, i))
	c := claim(tenant, "k")
	c.Step = tenant
	_, fresh, err := s.Claim(ctx, c)
	require.NoError(t, err)
	require.True(t, fresh)
	m := modelCall(tenant, "m")
	m.Answer = agent.JSON(fmt.Sprintf("%q", tenant))
	first, err := s.RecordModelCall(ctx, m)
	require.NoError(t, err)
	require.Equal(t, m, first)
	shared(t, s)
}

func requireFilled(t testing.TB, s store.Store, tenant string, i int) {
	t.Helper()
	ctx, h := context.Background(), history(t, tenant, i)
	requireEvents(t, s, h)
	requireBranches(t, s, h, store.Branch{RunID: "r1", First: 1, Last: h.Last()})
	require.Equal(t, h.Last(), runRow(t, s, h).Seq)
	runs, err := s.RunRows(ctx, tenant, store.RunFilter{})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, tenant, runs[0].Tenant)
	gates := gateRows(t, s, tenant, store.GateFilter{})
	require.Len(t, gates, 1)
	require.Equal(t, []string{tenant}, gates[0].Gate.Roles)
	e := effect(t, s, tenant, "k")
	require.Equal(t, []any{tenant, tenant, 1, store.EffectClaimed}, []any{e.Tenant, e.Step, e.Attempts, e.Status})
	all, err := s.Effects(ctx, tenant, store.EffectFilter{Address: e.Address})
	require.NoError(t, err)
	require.Len(t, all, 1)
	m, err := s.ModelCall(ctx, tenant, "m")
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%q", tenant), m.Answer.String())
	u, err := s.ModelUsage(ctx, tenant, m.Address)
	require.NoError(t, err)
	require.Equal(t, 1, u.Calls)
}

// shared stores the same bytes for acme; its ref is known to everybody.
func shared(t testing.TB, s store.Store) string {
	b, err := s.PutBlob(context.Background(), "acme", []byte("secret"))
	require.NoError(t, err)
	return b.Ref
}
