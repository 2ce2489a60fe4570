package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	lib "modernc.org/sqlite/lib"

	"interlock/agent"
)

// The pragmas stand for a disk or a permission that changes under a process.
func TestDatabaseThatStopsTakingWrites(t *testing.T) {
	ctx := context.Background()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "store.db"), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for pragma, says := range map[string][2]string{
		"PRAGMA query_only = 1":     {"PRAGMA query_only = 0", "the database is read-only: give"},
		"PRAGMA max_page_count = 1": {"PRAGMA max_page_count = 1000000", "the disk is full"},
	} {
		_, err = s.writer.ExecContext(ctx, pragma)
		require.NoError(t, err)
		_, err = s.PutBlob(ctx, "acme", make([]byte, 1<<20))
		require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err))
		require.ErrorContains(t, err, "storing of blob ")
		require.ErrorContains(t, err, says[1])
		_, err = s.writer.ExecContext(ctx, says[0])
		require.NoError(t, err)
		b, err := s.PutBlob(ctx, "acme", []byte(pragma))
		require.NoError(t, err)
		_, err = s.GetBlob(ctx, "acme", b.Ref, 0, -1)
		require.NoError(t, err)
	}
}

func TestMeaningOfResultCodes(t *testing.T) {
	for result, want := range map[int]agent.Code{
		lib.SQLITE_BUSY: agent.CodeUnavailable, lib.SQLITE_BUSY_SNAPSHOT: agent.CodeUnavailable, lib.SQLITE_LOCKED: agent.CodeUnavailable,
		lib.SQLITE_FULL: agent.CodeUnavailable, lib.SQLITE_IOERR_FSYNC: agent.CodeUnavailable, lib.SQLITE_READONLY: agent.CodeUnavailable,
		lib.SQLITE_READONLY_DBMOVED: agent.CodeUnavailable, lib.SQLITE_CANTOPEN: agent.CodeUnavailable, lib.SQLITE_CORRUPT: agent.CodeUnavailable,
		lib.SQLITE_NOTADB: agent.CodeInvalid, lib.SQLITE_TOOBIG: agent.CodeInvalid,
		lib.SQLITE_CONSTRAINT_UNIQUE: agent.CodeConflict, lib.SQLITE_CONSTRAINT_TRIGGER: agent.CodeConflict,
		lib.SQLITE_CONSTRAINT_NOTNULL: agent.CodeInternal, lib.SQLITE_ERROR: agent.CodeInternal, lib.SQLITE_MISUSE: agent.CodeInternal,
	} {
		code, _ := meaning(result)
		require.Equal(t, want, code, "%d", result)
	}
}
