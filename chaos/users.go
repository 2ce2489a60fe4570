package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"interlock/agent"
	"interlock/signals"
)

// deed is what a user does to a run.
type deed string

const (
	saysReject    deed = "message, reject"
	saysQueue     deed = "message, queue"
	saysInterrupt deed = "message, interrupt"
	saysRollback  deed = "message, rollback"
	amends        deed = "amend"
	pauses        deed = "pause"
	resumes       deed = "resume"
	cancelsNone   deed = "cancel, undo none"
	cancelsTurn   deed = "cancel, undo turn"
	cancelsRun    deed = "cancel, undo run"
	nudges        deed = "a nudge" // a message to a run that waits for its user
)

// deeds are those that a plan draws from; each pause is followed by its resume.
var deeds = []deed{saysReject, saysQueue, saysInterrupt, saysInterrupt, saysRollback, saysRollback, amends, pauses}

var cancels = []deed{cancelsNone, cancelsTurn, cancelsRun}

// moment is what a user waits for, beside the clock.
type moment string

const (
	anyTime   moment = ""
	whileBusy moment = "busy"   // an attempt or a model call of the run is under way
	whileActs moment = "acts"   // an attempt of an effect is, past its claim
	onceFired moment = "fired"  // the other side has fired
	onceMet   moment = "struck" // a fault has met the run's fire
)

// act is one thing that a user will do.
type act struct {
	deed  deed
	after time.Duration // the act before
	at    moment
	again bool // it is sent once more, though it was answered
}

// hasUsers reports whether a run's id, its address or one of its receipts is of a run
// that has users; the others are left alone.
func hasUsers(id string) bool { return strings.Contains(id, "-u") }

// actsOf are what the users of a world's nth run do. The seed decides all of it.
func actsOf(seed uint64, n int) (out []act) {
	rng := rand.New(rand.NewPCG(seed, uint64(1000+n)))
	for range 1 + rng.IntN(4) {
		out = append(out, act{deed: deeds[rng.IntN(len(deeds))]})
	}
	if rng.IntN(5) < 2 {
		out = append(out, act{deed: cancels[rng.IntN(len(cancels))]})
	}
	for i := 0; i < len(out); i++ {
		a := &out[i]
		a.after, a.again = time.Duration(rng.Int64N(int64(3*time.Second))), rng.IntN(3) == 0
		if a.deed != resumes {
			a.at = []moment{anyTime, whileBusy, whileActs, whileActs, whileActs}[rng.IntN(5)]
		}
		if a.deed == pauses {
			out = append(out[:i+1], append([]act{{deed: resumes}}, out[i+1:]...)...)
		}
	}
	return out
}

// input is one thing that was sent to a run, under one id, and how it was answered.
type input struct {
	id    string
	deed  deed
	v     signals.Verdict // of a verdict
	seen  []agent.Receipt // the answers, refusals included; none: nobody knows
	times int             // that it was sent
}

// first is the answer that took the input in, else the last refusal.
func (in *input) first() (r agent.Receipt, answered bool) {
	for _, r := range in.seen {
		if r.Status != agent.Refused {
			return r, true
		}
	}
	if len(in.seen) == 0 {
		return r, false
	}
	return in.seen[len(in.seen)-1], true
}

// inputs are those of one run.
type inputs struct {
	mu  sync.Mutex
	all []*input
}

func (l *inputs) add(in *input) *input {
	l.mu.Lock()
	defer l.mu.Unlock()
	in.id = fmt.Sprintf("i%d", len(l.all)+1)
	l.all = append(l.all, in)
	return in
}

func (l *inputs) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// send sends an input until there is an answer: what fails is sent again under the
// same id, as a client does. again: once more after that.
func (w *world) send(ctx context.Context, r *run, in *input, again bool, call func(context.Context) (agent.Receipt, error)) {
	for ctx.Err() == nil && !r.over() {
		one, cancel := context.WithTimeout(ctx, callTime)
		receipt, err := call(one)
		cancel()
		r.inputs.mu.Lock()
		in.times++
		known := err == nil
		switch code := agent.ErrorCode(err); code {
		case agent.CodeInvalid, agent.CodeConflict, agent.CodeDenied, agent.CodeEnded:
			receipt.Status, receipt.Code, known = agent.Refused, code, true
		}
		if known {
			in.seen = append(in.seen, receipt)
		}
		r.inputs.mu.Unlock()
		switch {
		case known && !again:
			return
		case known:
			again = false
		default:
			w.rest(ctx, lookEvery)
		}
	}
}

// rest waits, or until the world is given up.
func (w *world) rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-w.injector.closing:
	case <-time.After(d):
	}
}

// use plays a run's user: its acts one after the other, and then a nudge whenever the
// run waits for its user and for nobody else.
func (w *world) use(ctx context.Context, r *run) {
	for _, a := range r.acts {
		w.rest(ctx, a.after)
		w.await(ctx, r, a.at)
		if ctx.Err() != nil || r.over() {
			return
		}
		w.do(ctx, r, a)
	}
	idle := 0
	for ctx.Err() == nil && !r.over() {
		w.rest(ctx, time.Second)
		row, err := w.store.RunRow(ctx, r.chain())
		if err != nil || row.Head.Status != agent.RunWaiting || row.Head.Reason != "user" {
			idle = 0
			continue
		}
		if idle++; idle > 2 {
			idle = 0
			w.do(ctx, r, act{deed: nudges})
		}
	}
}

// momentWithin is how long a user waits for a moment.
const momentWithin = 8 * time.Second

// await waits for a moment. What a test is about has as long as it takes.
func (w *world) await(ctx context.Context, r *run, m moment) {
	fired := func() bool {
		for _, h := range w.side.happenings(r.id) {
			if h.tool == fire {
				return true
			}
		}
		return false
	}
	for began := time.Now(); ctx.Err() == nil && !r.over(); w.rest(ctx, 20*time.Millisecond) {
		switch {
		case m == anyTime, (m == whileBusy || m == whileActs) && time.Since(began) > momentWithin,
			m == whileBusy && w.injector.busy(r.address, beforeClaim), m == whileActs && w.injector.busy(r.address, toEffect),
			m == onceFired && fired(), m == onceMet && w.injector.met(r.address, agent.Once):
			return
		}
	}
}

// do is one act.
func (w *world) do(ctx context.Context, r *run, a act) {
	in := r.inputs.add(&input{deed: a.deed})
	message := func(p agent.MessagePolicy) func(context.Context) (agent.Receipt, error) {
		return func(ctx context.Context) (agent.Receipt, error) {
			return w.starter.Message(ctx, r.address, signals.Message{ID: in.id, Principal: customer, Text: "Hm, " + in.id + ".", Policy: p})
		}
	}
	cancel := func(u agent.UndoScope) func(context.Context) (agent.Receipt, error) {
		return func(ctx context.Context) (agent.Receipt, error) {
			return w.starter.Cancel(ctx, r.address, signals.Cancel{ID: in.id, Principal: customer, Reason: "enough", Undo: u})
		}
	}
	calls := map[deed]func(context.Context) (agent.Receipt, error){
		saysReject: message(agent.MessageReject), saysQueue: message(agent.MessageQueue), nudges: message(agent.MessageQueue),
		saysInterrupt: message(agent.MessageInterrupt), saysRollback: message(agent.MessageRollback),
		cancelsNone: cancel(agent.UndoNone), cancelsTurn: cancel(agent.UndoTurn), cancelsRun: cancel(agent.UndoRun),
		amends: func(ctx context.Context) (agent.Receipt, error) {
			return w.starter.Amend(ctx, r.address, signals.Amend{ID: in.id, Principal: operator, Fields: agent.JSON(fmt.Sprintf(`{"news":%q}`, in.id))})
		},
		pauses: func(ctx context.Context) (agent.Receipt, error) {
			return w.starter.Pause(ctx, r.address, signals.Pause{ID: in.id, Principal: operator, Reason: "a look"})
		},
		resumes: func(ctx context.Context) (agent.Receipt, error) {
			return w.starter.Resume(ctx, r.address, signals.Resume{ID: in.id, Principal: operator})
		},
	}
	w.send(ctx, r, in, a.again, calls[a.deed])
}
