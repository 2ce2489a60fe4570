package effecttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"interlock/agent"
	"interlock/tool"
)

// calls numbers the calls of all harnesses in this process, so that two of them
// may share another side or a store.
var calls atomic.Int64

// harness is the virtual clock, the faults of the present round and what is on
// its way. Control passes from one attempt to another and back; the lock is only
// for tools that send from several goroutines at once.
type harness struct {
	ctx    context.Context
	target Target
	ledger tool.Ledger

	steady   bool  // the round is undisturbed
	happened int   // rounds in which it did
	why      error // the last failure

	mu     sync.Mutex
	now    time.Time
	late   []arrival
	stack  []*attempt // that are under way, the running one last
	count  int        // of the round's attempts
	began  time.Time
	trace  []string
	muted  bool
	rng    *rand.Rand
	rate   float64      // of faults
	calm   bool         // nothing goes wrong any more
	left   map[int]bool // faults that are left out
	drawn  int          // faults so far, those left out included
	faults int
}

// arrival is a request that reaches the other side at its time.
type arrival struct {
	at      time.Time
	deliver func(context.Context)
}

func newHarness(ctx context.Context, target Target, o Options) *harness {
	h := &harness{ctx: ctx, target: target, now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	h.ledger = NewLedger(h.clock)
	if o.Ledger != nil {
		h.ledger = o.Ledger(h.clock)
	}
	return h
}

func (h *harness) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// reset begins a round. Chances of faults differ from round to round: where many
// go wrong, few attempts come far.
func (h *harness) reset(seed uint64, left map[int]bool) {
	h.late, h.stack, h.trace, h.count, h.calm, h.left, h.drawn, h.faults = nil, nil, nil, 0, h.steady, left, 0, 0
	h.muted = false
	h.began = h.now
	h.rng = rand.New(rand.NewPCG(seed, 1))
	h.rate = []float64{0.05, 0.12, 0.25}[h.rng.IntN(3)]
}

// may draws whether something goes wrong.
func (h *harness) may(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calm || h.rng.Float64() >= h.rate {
		return false
	}
	h.drawn++
	if h.left[h.drawn-1] {
		return false
	}
	h.faults++
	h.note(what)
	return true
}

// upTo draws a time.
func (h *harness) upTo(most time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Duration(h.rng.Int64N(int64(most) + 1)).Round(time.Millisecond)
}

func (h *harness) say(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(fmt.Sprintf(format, args...))
}

// handOver publishes what this goroutine did to the one that goes on: a connection
// that is closed does not.
func (h *harness) handOver() {
	h.mu.Lock()
	defer h.mu.Unlock()
}

// note is say for who holds the lock.
func (h *harness) note(what string) {
	if h.muted {
		return
	}
	who := ""
	if n := len(h.stack); n > 0 {
		who = strings.Repeat("  ", n-1) + "attempt " + strconv.Itoa(h.stack[n-1].n) + ": "
	}
	h.trace = append(h.trace, fmt.Sprintf("%10s  %s%s", h.now.Sub(h.began).Round(time.Millisecond), who, what))
}

// mute leaves what happens out of the trace.
func (h *harness) mute(muted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.muted = muted
}

// pass lets time pass. What is on its way arrives in the order of its times.
func (h *harness) pass(d time.Duration) {
	until := h.clock().Add(d)
	for {
		h.mu.Lock()
		i := -1
		for j, a := range h.late {
			if !a.at.After(until) && (i < 0 || a.at.Before(h.late[i].at)) {
				i = j
			}
		}
		if i < 0 {
			h.now = until
			h.mu.Unlock()
			return
		}
		next := h.late[i]
		h.late = slices.Delete(h.late, i, i+1)
		if next.at.After(h.now) {
			h.now = next.at
		}
		h.note("a late request reaches the other side")
		h.mu.Unlock()
		next.deliver(h.ctx)
	}
}

// task is the nth call's, as a run makes it.
func (h *harness) task(n, ordinal int) (agent.Task, error) {
	args, err := agent.Encode(h.target.Args(n))
	if err != nil {
		return agent.Task{}, fmt.Errorf("effecttest: Args(%d) is no JSON that is accepted: %w", n, err)
	}
	s := h.target.Tool
	scope := "test/effecttest/" + s.Name + "-" + strconv.Itoa(n)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %d", scope, s.Name, args, ordinal))
	return agent.Task{Step: strconv.Itoa(ordinal) + ".1", Agent: "effecttest", Version: 1, Tool: s.Name, Args: args, Effect: s.Effect,
		Key: hex.EncodeToString(sum[:]), Scope: scope, Ordinal: ordinal, Tenant: "test", User: "user", Limit: 16 << 10}, nil
}

// portsOf are those of an attempt. Attempts that begin at the same moment are
// ordered too.
func (h *harness) portsOf(a *attempt) tool.Ports {
	p := h.ports(faulty{h})
	p.Began = h.began.Add(time.Duration(a.n) * time.Microsecond)
	return p
}

// ports are those of an undisturbed attempt.
func (h *harness) ports(l tool.Ledger) tool.Ports {
	return tool.Ports{Ledger: l, Keep: func(_ context.Context, whole []byte) (agent.Blob, error) {
		sum := sha256.Sum256(whole)
		return agent.Blob{Ref: hex.EncodeToString(sum[:]), Bytes: len(whole)}, nil
	}}
}
