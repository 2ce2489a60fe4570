package tool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// closing asks what became of an effect that was told to stop.
func closing(r tool.Runner, m *memory) (tool.Result, *tool.Failure) {
	out, err := r.(tool.Closer).Close(context.Background(), task, tool.Ports{Ledger: m})
	f := (*tool.Failure)(nil)
	errors.As(err, &f)
	return out, f
}

// What has not happened is closed for good, what has is told, and what nobody knows
// is in doubt: whatever the effect is.
func TestClose(t *testing.T) {
	lost := errors.New("connection lost")
	for name, effect := range map[string]func(run func() (result, error)) tool.Runner{
		"keyed": func(run func() (result, error)) tool.Runner {
			return tool.Keyed("t", func(context.Context, tool.Key, args) (result, error) { return run() }, func(*state, args, result) error { return nil })
		},
		"once": func(run func() (result, error)) tool.Runner {
			return tool.Once("t", func(context.Context, args) (result, error) { return run() }, func(*state, args, result) error { return nil })
		},
		"reconcilable": func(run func() (result, error)) tool.Runner {
			return tool.Reconcilable("t", func(context.Context, tool.Key, args) (result, error) { return run() },
				func(context.Context, tool.Key, args) (result, bool, error) { return result{}, false, lost }, func(*state, args, result) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			var answer error
			runs := 0
			r := effect(func() (result, error) { runs++; return result{N: 7}, answer })
			attempt := func(m *memory) error {
				_, err := r.Attempt(context.Background(), task, tool.Ports{Ledger: m})
				return err
			}
			// Never begun: an attempt that comes later, of a worker that slept, is refused.
			m := newMemory()
			_, f := closing(r, m)
			isFailure(t, f, tool.FailedRefused, false, "told to stop before it happened")
			require.ErrorContains(t, attempt(m), "told to stop")
			require.Zero(t, runs)
			_, f = closing(r, m)
			isFailure(t, f, tool.FailedRefused, false, "told to stop")
			// It did nothing, and said so.
			m, answer = newMemory(), tool.NotApplied(lost)
			require.Error(t, attempt(m))
			_, f = closing(r, m)
			isFailure(t, f, tool.FailedRefused, false, "told to stop")
			// It happened.
			m, answer = newMemory(), nil
			require.NoError(t, attempt(m))
			out, f := closing(r, m)
			require.Nil(t, f)
			require.Contains(t, out.JSON.String(), `"n":7`)
			// Nobody knows: it is not closed, since it may have happened.
			m, answer = newMemory(), lost
			require.Error(t, attempt(m))
			_, f = closing(r, m)
			if name == "reconcilable" { // it may still be acted on; then the other side is asked
				isFailure(t, f, tool.FailedEarlier, true, "may still act")
				m.now = m.now.Add(f.Wait)
				_, f = closing(r, m)
				isFailure(t, f, tool.FailedUnknown, true, "connection lost")
			} else {
				isFailure(t, f, tool.FailedInDoubt, true, "did not say whether it had happened")
			}
			require.Nil(t, m.rows[task.Key].settled)
			// An operator's hold keeps it from starting: there is nothing to close.
			m = newMemory()
			m.rows[task.Key] = &row{open: map[int]time.Time{}, held: "held by olga"}
			_, f = closing(r, m)
			isFailure(t, f, tool.FailedNotApplied, false, "told to stop")
		})
	}
}

// The other side of a Reconcilable tool is asked, and what it says counts.
func TestClose_Asks(t *testing.T) {
	for happened, want := range map[bool]string{true: `"found key-1"`, false: "told to stop"} {
		o, m := &otherSide{runErr: errors.New("connection lost"), happened: happened}, newMemory()
		_, err := o.tool().Attempt(context.Background(), task, tool.Ports{Ledger: m})
		require.Error(t, err)
		_, f := closing(o.tool(), m)
		m.now = m.now.Add(f.Wait)
		out, f := closing(o.tool(), m)
		if happened {
			require.Nil(t, f)
			require.Contains(t, out.JSON.String(), want)
		} else {
			isFailure(t, f, tool.FailedRefused, false, want)
		}
		require.Equal(t, 1, o.run)
	}
}

func TestClose_Transactional(t *testing.T) {
	p := newSQLite(t, "")
	r := transactional(p.DB, pay)
	closing := func(tk agent.Task) (tool.Result, *tool.Failure) {
		out, err := r.(tool.Closer).Close(context.Background(), tk, tool.Ports{})
		f := (*tool.Failure)(nil)
		errors.As(err, &f)
		return out, f
	}
	_, f := closing(keyed("never"))
	isFailure(t, f, tool.FailedRefused, false, "told to stop")
	_, f = attempt(r, keyed("never"))
	isFailure(t, f, tool.FailedRefused, false, "told to stop")
	require.Zero(t, p.paid(t))
	_, f = closing(keyed("never"))
	isFailure(t, f, tool.FailedRefused, false, "told to stop")
	_, f = attempt(r, keyed("paid"))
	require.Nil(t, f)
	out, f := closing(keyed("paid"))
	require.Nil(t, f)
	require.Contains(t, out.JSON.String(), "9007199254740993")
	require.Equal(t, 1, p.paid(t))
}
