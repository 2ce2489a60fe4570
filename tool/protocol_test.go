package tool_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"interlock/agent"
	"interlock/tool"
)

type args struct {
	N int64 `json:"n"`
}
type result struct {
	N    int64  `json:"n"`
	Text string `json:"text,omitempty"`
}
type state struct{}

// memory is a ledger of one run, whose next calls can be made to fail. Its
// clock stands still until it is set.
type memory struct {
	now     time.Time
	terms   tool.Terms // of the latest claim
	rows    map[string]*row
	failing map[string]error // by method, once
	log     []string
}
type row struct {
	settled  *tool.Settlement
	attempts int
	open     map[int]time.Time // deadlines of attempts that were not released
	held     string
}

func (r *row) row() tool.Row {
	return tool.Row{Settled: r.settled, Attempt: r.attempts, Open: len(r.open) > 0 && r.settled == nil}
}

func newMemory() *memory { return &memory{rows: map[string]*row{}, failing: map[string]error{}} }

func (m *memory) fail(method string) error {
	m.log = append(m.log, method)
	err := m.failing[method]
	delete(m.failing, method)
	return err
}

func (m *memory) Claim(_ context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	m.terms = by
	if err := m.fail("claim"); err != nil {
		return tool.Row{}, err
	}
	r := m.rows[t.Key]
	if r == nil {
		r = &row{open: map[int]time.Time{}}
		m.rows[t.Key] = r
	}
	out := r.row()
	if late := !by.NotAfter.IsZero() && m.now.After(by.NotAfter); late && r.settled == nil && !out.Open && r.held == "" {
		out.Late = true
		return out, nil
	}
	if r.settled != nil || r.held != "" {
		out.Held = r.held
		return out, nil
	}
	for _, deadline := range r.open {
		if by.Exclusive {
			out.Wait = max(out.Wait, deadline.Add(by.Grace).Sub(m.now))
		}
	}
	if out.Wait == 0 {
		r.attempts++
		r.open[r.attempts] = m.now.Add(by.Attempt)
		out.Attempt = r.attempts
	}
	return out, nil
}

func (m *memory) Fence(_ context.Context, t agent.Task, reason string) (tool.Row, error) {
	if err := m.fail("fence"); err != nil {
		return tool.Row{}, err
	}
	r := m.rows[t.Key]
	if r == nil {
		r = &row{open: map[int]time.Time{}}
		m.rows[t.Key] = r
	}
	if r.settled == nil && len(r.open) == 0 {
		r.settled = &tool.Settlement{Refused: reason, Fenced: true}
	}
	out := r.row()
	out.Attempt = r.attempts
	for _, deadline := range r.open {
		out.Wait = max(out.Wait, deadline.Add(tool.Grace).Sub(m.now))
	}
	return out, nil
}

func (m *memory) Settle(ctx context.Context, t agent.Task, s tool.Settlement) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := m.fail("settle"); err != nil {
		return err
	}
	r := m.rows[t.Key]
	if r.settled == nil {
		r.settled = &s
	}
	if r.settled.Refused != s.Refused || !r.settled.Result.Stored().Equal(s.Result.Stored()) {
		return agent.Errorf(agent.CodeConflict, "it is settled otherwise")
	}
	return nil
}

func (m *memory) Unknown(_ context.Context, t agent.Task, _ int, _ string) (tool.Row, error) {
	return m.rows[t.Key].row(), m.fail("unknown")
}

func (m *memory) Release(_ context.Context, t agent.Task, first, last int) (tool.Row, error) {
	for n := first; n <= last; n++ {
		delete(m.rows[t.Key].open, n)
	}
	return m.rows[t.Key].row(), m.fail("release")
}

func (m *memory) Undone(_ context.Context, t agent.Task, by string) error {
	r := m.rows[t.Key]
	if r == nil {
		r = &row{}
	}
	s, err := tool.Undo(r.settled, t.Key, by)
	if err == nil {
		r.settled = &s
	}
	return errors.Join(err, m.fail("undone"))
}

func (m *memory) Row(_ context.Context, t agent.Task) (*tool.Row, error) {
	r := m.rows[t.Key]
	if r == nil {
		return nil, m.fail("row")
	}
	out := r.row()
	return &out, m.fail("row")
}

var task = agent.Task{Step: "1.1", Agent: "a", Version: 1, Tool: "t", Args: agent.JSON(`{"n":9007199254740993}`), Key: "key-1", Scope: "s", Tenant: "acme", Limit: 100}

func kindOf(t *testing.T, err error) (tool.FailureKind, bool) {
	t.Helper()
	var f *tool.Failure
	require.ErrorAs(t, err, &f)
	return f.Kind, f.Open
}

func TestKeyed(t *testing.T) {
	ctx := context.Background()
	var keys []tool.Key
	var next error
	var panics bool
	kt := tool.Keyed("t", func(_ context.Context, k tool.Key, a args) (result, error) {
		keys = append(keys, k)
		if panics {
			panics = false
			panic("oops")
		}
		err := next
		next = nil
		return result{N: a.N}, err
	}, func(*state, args, result) error { return nil })
	setup := func() (*memory, tool.Ports) { keys = nil; m := newMemory(); return m, tool.Ports{Ledger: m} }

	t.Run("settles, and never runs again", func(t *testing.T) {
		_, p := setup()
		for range 3 {
			r, err := kt.Attempt(ctx, task, p)
			require.NoError(t, err)
			require.Equal(t, `{"n":9007199254740993}`, r.JSON.String())
		}
		require.Equal(t, []tool.Key{"key-1"}, keys)
		r, ok, err := kt.Standing(ctx, task, p)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, `{"n":9007199254740993}`, r.JSON.String())
	})
	t.Run("a plain error and a panic are unknown: the next attempt has the same key", func(t *testing.T) {
		_, p := setup()
		next = errors.New("connection lost")
		_, err := kt.Attempt(ctx, task, p)
		kind, open := kindOf(t, err)
		require.Equal(t, tool.FailedUnknown, kind)
		require.True(t, open)
		panics = true
		_, err = kt.Attempt(ctx, task, p)
		kind, _ = kindOf(t, err)
		require.Equal(t, tool.FailedUnknown, kind)
		require.ErrorContains(t, err, "panicked; the worker's log says where")
		_, ok, _ := kt.Standing(ctx, task, p)
		require.False(t, ok)
		_, err = kt.Attempt(ctx, task, p)
		require.NoError(t, err)
		require.Equal(t, []tool.Key{"key-1", "key-1", "key-1"}, keys)
	})
	t.Run("refused for good is told again without a run", func(t *testing.T) {
		_, p := setup()
		next = tool.Refused(errors.New("card declined"))
		for range 2 {
			_, err := kt.Attempt(ctx, task, p)
			kind, _ := kindOf(t, err)
			require.Equal(t, tool.FailedRefused, kind)
			require.EqualError(t, err, "card declined")
		}
		require.Len(t, keys, 1)
	})
	t.Run("not applied is certain only while no earlier attempt is open", func(t *testing.T) {
		_, p := setup()
		next = tool.NotApplied(errors.New("refused to connect"))
		_, err := kt.Attempt(ctx, task, p)
		kind, open := kindOf(t, err)
		require.Equal(t, tool.FailedNotApplied, kind)
		require.False(t, open)
		next = errors.New("lost")
		_, _ = kt.Attempt(ctx, task, p)
		next = tool.NotApplied(errors.New("refused to connect"))
		_, err = kt.Attempt(ctx, task, p)
		kind, open = kindOf(t, err)
		require.Equal(t, tool.FailedNotApplied, kind)
		require.True(t, open)
	})
	t.Run("nothing runs without a claim", func(t *testing.T) {
		m, p := setup()
		m.failing["claim"] = errors.New("database is locked")
		_, err := kt.Attempt(ctx, task, p)
		kind, _ := kindOf(t, err)
		require.Equal(t, tool.FailedStore, kind)
		require.Empty(t, keys)
	})
	t.Run("what happened and could not be recorded is unknown", func(t *testing.T) {
		m, p := setup()
		m.failing["settle"] = errors.New("disk full")
		_, err := kt.Attempt(ctx, task, p)
		kind, open := kindOf(t, err)
		require.Equal(t, tool.FailedUnknown, kind)
		require.True(t, open)
		r, err := kt.Attempt(ctx, task, p)
		require.NoError(t, err)
		require.Equal(t, `{"n":9007199254740993}`, r.JSON.String())
	})
	t.Run("the result is recorded although the attempt's time is up", func(t *testing.T) {
		m, p := setup()
		ended, cancel := context.WithCancel(ctx)
		slow := tool.Keyed("t", func(_ context.Context, _ tool.Key, a args) (result, error) { cancel(); return result{N: a.N}, nil },
			func(*state, args, result) error { return nil })
		_, err := slow.Attempt(ended, task, p)
		require.NoError(t, err)
		require.NotNil(t, m.rows["key-1"].settled)
	})
}

func TestReadOnly(t *testing.T) {
	big := strings.Repeat("x", 500)
	rt := tool.ReadOnly("t", func(_ context.Context, a args) (result, error) {
		switch a.N {
		case 1:
			return result{}, tool.Refused(errors.New("no such thing"))
		case 2:
			panic("oops")
		case 3:
			return result{Text: big}, nil
		}
		return result{N: a.N}, nil
	}, func(*state, args, result) error { return nil })
	attempt := func(n string) (tool.Result, error) {
		tk := task
		tk.Args = agent.JSON(`{"n":` + n + `}`)
		return rt.Attempt(context.Background(), tk, tool.Ports{})
	}
	_, err := attempt("1")
	kind, _ := kindOf(t, err)
	require.Equal(t, tool.FailedRefused, kind)
	_, err = attempt("2")
	kind, _ = kindOf(t, err)
	require.Equal(t, tool.FailedNotApplied, kind)
	r, err := attempt("3")
	require.NoError(t, err)
	require.Contains(t, r.Unkept, "result_too_large: 5")
	require.Empty(t, r.JSON)
}

func TestKeep(t *testing.T) {
	var stored []byte
	p := tool.Ports{Ledger: newMemory(), Keep: func(_ context.Context, whole []byte) (agent.Blob, error) {
		stored = whole
		return agent.Blob{Ref: "ref", Bytes: len(whole)}, nil
	}}
	kt := tool.Keyed("t", func(_ context.Context, _ tool.Key, a args) (result, error) {
		return result{N: a.N, Text: strings.Repeat("x", 3<<20)}, nil
	}, func(*state, args, result) error { return nil }).Keep(func(r result) result { return result{N: r.N, Text: r.Text[:10]} })
	r, err := kt.Attempt(context.Background(), task, p)
	require.NoError(t, err)
	require.Equal(t, `{"n":9007199254740993,"text":"xxxxxxxxxx"}`, r.JSON.String())
	require.Equal(t, len(stored), r.Whole.Bytes)
	require.Greater(t, len(stored), 3<<20)
}

func TestTransactional(t *testing.T) {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "product.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(3000)&_txlock=immediate")
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(`CREATE TABLE payments (n INTEGER)`)
	require.NoError(t, err)
	payments := func() (n int) {
		require.NoError(t, db.QueryRow(`SELECT count(*) FROM payments`).Scan(&n))
		return n
	}
	var next error
	pay := tool.Transactional("t", db, func(ctx context.Context, tx *sql.Tx, a args) (result, error) {
		if _, err := tx.ExecContext(ctx, `INSERT INTO payments VALUES (?)`, a.N); err != nil {
			return result{}, err
		}
		err := next
		next = nil
		return result{N: a.N}, err
	}, func(*state, args, result) error { return nil })
	with := func(key string) agent.Task { tk := task; tk.Key = key; return tk }

	t.Run("a failed attempt leaves nothing; the next one does it once", func(t *testing.T) {
		next = errors.New("constraint")
		_, err := pay.Attempt(ctx, with("a"), tool.Ports{})
		kind, open := kindOf(t, err)
		require.Equal(t, tool.FailedNotApplied, kind)
		require.False(t, open)
		require.Equal(t, 0, payments())
		for range 3 {
			r, err := pay.Attempt(ctx, with("a"), tool.Ports{})
			require.NoError(t, err)
			require.Equal(t, `{"n":9007199254740993}`, r.JSON.String())
		}
		require.Equal(t, 1, payments())
		_, ok, err := pay.Standing(ctx, with("a"), tool.Ports{})
		require.NoError(t, err)
		require.True(t, ok)
	})
	t.Run("a refusal for good stands", func(t *testing.T) {
		next = tool.Refused(errors.New("refunded already"))
		for range 2 {
			_, err := pay.Attempt(ctx, with("b"), tool.Ports{})
			kind, _ := kindOf(t, err)
			require.Equal(t, tool.FailedRefused, kind)
			require.EqualError(t, err, "refunded already")
		}
		_, ok, err := pay.Standing(ctx, with("b"), tool.Ports{})
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, 1, payments())
	})
	t.Run("attempts at the same time do it once", func(t *testing.T) {
		results := make(chan error, 8)
		for range 8 {
			go func() {
				_, err := pay.Attempt(ctx, with("c"), tool.Ports{})
				results <- err
			}()
		}
		ok := 0
		for range 8 {
			if err := <-results; err == nil {
				ok++
			} else {
				kind, _ := kindOf(t, err)
				require.Contains(t, []tool.FailureKind{tool.FailedNotApplied, tool.FailedStore}, kind, err.Error())
			}
		}
		require.Positive(t, ok)
		require.Equal(t, 2, payments())
	})
	t.Run("a transaction longer than its bound is rolled back", func(t *testing.T) {
		slow := tool.Transactional("t", db, func(ctx context.Context, tx *sql.Tx, a args) (result, error) {
			_, err := tx.ExecContext(ctx, `INSERT INTO payments VALUES (1)`)
			<-ctx.Done()
			return result{}, err
		}, func(*state, args, result) error { return nil })
		began := time.Now()
		_, err := slow.Attempt(ctx, with("d"), tool.Ports{})
		kind, _ := kindOf(t, err)
		require.Equal(t, tool.FailedNotApplied, kind)
		require.Less(t, time.Since(began), 10*time.Second)
		require.Equal(t, 2, payments())
	})
}

// A result that is no JSON a store takes must not make the effect happen again.
func TestResultsThatCannotBeKept(t *testing.T) {
	ctx := context.Background()
	commit := func(*state, args, result) error { return nil }
	ran := 0
	kt := tool.Keyed("t", func(context.Context, tool.Key, args) (result, error) { ran++; return result{Text: "a\x00b"}, nil }, commit)
	p := tool.Ports{Ledger: newMemory()}
	for range 2 {
		r, err := kt.Attempt(ctx, task, p)
		require.NoError(t, err)
		require.Contains(t, r.Unkept, "U+0000")
		require.Empty(t, r.JSON)
	}
	require.Equal(t, 1, ran)

	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "product.db")+"?_pragma=busy_timeout(3000)&_txlock=immediate")
	require.NoError(t, err)
	defer db.Close()
	ran = 0
	tt := tool.Transactional("t", db, func(context.Context, *sql.Tx, args) (result, error) { ran++; return result{Text: "a\x00b"}, nil }, commit)
	for range 2 {
		r, err := tt.Attempt(ctx, task, tool.Ports{})
		require.NoError(t, err)
		require.Contains(t, r.Unkept, "U+0000")
	}
	require.Equal(t, 1, ran)
	stored := tool.Result{Unkept: "why"}
	require.Equal(t, stored, tool.FromStored(stored.Stored(), nil))
	plain := tool.Result{JSON: agent.JSON(`{"interlock":1}`)}
	require.Equal(t, plain, tool.FromStored(plain.Stored(), nil))
}

func TestCallerOf(t *testing.T) {
	var seen tool.Caller
	rt := tool.ReadOnly("t", func(ctx context.Context, _ args) (result, error) { seen = tool.CallerOf(ctx); return result{}, nil },
		func(*state, args, result) error { return nil })
	tk := task
	tk.User = "c-017"
	_, err := rt.Attempt(context.Background(), tk, tool.Ports{})
	require.NoError(t, err)
	require.Equal(t, tool.Caller{Tenant: "acme", User: "c-017", Step: "1.1"}, seen)
	require.Zero(t, tool.CallerOf(context.Background()))
}
