package main

import (
	"context"
	"fmt"
	"slices"
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
}

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
			if w.size.first {
				w.trouble(w.verify(ctx, r))
			}
		}
	}
	w.operate(ctx)
	for ; more && active < w.size.runs; active++ {
		id := fmt.Sprintf("%s-%d", w.kind, len(w.runs)+1)
		w.runs = append(w.runs, &run{id: id, address: signals.Address(tenant, agentName, id), answers: map[string]*answer{}})
	}
	return active
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
}

// operate plays the operator: what is in doubt is looked up on the other side.
func (w *world) operate(ctx context.Context) {
	gates, err := w.store.GateRows(ctx, tenant, store.GateFilter{Status: agent.GateOpen})
	if err != nil {
		return
	}
	for _, g := range gates {
		n := slices.IndexFunc(w.runs, func(r *run) bool { return r.address == g.Address })
		if g.Gate.Kind != agent.KindDoubt || n < 0 {
			continue
		}
		if a := w.runs[n].answers[g.Gate.ID]; a == nil || !a.given {
			w.resolve(ctx, w.runs[n], g.Gate)
		}
	}
}

// What the operator can say.
const (
	saidHappened = "happened"
	saidAgain    = "did not happen, run again"
	saidGivenUp  = "did not happen, given up"
)

// resolve answers a doubt. A call that fails is made again with the same words.
func (w *world) resolve(ctx context.Context, r *run, g agent.Gate) {
	a := r.answers[g.ID]
	if a == nil {
		n, err := w.times(ctx, g.Tool, r.id)
		if err != nil {
			return
		}
		a = w.answer(r, g, n)
		r.answers[g.ID] = a
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if _, err := w.starter.Decide(ctx, r.address, a.verdict); err != nil {
		return
	}
	a.given = true
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decided[a.said]++
}

// answer is what the operator says of an effect that has happened n times. Of two
// that have not, one is run again and one given up.
func (w *world) answer(r *run, g agent.Gate, n int) *answer {
	v := signals.Verdict{ID: "v-" + g.ID, Gate: g.ID, Digest: g.Digest, Principal: operator, Reason: fmt.Sprintf("the other side has it %d times", n)}
	if n > 0 {
		v.Verdict, v.Result = agent.Happened, agent.JSON(fmt.Sprintf(`{"ref":%q}`, receiptOf(g.Tool, r.id).Ref))
		return &answer{verdict: v, said: saidHappened}
	}
	v.Verdict, v.Again = agent.DidNotHappen, true
	if g.Tool != fire {
		return &answer{verdict: v, said: saidAgain}
	}
	w.refusing = !w.refusing
	if w.refusing {
		v.Again = false
		return &answer{verdict: v, said: saidGivenUp}
	}
	return &answer{verdict: v, said: saidAgain}
}
