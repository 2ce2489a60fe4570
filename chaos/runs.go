package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"interlock/agent"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

const (
	lookEvery = 300 * time.Millisecond
	// stuckAfter is how long after the last fault a run must have ended: twice the
	// longest deadline of its tools, and a minute.
	stuckAfter = 2*deadline + time.Minute
	// placeWithin is how long the harness looks for a place for its next fault.
	placeWithin = 3 * time.Minute
)

// run is one run of the agent.
type run struct {
	id, address string
	started     bool
	ended       bool
	answers     map[string]*answer // by gate
	// Of a run that has users:
	acts    []act
	inputs  inputs
	gates   map[string]bool // that somebody reviews
	closed  atomic.Bool     // it has ended, and its users go
	playing sync.WaitGroup
}

func (r *run) over() bool { return r.closed.Load() }

// answer is what the operator says of a step in doubt.
type answer struct {
	verdict signals.Verdict
	said    string
	given   bool
}

func (r *run) chain() store.Chain { return store.Chain{Tenant: tenant, Address: r.address} }

// drive starts runs for as long as faults are to be, decides what is in doubt, and
// returns when every run has ended or is stuck.
func (w *world) drive(ctx context.Context) error {
	done := make(chan struct{})
	defer close(done)
	go w.injector.byClock(done)
	remaining, since := w.injector.remaining(), time.Now()
	for ctx.Err() == nil && (!w.size.first || !w.violated()) {
		if n := w.injector.remaining(); n != remaining {
			remaining, since = n, time.Now()
		}
		if remaining > 0 && time.Since(since) > placeWithin {
			return fmt.Errorf("%s: %d faults found no place within %s", w.kind, remaining, placeWithin)
		}
		active := w.tend(ctx, remaining > 0)
		if last, quiet := w.injector.quiet(); quiet && (active == 0 || time.Since(last) > stuckAfter) {
			return nil
		}
		time.Sleep(lookEvery)
	}
	return ctx.Err()
}

// tend looks at every run that has not ended. more: as many are to run as the
// world's size says, and no run is over until it has ended.
func (w *world) tend(ctx context.Context, more bool) (active int) {
	for _, r := range w.runs {
		if r.ended {
			continue
		}
		active++
		if !r.started {
			w.start(ctx, r)
			continue
		}
		row, err := w.store.RunRow(ctx, r.chain())
		if err != nil { // the database is down, or nothing is recorded yet
			continue
		}
		if row.Head.Status.Ended() {
			r.ended = true
			r.closed.Store(true)
			r.playing.Wait()
			if w.size.first {
				w.trouble(w.verify(ctx, r))
			}
		}
	}
	w.operate(ctx)
	for ; more && active < w.size.runs; active++ {
		w.runs = append(w.runs, w.newRun(len(w.runs)+1))
	}
	return active
}

// newRun is a world's nth run. As many in ten as the world's size says have users.
func (w *world) newRun(n int) *run {
	r := &run{answers: map[string]*answer{}, gates: map[string]bool{}}
	name := fmt.Sprint(n)
	if n*w.size.users/10 > (n-1)*w.size.users/10 {
		name = "u" + name
		if r.acts = w.acts; r.acts == nil {
			r.acts = actsOf(w.seed, n)
		}
	}
	r.id = w.kind + "-" + name
	r.address = signals.Address(tenant, agentName, r.id)
	return r
}

var (
	customer = agent.Principal{Subject: "ann"}
	operator = agent.Principal{Subject: "olga", Roles: []string{agent.DefaultOperator}}
)

// callTime bounds a call that is made again when it fails.
const callTime = 3 * time.Second

func (w *world) start(ctx context.Context, r *run) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := w.starter.Start(ctx, starter.Start{Agent: agentName, Tenant: tenant, Key: r.id, Principal: customer, Body: begin{ID: r.id},
		Message: &signals.Message{ID: "m", Principal: customer, Text: "Go."}})
	r.started = err == nil // the same start again is harmless
	if r.started && hasUsers(r.id) {
		r.playing.Go(func() { w.use(w.ctx, r) })
	}
}

// openGates are those of an address, or of all.
func (w *world) openGates(ctx context.Context, address string) ([]store.GateRow, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return w.store.GateRows(ctx, tenant, store.GateFilter{Address: address, Status: agent.GateOpen, Limit: 500})
}

// operate plays the operator, who looks up on the other side what is in doubt, and
// lets a reviewer look at the other gates.
func (w *world) operate(ctx context.Context) {
	gates, err := w.openGates(ctx, "")
	if err != nil {
		return
	}
	for _, g := range gates {
		n := slices.IndexFunc(w.runs, func(r *run) bool { return r.address == g.Address })
		if n < 0 {
			continue
		}
		r := w.runs[n]
		switch {
		case r.ended:
		case g.Gate.Kind == agent.KindDoubt:
			if a := r.answers[g.Gate.ID]; a == nil || !a.given {
				w.resolve(ctx, r, g.Gate)
			}
		case g.Gate.Kind == agent.KindTool && !r.gates[g.Gate.ID]:
			r.gates[g.Gate.ID] = true
			v := reviewOf(w.seed, r.id, len(r.gates))
			r.playing.Go(func() { w.atGate(w.ctx, r, g.Gate, v) })
		}
	}
}

// What the operator can say.
const (
	saidHappened = "happened"
	saidAgain    = "did not happen, run again"
	saidGivenUp  = "did not happen, given up"
)

// resolve answers a doubt, once nothing can happen of it any more. A call that fails
// is made again with the same words.
func (w *world) resolve(ctx context.Context, r *run, g agent.Gate) {
	a := r.answers[g.ID]
	if a == nil {
		if at := (place{r.address, effects[g.Tool], g.StepID()}); !w.injector.idle(at) || !w.side.idle(at) {
			return
		}
		all, err := w.happenings(ctx, r.id)
		if err != nil {
			return
		}
		a = w.answer(g, slices.DeleteFunc(all, func(h happening) bool { return h.tool != g.Tool || h.step != g.StepID() }))
		r.answers[g.ID] = a
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if _, err := w.starter.Decide(ctx, r.address, a.verdict); err != nil {
		if agent.ErrorCode(err) == agent.CodeEnded {
			a.given = true
		}
		return
	}
	a.given = true
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decided[a.said]++
}

// answer is what the operator says of a step that all of this has happened for. Of
// two Once effects that have not happened, one is run again and one given up.
func (w *world) answer(g agent.Gate, all []happening) *answer {
	v := signals.Verdict{ID: "v-" + g.ID, Gate: g.ID, Digest: g.Digest, Principal: operator, Reason: fmt.Sprintf("the other side has it %d times", len(all))}
	if len(all) > 0 {
		v.Verdict, v.Result = agent.Happened, agent.JSON(fmt.Sprintf(`{"ref":%q}`, all[0].receipt().Ref))
		return &answer{verdict: v, said: saidHappened}
	}
	v.Verdict, v.Again = agent.DidNotHappen, true
	if effects[g.Tool] != agent.Once {
		return &answer{verdict: v, said: saidAgain}
	}
	w.refusing = !w.refusing
	if w.refusing {
		v.Again = false
		return &answer{verdict: v, said: saidGivenUp}
	}
	return &answer{verdict: v, said: saidAgain}
}
