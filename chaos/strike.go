package main

import (
	"context"
	"maps"
	"os"
	"syscall"
	"time"

	"interlock/agent"
)

// strike does a fault. It returns when it is done, so that the attempt that it is
// aimed at goes on under it; what is to be started or let go again is so later.
// dead: the worker is killed. The caller holds the lock.
func (i *injector) strike(f *fault, worker string, target *point) (dead bool) {
	if f.kind == dbKilled && target != nil && target.Effect == agent.Transactional && i.world.kind == sqliteKind &&
		(target.Window == toEffect || target.Window == toSettle) {
		f.kind = killed // its process is the database, and holds its lock
	}
	switch f.kind {
	case killed:
		i.count(f, worker, target, i.open)
		i.dying[worker] = true
		i.world.fleet.signal(worker, os.Kill)
		i.last = time.Now()
		return true
	case stopped:
		i.count(f, worker, target, i.open)
		i.stop(worker, target)
	case deployed:
		i.count(f, worker, target, i.open)
		i.dying[worker] = true
		i.world.fleet.signal(worker, syscall.SIGTERM)
		i.last = time.Now()
		i.unlocked(func() { time.Sleep(f.outage) }) // the attempt goes on in time, or too late
	case dbKilled:
		i.databaseDown(f, worker, target)
	case tpKilled:
		i.count(f, worker, target, i.open)
		i.down = true
		i.unlocked(i.world.temporal.kill)
		i.later(f.outage, func() { i.world.trouble(i.world.temporal.restart(context.Background())) }, func() { i.down = false })
	}
	return false
}

// unlocked does what takes long without the lock.
func (i *injector) unlocked(do func()) {
	i.mu.Unlock()
	defer i.mu.Lock()
	do()
}

// later does something after a time, and then what needs the lock. Where all is
// given up before, it does neither.
func (i *injector) later(after time.Duration, do func(), locked func()) {
	i.pending.Go(func() {
		select {
		case <-time.After(after):
		case <-i.closing:
			return
		}
		do()
		i.mu.Lock()
		defer i.mu.Unlock()
		locked()
		i.last = time.Now()
		i.next = i.last.Add(gap)
	})
}

// stop stops a worker for longer than its attempt may act. When it goes on another
// has taken its place, and it is ended in order.
func (i *injector) stop(worker string, target *point) {
	i.dying[worker] = true
	i.halted++
	i.world.fleet.suspend(worker)
	pause := pastDeadline
	if target == nil || target.Effect == agent.Reconcilable || target.Effect == agent.Once {
		pause = pastGrace
	}
	i.later(pause, func() { i.world.fleet.signal(worker, goSignal) }, func() { i.halted-- })
	i.later(pause+5*time.Second, func() { i.world.fleet.signal(worker, syscall.SIGTERM) }, func() {})
}

// databaseDown kills the database. Where that is not possible, since a stopped
// worker holds SQLite's lock, the fault is put back.
func (i *injector) databaseDown(f *fault, worker string, target *point) {
	i.down = true
	done, open := false, maps.Clone(i.open)
	i.unlocked(func() { done = i.world.database.down() })
	if !done {
		i.down = false
		i.left = append(i.left, f)
		if target != nil {
			i.aimed[target.Address]--
		}
		return
	}
	for id, p := range i.open { // what has begun meanwhile, or gone on
		if _, before := open[id]; !before {
			open[id] = p
		}
	}
	i.count(f, worker, target, open)
	i.later(f.outage, func() { i.world.trouble(i.world.database.up()) }, func() { i.down = false })
}
