package store

import (
	"context"
	"strings"

	"interlock/agent"
)

// Events reads journals; see [Reader].
type Events interface {
	Events(ctx context.Context, c Chain, from int64, limit int) ([]agent.Event, error)
}

// Redaction is what hides a run's sensitive values from whoever decides nothing, as its
// journal has it now. A run without sensitive fields costs the reading of one event.
// CodeNotFound: the journal does not know the run (yet).
func Redaction(ctx context.Context, r Events, c Chain) (*agent.Redaction, error) {
	run, err := redacting(ctx, r, c)
	if err != nil {
		return nil, err
	}
	return run.Redaction(), nil
}

// RedactionAt is the same for who decides about a gate of the run.
func RedactionAt(ctx context.Context, r Events, c Chain, g agent.Gate) (*agent.Redaction, error) {
	run, err := redacting(ctx, r, c)
	if err != nil {
		return nil, err
	}
	return run.RedactionAt(g), nil
}

func redacting(ctx context.Context, r Events, c Chain) (*agent.Run, error) {
	events, err := r.Events(ctx, c, 1, 1)
	if err == nil && len(events) == 0 {
		err = agent.Errorf(agent.CodeNotFound, "there is no run %s", c.Address)
	}
	if err != nil {
		return nil, err
	}
	run, err := agent.Reduce(events)
	if err != nil || len(run.Sensitive) == 0 {
		return run, err
	}
	if events, err = r.Events(ctx, c, 1, 0); err != nil {
		return nil, err
	}
	return agent.Reduce(events)
}

// Redactions are those of several runs, each made once. Where one cannot be made,
// everything that the run has said is hidden.
type Redactions struct {
	Reader Events
	made   map[Chain]*agent.Redaction
}

// Of is the run's.
func (m *Redactions) Of(ctx context.Context, c Chain) *agent.Redaction {
	if x := m.made[c]; x != nil {
		return x
	}
	x, err := Redaction(ctx, m.Reader, c)
	if err != nil {
		x = agent.HideAll()
	}
	if m.made == nil {
		m.made = map[Chain]*agent.Redaction{}
	}
	m.made[c] = x
	return x
}

// OfEffect is that of the run that an effect is of.
func (m *Redactions) OfEffect(ctx context.Context, e Effect) *agent.Redaction {
	first, own := strings.CutPrefix(e.Scope, e.Address+"/")
	if !own {
		first = "" // a repair run's, in the scope of another
	}
	return m.Of(ctx, Chain{Tenant: e.Tenant, Address: e.Address, FirstRunID: first})
}

// Learn tells of the events behind those that are known.
func Learn(ctx context.Context, r Events, c Chain, known *agent.Follow) error {
	events, err := r.Events(ctx, c, known.Seq()+1, 0)
	known.Learn(events...)
	return err
}

// Live redacts an answer on its way, piece by piece: the end of what has come is held
// back as long as it may be the beginning of a sensitive value. Of an answer of which a
// piece is missing nothing more is shown, where there is something to hide.
type Live struct {
	Reader Events
	Chain  Chain

	of    [2]int // turn and attempt
	text  string // as it came
	shown string // of it, redacted
	n     int
	x     *agent.Redaction
}

// Text is what the piece adds to what is shown.
func (l *Live) Text(ctx context.Context, d Delta) string {
	if l.x == nil || l.of != [2]int{d.Turn, d.Attempt} {
		x, err := Redaction(ctx, l.Reader, l.Chain)
		if err != nil {
			x = agent.HideAll()
		}
		l.of, l.text, l.shown, l.n, l.x = [2]int{d.Turn, d.Attempt}, "", "", 0, x
	}
	if !l.x.HidesTexts() {
		return d.Text
	}
	if d.N != l.n+1 {
		return ""
	}
	l.n, l.text = d.N, l.text+d.Text
	now := l.x.Settled(l.text)
	added, goesOn := strings.CutPrefix(now, l.shown)
	if !goesOn {
		return "" // what was shown stays
	}
	l.shown = now
	return added
}

// Row is a line of a list of runs, its reason redacted where it is somebody's words.
func (m *Redactions) Row(ctx context.Context, tenant string, r RunRow) RunRow {
	if strings.Contains(r.Head.Reason, " ") {
		r.Head.Reason = m.Of(ctx, Chain{Tenant: tenant, Address: r.Address, FirstRunID: r.FirstRunID}).Text(r.Head.Reason)
	}
	return r
}
