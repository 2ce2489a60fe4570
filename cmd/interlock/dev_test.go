package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// The commands that dev prints are pasted into a shell as they are.
func TestDev_PrintedCommandsWork(t *testing.T) {
	port, ui := freePort(t), freePort(t)
	p := start(t, "dev", "--api-listen", "127.0.0.1:0", "--port", port, "--ui-port", ui)
	p.waitFor(t, "Ctrl-C stops")
	_, commands, found := strings.Cut(p.out.String(), "one after the other.\n")
	require.True(t, found)
	commands, _, _ = strings.Cut(commands, "Ctrl-C stops")

	bin := t.TempDir()
	require.NoError(t, os.Symlink(cli(t), filepath.Join(bin, "temporal")))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, api, _ := strings.Cut(p.out.String(), "with each start:\n")
	api, _, _ = strings.Cut(api, "Try it")
	commands = api + commands
	shell := exec.CommandContext(ctx, "sh", "-e", "-c", commands)
	shell.Env = append(os.Environ(), asMain+"=1", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "TEMPORAL_CLI_DISABLE_UPDATE_CHECK=1")
	out, err := shell.CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, &p.err)
	for _, want := range []string{
		"Shall I refund this order? (amount = 89.90 EUR, order_id = 1042)", "interlock gate show acme/refund/k1 3.1",
		"approve of gate 3.1 by ann (refunds), unverified: taken in", "acme/refund/k1 is completed in phase done", "step 3.2 done", `"refund_id": "r-1042"`, `{"runs":[]}`,
	} {
		require.Contains(t, string(out), want)
	}

	second := start(t, "dev", "--api-listen", "127.0.0.1:0", "--port", port, "--ui-port", freePort(t))
	require.Error(t, second.Wait())
	require.Equal(t, exitFailure, second.ProcessState.ExitCode())
	require.Contains(t, second.err.String(), "address already in use: stop what uses the port, or choose others with --port and --ui-port")

	third := start(t, "dev", "--api-listen", "127.0.0.1:0", "--port", freePort(t), "--ui-port", freePort(t), "--store-path", filepath.Join(p.dir, ".interlock", "interlock.db"))
	require.Error(t, third.Wait())
	require.Contains(t, third.err.String(), "another interlock uses the data")

	require.Equal(t, exitOK, p.end(t, syscall.SIGTERM), &p.err)
	requireGone(t, p.dir)

	// Data stay: neither a used key nor a refunded order is proposed again.
	again := start(t, "dev", "--api-listen", "127.0.0.1:0", "--port", port, "--ui-port", ui, "--store-path", filepath.Join(p.dir, ".interlock", "interlock.db"))
	again.waitFor(t, "Ctrl-C stops")
	require.Contains(t, again.out.String(), "acme/refund/k2")
	require.Contains(t, again.out.String(), "Please refund order 1043")
	require.Equal(t, exitOK, again.end(t, syscall.SIGINT), &again.err)
	requireGone(t, p.dir)
}

func TestWordsAreQuotedForAShell(t *testing.T) {
	out, err := exec.Command("sh", "-c", "printf %s "+word(`it's "$HOME" `+"`x`")).Output()
	require.NoError(t, err)
	require.Equal(t, `it's "$HOME" `+"`x`", string(out))
}

// A worker of one's own finds Temporal and a store that is migrated, and no other
// worker takes its tasks.
func TestDev_NoWorker(t *testing.T) {
	port := freePort(t)
	p := start(t, "dev", "--api-listen", "127.0.0.1:0", "--no-worker", "--port", port, "--ui-port", freePort(t))
	p.waitFor(t, "Ctrl-C stops")
	require.Contains(t, p.out.String(), "export TEMPORAL_ADDRESS=127.0.0.1:"+port+" INTERLOCK_TASK_QUEUE=interlock INTERLOCK_STORE_PATH="+filepath.Join(p.dir, ".interlock", "interlock.db"))
	require.NotContains(t, p.err.String(), "worker polls")
	require.NoFileExists(t, filepath.Join(p.dir, ".interlock", "shop.db"))
	require.Equal(t, exitOK, p.end(t, syscall.SIGTERM), &p.err)
}
