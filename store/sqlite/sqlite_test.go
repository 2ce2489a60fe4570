package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/store"
	"interlock/store/sqlite"
	"interlock/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "store.db"), nil) })
}

func open(t testing.TB, path string, opts *sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// What AppendSoon committed is on the disk when an Append of the same events
// returns: it writes, and its commit waits for the log up to there.
func TestAppend_OfWhatStandsWaitsForTheDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1").Say(3, "hi")
	require.NoError(t, s.AppendSoon(context.Background(), h.Ref, h.Batch(1, h.Last())))
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		require.NoError(t, err)
		return info.Size()
	}
	before := size()
	require.NoError(t, s.AppendSoon(context.Background(), h.Ref, h.Batch(1, h.Last())))
	require.Equal(t, before, size(), "nothing to write, nobody to wait")
	require.NoError(t, s.Append(context.Background(), h.Ref, h.Batch(1, h.Last())))
	require.Greater(t, size(), before)
}
