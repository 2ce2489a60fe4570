// Package localtemporal starts the official temporal CLI as a Temporal server on
// this machine, for demos, tests and benchmarks. It is no part of production.
//
// The server is told not to throttle itself ([Flags]): as it comes, each task
// waits at a rate limit made for shared clusters, and a benchmark would measure
// that limit.
package localtemporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
)

// startTimeout is far above what a start takes (1 s, more on a busy machine).
const startTimeout = 60 * time.Second

// stopTimeout is how long the server may take to end before it is killed.
const stopTimeout = 15 * time.Second

// Options say which server to start. The zero value is a server in memory on a
// free port, without a UI and without output.
type Options struct {
	// CLI is the temporal binary. Empty: see [FindCLI].
	CLI string
	// DBFile keeps the server's state over restarts; empty keeps it in memory.
	// Its folder must exist.
	DBFile string
	// UI also serves Temporal's own pages, on UIPort (0: a free port).
	UI     bool
	UIPort int
	// Port is the frontend's; 0 takes a free one. A port that is in use is an
	// error: without that check Start would return a client of the other server.
	Port int
	// Namespace is created; empty is "default".
	Namespace string
	// LogWriter gets the server's output (warnings and errors). Nil discards it;
	// the last lines are kept for Start's error in any case.
	LogWriter io.Writer
}

// Server is a running local Temporal.
type Server struct {
	dev    *testsuite.DevServer
	guard  *launcher
	uiAddr string
	once   sync.Once
	err    error
}

// Flags are the arguments by which every server of this package differs from a
// stock one; a benchmark prints them beside its numbers. The rates lift the
// limit of 20 polls a second of each queue processor, and one partition keeps a
// task from being forwarded before it is handed out: a turn of two activities
// takes a tenth of the time.
func Flags() []string {
	values := []string{
		"history.transferProcessorMaxPollRPS=10000",
		"history.timerProcessorMaxPollRPS=10000",
		"history.visibilityProcessorMaxPollRPS=10000",
		"matching.numTaskqueueReadPartitions=1",
		"matching.numTaskqueueWritePartitions=1",
	}
	flags := make([]string, 0, 2*len(values))
	for _, v := range values {
		flags = append(flags, "--dynamic-config-value", v)
	}
	return flags
}

// Start returns when the server answers and the namespace is usable. When it
// fails, no process is left behind. ctx bounds the start only; Stop ends the
// server.
//
// The server also ends, soon, when this process dies without
// calling Stop (kill -9 included), on every Unix; elsewhere it would linger.
func Start(ctx context.Context, o Options) (*Server, error) {
	cli, err := FindCLI(o.CLI)
	if err != nil {
		return nil, err
	}
	address, err := listenAddress(o.Port)
	if err != nil {
		return nil, fmt.Errorf("local Temporal: %w", err)
	}
	uiPort, uiAddress, err := uiPortOf(o)
	if err != nil {
		return nil, fmt.Errorf("local Temporal: UI: %w", err)
	}
	out := &output{to: o.LogWriter}
	guard, err := newLauncher(cli)
	if err != nil {
		return nil, fmt.Errorf("local Temporal: %w", err)
	}
	defer guard.removeFiles()

	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no answer within %s", startTimeout))
	defer cancel()
	dev, err := guard.start(ctx, testsuite.DevServerOptions{
		ExistingPath: guard.path,
		DBFilename:   o.DBFile,
		EnableUI:     o.UI,
		UIPort:       uiPort,
		LogLevel:     "warn",
		ExtraArgs:    Flags(),
		Stdout:       out,
		Stderr:       out,
		ClientOptions: &client.Options{
			HostPort:  address,
			Namespace: cmp.Or(o.Namespace, client.DefaultNamespace),
			Logger:    sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("local Temporal (%s) did not start: %w", cli, errors.Join(err, out.last()))
	}
	return &Server{dev: dev, guard: guard, uiAddr: uiAddress}, nil
}

// Address is the host and port of the frontend.
func (s *Server) Address() string { return s.dev.FrontendHostPort() }

// UIAddress is the URL of Temporal's pages, empty without UI.
func (s *Server) UIAddress() string { return s.uiAddr }

// Client is connected to the server's namespace. It logs nothing, and Stop
// closes it.
func (s *Server) Client() client.Client { return s.dev.Client() }

// Stop ends the server, by force when it does not end in time, and returns when
// its process is gone. Further calls do nothing and return the same.
func (s *Server) Stop() error {
	s.once.Do(func() {
		s.dev.Client().Close()
		late := time.AfterFunc(stopTimeout, s.guard.kill)
		defer late.Stop()
		if err := s.dev.Stop(); err != nil {
			s.err = fmt.Errorf("local Temporal did not stop cleanly: %w", err)
		}
		s.guard.release()
	})
	return s.err
}

// Kill ends the server as a crash does: without a chance to finish anything. What
// DBFile holds is what it had written; [Start] with the same file and port goes on
// from there. The client is closed, and Stop does nothing more. Elsewhere than on
// Unix it is Stop.
func (s *Server) Kill() {
	s.once.Do(func() {
		s.dev.Client().Close()
		s.guard.kill()
		_ = s.dev.Stop() // waits, and says that it was killed
		s.guard.release()
	})
}

// FindCLI looks for the temporal binary: the one named, else the one that
// INTERLOCK_TEMPORAL_CLI names, else bin/temporal in the working directory or
// above it up to the module's root (the folder with go.mod), else the one on
// PATH. A named one that cannot be run is an error, never a reason to look on.
func FindCLI(named string) (string, error) {
	origin := "Options.CLI"
	if named == "" {
		named, origin = os.Getenv("INTERLOCK_TEMPORAL_CLI"), "INTERLOCK_TEMPORAL_CLI"
	}
	if named != "" {
		path, err := executable(named)
		if err != nil {
			return "", fmt.Errorf("the temporal CLI named by %s cannot be run: %w (`make bin/temporal` makes one)", origin, err)
		}
		return path, nil
	}
	if path, ok := inModule(); ok {
		return path, nil
	}
	if path, err := onPath("temporal"); err == nil {
		return path, nil
	}
	return "", errors.New("no temporal CLI found (INTERLOCK_TEMPORAL_CLI is not set, there is no bin/temporal up to the module's root and no temporal on PATH): run `make bin/temporal`, or install https://github.com/temporalio/cli")
}

func inModule() (string, bool) {
	dir, err := os.Getwd()
	for err == nil {
		if path, err := executable(filepath.Join(dir, "bin", "temporal")); err == nil {
			return path, true
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	return "", false
}

func uiPortOf(o Options) (port, address string, err error) {
	if !o.UI {
		return "", "", nil
	}
	host, err := listenAddress(o.UIPort)
	if err != nil {
		return "", "", err
	}
	_, port, err = net.SplitHostPort(host)
	return port, "http://" + host, err
}

// listenAddress is an address that was free a moment ago.
func listenAddress(port int) (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
