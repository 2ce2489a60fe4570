package agenttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"interlock/agent"
	"interlock/tool"
)

// Ledger is a ledger of effects in memory. The zero value is empty. It implements
// [tool.Ledger], and is not safe for concurrent use.
type Ledger struct{ rows map[string]*row }

type row struct {
	settled  *tool.Settlement
	attempts int
	released map[int]bool // by number
}

func (r *row) open() bool { return r.settled == nil && r.attempts > len(r.released) }

func (r *row) row() tool.Row { return tool.Row{Settled: r.settled, Open: r.open()} }

func (r *row) release(first, last int) {
	for n := first; n <= last; n++ {
		r.released[n] = true
	}
}

// Claim implements [tool.Ledger]. No attempt overlaps another here.
func (l *Ledger) Claim(_ context.Context, t agent.Task, _ tool.Terms) (tool.Row, error) {
	if l.rows == nil {
		l.rows = map[string]*row{}
	}
	r := l.rows[t.Key]
	if r == nil {
		r = &row{released: map[int]bool{}}
		l.rows[t.Key] = r
	}
	out := tool.Row{Settled: r.settled, Open: r.open()}
	if r.settled == nil {
		r.attempts++
	}
	out.Attempt = r.attempts
	return out, nil
}

// Fence implements [tool.Ledger].
func (l *Ledger) Fence(_ context.Context, t agent.Task, reason string) (tool.Row, error) {
	if l.rows == nil {
		l.rows = map[string]*row{}
	}
	r := l.rows[t.Key]
	if r == nil {
		r = &row{released: map[int]bool{}}
		l.rows[t.Key] = r
	}
	if r.settled == nil && !r.open() {
		r.settled = &tool.Settlement{Refused: reason, Fenced: true}
	}
	out := r.row()
	out.Attempt = r.attempts
	return out, nil
}

// Settle implements [tool.Ledger].
func (l *Ledger) Settle(_ context.Context, t agent.Task, s tool.Settlement) error {
	l.rows[t.Key].settled = &s
	return nil
}

// Unknown implements [tool.Ledger].
func (l *Ledger) Unknown(_ context.Context, t agent.Task, _ int, _ string) (tool.Row, error) {
	return l.rows[t.Key].row(), nil
}

// Release implements [tool.Ledger].
func (l *Ledger) Release(_ context.Context, t agent.Task, first, last int) (tool.Row, error) {
	l.rows[t.Key].release(first, last)
	return l.rows[t.Key].row(), nil
}

// Row implements [tool.Ledger].
func (l *Ledger) Row(_ context.Context, t agent.Task) (*tool.Row, error) {
	r := l.rows[t.Key]
	if r == nil {
		return nil, nil
	}
	out := r.row()
	return &out, nil
}

// Undone implements [tool.Ledger].
func (l *Ledger) Undone(_ context.Context, t agent.Task, by string) error {
	r := l.rows[t.Key]
	if r == nil {
		r = &row{}
	}
	s, err := tool.Undo(r.settled, t.Key, by)
	if err == nil {
		r.settled = &s
	}
	return err
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func unmarshal(j agent.JSON, into any) error { return json.Unmarshal([]byte(j.String()), into) }
