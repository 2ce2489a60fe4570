package sqlite_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/store/sqlite"
	"interlock/store/storetest"
)

// BenchmarkAppend commits 4 events of 2 KB together, the usual batch of an
// activity; acknowledge is the same batch again, as its siblings carry it.
func BenchmarkAppend(b *testing.B) {
	for _, synchronous := range []string{"FULL", "NORMAL"} {
		b.Run(synchronous, func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "store.db"), &sqlite.Options{Synchronous: synchronous})
			h := storetest.NewHistory(b, "acme", "1", "r1")
			require.NoError(b, appendAll(s, h))
			before := h.Hash(1)
			for b.Loop() {
				b.StopTimer()
				h.Say(4, strings.Repeat("x", 450))
				batch := h.Batch(1, 1) // not by the history: that hashes it from the start
				batch.First, batch.Before, batch.Events = h.Last()-3, before, h.Events[h.Last()-4:]
				for _, e := range batch.Events {
					before = e.Chain(batch.Salt, before)
				}
				b.StartTimer()
				require.NoError(b, s.Append(context.Background(), h.Ref, batch))
			}
		})
	}
	b.Run("acknowledge", func(b *testing.B) {
		s := open(b, filepath.Join(b.TempDir(), "store.db"), nil)
		h := storetest.NewHistory(b, "acme", "1", "r1").Say(8, strings.Repeat("x", 450))
		require.NoError(b, appendAll(s, h))
		batch := h.Batch(5, 8)
		for b.Loop() {
			require.NoError(b, s.Append(context.Background(), h.Ref, batch))
		}
	})
}
