package main

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"interlock/agent"
)

const (
	gap        = 1200 * time.Millisecond // between two faults
	runHits    = 2                       // faults that are aimed at one run
	mostAtOnce = 2                       // workers that are stopped
	randomGap  = 4 * time.Second         // on average, between faults by the clock
)

// unrecorded is no fault, but what may come of one that met others: the store did
// not take a model's answer.
const unrecorded kind = "answer not recorded"

// mark is a fault that a step or a model call has met.
type mark struct {
	kind   kind
	window window
	aimed  bool // the fault waited for it, so that the window is exact
}

// injector knows where each attempt is, and strikes.
type injector struct {
	world *world

	mu    sync.Mutex
	rng   *rand.Rand
	left  []*fault          // that are to be
	late  map[string]*fault // by attempt: it waits for the attempt's request
	open  map[string]point  // attempts under way
	dying map[string]bool   // workers that were struck
	aimed map[string]int    // by run
	next  time.Time         // none before
	down  bool              // the database or Temporal is

	halted  int // workers that are stopped
	delayed int // requests that are late
	marks   map[place][]mark
	hits    map[cell]int
	counts  map[kind]int
	struck  int
	last    time.Time // when the latest fault was over

	pending sync.WaitGroup // what will be started or let go again
	closing chan struct{}  // closed when it will not
}

func newInjector(w *world, seed uint64, faults []*fault) *injector {
	return &injector{world: w, rng: rand.New(rand.NewPCG(seed, 2)), left: slices.Clone(faults), late: map[string]*fault{}, open: map[string]point{},
		dying: map[string]bool{}, aimed: map[string]int{}, marks: map[place][]mark{}, hits: map[cell]int{}, counts: map[kind]int{},
		last: time.Now(), closing: make(chan struct{})}
}

// reach takes in that an attempt has come to a window, and strikes it where a
// fault waits for that. dead: its worker is killed and must not be answered.
func (i *injector) reach(p point) (dead bool) {
	i.mu.Lock()
	if p.Failed && p.Effect == model && i.open[p.Attempt].Window == toRecord {
		i.marks[p.place()] = append(i.marks[p.place()], mark{kind: unrecorded, window: toRecord})
	}
	i.open[p.Attempt] = p
	f := i.pick(p)
	if f != nil && f.late {
		i.late[p.Attempt] = f
		f = nil
	}
	if f != nil {
		dead = i.strike(f, p.Worker, &p)
	}
	if p.Over {
		delete(i.open, p.Attempt)
	}
	i.mu.Unlock()
	return dead
}

// arrived is a request on the other side. Where a fault has waited for it, the
// worker is struck now, and the request takes effect after a delay.
func (i *injector) arrived(attempt string) (delay time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f, ok := i.late[attempt]
	if !ok {
		return 0
	}
	delete(i.late, attempt)
	p := i.open[attempt]
	i.strike(f, p.Worker, &p)
	i.delayed++
	return lateFrom + time.Duration(i.rng.Int64N(int64(lateTo-lateFrom)))
}

// happened moves an attempt on: the other side has acted, after a delay or not.
func (i *injector) happened(attempt string, delayed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if delayed {
		i.delayed--
		i.last = time.Now()
	}
	if p, ok := i.open[attempt]; ok {
		p.Window = toSettle
		i.open[attempt] = p
	}
}

// gone forgets the attempts of a worker that has ended.
func (i *injector) gone(worker string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, p := range i.open {
		if p.Worker != worker {
			continue
		}
		delete(i.open, id)
		if f, ok := i.late[id]; ok { // its request never came
			delete(i.late, id)
			i.left = append(i.left, f)
		}
	}
}

// pick takes a fault that waits for this point from the list. The caller holds the
// lock.
func (i *injector) pick(p point) *fault {
	if p.Passed || i.down || i.dying[p.Worker] || time.Now().Before(i.next) || i.aimed[p.Address] >= runHits {
		return nil
	}
	if slices.ContainsFunc(i.marks[p.place()], func(m mark) bool { return m.aimed }) {
		return nil // what a step must come to is checked by the one fault that is aimed at it
	}
	if p.Window == beforeClaim && p.Effect != agent.ReadOnly && i.rng.IntN(2) == 0 {
		return nil // there is another point in this window
	}
	n := slices.IndexFunc(i.left, func(f *fault) bool {
		return f.at == p.cell() && (f.kind != stopped || i.halted < mostAtOnce)
	})
	if n < 0 {
		return nil
	}
	f := i.left[n]
	i.left = slices.Delete(i.left, n, n+1)
	i.next = time.Now().Add(gap)
	i.aimed[p.Address]++
	return f
}

// byClock strikes at random moments until done is closed.
func (i *injector) byClock(done <-chan struct{}) {
	wait := randomGap
	for {
		select {
		case <-done:
			return
		case <-time.After(wait):
		}
		wait = 100 * time.Millisecond
		i.mu.Lock()
		if i.strikeAny() {
			wait = time.Duration((0.2 + i.rng.ExpFloat64()) * float64(randomGap) * 0.8)
		}
		i.mu.Unlock()
	}
}

// strikeAny strikes a worker that has something open, whatever it is.
func (i *injector) strikeAny() bool {
	n := slices.IndexFunc(i.left, func(f *fault) bool { return f.random() && (f.kind != stopped || i.halted < mostAtOnce) })
	if n < 0 || i.down || time.Now().Before(i.next) {
		return false
	}
	var busy []string
	for _, p := range i.open {
		if !i.dying[p.Worker] {
			busy = append(busy, p.Worker)
		}
	}
	if len(busy) == 0 {
		return false
	}
	slices.Sort(busy)
	f := i.left[n]
	i.left = slices.Delete(i.left, n, n+1)
	i.next = time.Now().Add(gap)
	i.strike(f, busy[i.rng.IntN(len(busy))], nil)
	return true
}

// count notes a fault with all whom it meets: those that are open. A fault that is
// aimed at an attempt counts as a hit of that one's window; one by the clock, of
// every window that was open. The caller holds the lock.
func (i *injector) count(f *fault, worker string, target *point, open map[string]point) {
	i.struck++
	i.counts[f.kind]++
	for id, p := range open {
		if f.kind != dbKilled && f.kind != tpKilled && p.Worker != worker {
			continue
		}
		aimed := target != nil && target.Attempt == id
		i.marks[p.place()] = append(i.marks[p.place()], mark{f.kind, p.Window, aimed})
		if aimed || target == nil {
			i.hits[p.cell()]++
		}
	}
}

// remaining is how many faults are still to be, those included that wait for a
// request.
func (i *injector) remaining() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.left) + len(i.late)
}

// marked are the faults that a step or a model call has met.
func (i *injector) marked(p place) []mark {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.marks[p])
}

// quiet reports since when nothing is down, stopped or late and no fault is to be.
func (i *injector) quiet() (since time.Time, quiet bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.last, len(i.left) == 0 && len(i.late) == 0 && !i.down && i.halted == 0 && i.delayed == 0
}

// busy reports whether an attempt or a model call of a run is under way; from toEffect
// on, an attempt of an effect that has come so far.
func (i *injector) busy(address string, from window) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, p := range i.open {
		if p.Address == address && (from == beforeClaim || (p.Window == toEffect || p.Window == toSettle) && p.Effect != model) {
			return true
		}
	}
	return false
}

// idle reports whether no attempt of a step is under way, on whatever worker.
func (i *injector) idle(at place) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, p := range i.open {
		if p.place() == at {
			return false
		}
	}
	return true
}

// met reports whether a fault that was aimed at it has met an effect of a run.
func (i *injector) met(address string, e agent.Effect) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for p, marks := range i.marks {
		if p.address == address && p.effect == e && slices.ContainsFunc(marks, func(m mark) bool { return m.aimed }) {
			return true
		}
	}
	return false
}
