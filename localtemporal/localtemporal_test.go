//go:build unix

package localtemporal

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// crashVariable makes TestMain a process that starts a server, says where, and
// waits to be killed.
const crashVariable = "LOCALTEMPORAL_TEST_CRASH"

func TestMain(m *testing.M) {
	if os.Getenv(crashVariable) == "" {
		os.Exit(m.Run())
	}
	s, err := Start(context.Background(), Options{})
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(s.Address() + "\n")
	select {}
}

func needCLI(t *testing.T) {
	t.Helper()
	_, err := FindCLI("")
	require.NoError(t, err)
}

func double(_ workflow.Context, n int) (int, error) { return 2 * n, nil }

func TestServerRunsAWorkflowAndKeepsItsFile(t *testing.T) {
	needCLI(t)
	file := filepath.Join(t.TempDir(), "it's a.db") // the name is safe in the script
	s, err := Start(t.Context(), Options{DBFile: file, UI: true, Namespace: "agents"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Stop() })
	require.True(t, strings.HasPrefix(s.UIAddress(), "http://127.0.0.1:"))

	w := worker.New(s.Client(), "q", worker.Options{})
	w.RegisterWorkflow(double)
	require.NoError(t, w.Start())
	run, err := s.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "a", TaskQueue: "q"}, double, 21)
	require.NoError(t, err)
	var got int
	require.NoError(t, run.Get(t.Context(), &got))
	require.Equal(t, 42, got)
	w.Stop()

	require.NoError(t, s.Stop())
	require.NoError(t, s.Stop(), "again does nothing")
	require.False(t, answers(s.Address()))

	again, err := Start(t.Context(), Options{DBFile: file, Namespace: "agents"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = again.Stop() })
	require.NoError(t, again.Client().GetWorkflow(t.Context(), "a", "").Get(t.Context(), &got))
	require.Equal(t, 42, got)
	require.Empty(t, again.UIAddress())
}

// A developer's kill -9, a CI timeout or a crash must not leave servers behind.
func TestServerEndsWithItsProcess(t *testing.T) {
	needCLI(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashVariable+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line := make([]byte, 64)
	n, err := out.Read(line)
	require.NoError(t, err)
	address := strings.TrimSpace(string(line[:n]))
	require.True(t, answers(address))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return !answers(address) }, 20*time.Second, 50*time.Millisecond)
}

func answers(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "temporal")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	return path
}

func TestServerThatDiesSaysWhyAtOnce(t *testing.T) {
	var log bytes.Buffer
	begun := time.Now()
	_, err := Start(t.Context(), Options{CLI: script(t, "echo the file is locked >&2; exit 3"), LogWriter: &log})
	require.ErrorContains(t, err, "did not start: it ended at once (exit status 3)\nits last words: the file is locked")
	require.Equal(t, "the file is locked\n", log.String())
	require.Less(t, time.Since(begun), 10*time.Second)
}

func TestServerThatNeverAnswersIsKilled(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := Start(ctx, Options{CLI: script(t, "echo $$ >"+quote(mark)+"; trap '' INT; while :; do sleep 1; done")})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	pid, err := os.ReadFile(mark)
	require.NoError(t, err)
	require.Error(t, exec.Command("kill", "-0", strings.TrimSpace(string(pid))).Run(), "its process is still there")
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = Start(t.Context(), Options{CLI: script(t, "exit 0"), Port: l.Addr().(*net.TCPAddr).Port})
	require.ErrorContains(t, err, "address already in use")
}

func TestCLIIsLookedForInOrder(t *testing.T) {
	t.Setenv("INTERLOCK_TEMPORAL_CLI", "/nowhere/temporal")
	_, err := FindCLI("")
	require.ErrorContains(t, err, "INTERLOCK_TEMPORAL_CLI cannot be run")
	require.ErrorContains(t, err, "make bin/temporal")
	_, err = Start(t.Context(), Options{CLI: "/nowhere/else"})
	require.ErrorContains(t, err, "Options.CLI cannot be run: stat /nowhere/else")

	root := t.TempDir()
	t.Setenv("INTERLOCK_TEMPORAL_CLI", "")
	t.Setenv("PATH", t.TempDir())
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o600))
	t.Chdir(filepath.Join(root, "a", "b"))
	_, err = FindCLI("")
	require.ErrorContains(t, err, "run `make bin/temporal`")

	onPath := script(t, "")
	t.Setenv("PATH", filepath.Dir(onPath))
	found, err := FindCLI("")
	require.NoError(t, err)
	require.Equal(t, onPath, found)

	require.NoError(t, os.Mkdir(filepath.Join(root, "bin"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "bin", "temporal"), nil, 0o700))
	found, err = FindCLI("")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(root, "bin", "temporal"), found)
}

func TestFlagsOpenTheRateLimits(t *testing.T) {
	require.Contains(t, strings.Join(Flags(), " "), "--dynamic-config-value history.timerProcessorMaxPollRPS=10000")
	require.Len(t, Flags(), 10)
}
