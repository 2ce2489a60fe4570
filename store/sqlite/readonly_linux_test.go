package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store/sqlite"
	"interlock/store/storetest"
)

// unprivileged runs f as a user that file permissions apply to: to root they
// do not. Only this thread changes, and it ends with the goroutine.
func unprivileged(t *testing.T, f func()) {
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlock it
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0)
		f()
	}()
	<-done
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) // for that user to get there
	path := filepath.Join(dir, "store.db")
	h := storetest.NewHistory(t, "acme", "1", "r1")
	s := open(t, path, nil)
	require.NoError(t, appendAll(s, h))
	require.NoError(t, s.Close())

	tryOpen := func() (err error) {
		unprivileged(t, func() {
			var s *sqlite.Store
			if s, err = sqlite.Open(context.Background(), path, nil); err == nil {
				_ = s.Close()
			}
		})
		return err
	}
	require.NoError(t, os.Chmod(path, 0o444))
	requireCode(t, agent.CodeUnavailable, tryOpen(), "opening of "+path, "the database is read-only: give", "write access")
	require.NoError(t, os.Chmod(path, 0o666))
	require.NoError(t, os.Chmod(dir, 0o555))
	requireCode(t, agent.CodeUnavailable, tryOpen(), "opening of "+path, "the database is read-only: give", "its directory")
	require.NoError(t, os.Chmod(dir, 0o777))
	require.NoError(t, tryOpen())
	requireEvents(t, open(t, path, nil), h)
}
