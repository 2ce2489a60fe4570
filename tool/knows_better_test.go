package tool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/tool"
)

// What another attempt has recorded while this one ran is the answer, whatever
// this one found out: a run is never told that something did not happen which the
// ledger has as done.
func TestTheLedgerKnowsBetter(t *testing.T) {
	lost := errors.New("no answer")
	happened := &tool.Settlement{Result: tool.Result{JSON: []byte(`{"n":2}`)}}
	refused := &tool.Settlement{Refused: "card declined"}
	for name, err := range map[string]error{"not applied": tool.NotApplied(lost), "unknown": lost, "refused": tool.Refused(lost), "happened": nil} {
		for _, settled := range []*tool.Settlement{happened, refused} {
			m := newMemory()
			run := func(context.Context, tool.Key, args) (result, error) {
				m.rows[task.Key].settled = settled // by an attempt that overlaps
				return result{N: 1}, err
			}
			once := func(ctx context.Context, a args) (result, error) { return run(ctx, "", a) }
			lookUp := func(context.Context, tool.Key, args) (result, bool, error) { return result{}, false, nil }
			for effect, runner := range map[string]tool.Runner{
				"keyed":        tool.Keyed[state]("t", run, nil),
				"reconcilable": tool.Reconcilable[state]("t", run, lookUp, nil),
				"once":         tool.Once[state]("t", once, nil),
			} {
				m.rows = map[string]*row{}
				got, err := runner.Attempt(context.Background(), task, tool.Ports{Ledger: m})
				if settled == happened {
					require.NoError(t, err, "%s, %s", effect, name)
					require.Equal(t, happened.Result, got)
					continue
				}
				kind, _ := kindOf(t, err)
				require.Equal(t, tool.FailedRefused, kind, "%s, %s", effect, name)
				require.EqualError(t, err, "card declined")
			}
		}
	}
}

// An attempt that certainly had no effect tells of those that came after its own
// claim: the run must not hear that nothing happened.
func TestNotAppliedWhileAnotherRuns(t *testing.T) {
	m := newMemory()
	keyed := tool.Keyed[state]("t", func(ctx context.Context, _ tool.Key, _ args) (result, error) {
		_, err := m.Claim(ctx, task, tool.Terms{})
		require.NoError(t, err)
		return result{}, tool.NotApplied(errors.New("no connection"))
	}, nil)
	_, err := keyed.Attempt(context.Background(), task, tool.Ports{Ledger: m})
	kind, open := kindOf(t, err)
	require.Equal(t, tool.FailedNotApplied, kind)
	require.True(t, open)
}

func TestHeldAndUndone(t *testing.T) {
	ctx := context.Background()
	ran := 0
	run := func(context.Context, tool.Key, args) (result, error) { ran++; return result{}, nil }
	keyed := tool.Keyed[state]("t", run, nil)
	m := newMemory()
	m.rows[task.Key] = &row{held: "tool t is held by ann", open: nil}
	_, err := keyed.Attempt(ctx, task, tool.Ports{Ledger: m})
	var f *tool.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, []any{tool.FailedHeld, time.Duration(0), "tool t is held by ann", 0}, []any{f.Kind, f.Wait, f.Error(), ran})

	m.rows[task.Key] = &row{settled: &tool.Settlement{Result: tool.Result{JSON: []byte(`{}`)}, Undone: "u-1"}}
	_, err = keyed.Attempt(ctx, task, tool.Ports{Ledger: m})
	kind, _ := kindOf(t, err)
	require.Equal(t, []any{tool.FailedRefused, 0}, []any{kind, ran})
	require.ErrorContains(t, err, "it happened and was undone (by effect u-1); call it again to do it anew")
	_, stands, err := keyed.Standing(ctx, task, tool.Ports{Ledger: m})
	require.NoError(t, err)
	require.False(t, stands)
}
