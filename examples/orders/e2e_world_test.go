package orders_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/llm/openai/openaitest"
	"interlock/localtemporal"
)

// patience is for what must happen, on a machine that does much else.
const patience = 2 * time.Minute

// build makes the three programs of the guide.
func build(t *testing.T) (bin string) {
	bin = t.TempDir()
	for dir, programs := range map[string][]string{".": {"./worker", "./backend"}, "../..": {"./cmd/interlock"}} {
		cmd := exec.Command("go", append([]string{"build", "-buildvcs=false", "-o", bin + string(filepath.Separator)}, programs...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return bin
}

// world is a newcomer's machine: a folder, a Temporal, a model and a shell.
type world struct {
	dir    string
	env    []string
	guide  *guide
	clerk  *clerk
	model  *openaitest.Server
	worker *process
}

func newWorld(t *testing.T, cli, bin string, variables ...string) *world {
	temporal, err := localtemporal.Start(t.Context(), localtemporal.Options{CLI: cli})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, temporal.Stop()) })
	w := &world{dir: t.TempDir(), guide: readGuide(t), clerk: newClerk()}
	w.model = openaitest.Start(t, w.clerk.answer)
	// Nothing of the caller's own settings may reach the programs.
	for _, e := range os.Environ() {
		if !regexp.MustCompile(`^(TEMPORAL|INTERLOCK|OPENAI)_`).MatchString(e) {
			w.env = append(w.env, e)
		}
	}
	w.env = append(w.env, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "TEMPORAL_ADDRESS="+temporal.Address(),
		"INTERLOCK_MODEL_NAME=gpt-test", "INTERLOCK_MODEL_BASE_URL="+w.model.BaseURL(), "INTERLOCK_MODEL_API_KEY="+w.model.Key())
	w.env = append(w.env, variables...)
	return w
}

// follow runs the guide's next command, which must be this one and succeed.
func (w *world) follow(t *testing.T, command string) (output string) {
	t.Helper()
	return w.run(t, w.guide.next(t, command))
}

// run runs a line of shell that must succeed.
func (w *world) run(t *testing.T, line string) (output string) {
	t.Helper()
	return w.start(t, line).finish(t, 0)
}

func (w *world) startWorker(t *testing.T) {
	t.Helper()
	var p *process
	t.Cleanup(func() { // after the one that ends it
		if t.Failed() && p != nil {
			t.Log(p.errors.String())
		}
	})
	p = w.start(t, "worker")
	w.worker = p
}

// stopWorker returns the exit code, -1 after a signal that the worker cannot see.
func (w *world) stopWorker(t *testing.T, how os.Signal) int {
	t.Helper()
	require.NoError(t, w.worker.cmd.Process.Signal(how))
	w.worker.wait(t)
	return w.worker.cmd.ProcessState.ExitCode()
}

// process is a line of shell under way.
type process struct {
	line           string
	cmd            *exec.Cmd
	output, errors bytes.Buffer // to be read once it has ended
	ended          chan struct{}
}

func (w *world) start(t *testing.T, line string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	p := &process{line: line, cmd: exec.CommandContext(ctx, "sh", "-c", "exec "+line), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = w.dir, w.env, &p.output, &p.errors
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // finish looks at the exit code
	}()
	t.Cleanup(func() { cancel(); <-p.ended })
	return p
}

func (p *process) wait(t *testing.T) {
	t.Helper()
	await(t, p.ended)
}

// finish waits for the end with an exit code.
func (p *process) finish(t *testing.T, code int) (output string) {
	t.Helper()
	p.wait(t)
	require.Equal(t, code, p.cmd.ProcessState.ExitCode(), "%s\n%s%s", p.line, &p.output, &p.errors)
	return p.output.String()
}

func await(t *testing.T, what <-chan struct{}) {
	t.Helper()
	select {
	case <-what:
	case <-time.After(patience):
		require.FailNow(t, "it did not happen in time")
	}
}

// guide is the commands of docs/hour.md, in their order.
type guide struct{ lines []string }

func readGuide(t *testing.T) *guide {
	text, err := os.ReadFile("../../docs/hour.md")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the guide is not beside this module")
	}
	require.NoError(t, err)
	g := &guide{}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			g.lines = append(g.lines, strings.TrimPrefix(strings.TrimSpace(line), "go run ./"))
		}
	}
	return g
}

// next is the next line, which must begin as is said.
func (g *guide) next(t *testing.T, begins string) string {
	t.Helper()
	require.NotEmpty(t, g.lines, "the guide ends before %s", begins)
	line := g.lines[0]
	require.True(t, strings.HasPrefix(line, begins), "the guide's next command is %q, and not %s", line, begins)
	g.lines = g.lines[1:]
	return line
}

func (g *guide) rest() []string { return g.lines }
