package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

// revivalRefusals are batches that follow superseded events, or seem to, and
// may not have them back.
var revivalRefusals = []contract{
	{"a branch cannot revive what its own events replaced", func(t *testing.T, s store.Store) {
		h, r2 := superseded(t, s, "1", 6)
		other := h.Reset("r2", 8).Say(1, "otherwise")
		requireUnchanged(t, s, r2, func() {
			r := requireRefusal(t, store.Diverged, s.Append(context.Background(), other.Ref, other.Batch(9, 9)))
			require.EqualValues(t, 9, r.Seq)
		})
		longer := h.Reset("r2", 20).Say(1, "otherwise")
		requireUnchanged(t, s, r2, func() {
			requireRefusal(t, store.Diverged, s.Append(context.Background(), longer.Ref, longer.Batch(21, 21)))
		})
	}},
	{"a late append of an older branch revives nothing", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Say(3, "hi")
		appendAll(t, s, h)
		r2 := h.Reset("r2", 4).Say(3, "went on")
		requireAppend(t, s, r2, 5, 7)
		r3 := r2.Reset("r3", 5).Say(2, "third") // supersedes r2 from 6 on
		requireAppend(t, s, r3, 6, 7)
		late := r2.Reset("r1", 7).Say(1, "late") // r1 has rows before them
		requireUnchanged(t, s, r3, func() {
			requireRefusal(t, store.Superseded, s.Append(context.Background(), late.Ref, late.Batch(8, 8)))
		})
		requireBarred(t, s, r2)
	}},
	{"events that were never recorded cannot be revived", func(t *testing.T, s store.Store) {
		h, r2 := superseded(t, s, "1", 6)
		unknown := h.Reset("r3", 6).Say(2, "never recorded").Say(2, "third")
		mixed := h.Reset("r4", 8).Say(1, "fourth")
		b := mixed.Batch(9, 9)
		b.Before = h.Hash(9) // of another event
		requireUnchanged(t, s, r2, func() {
			for _, first := range []int64{8, 9, 10} {
				r := requireRefusal(t, store.Diverged, s.Append(context.Background(), unknown.Ref, unknown.Batch(first, 10)))
				require.EqualValues(t, first, r.Seq)
			}
			requireRefusal(t, store.Diverged, s.Append(context.Background(), mixed.Ref, b))
			b.Before = ""
			requireRefusal(t, store.Diverged, s.Append(context.Background(), mixed.Ref, b))
		})
	}},
	{"another chain revives nothing", func(t *testing.T, s store.Store) {
		h, r2 := superseded(t, s, "1", 6)
		other := h.Reset("r9", 8).Say(1, "other")
		other.Ref.FirstRunID = "r9"
		requireUnchanged(t, s, r2, func() {
			requireRefusal(t, store.Diverged, s.Append(context.Background(), other.Ref, other.Batch(9, 9)))
		})
	}},
	{"a batch that fails leaves what it would have revived superseded", func(t *testing.T, s store.Store) {
		h, r2 := superseded(t, s, "1", 6)
		r3 := h.Reset("r3", 8).Say(1, "third")
		b := r3.Batch(9, 9)
		b.Events[0].Type, b.Events[0].Data = agent.EventGateOpened, agent.JSON(`{"gate":7}`)
		requireUnchanged(t, s, r2, func() {
			requireCode(t, agent.CodeInvalid, s.Append(context.Background(), r3.Ref, b))
		})
		requireAppend(t, s, r3, 9, 9)
		requireEvents(t, s, r3)
	}},
	{"nothing is revived from another tenant or address, nor there", func(t *testing.T, s store.Store) {
		// The same events, but for the tenant; the address is in no hash.
		h, r2 := superseded(t, s, "1", 6)
		elsewhere := h.Reset("r1", 4)
		elsewhere.Ref.Address += "0"
		abroad := NewHistory(t, "globex", "1", "r1").Say(3, "hi")
		for _, o := range []*History{elsewhere, abroad} {
			appendAll(t, s, o)
			b := h.Reset("r3", 8).Say(1, "third").Batch(9, 9)
			b.Events[0].Tenant = o.Ref.Tenant
			ref := o.Ref
			ref.Branch = "r3"
			requireUnchanged(t, s, r2, func() {
				requireUnchanged(t, s, o, func() { requireRefusal(t, store.Diverged, s.Append(context.Background(), ref, b)) })
			})
		}
		// And where both have superseded events, each gets its own.
		abroad.Say(5, "abroad").Open("1.1", "globex")
		appendAll(t, s, abroad)
		other := abroad.Reset("r2", 4).Say(1, "second")
		requireAppend(t, s, other, 5, 5)
		r3 := h.Reset("r3", 8).Say(1, "third")
		requireUnchanged(t, s, other, func() { requireAppend(t, s, r3, 9, 9) })
		requireEvents(t, s, r3)
		r4 := abroad.Reset("r3", 10).Say(1, "third")
		requireUnchanged(t, s, r3, func() { requireAppend(t, s, r4, 11, 11) })
		requireEvents(t, s, r4)
		require.Empty(t, gateRows(t, s, "acme", store.GateFilter{}))
		require.Len(t, gateRows(t, s, "globex", store.GateFilter{}), 1)
	}},
}

// requireUnchanged holds what f does to leave a run's journal and rows alone.
func requireUnchanged(t testing.TB, s store.Store, h *History, f func()) {
	t.Helper()
	look := func() []any {
		branches, err := s.Branches(context.Background(), store.Chain{Tenant: h.Ref.Tenant, Address: h.Ref.Address})
		require.NoError(t, err)
		return []any{branches, runRow(t, s, h), gateRows(t, s, h.Ref.Tenant, store.GateFilter{Address: h.Ref.Address})}
	}
	before := look()
	f()
	require.Equal(t, before, look())
	requireEvents(t, s, h)
}
