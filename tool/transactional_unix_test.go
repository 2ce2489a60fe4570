//go:build unix

package tool_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/tool"
)

// standsStill is a driver and a DSN for the process that is to be stopped.
const standsStill = "INTERLOCK_TEST_STANDS_STILL"

// worker is a process that runs the attempt of key k, and stops between the effect
// and the commit. When it is let go on it tries until the effect is settled.
func worker(t *testing.T, where string) {
	driver, dsn, _ := strings.Cut(where, " ")
	var once sync.Once
	r := transactional(connect(t, driver, dsn), after(func(context.Context, *sql.Tx) error {
		once.Do(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) })
		return nil
	}))
	require.Equal(t, paidResult, untilSettled(t, r, keyed("k")).JSON.String())
}

// A worker that stands still within its transaction holds the key. The server of
// PostgreSQL ends its transaction; SQLite has nobody who could, and so waits until
// the process goes on or dies. Nothing happens twice.
func TestTransactional_WorkerStandsStill(t *testing.T) {
	if where := os.Getenv(standsStill); where != "" {
		worker(t, where)
		return
	}
	drivers := map[string]string{"sqlite": "sqlite", "postgres": "pgx"}
	for engine, open := range openers {
		for name, then := range map[string]syscall.Signal{"and goes on": syscall.SIGCONT, "and is killed": syscall.SIGKILL} {
			t.Run(engine+", "+name, func(t *testing.T) {
				t.Parallel()
				db := open(t)
				r := transactional(db.DB, pay)
				untilSettled(t, r, keyed("first"))
				cmd := exec.Command(os.Args[0], "-test.run=^TestTransactional_WorkerStandsStill$")
				cmd.Env = append(os.Environ(), standsStill+"="+drivers[engine]+" "+db.dsn)
				var out strings.Builder
				cmd.Stdout, cmd.Stderr = &out, &out
				require.NoError(t, cmd.Start())
				defer func() { _ = cmd.Process.Kill() }()
				var status syscall.WaitStatus
				_, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
				require.NoError(t, err)
				require.True(t, status.Stopped(), "%v\n%s", status, &out)

				began := time.Now()
				_, f := attempt(r, keyed("k"))
				if f != nil {
					isFailure(t, f, tool.FailedStore, false, "claim: ")
				}
				if engine == "postgres" {
					untilSettled(t, r, keyed("k"))
					require.Less(t, time.Since(began), 15*time.Second)
					require.Equal(t, 2, db.paid(t))
				} else {
					_, f := attempt(r, keyed("l"))
					isFailure(t, f, tool.FailedStore, false, "claim: ")
					require.Equal(t, 1, db.paid(t))
				}
				require.NoError(t, cmd.Process.Signal(then))
				err = cmd.Wait()
				if then == syscall.SIGCONT {
					require.NoError(t, err, out.String())
				}
				untilSettled(t, r, keyed("k"))
				require.Equal(t, 2, db.paid(t))
			})
		}
	}
}
