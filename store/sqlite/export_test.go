package sqlite

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// HoldLock takes the lock for writing, as a process in the middle of a write does.
func HoldLock(t testing.TB, s *Store) (release func()) {
	t.Helper()
	tx, err := s.writer.Begin()
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Rollback()) }
}
