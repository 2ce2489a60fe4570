//go:build unix

package localtemporal

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/testsuite"
)

//go:embed launch.sh
var launchScript string

// launcher stands between the SDK's StartDevServer and the CLI. The SDK owns the
// process, so that it can neither be tied to ours nor be ended when the start
// fails; the script that it is made to run becomes the CLI, leaves its process
// id, and leaves a guard that ends it when we are gone.
type launcher struct {
	dir  string   // of script, pipe and process id; removed once the server runs
	path string   // what the SDK is to run
	life *os.File // our end of the pipe; only this process has it
	pid  int      // 0 as long as the script has not begun
}

func newLauncher(cli string) (*launcher, error) {
	dir, err := os.MkdirTemp("", "localtemporal-")
	if err != nil {
		return nil, err
	}
	l := &launcher{dir: dir, path: filepath.Join(dir, "temporal")}
	if err := l.write(cli); err != nil {
		l.removeFiles()
		return nil, err
	}
	return l, nil
}

func (l *launcher) write(cli string) error {
	fifo := filepath.Join(l.dir, "life")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		return &os.PathError{Op: "mkfifo", Path: fifo, Err: err}
	}
	life, err := os.OpenFile(fifo, os.O_RDWR, 0) // both ways: opening one end would wait for the other
	if err != nil {
		return err
	}
	l.life = life
	script := strings.NewReplacer("@CLI@", quote(cli), "@FIFO@", quote(fifo), "@PIDFILE@", quote(l.pidFile())).Replace(launchScript)
	return os.WriteFile(l.path, []byte(script), 0o700)
}

func (l *launcher) pidFile() string { return filepath.Join(l.dir, "pid") }

// start runs the server until it answers, and fails as soon as its process has
// ended (a bad flag, a locked file) rather than after a minute of dialing. After
// a failure the process is gone.
func (l *launcher) start(ctx context.Context, o testsuite.DevServerOptions) (*testsuite.DevServer, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	stopWatching := l.watch(fail)
	dev, err := startServer(ctx, o)
	ended := stopWatching()
	if err == nil {
		l.findPID()
		return dev, nil
	}
	var notRun *os.PathError
	if !errors.As(err, &notRun) && !ended {
		l.abort()
	}
	l.release()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, err
}

// startServer tries again when another goroutine was starting a process at the
// moment in which the script was open for writing: the kernel refuses to run it
// then.
func startServer(ctx context.Context, o testsuite.DevServerOptions) (*testsuite.DevServer, error) {
	for attempt := 1; ; attempt++ {
		dev, err := testsuite.StartDevServer(ctx, o)
		if !errors.Is(err, syscall.ETXTBSY) || attempt == 20 {
			return dev, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// watch looks whether the process has ended until the returned function is
// called, which says so. From then on nobody but the SDK waits for the process.
func (l *launcher) watch(fail context.CancelCauseFunc) (stop func() (ended bool)) {
	done, result := make(chan struct{}), make(chan bool, 1)
	go func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				result <- false
				return
			case <-ticker.C:
				if status, ended := l.reap(syscall.WNOHANG); ended {
					fail(fmt.Errorf("it ended at once (%s)", status))
					result <- true
					return
				}
			}
		}
	}()
	return func() bool { close(done); return <-result }
}

func (l *launcher) reap(options int) (string, bool) {
	if !l.findPID() {
		return "", false
	}
	var ws syscall.WaitStatus
	if got, err := syscall.Wait4(l.pid, &ws, options, nil); err != nil || got != l.pid {
		return "", false
	}
	if ws.Signaled() {
		return ws.Signal().String(), true
	}
	return "exit status " + strconv.Itoa(ws.ExitStatus()), true
}

func (l *launcher) findPID() bool {
	if l.pid == 0 {
		if text, err := os.ReadFile(l.pidFile()); err == nil {
			l.pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		}
	}
	return l.pid != 0
}

// abort ends a process that did not become ready. It may not even have got as
// far as leaving its process id.
func (l *launcher) abort() {
	for range 100 {
		if l.findPID() {
			l.kill()
			l.reap(0)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (l *launcher) kill() {
	if l.pid != 0 {
		_ = syscall.Kill(l.pid, syscall.SIGKILL)
	}
}

// release lets the guard go, once the server is gone.
func (l *launcher) release() { _ = l.life.Close() }

func (l *launcher) removeFiles() { _ = os.RemoveAll(l.dir) }

// quote makes one word of sh.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
