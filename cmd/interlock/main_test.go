package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asMain makes the test binary be the command, so that signals and what a
// process leaves behind can be tested without a build.
const asMain = "CMD_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	os.Exit(runTests(m))
}

// runTests runs them with a folder of their own for temporary files, which must
// be empty in the end.
func runTests(m *testing.M) int {
	tmp, err := os.MkdirTemp("", "interlock-cmd-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(tmp)
	_ = os.Setenv("TMPDIR", tmp)
	code := m.Run()
	endWorld()
	left, _ := filepath.Glob(filepath.Join(tmp, "*"))
	if code == 0 && len(left) > 0 {
		fmt.Fprintln(os.Stderr, "temporary files were left behind:", left)
		return 1
	}
	return code
}

// result is what a command left.
type result struct {
	code     int
	out, err string
}

// play runs a command in process. A nil in is no terminal.
func play(t *testing.T, ctx context.Context, in io.Reader, args ...string) result {
	t.Helper()
	return playWith(t, ctx, nil, in, args...)
}

// playWith is play with more variables.
func playWith(t *testing.T, ctx context.Context, env []string, in io.Reader, args ...string) result {
	t.Helper()
	var out, err safe
	a := &app{in: in, terminal: in != nil, out: &out, err: &err, env: append(os.Environ(), env...), scratch: scratch{parent: t.TempDir()}}
	code := a.run(ctx, args)
	left, _ := filepath.Glob(filepath.Join(a.scratch.parent, "*"))
	require.Empty(t, left, "a temporary folder was left behind")
	return result{code, out.String(), err.String()}
}

// safe is a buffer that may be read while it is written.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.b.Write(p) }
func (s *safe) String() string              { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

// process is the command in a process of its own, with a TMPDIR of its own.
type process struct {
	*exec.Cmd
	out, err safe
	tmp, dir string
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], args...), tmp: t.TempDir(), dir: t.TempDir()}
	p.Dir, p.Stdout, p.Stderr = p.dir, &p.out, &p.err
	p.Env = append(os.Environ(), asMain+"=1", "TMPDIR="+p.tmp, "INTERLOCK_TEMPORAL_CLI="+cli(t))
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// How long something that happens in another process may take.
const wait, tick = 60 * time.Second, 10 * time.Millisecond

// waitFor waits until the process has written a text to stdout.
func (p *process) waitFor(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.out.String(), text) }, wait, tick,
		"no %q in:\n%s\n%s", text, &p.out, &p.err)
}

func (p *process) end(t *testing.T, s syscall.Signal) int {
	t.Helper()
	require.NoError(t, p.Process.Signal(s))
	late := time.AfterFunc(40*time.Second, func() { _ = p.Process.Kill() })
	defer late.Stop()
	_ = p.Wait()
	return p.ProcessState.ExitCode()
}

// requireGone checks that no process works on the folder.
func requireGone(t *testing.T, folder string) {
	t.Helper()
	require.Eventually(t, func() bool {
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, f := range lines {
			if text, err := os.ReadFile(f); err == nil && bytes.Contains(text, []byte(folder)) {
				return false
			}
		}
		return true
	}, 20*time.Second, 50*time.Millisecond, "a process still works on %s", folder)
}

func TestUsageMistakes(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		args string
		says string
	}{
		{"demo --nope", "unknown flag: --nope"},
		{"demo --decide maybe", "want one of ask, approve, reject"},
		{"demo -o yaml", "want one of text, json, jsonl"},
		{"demo --order x", "four digits"},
		{"demo --timeout 0s", "leaves no time"},
		{"demo extra", "unknown command"},
		{"demo --log-level loud", "want one of debug, info, warn, error"},
		{"demo --config /nowhere/x.yaml", "/nowhere/x.yaml"},
		{"bogus", "unknown command"},
		{"dev --port 0", "no port"},
		{"dev --port 8233", "different ports"},
	} {
		r := play(t, ctx, nil, strings.Fields(c.args)...)
		require.Equal(t, exitUsage, r.code, c.args)
		require.Contains(t, r.err, c.says, c.args)
		require.Empty(t, r.out, c.args)
	}
	r := play(t, ctx, nil, "demo", "--keep", filepath.Dir(os.Args[0]))
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "is not empty")
}

func TestConfigurationMistakesAreAllTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte("log:\n  levl: info\ntask_queue: ' x'\n"), 0o600))
	t.Setenv("INTERLOCK_BAD", "1")
	r := play(t, context.Background(), nil, "demo", "--config", file)
	require.Equal(t, exitUsage, r.code)
	for _, want := range []string{"log.levl", "task_queue", "INTERLOCK_BAD"} {
		require.Contains(t, r.err, want)
	}
}

func TestNoTemporalCLI(t *testing.T) {
	t.Chdir(t.TempDir()) // no bin/temporal above
	t.Setenv("INTERLOCK_TEMPORAL_CLI", "")
	t.Setenv("PATH", t.TempDir())
	for _, command := range []string{"demo", "dev"} {
		r := play(t, context.Background(), nil, command)
		require.Equal(t, exitFailure, r.code)
		require.Contains(t, r.err, "make bin/temporal")
	}
}

func TestVersion(t *testing.T) {
	r := play(t, context.Background(), nil, "version", "-o", "json")
	require.Equal(t, exitOK, r.code)
	var v map[string]string
	require.NoError(t, json.Unmarshal([]byte(r.out), &v))
	require.Equal(t, version, v["version"])
	require.True(t, strings.HasPrefix(v["go"], "go1."))
	require.Contains(t, v, "temporal_sdk")
	r = play(t, context.Background(), nil, "version")
	require.Contains(t, r.out, fmt.Sprintf("interlock %s\n", version))
}
