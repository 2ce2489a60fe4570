package tool_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"interlock/agent"
	"interlock/tool"
)

// otherSide answers a Reconcilable tool as it is told to.
type otherSide struct {
	run, lookUp int // calls
	runErr      error
	lookUpErr   error
	happened    bool
	panics      bool
}

func (o *otherSide) tool() *tool.Tool[state, args, result] {
	return tool.Reconcilable("t", func(_ context.Context, k tool.Key, a args) (result, error) {
		o.run++
		return result{N: a.N, Text: string(k)}, o.runErr
	}, func(_ context.Context, k tool.Key, a args) (result, bool, error) {
		o.lookUp++
		if o.panics {
			panic("oops")
		}
		return result{N: a.N, Text: "found " + string(k)}, o.happened, o.lookUpErr
	}, func(*state, args, result) error { return nil }).Within(5*time.Second, time.Hour)
}

func TestReconcilable(t *testing.T) {
	const whole = 5*time.Second + tool.Overhead + tool.Grace
	lost := errors.New("connection lost")
	// begin is a first attempt that ended with err.
	begin := func(t *testing.T, err error) (*otherSide, *memory, func() (tool.Result, error)) {
		o, m := &otherSide{runErr: err}, newMemory()
		attempt := func() (tool.Result, error) {
			return o.tool().Attempt(context.Background(), task, tool.Ports{Ledger: m})
		}
		_, got := attempt()
		require.Equal(t, err == nil, got == nil)
		require.Equal(t, 1, o.run)
		require.Zero(t, o.lookUp, "a fresh claim asks nobody")
		require.Equal(t, tool.Terms{Attempt: 5*time.Second + tool.Overhead, Exclusive: true, Grace: tool.Grace}, m.terms)
		o.runErr = nil
		return o, m, attempt
	}
	t.Run("settles, and never runs or asks again", func(t *testing.T) {
		o, _, attempt := begin(t, nil)
		r, err := attempt()
		require.NoError(t, err)
		require.Equal(t, `{"n":9007199254740993,"text":"key-1"}`, r.JSON.String())
		require.Equal(t, 1, o.run)
		require.Zero(t, o.lookUp)
	})
	t.Run("waits for an earlier attempt, exactly, and counts nothing", func(t *testing.T) {
		o, m, attempt := begin(t, lost)
		for _, passed := range []time.Duration{0, time.Second, whole - time.Nanosecond} {
			m.now = time.Time{}.Add(passed)
			_, err := attempt()
			var f *tool.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, tool.FailedEarlier, f.Kind)
			require.Equal(t, whole-passed, f.Wait)
			require.True(t, f.Open)
		}
		require.Equal(t, 1, o.run)
		require.Zero(t, o.lookUp)
		require.Equal(t, 1, m.rows["key-1"].attempts)
	})
	t.Run("it happened: it is recorded without a run", func(t *testing.T) {
		o, m, attempt := begin(t, lost)
		m.now, o.happened = m.now.Add(whole), true
		for range 2 {
			r, err := attempt()
			require.NoError(t, err)
			require.Equal(t, `{"n":9007199254740993,"text":"found key-1"}`, r.JSON.String())
		}
		require.Equal(t, 1, o.run)
		require.Equal(t, 1, o.lookUp)
	})
	t.Run("it did not happen: it runs", func(t *testing.T) {
		o, m, attempt := begin(t, lost)
		m.now = m.now.Add(whole)
		_, err := attempt()
		require.NoError(t, err)
		require.Equal(t, 2, o.run)
	})
	t.Run("nobody knows: it stays open, and is asked again at once", func(t *testing.T) {
		o, m, attempt := begin(t, lost)
		m.now, o.lookUpErr = m.now.Add(whole), tool.RetryAfter(tool.NotApplied(lost), 7*time.Second)
		for range 3 {
			_, err := attempt()
			var f *tool.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, tool.FailedUnknown, f.Kind, "whatever the look-up says of itself")
			require.True(t, f.Open)
			require.Equal(t, 7*time.Second, f.Wait)
		}
		o.lookUpErr, o.panics = nil, true
		_, err := attempt()
		kind, open := kindOf(t, err)
		require.Equal(t, tool.FailedUnknown, kind)
		require.True(t, open)
		require.ErrorContains(t, err, "panicked; the worker's log says where")
		require.Equal(t, 1, o.run)
		require.Equal(t, 4, o.lookUp)
		o.panics = false
		_, err = attempt()
		require.NoError(t, err)
		require.Equal(t, 2, o.run)
	})
	t.Run("not applied after a look-up is certain", func(t *testing.T) {
		o, m, attempt := begin(t, lost)
		m.now, o.runErr = m.now.Add(whole), tool.NotApplied(errors.New("no connection"))
		_, err := attempt()
		kind, open := kindOf(t, err)
		require.Equal(t, tool.FailedNotApplied, kind)
		require.False(t, open)
	})
	t.Run("not applied is tried again without asking", func(t *testing.T) {
		o, _, attempt := begin(t, tool.NotApplied(errors.New("no connection")))
		_, err := attempt()
		require.NoError(t, err)
		require.Zero(t, o.lookUp)
	})
	t.Run("refused for good is told again", func(t *testing.T) {
		o, _, attempt := begin(t, tool.Refused(errors.New("card declined")))
		_, err := attempt()
		kind, _ := kindOf(t, err)
		require.Equal(t, tool.FailedRefused, kind)
		require.Equal(t, 1, o.run)
	})
	t.Run("nothing runs when the look-up has used the time up", func(t *testing.T) {
		o, m, _ := begin(t, lost)
		m.now = m.now.Add(whole)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := o.tool().Attempt(ended, task, tool.Ports{Ledger: m})
		kind, _ := kindOf(t, err)
		require.Equal(t, tool.FailedUnknown, kind)
		require.Equal(t, 1, o.run)
	})
	t.Run("a ledger that fails leaves it open", func(t *testing.T) {
		for _, method := range []string{"claim", "settle", "release", "unknown"} {
			o, m, attempt := begin(t, lost)
			m.now = m.now.Add(whole)
			switch m.failing[method] = errors.New("disk full"); method {
			case "release":
				o.lookUpErr = lost
			case "unknown":
				o.runErr = lost
			}
			_, err := attempt()
			require.ErrorContains(t, err, "disk full")
			require.Nil(t, m.rows["key-1"].settled)
			require.Greater(t, m.rows["key-1"].attempts, 0)
		}
	})
}

// world is a virtual clock, a ledger, and another side on which requests take
// effect when they arrive, perhaps long after their attempt has died.
type world struct {
	t        *rapid.T
	ledger   *memory
	arrivals []time.Time
	depth    int
	calm     bool // from now on nothing goes wrong
	once     bool // the tool is Once: nobody can be asked
}

const worldTimeout = 5 * time.Second

func (w *world) pass(most time.Duration) {
	w.ledger.now = w.ledger.now.Add(time.Duration(rapid.Int64Range(0, int64(most)).Draw(w.t, "pass")))
}

func (w *world) happened() (n int) {
	for _, at := range w.arrivals {
		if !at.After(w.ledger.now) {
			n++
		}
	}
	return n
}

func (w *world) may(what string) bool { return !w.calm && rapid.Bool().Draw(w.t, what) }

// crash ends an attempt where it is: nothing more of it runs.
func (w *world) crash(where string) {
	if w.may("crash " + where) {
		runtime.Goexit()
	}
}

// meanwhile lets time pass, and perhaps another attempt begin, as when a worker
// is taken for dead that is not.
func (w *world) meanwhile() {
	w.pass(worldTimeout)
	if w.depth < 3 && w.may("another attempt meanwhile") {
		_ = w.attempt()
	}
}

// Claim and the other methods of a ledger, with a crash before and after each.
type crashing struct{ w *world }

func (c crashing) Claim(ctx context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	c.w.crash("before the claim")
	defer c.w.crash("after the claim")
	return c.w.ledger.Claim(ctx, t, by)
}

func (c crashing) Fence(ctx context.Context, t agent.Task, reason string) (tool.Row, error) {
	return c.w.ledger.Fence(ctx, t, reason)
}

func (c crashing) Settle(ctx context.Context, t agent.Task, s tool.Settlement) error {
	c.w.crash("before the settlement")
	defer c.w.crash("after the settlement")
	return c.w.ledger.Settle(ctx, t, s)
}

func (c crashing) Unknown(ctx context.Context, t agent.Task, attempt int, reason string) (tool.Row, error) {
	c.w.crash("before unknown")
	return c.w.ledger.Unknown(ctx, t, attempt, reason)
}

func (c crashing) Release(ctx context.Context, t agent.Task, first, last int) (tool.Row, error) {
	c.w.crash("before the release")
	return c.w.ledger.Release(ctx, t, first, last)
}

func (c crashing) Undone(ctx context.Context, t agent.Task, by string) error {
	return c.w.ledger.Undone(ctx, t, by)
}

func (c crashing) Row(ctx context.Context, t agent.Task) (*tool.Row, error) {
	return c.w.ledger.Row(ctx, t)
}

// attempt runs one on a goroutine of its own, so that a crash ends all of it.
// It returns the failure, nil when it has the result or has crashed.
func (w *world) attempt() (f *tool.Failure) {
	w.depth++
	defer func() { w.depth-- }()
	began := w.ledger.now
	timeIsUp := func() bool { return w.ledger.now.Sub(began) > worldTimeout }
	run := func(context.Context, tool.Key, args) (result, error) {
		w.meanwhile()
		if timeIsUp() {
			return result{}, tool.NotApplied(context.DeadlineExceeded)
		}
		w.crash("before the request")
		if w.may("the request is lost") {
			return result{}, errors.New("no answer")
		}
		late := time.Duration(0)
		if w.may("the request is late") {
			late = time.Duration(rapid.Int64Range(0, int64(tool.Overhead+tool.Grace)).Draw(w.t, "late"))
		}
		w.arrivals = append(w.arrivals, w.ledger.now.Add(late))
		w.crash("after the request")
		w.meanwhile()
		if late > 0 || w.may("the answer is lost") {
			return result{}, errors.New("no answer")
		}
		return result{N: 1}, nil
	}
	commit := func(*state, args, result) error { return nil }
	pay := tool.Reconcilable("t", run, func(context.Context, tool.Key, args) (result, bool, error) {
		w.meanwhile()
		w.crash("in the look-up")
		if timeIsUp() || w.may("the look-up fails") {
			return result{}, false, errors.New("no answer")
		}
		return result{N: 1}, w.happened() > 0, nil
	}, commit).Within(worldTimeout, time.Hour)
	if w.once {
		pay = tool.Once("t", func(ctx context.Context, a args) (result, error) { return run(ctx, "", a) }, commit).Within(worldTimeout, time.Hour)
	}
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }() // of the property's own library
		_, err := pay.Attempt(context.Background(), task, tool.Ports{Ledger: crashing{w}})
		_ = errors.As(err, &f)
	}()
	if p := <-done; p != nil {
		panic(p)
	}
	return f
}

// Attempts crash at every point, overlap, and lose requests and answers, and
// requests take effect late: in the end it has happened exactly once.
func TestReconcilable_NeverTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, ledger: newMemory()}
		for range rapid.IntRange(1, 6).Draw(t, "attempts") {
			_ = w.attempt()
			w.pass(2 * time.Minute)
		}
		w.calm = true
		for n := 0; w.ledger.rows["key-1"] == nil || w.ledger.rows["key-1"].settled == nil; n++ {
			if n > 10 {
				t.Fatal("it never ends")
			}
			if f := w.attempt(); f != nil {
				w.ledger.now = w.ledger.now.Add(f.Wait)
			}
		}
		w.ledger.now = w.ledger.now.Add(time.Hour)
		if w.happened() != 1 {
			t.Fatalf("it happened %d times", w.happened())
		}
	})
}
