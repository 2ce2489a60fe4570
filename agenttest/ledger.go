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
	settled            *tool.Settlement
	attempts, released int
}

func (r *row) open() bool { return r.attempts > r.released }

// Claim implements [tool.Ledger]. No attempt overlaps another here.
func (l *Ledger) Claim(_ context.Context, t agent.Task, _ tool.Terms) (tool.Row, error) {
	if l.rows == nil {
		l.rows = map[string]*row{}
	}
	r := l.rows[t.Key]
	if r == nil {
		r = &row{}
		l.rows[t.Key] = r
	}
	out := tool.Row{Settled: r.settled, Open: r.open()}
	if r.settled == nil {
		r.attempts++
	}
	return out, nil
}

// Settle implements [tool.Ledger].
func (l *Ledger) Settle(_ context.Context, t agent.Task, s tool.Settlement) error {
	l.rows[t.Key].settled = &s
	return nil
}

// Unknown implements [tool.Ledger].
func (l *Ledger) Unknown(context.Context, agent.Task, string) error { return nil }

// Release implements [tool.Ledger].
func (l *Ledger) Release(_ context.Context, t agent.Task) error {
	l.rows[t.Key].released++
	return nil
}

// Row implements [tool.Ledger].
func (l *Ledger) Row(_ context.Context, t agent.Task) (*tool.Row, error) {
	r := l.rows[t.Key]
	if r == nil {
		return nil, nil
	}
	return &tool.Row{Settled: r.settled, Open: r.open()}, nil
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
