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

const stopped = "the run was cancelled"

// fencing stops an effect.
func fencing(r tool.Runner, m *memory) (tool.Result, *tool.Failure) {
	out, err := r.(tool.Fencer).Fence(context.Background(), task, stopped, tool.Ports{Ledger: m})
	f := (*tool.Failure)(nil)
	errors.As(err, &f)
	return out, f
}

// What has not begun never happens, what has happened is told, and what nobody knows
// stays as it is: whatever the effect is.
func TestFence(t *testing.T) {
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
			_, f := fencing(r, m)
			isFailure(t, f, tool.FailedFenced, false, stopped)
			require.ErrorAs(t, attempt(m), &f)
			isFailure(t, f, tool.FailedFenced, false, stopped)
			require.Zero(t, runs)
			_, f = fencing(r, m)
			isFailure(t, f, tool.FailedFenced, false, stopped)
			// It did nothing, and said so.
			m, answer = newMemory(), tool.NotApplied(lost)
			require.Error(t, attempt(m))
			_, f = fencing(r, m)
			isFailure(t, f, tool.FailedFenced, false, stopped)
			// It happened.
			m, answer = newMemory(), nil
			require.NoError(t, attempt(m))
			out, f := fencing(r, m)
			require.Nil(t, f)
			require.Contains(t, out.JSON.String(), `"n":7`)
			// Nobody knows: it is not closed, since it may have happened.
			m, answer = newMemory(), lost
			require.Error(t, attempt(m))
			_, f = fencing(r, m)
			if name == "reconcilable" { // it may still be acted on; then the other side is asked
				isFailure(t, f, tool.FailedEarlier, true, "may still act")
				m.now = m.now.Add(f.Wait)
				_, f = fencing(r, m)
				isFailure(t, f, tool.FailedUnknown, true, "connection lost")
			} else {
				isFailure(t, f, tool.FailedUnknown, true, "did not say whether it happened")
			}
			require.Nil(t, m.rows[task.Key].settled)
			// The other side had refused it.
			m, answer = newMemory(), tool.Refused(errors.New("no such card"))
			require.Error(t, attempt(m))
			_, f = fencing(r, m)
			isFailure(t, f, tool.FailedRefused, false, "no such card")
			// An operator's hold keeps it from starting, and not from being stopped.
			m = newMemory()
			m.rows[task.Key] = &row{open: map[int]time.Time{}, held: "held by olga"}
			_, f = fencing(r, m)
			isFailure(t, f, tool.FailedFenced, false, stopped)
		})
	}
}

// The other side of a Reconcilable tool is asked, and what it says counts.
func TestFence_Asks(t *testing.T) {
	for happened, want := range map[bool]string{true: `"found key-1"`, false: stopped} {
		o, m := &otherSide{runErr: errors.New("connection lost"), happened: happened}, newMemory()
		_, err := o.tool().Attempt(context.Background(), task, tool.Ports{Ledger: m})
		require.Error(t, err)
		_, f := fencing(o.tool(), m)
		m.now = m.now.Add(f.Wait)
		out, f := fencing(o.tool(), m)
		if happened {
			require.Nil(t, f)
			require.Contains(t, out.JSON.String(), want)
		} else {
			isFailure(t, f, tool.FailedFenced, false, want)
		}
		require.Equal(t, 1, o.run)
	}
}

func TestFence_Transactional(t *testing.T) {
	for name, open := range map[string]func(testing.TB, string) *product{"sqlite": newSQLite, "postgres": newPostgres} {
		t.Run(name, func(t *testing.T) {
			p := open(t, "")
			r := transactional(p.DB, pay)
			fencing := func(tk agent.Task) (tool.Result, *tool.Failure) {
				out, err := r.(tool.Fencer).Fence(context.Background(), tk, stopped, tool.Ports{})
				f := (*tool.Failure)(nil)
				errors.As(err, &f)
				return out, f
			}
			_, f := fencing(keyed("never"))
			isFailure(t, f, tool.FailedFenced, false, stopped)
			_, f = attempt(r, keyed("never"))
			isFailure(t, f, tool.FailedFenced, false, stopped)
			require.Zero(t, p.paid(t))
			_, f = fencing(keyed("never"))
			isFailure(t, f, tool.FailedFenced, false, stopped)
			_, f = attempt(r, keyed("paid"))
			require.Nil(t, f)
			out, f := fencing(keyed("paid"))
			require.Nil(t, f)
			require.Contains(t, out.JSON.String(), "9007199254740993")
			require.Equal(t, 1, p.paid(t))
		})
	}
}
