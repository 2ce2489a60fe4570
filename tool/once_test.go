package tool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"interlock/agent"
	"interlock/tool"
)

func TestOnce(t *testing.T) {
	runs, m := 0, newMemory()
	var answer error
	shot := tool.Once("t", func(_ context.Context, a args) (result, error) {
		runs++
		return result{N: a.N}, answer
	}, func(*state, args, result) error { return nil }).Within(5*time.Second, time.Hour)
	require.Equal(t, agent.Once, shot.Spec().Effect)
	attempt := func() (tool.Result, *tool.Failure) {
		r, err := shot.Attempt(context.Background(), task, tool.Ports{Ledger: m})
		var f *tool.Failure
		require.Equal(t, err != nil, errors.As(err, &f))
		return r, f
	}
	// What certainly did nothing may be tried again, at once.
	answer = tool.NotApplied(errors.New("no line"))
	_, f := attempt()
	require.Equal(t, tool.FailedNotApplied, f.Kind)
	require.Equal(t, tool.Terms{Attempt: 5*time.Second + tool.Overhead, Exclusive: true, Grace: tool.Grace}, m.terms)
	// What nobody knows may not: while the attempt may still act the next one
	// waits, and then it is in doubt, however often it is asked.
	answer = errors.New("the line went dead")
	_, f = attempt()
	require.Equal(t, tool.FailedInDoubt, f.Kind)
	require.Equal(t, 2, runs)
	answer = nil
	_, f = attempt()
	require.Equal(t, tool.FailedEarlier, f.Kind)
	m.now = m.now.Add(f.Wait)
	for range 3 {
		_, f = attempt()
		require.Equal(t, tool.FailedInDoubt, f.Kind)
		require.True(t, f.Open)
	}
	require.Equal(t, 2, runs)
}

// Attempts crash at every point, overlap, and lose requests and answers: it has
// never happened twice, and where it is not settled it is in doubt.
func TestOnce_NeverTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, ledger: newMemory(), once: true}
		for range rapid.IntRange(1, 6).Draw(t, "attempts") {
			_ = w.attempt()
			w.pass(2 * time.Minute)
		}
		w.calm = true
		doubt := false
		for n := 0; !doubt && (w.ledger.rows["key-1"] == nil || w.ledger.rows["key-1"].settled == nil); n++ {
			if n > 10 {
				t.Fatal("it never ends")
			}
			if f := w.attempt(); f != nil {
				doubt = f.Kind == tool.FailedInDoubt
				w.ledger.now = w.ledger.now.Add(f.Wait)
			}
		}
		w.ledger.now = w.ledger.now.Add(time.Hour)
		if n := w.happened(); n > 1 || n == 0 && !doubt {
			t.Fatalf("it happened %d times, in doubt: %v", n, doubt)
		}
	})
}
