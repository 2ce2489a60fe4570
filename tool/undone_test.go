package tool_test

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// undoable are a tool of each effect that a ledger or a database holds.
func undoable(t *testing.T) map[string]tool.Runner {
	commit := func(*state, args, result) error { return nil }
	run := func(a args) (result, error) {
		if a.N < 0 {
			return result{}, tool.Refused(errors.New("closed"))
		}
		return result{N: a.N}, nil
	}
	inTx := func(_ context.Context, _ *sql.Tx, a args) (result, error) { return run(a) }
	keyed := func(_ context.Context, _ tool.Key, a args) (result, error) { return run(a) }
	return map[string]tool.Runner{
		"keyed": tool.Keyed("t", keyed, commit),
		"reconcilable": tool.Reconcilable("t", keyed, func(context.Context, tool.Key, args) (result, bool, error) {
			return result{}, false, nil
		}, commit),
		"once":                    tool.Once("t", func(_ context.Context, a args) (result, error) { return run(a) }, commit),
		"transactional, sqlite":   transactional(openers["sqlite"](t).DB, inTx),
		"transactional, postgres": transactional(openers["postgres"](t).DB, inTx),
	}
}

func TestUndone(t *testing.T) {
	ctx := context.Background()
	for name, r := range undoable(t) {
		t.Run(name, func(t *testing.T) {
			p := tool.Ports{Ledger: newMemory()}
			isConflict := func(err error, says string) {
				t.Helper()
				require.ErrorContains(t, err, says)
				require.Equal(t, agent.CodeConflict, agent.ErrorCode(err))
			}
			isConflict(r.Undone(ctx, task, "undo-1", p), "has not happened")
			_, err := r.Attempt(ctx, task, p)
			require.NoError(t, err)
			for range 2 {
				require.NoError(t, r.Undone(ctx, task, "undo-1", p))
			}
			isConflict(r.Undone(ctx, task, "undo-2", p), "was undone already, by effect undo-1")
			_, err = r.Attempt(ctx, task, p)
			kind, _ := kindOf(t, err)
			require.Equal(t, tool.FailedRefused, kind)
			require.EqualError(t, err, "it happened and was undone (by effect undo-1); call it again to do it anew")
			_, ok, err := r.Standing(ctx, task, p)
			require.NoError(t, err)
			require.False(t, ok)

			anew := task
			anew.Key, anew.Ordinal = "key-2", 1
			_, err = r.Attempt(ctx, anew, p)
			require.NoError(t, err)

			refused := task
			refused.Key, refused.Args = "key-3", agent.JSON(`{"n":-1}`)
			_, err = r.Attempt(ctx, refused, p)
			require.EqualError(t, err, "closed")
			isConflict(r.Undone(ctx, refused, "undo-1", p), "has not happened")
			for _, by := range []string{"", task.Key} {
				err := r.Undone(ctx, task, by, p)
				require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), err)
			}
		})
	}
	read := tool.ReadOnly("t", func(context.Context, args) (result, error) { return result{}, nil }, func(*state, args, result) error { return nil })
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(read.Undone(ctx, task, "undo-1", tool.Ports{})))
}

// Of two that undo the same effect one wins, and what nobody knows to have happened
// is not undone.
func TestUndone_AtOnce(t *testing.T) {
	ctx := context.Background()
	for engine, open := range openers {
		t.Run(engine, func(t *testing.T) {
			db := open(t)
			r := transactional(db.DB, pay)
			untilSettled(t, r, keyed("k"))
			var won atomic.Int32
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					if err := r.Undone(ctx, keyed("k"), "undo-"+strconv.Itoa(i), tool.Ports{}); err == nil {
						won.Add(1)
					} else if agent.ErrorCode(err) != agent.CodeConflict {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 1, won.Load())
			require.Equal(t, 1, db.count(t, `SELECT count(*) FROM interlock_effects WHERE undone_by <> '' AND undone_at <> ''`))

			half := transactional(db.DB, functions["commits, and then an error"].run)
			_, f := attempt(half, keyed("l"))
			isFailure(t, f, tool.FailedInDoubt, true, "")
			require.Equal(t, agent.CodeConflict, agent.ErrorCode(half.Undone(ctx, keyed("l"), "undo", tool.Ports{})))
		})
	}
}
