package effecttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"interlock/agent"
	"interlock/tool"
)

var errLedger = errors.New("the ledger cannot be reached")

// ledgerTime is the longest that a call of the ledger takes: what an ended attempt
// has for its record.
const ledgerTime = 10 * time.Second

// faulty is the ledger of an attempt: slow, out of reach, and with a crash of the
// attempt's worker before and after each call.
type faulty struct{ h *harness }

// do makes one call. A call whose context has ended fails, done or not, as a
// database's does.
func (f faulty) do(ctx context.Context, what string, call func() error) error {
	h := f.h
	a := h.running()
	if a == nil || a.dead {
		runtime.Goexit() // a dead worker calls nobody
	}
	began := h.clock()
	h.meanwhile(a, ledgerTime)
	h.expire(a)
	if h.crash(a, "before "+what); a.dead {
		runtime.Goexit()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.clock().Sub(began) > ledgerTime {
		return context.DeadlineExceeded
	}
	if h.may("the ledger is out of reach before " + what) {
		return errLedger
	}
	if err := call(); err != nil {
		h.say("%s: %v", what, err)
		return err
	}
	if h.crash(a, "after "+what); a.dead {
		runtime.Goexit()
	}
	if h.may("the ledger's answer is lost after " + what) {
		return errLedger
	}
	h.meanwhile(a, ledgerTime)
	if h.expire(a); a.dead {
		runtime.Goexit()
	}
	return ctx.Err()
}

func (f faulty) Claim(ctx context.Context, t agent.Task, by tool.Terms) (row tool.Row, err error) {
	err = f.do(ctx, "the claim", func() (err error) { row, err = f.h.ledger.Claim(ctx, t, by); return err })
	if err != nil {
		return tool.Row{}, err
	}
	return row, nil
}

func (f faulty) Fence(ctx context.Context, t agent.Task, reason string) (row tool.Row, err error) {
	err = f.do(ctx, "the fence", func() (err error) { row, err = f.h.ledger.Fence(ctx, t, reason); return err })
	return row, err
}

func (f faulty) Settle(ctx context.Context, t agent.Task, s tool.Settlement) error {
	return f.do(ctx, "the settlement", func() error { return f.h.ledger.Settle(ctx, t, s) })
}

func (f faulty) Unknown(ctx context.Context, t agent.Task, attempt int, reason string) (row tool.Row, err error) {
	err = f.do(ctx, "the record that it is unknown", func() (err error) { row, err = f.h.ledger.Unknown(ctx, t, attempt, reason); return err })
	return row, err
}

func (f faulty) Release(ctx context.Context, t agent.Task, first, last int) (row tool.Row, err error) {
	err = f.do(ctx, "the release", func() (err error) { row, err = f.h.ledger.Release(ctx, t, first, last); return err })
	return row, err
}

func (f faulty) Undone(ctx context.Context, t agent.Task, by string) error {
	return f.do(ctx, "the record that it is undone", func() error { return f.h.ledger.Undone(ctx, t, by) })
}

func (f faulty) Row(ctx context.Context, t agent.Task) (row *tool.Row, err error) {
	err = f.do(ctx, "the look at the ledger", func() (err error) { row, err = f.h.ledger.Row(ctx, t); return err })
	return row, err
}

// NewLedger is a ledger in memory that goes by now.
func NewLedger(now func() time.Time) tool.Ledger {
	return &memory{now: now, rows: map[string]*row{}}
}

type memory struct {
	now  func() time.Time
	mu   sync.Mutex
	rows map[string]*row // by key
}

type row struct {
	settled  *tool.Settlement
	attempts int
	claimed  time.Time         // by the first attempt
	latest   time.Time         // when the latest attempt was counted
	began    time.Time         // of the latest attempt
	open     map[int]time.Time // deadlines of the attempts that may have had the effect, by number
}

func (r *row) row() tool.Row {
	return tool.Row{Settled: r.settled, Attempt: r.attempts, Open: r.settled == nil && len(r.open) > 0, Tried: r.latest.Sub(r.claimed)}
}

// deadline is the latest of the open attempts'.
func (r *row) deadline() (latest time.Time) {
	for _, d := range r.open {
		if d.After(latest) {
			latest = d
		}
	}
	return latest
}

func (m *memory) Claim(_ context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, now := m.rows[t.Key], m.now()
	late := !by.NotAfter.IsZero() && now.After(by.NotAfter)
	if r == nil {
		if late {
			return tool.Row{Late: true}, nil
		}
		r = &row{open: map[int]time.Time{}, claimed: now}
		m.rows[t.Key] = r
	}
	out := r.row()
	if r.settled == nil && by.Began.Before(r.began) {
		return tool.Row{}, agent.Errorf(agent.CodeUnavailable, "a later attempt has claimed this effect: this one is overtaken")
	}
	if out.Late = late && r.settled == nil && !out.Open; out.Late {
		return out, nil
	}
	if out.Wait = r.deadline().Add(by.Grace).Sub(now); by.Exclusive && out.Open && out.Wait > 0 {
		return out, nil
	}
	if out.Wait = 0; r.settled == nil {
		r.attempts, r.began, r.latest = r.attempts+1, by.Began, now
		r.open[r.attempts] = now.Add(by.Attempt)
	}
	out.Attempt, out.Tried = r.attempts, r.latest.Sub(r.claimed)
	return out, nil
}

func (m *memory) Fence(_ context.Context, t agent.Task, reason string) (tool.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, now := m.rows[t.Key], m.now()
	if r == nil {
		r = &row{open: map[int]time.Time{}, claimed: now, latest: now}
		m.rows[t.Key] = r
	}
	if r.settled == nil && len(r.open) == 0 {
		r.settled = &tool.Settlement{Refused: reason, Fenced: true}
	}
	out := r.row()
	if out.Open {
		out.Wait = max(r.deadline().Add(tool.Grace).Sub(now), 0)
	}
	return out, nil
}

// change is what all but a claim do: on the row that stands.
func (m *memory) change(t agent.Task, by func(*row) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[t.Key]
	if r == nil {
		return fmt.Errorf("the ledger has no key %s", t.Key)
	}
	return by(r)
}

// Settle: a settled row never changes again.
func (m *memory) Settle(_ context.Context, t agent.Task, s tool.Settlement) error {
	return m.change(t, func(r *row) error {
		if r.settled == nil {
			r.settled = &s
		}
		if r.settled.Fenced || r.settled.Refused != s.Refused || !r.settled.Result.Stored().Equal(s.Result.Stored()) {
			return agent.Errorf(agent.CodeConflict, "it is settled with another outcome, which stays")
		}
		return nil
	})
}

func (m *memory) Unknown(_ context.Context, t agent.Task, _ int, _ string) (out tool.Row, err error) {
	err = m.change(t, func(r *row) error { out = r.row(); return nil })
	return out, err
}

func (m *memory) Release(_ context.Context, t agent.Task, first, last int) (out tool.Row, err error) {
	err = m.change(t, func(r *row) error {
		for n := first; n <= last; n++ {
			delete(r.open, n)
		}
		out = r.row()
		return nil
	})
	return out, err
}

func (m *memory) Undone(_ context.Context, t agent.Task, by string) error {
	return m.change(t, func(r *row) error {
		s, err := tool.Undo(r.settled, t.Key, by)
		if err == nil {
			r.settled = &s
		}
		return err
	})
}

func (m *memory) Row(_ context.Context, t agent.Task) (*tool.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[t.Key]
	if r == nil {
		return nil, nil
	}
	out := r.row()
	return &out, nil
}
