package effecttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"interlock/agent"
	"interlock/tool"
)

// told is what the run knows of a call in the end.
type told string

const (
	toldNothing  told = ""
	toldHappened told = "it happened"
	toldNot      told = "it did not happen"
	toldDoubt    told = "it is in doubt"
)

const (
	calmAttempts = 30 // by then it has ended, or never will
	calmTold     = 3  // of them are in the trace
	overlaps     = 3  // attempts at once, at most
)

// round is one call, from its first attempt to what came of it.
type round struct {
	h      *harness
	seed   uint64
	task   agent.Task
	told   told
	result tool.Result
	last   *tool.Failure // that the run was told
}

// play plays one round. A call that was refused for good, or that is Repeatable,
// is made once more: equal arguments with the next ordinal are another effect.
func (h *harness) play(seed uint64, left map[int]bool) error {
	n := int(calls.Add(1))
	h.reset(seed, left)
	for ordinal := range 2 {
		task, err := h.task(n, ordinal)
		if err != nil {
			return err
		}
		r := &round{h: h, seed: seed, task: task}
		if err := r.play(n); err != nil {
			return err
		}
		switch {
		case r.told == toldHappened:
			h.happened++
		case h.why == nil || r.last.Kind == tool.FailedRefused:
			h.why = r.last
		}
		again := h.target.Tool.Repeatable && r.told == toldHappened || r.told == toldNot && r.last.Kind == tool.FailedRefused
		if !again {
			break
		}
		h.calm = h.steady
	}
	return nil
}

func (r *round) play(n int) error {
	h := r.h
	h.say("call %d: %s %s", n, r.task.Tool, r.task.Args)
	for range h.rng.IntN(5) + 1 {
		r.attempt()
		if r.told != toldNothing {
			break
		}
		h.pass(h.upTo(2 * time.Minute))
		if h.may("the time for all attempts is up") {
			r.told = toldDoubt
			if r.last.Kind == tool.FailedNotApplied && !r.last.Open {
				r.told = toldNot
			}
		}
		if r.told != toldNothing {
			break
		}
	}
	h.calm = true
	for tries := 0; r.told == toldNothing; tries++ {
		if tries == calmAttempts {
			return r.stuck(n, tries)
		}
		h.mute(tries >= calmTold)
		r.attempt()
		if r.told == toldNothing {
			h.pass(max(r.last.Wait, time.Second))
		}
	}
	h.mute(false)
	h.pass(time.Hour) // whatever is on its way has arrived
	h.say("the run was told that %s", r.told)
	if err := r.judge(n); err != nil {
		return err
	}
	return r.again(n)
}

// stuck is a call that never ends; that it happened twice says more.
func (r *round) stuck(n, tries int) error {
	r.h.mute(false)
	r.h.say("and so on, %d times", tries-calmTold)
	r.h.pass(time.Hour)
	if err := r.judge(n); err != nil {
		return err
	}
	return r.broken(Stuck, "%d attempts that nothing disturbed have not settled it: %w", tries, r.last)
}

// judge compares what the run was told with what has happened.
func (r *round) judge(n int) error {
	times, err := r.h.target.Happened(r.h.ctx, Call{N: n, Key: tool.Key(r.task.Key), Args: r.task.Args})
	switch {
	case err != nil:
		return fmt.Errorf("effecttest: Happened: %w", err)
	case times > 1:
		return r.broken(Repeated, "the effect is in place %d times", times)
	case times == 0 && r.told == toldHappened:
		return r.broken(Lost, "the run was told that it happened, and it did not")
	case times == 1 && r.told == toldNot:
		return r.broken(Lost, "the run was told that it did not happen, and it did")
	}
	return nil
}

// again makes the call once more, as a run does after a reset: it is told the
// same, and nothing happens by it.
func (r *round) again(n int) error {
	settled := r.told == toldHappened || r.told == toldNot && r.last.Kind == tool.FailedRefused
	if !settled && r.told != toldDoubt || r.told == toldDoubt && r.h.target.Tool.Effect != agent.Once {
		return nil // it may still be tried
	}
	if settled {
		stands, ok, err := r.h.target.Tool.Runner.Standing(r.h.ctx, r.task, r.h.ports(r.h.ledger))
		switch {
		case err != nil:
			return r.broken(Lost, "what stands cannot be told: %w", err)
		case ok != (r.told == toldHappened):
			return r.broken(Lost, "the run was told that %s, and the record of it does not stand", r.told)
		case ok && !stands.JSON.Equal(r.result.JSON):
			return r.broken(Lost, "the run was told %s, and what stands is %s", r.result.JSON, stands.JSON)
		}
	}
	before := *r
	r.told = toldNothing
	r.h.say("the call is made again")
	r.attempt()
	now := *r
	r.told = before.told
	r.h.pass(time.Hour)
	if err := r.judge(n); err != nil || !settled || now.told == before.told && now.result.JSON.Equal(before.result.JSON) {
		return err
	}
	if now.told == toldNothing {
		return r.broken(Lost, "the run was told that %s, and then: %w", before.told, now.last)
	}
	return r.broken(Lost, "the run was told that %s %s, and then that %s %s", before.told, before.result.JSON, now.told, now.result.JSON)
}

func (r *round) broken(k Kind, format string, args ...any) error {
	h := r.h
	return &Violation{Kind: k, Tool: r.task.Tool, Seed: r.seed, Reason: fmt.Errorf(format, args...).Error(), Faults: h.faults, Trace: h.trace, chances: h.drawn}
}

// hear is what the run learns of an attempt whose answer it gets.
func (r *round) hear(result tool.Result, err error) {
	if r.told != toldNothing {
		return // by an attempt that overlapped
	}
	if err == nil {
		r.told, r.result = toldHappened, result
		return
	}
	var f *tool.Failure
	if !errors.As(err, &f) {
		f = &tool.Failure{Kind: tool.FailedUnknown, Err: err, Open: true}
	}
	r.last = f
	switch f.Kind {
	case tool.FailedRefused:
		r.told = toldNot
	case tool.FailedInDoubt:
		r.told = toldDoubt
	}
}

// attempt is one that is under way. It is dead once its worker has crashed, and
// not heard once another one has begun.
type attempt struct {
	n             int
	round         *round
	until         time.Time // the end of its time
	dead, unheard bool
	*bounds
}

var errUnheard = errors.New("the attempt's answer was not received")

// attempt runs one, on a goroutine of its own so that a crash ends all of it.
func (r *round) attempt() {
	h := r.h
	h.mu.Lock()
	h.count++
	a := &attempt{n: h.count, round: r, until: h.now.Add(h.target.Tool.Timeout), bounds: newBounds(h.ctx)}
	h.stack = append(h.stack, a)
	r.last = &tool.Failure{Kind: tool.FailedUnknown, Err: errUnheard, Open: true}
	h.mu.Unlock()
	h.say("begins")
	var result tool.Result
	var err error
	ended, panicked := false, any(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		result, err = h.target.Tool.Runner.Attempt(a.bounds, r.task, h.portsOf(a))
		ended = true
	}()
	<-done
	a.end(context.Canceled)
	switch {
	case panicked != nil:
		panic(panicked)
	case a.dead:
	case a.unheard:
		h.say("ends, and nobody hears it: %s", outcome(result, err))
	case !ended:
		err = errors.New("the tool ended its goroutine, as t.FailNow does")
		h.say("%v", err)
		r.hear(result, err)
	case h.may("its worker crashes before the answer is received"):
	default:
		h.say("%s", outcome(result, err))
		r.hear(result, err)
	}
	h.mu.Lock()
	h.stack = h.stack[:len(h.stack)-1]
	h.mu.Unlock()
}

func outcome(r tool.Result, err error) string {
	var f *tool.Failure
	switch {
	case err == nil:
		return "it happened: " + r.JSON.String()
	case errors.As(err, &f):
		return string(f.Kind) + ": " + f.Error()
	}
	return err.Error()
}

// running is the attempt that has control; nil where none has.
func (h *harness) running() *attempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.stack) == 0 {
		return nil
	}
	return h.stack[len(h.stack)-1]
}

// meanwhile lets time pass during an attempt, and perhaps another one begin.
func (h *harness) meanwhile(a *attempt, most time.Duration) {
	if h.may("it is slow") {
		h.pass(h.upTo(most))
	}
	h.mu.Lock()
	depth := len(h.stack)
	h.mu.Unlock()
	if depth < overlaps && a.round.told == toldNothing && !a.dead && h.may("its worker is taken for dead") {
		a.unheard = true
		a.round.attempt()
	}
	// No attempt acts for longer than the protocol reckons with.
	if !a.dead && h.clock().After(a.until.Add(tool.Overhead)) {
		a.dead = true
		h.say("is gone by now")
	}
}

// crash draws whether an attempt's worker dies here.
func (h *harness) crash(a *attempt, where string) {
	if !a.dead && h.may("its worker crashes "+where) {
		a.dead = true
	}
}

// over reports whether an attempt can act no more.
func (h *harness) over(a *attempt) bool { return a.dead || h.clock().After(a.until) }

// expire ends the context of an attempt whose time is up. It is done only where
// the attempt has control, so that it never runs beside another.
func (h *harness) expire(a *attempt) {
	if h.over(a) {
		a.end(context.DeadlineExceeded)
	}
}
