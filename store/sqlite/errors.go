package sqlite

import (
	"context"
	"errors"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"interlock/agent"
	"interlock/store"
)

var errClosed = agent.Errorf(agent.CodeUnavailable, "the store is closed")

// fail names the operation (a noun phrase) and gives an error its code: by the
// number of SQLite's result, never by its text. Errors that have a code, or
// are the journal's refusals, pass as they are.
func fail(operation string, err error) error {
	if err == nil {
		return nil
	}
	var coded *agent.Error
	var refusal *store.Refusal
	if errors.As(err, &refusal) {
		return refusal
	}
	if errors.As(err, &coded) {
		return agent.Errorf(coded.Code, "%s: %w", operation, err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return agent.Errorf(agent.CodeUnavailable, "%s: %w", operation, err)
	}
	var result *driver.Error
	if errors.As(err, &result) {
		code, advice := meaning(result.Code())
		return agent.Errorf(code, "%s: %s%w", operation, advice, err)
	}
	return agent.Errorf(agent.CodeInternal, "%s: %w", operation, err)
}

// uncoded reports an error that is neither SQLite's nor the store's own.
func uncoded(err error) bool {
	var coded *agent.Error
	var refusal *store.Refusal
	var result *driver.Error
	return !errors.As(err, &coded) && !errors.As(err, &refusal) && !errors.As(err, &result)
}

// isBusy reports whether another process was in the way.
func isBusy(err error) bool {
	var result *driver.Error
	return errors.As(err, &result) && (result.Code()&0xff == lib.SQLITE_BUSY || result.Code()&0xff == lib.SQLITE_LOCKED)
}

// meaning translates an extended result code; its low byte is the class.
func meaning(result int) (code agent.Code, advice string) {
	switch result {
	case lib.SQLITE_CONSTRAINT_PRIMARYKEY, lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_TRIGGER:
		return agent.CodeConflict, "a row stands that may not change: "
	case lib.SQLITE_READONLY_DBMOVED:
		return agent.CodeUnavailable, "the database file was moved or deleted under the running process; restart it with the right path: "
	}
	switch result & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		return agent.CodeUnavailable, "the database is locked by another process; nothing was written, try again: "
	case lib.SQLITE_READONLY:
		return agent.CodeUnavailable, "the database is read-only: give this process write access to the file and to its directory, which also holds the -wal and -shm files: "
	case lib.SQLITE_FULL:
		return agent.CodeUnavailable, "the disk is full; nothing was written, free some space: "
	case lib.SQLITE_IOERR:
		return agent.CodeUnavailable, "the disk failed; nothing was committed: "
	case lib.SQLITE_CANTOPEN, lib.SQLITE_PERM:
		return agent.CodeUnavailable, "the database file cannot be opened; its directory must exist, and this process must be allowed to read and write both: "
	case lib.SQLITE_NOMEM, lib.SQLITE_INTERRUPT:
		return agent.CodeUnavailable, ""
	case lib.SQLITE_CORRUPT:
		return agent.CodeUnavailable, "the database file is damaged; stop all processes, keep a copy and restore a backup: "
	case lib.SQLITE_NOTADB:
		return agent.CodeInvalid, "the file is not an SQLite database; the path must be of one, or of a file that does not exist: "
	case lib.SQLITE_TOOBIG:
		return agent.CodeInvalid, "a value is larger than SQLite holds: "
	}
	return agent.CodeInternal, ""
}
