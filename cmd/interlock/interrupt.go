package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interrupt is a signal that asked the process to end.
type interrupt struct{ signal syscall.Signal }

func (i *interrupt) Error() string {
	if i.signal == syscall.SIGINT {
		return "interrupted"
	}
	return "ended by a signal (" + i.signal.String() + ")"
}

func (i *interrupt) code() int { return 128 + int(i.signal) }

// interruptible is a context that the first signal ends, for an orderly end.
// The second ends the process at once; the local Temporal ends with it.
func (a *app) interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	asked := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		asked = append(asked, syscall.SIGHUP)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, asked...)
	// A reader of our output that goes away is an error of the write, not the
	// end of the process: what was started must be stopped.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		for s := range signals {
			i := &interrupt{s.(syscall.Signal)}
			if ctx.Err() == nil {
				fmt.Fprintf(a.err, "\ninterlock: %v, stopping; once more ends it at once\n", i)
				cancel(i)
				continue
			}
			a.scratch.remove()
			os.Exit(i.code())
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// scratch is a folder that must not outlive the process.
type scratch struct {
	mu     sync.Mutex
	parent string // "": where the system has its temporary folders
	dir    string
}

func (s *scratch) make() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := os.MkdirTemp(s.parent, "interlock-demo-")
	s.dir = dir
	return dir, err
}

func (s *scratch) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		return nil
	}
	err := os.RemoveAll(s.dir)
	if err == nil {
		s.dir = ""
	}
	return err
}
