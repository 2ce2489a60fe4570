package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// fleet is the worker processes of a world. Who dies is replaced at once, as a
// supervisor does.
type fleet struct {
	dir    string
	config func(name string) workerConfig
	gone   func(worker string) // is told of each that has ended
	// trouble is told of what no fault explains.
	trouble func(error)

	mu      sync.Mutex
	procs   map[string]*proc
	started int
	closing bool
	all     sync.WaitGroup
}

// exitPanic is the exit code of a Go program that panics.
const exitPanic = 2

type proc struct {
	name  string
	cmd   *exec.Cmd
	spare bool // is not replaced when it ends: another has taken its place
}

// start adds a worker. The caller holds the lock.
func (f *fleet) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	f.started++
	p := &proc{name: fmt.Sprintf("w%d", f.started), cmd: exec.Command(self)}
	text, err := json.Marshal(f.config(p.name))
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(f.dir, p.name+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	p.cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	p.cmd.Stderr = log
	apart(p.cmd)
	if _, err := p.cmd.StdinPipe(); err != nil { // closed when we die, whatever kills us
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	f.procs[p.name] = p
	f.all.Go(func() { f.wait(p) })
	return nil
}

func (f *fleet) wait(p *proc) {
	began := time.Now()
	_ = p.cmd.Wait()
	f.gone(p.name)
	if p.cmd.ProcessState.ExitCode() == exitPanic {
		f.trouble(fmt.Errorf("worker %s has panicked", p.name))
	}
	if time.Since(began) < time.Second { // it could not start: the database or Temporal is down
		time.Sleep(time.Second)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.procs, p.name)
	if !p.spare && !f.closing {
		f.trouble(f.start())
	}
}

// open starts n workers.
func (f *fleet) open(n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		if err := f.start(); err != nil {
			return err
		}
	}
	return nil
}

// signal sends a signal; one that is gone does not mind.
func (f *fleet) signal(worker string, s os.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.procs[worker]; p != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

// suspend stops a worker, and has another take its place.
func (f *fleet) suspend(worker string) {
	f.signal(worker, stopSignal)
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.procs[worker]; p != nil && !p.spare {
		p.spare = true
		f.trouble(f.start())
	}
}

func (f *fleet) close() {
	f.mu.Lock()
	f.closing = true
	for _, p := range f.procs {
		_ = p.cmd.Process.Kill()
	}
	f.mu.Unlock()
	f.all.Wait()
}
