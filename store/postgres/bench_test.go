package postgres_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
	"interlock/store/pgtest"
	"interlock/store/storetest"
)

// BenchmarkAppend commits 4 events of 2 KB together, the usual batch of an
// activity, on a server that waits for its disk; acknowledge is the same batch
// again, as its siblings carry it.
func BenchmarkAppend(b *testing.B) {
	server := pgtest.StartServer(b, "fsync=on", "full_page_writes=on")
	for name, how := range map[string]func(store.Store) func(context.Context, store.RunRef, agent.Batch) error{
		"durable": func(s store.Store) func(context.Context, store.RunRef, agent.Batch) error { return s.Append },
		"soon":    func(s store.Store) func(context.Context, store.RunRef, agent.Batch) error { return s.AppendSoon },
	} {
		b.Run(name, func(b *testing.B) {
			s := open(b, server.DSN(b), nil)
			h := storetest.NewHistory(b, "acme", "1", "r1")
			require.NoError(b, appendAll(s, h))
			before, add := h.Hash(1), how(s)
			for b.Loop() {
				b.StopTimer()
				h.Say(4, strings.Repeat("x", 450))
				batch := h.Batch(1, 1) // not by the history: that hashes it from the start
				batch.First, batch.Before, batch.Events = h.Last()-3, before, h.Events[h.Last()-4:]
				for _, e := range batch.Events {
					before = e.Chain(batch.Salt, before)
				}
				b.StartTimer()
				require.NoError(b, add(context.Background(), h.Ref, batch))
			}
		})
	}
	b.Run("acknowledge", func(b *testing.B) {
		s := open(b, server.DSN(b), nil)
		h := storetest.NewHistory(b, "acme", "1", "r1").Say(8, strings.Repeat("x", 450))
		require.NoError(b, appendAll(s, h))
		batch := h.Batch(5, 8)
		for b.Loop() {
			require.NoError(b, s.Append(context.Background(), h.Ref, batch))
		}
	})
}

// BenchmarkClaim is a claim and its settlement.
func BenchmarkClaim(b *testing.B) {
	s := open(b, pgtest.StartServer(b, "fsync=on").DSN(b), nil)
	ctx, i := context.Background(), 0
	for b.Loop() {
		i++
		key := strconv.Itoa(i)
		_, _, err := s.Claim(ctx, store.Claim{Tenant: "acme", Key: key, Address: "a", Tool: "pay"})
		require.NoError(b, err)
		require.NoError(b, s.Settle(ctx, "acme", key, store.Outcome{Status: store.EffectApplied}))
	}
}
