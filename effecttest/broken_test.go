package effecttest_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/effecttest"
	"interlock/tool"
)

// brokenTools are wrong in one way each.
var brokenTools = map[string]struct {
	kind effecttest.Kind
	make func(*bank) effecttest.Subject
}{
	"keyed: the other side ignores the key": {effecttest.Repeated, func(b *bank) effecttest.Subject {
		b.ignoresKey = true
		return effecttest.Tool(b.keyed())
	}},
	"keyed: each attempt makes a key of its own": {effecttest.Repeated, func(b *bank) effecttest.Subject {
		n := 0
		return effecttest.Tool(tool.Keyed("charge", func(ctx context.Context, _ tool.Key, c charge) (charged, error) {
			n++
			return b.charge(ctx, tool.Key(strconv.Itoa(n)), c)
		}, commit))
	}},
	"keyed: the key is made of the arguments, without the ordinal": {effecttest.Lost, func(b *bank) effecttest.Subject {
		return effecttest.Tool(tool.Keyed("charge", func(ctx context.Context, _ tool.Key, c charge) (charged, error) {
			return b.charge(ctx, tool.Key(strconv.Itoa(c.Order)), c)
		}, commit).Repeatable())
	}},
	"keyed: not applied although it happened": {effecttest.Lost, func(b *bank) effecttest.Subject {
		return effecttest.Tool(tool.Keyed("charge", errorsAs(b.charge, tool.NotApplied), commit))
	}},
	"keyed: refused although it happened": {effecttest.Lost, func(b *bank) effecttest.Subject {
		return effecttest.Tool(tool.Keyed("charge", errorsAs(b.charge, tool.Refused), commit))
	}},
	"keyed: an error is taken for success": {effecttest.Lost, func(b *bank) effecttest.Subject {
		return effecttest.Tool(tool.Keyed("charge", errorsAs(b.charge, func(error) error { return nil }), commit))
	}},
	"keyed: an error forever": {effecttest.Stuck, func(b *bank) effecttest.Subject {
		return effecttest.Tool(tool.Keyed("charge", func(ctx context.Context, k tool.Key, c charge) (charged, error) {
			_, _ = b.charge(ctx, k, c)
			return charged{}, errors.New("the answer does not decode")
		}, commit))
	}},
	"reconcilable: the look-up always says no": {effecttest.Repeated, func(b *bank) effecttest.Subject {
		b.ignoresKey = true
		return effecttest.Tool(tool.Reconcilable("charge", b.charge, func(context.Context, tool.Key, charge) (charged, bool, error) {
			return charged{}, false, nil
		}, commit))
	}},
	"reconcilable: the look-up always says yes": {effecttest.Lost, func(b *bank) effecttest.Subject {
		return effecttest.Tool(tool.Reconcilable("charge", b.charge, func(context.Context, tool.Key, charge) (charged, bool, error) {
			return charged{}, true, nil
		}, commit))
	}},
	"reconcilable: a look-up that failed says no": {effecttest.Repeated, func(b *bank) effecttest.Subject {
		b.ignoresKey = true
		return effecttest.Tool(tool.Reconcilable("charge", b.charge, func(ctx context.Context, k tool.Key, c charge) (charged, bool, error) {
			r, happened, _ := b.lookUp(ctx, k, c)
			return r, happened, nil
		}, commit))
	}},
	"reconcilable: the look-up lags behind": {effecttest.Repeated, func(b *bank) effecttest.Subject {
		b.ignoresKey = true
		asked := map[tool.Key]bool{}
		return effecttest.Tool(tool.Reconcilable("charge", b.charge, func(ctx context.Context, k tool.Key, c charge) (charged, bool, error) {
			r, happened, err := b.lookUp(ctx, k, c)
			happened = happened && asked[k]
			asked[k] = true
			return r, happened, err
		}, commit))
	}},
	"reconcilable: not applied although it happened": {effecttest.Repeated, func(b *bank) effecttest.Subject {
		b.ignoresKey = true
		return effecttest.Tool(tool.Reconcilable("charge", errorsAs(b.charge, tool.NotApplied), b.lookUp, commit))
	}},
	"once: not applied although it happened": {effecttest.Repeated, func(b *bank) effecttest.Subject {
		return effecttest.Tool(tool.Once("charge", func(ctx context.Context, c charge) (charged, error) {
			r, err := b.shot(ctx, c)
			if err != nil {
				err = tool.NotApplied(err)
			}
			return r, err
		}, commit))
	}},
	"once: its function tries again": {effecttest.Repeated, func(b *bank) effecttest.Subject {
		return effecttest.Tool(tool.Once("charge", func(ctx context.Context, c charge) (charged, error) {
			r, err := b.shot(ctx, c)
			if err != nil {
				return b.shot(ctx, c)
			}
			return r, err
		}, commit))
	}},
	"once: its runner runs it again": {effecttest.Repeated, func(b *bank) effecttest.Subject {
		return effecttest.Subject{Name: "charge", Effect: agent.Once, Runner: runsAgain{b}}
	}},
}

// A kit that cannot fail proves nothing.
func TestBrokenToolsFail(t *testing.T) {
	for name, c := range brokenTools {
		t.Run(name, func(t *testing.T) {
			b := newBank()
			v := fails(t, c.kind, b.target(c.make(b)), effecttest.Options{Rounds: 3000, Seed: 1})
			require.LessOrEqual(t, v.Faults, 7, "only the faults that are needed: %v", v)
			t.Log(v)
		})
	}
}

// errorsAs makes all errors of a function into those of one kind.
func errorsAs(run func(context.Context, tool.Key, charge) (charged, error), kind func(error) error) func(context.Context, tool.Key, charge) (charged, error) {
	return func(ctx context.Context, k tool.Key, c charge) (charged, error) {
		r, err := run(ctx, k, c)
		if err != nil {
			err = kind(err)
		}
		return r, err
	}
}

// runsAgain is a protocol that forgot what an open claim means.
type runsAgain struct{ b *bank }

func (r runsAgain) Attempt(ctx context.Context, t agent.Task, p tool.Ports) (tool.Result, error) {
	row, err := p.Ledger.Claim(ctx, t, tool.Terms{Attempt: time.Minute, Exclusive: true, Grace: time.Second})
	switch {
	case err != nil:
		return tool.Result{}, &tool.Failure{Kind: tool.FailedStore, Err: err}
	case row.Wait > 0:
		return tool.Result{}, &tool.Failure{Kind: tool.FailedEarlier, Err: errors.New("wait"), Wait: row.Wait, Open: true}
	case row.Settled != nil:
		return row.Settled.Result, nil
	}
	n, _ := agent.Encode(t.Ordinal)
	var c charge
	c.Order, _ = strconv.Atoi(string(t.Args[len(`{"order":`) : len(t.Args)-1]))
	if _, err := r.b.shot(ctx, c); err != nil {
		return tool.Result{}, &tool.Failure{Kind: tool.FailedUnknown, Err: err, Open: true}
	}
	if err := p.Ledger.Settle(ctx, t, tool.Settlement{Result: tool.Result{JSON: n}}); err != nil {
		return tool.Result{}, &tool.Failure{Kind: tool.FailedUnknown, Err: err, Open: true}
	}
	return tool.Result{JSON: n}, nil
}

func (r runsAgain) Standing(ctx context.Context, t agent.Task, p tool.Ports) (tool.Result, bool, error) {
	row, err := p.Ledger.Row(ctx, t)
	if err != nil || row == nil || row.Settled == nil {
		return tool.Result{}, false, err
	}
	return row.Settled.Result, true, nil
}

func (runsAgain) Undone(context.Context, agent.Task, string, tool.Ports) error {
	return errors.New("nothing here is undone")
}

// Ledgers that are wrong in one way, under correct tools.
type (
	noClaim       struct{ tool.Ledger } // forgets who claimed
	noSettle      struct{ tool.Ledger } // forgets how it ended
	noWait        struct{ tool.Ledger } // grants every claim at once
	neverOpen     struct{ tool.Ledger } // takes an attempt that died for none
	noGrace       struct{ tool.Ledger } // does not wait for what is on its way
	noOrdinal     struct{ tool.Ledger } // knows effects by their arguments
	unknownIsNone struct{ tool.Ledger } // takes an unknown attempt for one without an effect
	lastWins      struct {              // lets a settled row change
		tool.Ledger
		rows map[string]tool.Settlement
	}
)

func (l noClaim) Claim(_ context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	_, err := l.Ledger.Claim(context.Background(), t, tool.Terms{})
	return tool.Row{}, err
}

func (l noSettle) Settle(context.Context, agent.Task, tool.Settlement) error { return nil }

func (l noWait) Claim(ctx context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	by.Exclusive = false
	return l.Ledger.Claim(ctx, t, by)
}

func (l neverOpen) Claim(ctx context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	row, err := l.Ledger.Claim(ctx, t, by)
	row.Open = false
	return row, err
}

func (l noGrace) Claim(ctx context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	by.Attempt, by.Grace = time.Second, 0
	return l.Ledger.Claim(ctx, t, by)
}

func byArgs(t agent.Task) agent.Task { t.Key = string(t.Args); return t }

func (l noOrdinal) Claim(ctx context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	return l.Ledger.Claim(ctx, byArgs(t), by)
}
func (l noOrdinal) Settle(ctx context.Context, t agent.Task, s tool.Settlement) error {
	return l.Ledger.Settle(ctx, byArgs(t), s)
}
func (l noOrdinal) Unknown(ctx context.Context, t agent.Task, attempt int, reason string) (tool.Row, error) {
	return l.Ledger.Unknown(ctx, byArgs(t), attempt, reason)
}
func (l noOrdinal) Release(ctx context.Context, t agent.Task, first, last int) (tool.Row, error) {
	return l.Ledger.Release(ctx, byArgs(t), first, last)
}
func (l noOrdinal) Row(ctx context.Context, t agent.Task) (*tool.Row, error) {
	return l.Ledger.Row(ctx, byArgs(t))
}

func (l unknownIsNone) Unknown(ctx context.Context, t agent.Task, attempt int, _ string) (tool.Row, error) {
	return l.Ledger.Release(ctx, t, attempt, attempt)
}

func (l lastWins) Settle(ctx context.Context, t agent.Task, s tool.Settlement) error {
	_ = l.Ledger.Settle(ctx, t, s)
	l.rows[t.Key] = s
	return nil
}

func (l lastWins) Claim(ctx context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	row, err := l.Ledger.Claim(ctx, t, by)
	if s, ok := l.rows[t.Key]; ok && err == nil {
		row.Settled = &s
	}
	return row, err
}

func (l lastWins) Row(ctx context.Context, t agent.Task) (*tool.Row, error) {
	row, err := l.Ledger.Row(ctx, t)
	if s, ok := l.rows[t.Key]; ok && err == nil {
		row.Settled = &s
	}
	return row, err
}

// brokenLedgers names the tools that find a ledger out.
var brokenLedgers = []struct {
	name string
	make func(tool.Ledger) tool.Ledger
	want map[string]effecttest.Kind // by tool
}{
	{"no claim", func(l tool.Ledger) tool.Ledger { return noClaim{l} },
		map[string]effecttest.Kind{"reconcilable": effecttest.Repeated, "once": effecttest.Repeated}},
	{"no settlement", func(l tool.Ledger) tool.Ledger { return noSettle{l} },
		map[string]effecttest.Kind{"keyed": effecttest.Lost, "reconcilable": effecttest.Lost, "once": effecttest.Lost}},
	{"no wait", func(l tool.Ledger) tool.Ledger { return noWait{l} },
		map[string]effecttest.Kind{"reconcilable": effecttest.Repeated}},
	{"never open", func(l tool.Ledger) tool.Ledger { return neverOpen{l} },
		map[string]effecttest.Kind{"reconcilable": effecttest.Repeated, "once": effecttest.Repeated}},
	{"no grace", func(l tool.Ledger) tool.Ledger { return noGrace{l} },
		map[string]effecttest.Kind{"reconcilable": effecttest.Repeated}},
	{"no ordinal", func(l tool.Ledger) tool.Ledger { return noOrdinal{l} },
		map[string]effecttest.Kind{"repeatable": effecttest.Lost}},
	{"unknown is released", func(l tool.Ledger) tool.Ledger { return unknownIsNone{l} },
		map[string]effecttest.Kind{"reconcilable": effecttest.Repeated, "once": effecttest.Repeated}},
	{"the last settlement wins", func(l tool.Ledger) tool.Ledger { return lastWins{l, map[string]tool.Settlement{}} },
		map[string]effecttest.Kind{"numbered": effecttest.Lost}},
}

// numbered answers each request with another number, as a side may that says
// when it was asked.
func numbered(b *bank) *tool.Tool[state, charge, charged] {
	n := 0
	return tool.Keyed("charge", func(ctx context.Context, k tool.Key, c charge) (charged, error) {
		_, err := b.charge(ctx, k, c)
		n++
		return charged{strconv.Itoa(n)}, err
	}, commit)
}

func TestBrokenLedgersFail(t *testing.T) {
	for _, c := range brokenLedgers {
		for name, kind := range c.want {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				b := newBank()
				b.ignoresKey = name == "reconcilable" // it is asked, and does not dedupe
				subject := effecttest.Tool(numbered(b))
				if make, ok := passes[name]; ok {
					subject = make(b)
				}
				o := effecttest.Options{Rounds: 3000, Seed: 1, Ledger: func(now func() time.Time) tool.Ledger { return c.make(effecttest.NewLedger(now)) }}
				t.Log(fails(t, kind, b.target(subject), o))
				require.NoError(t, effecttest.Check(t.Context(), b.target(subject), effecttest.Options{Rounds: 300}), "with a ledger that is right")
			})
		}
	}
}
