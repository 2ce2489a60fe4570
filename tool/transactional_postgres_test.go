package tool_test

import (
	"bytes"
	"context"
	"database/sql"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/store/pgtest"
	"interlock/tool"
)

// blocked waits until so many sessions of the database wait for a lock.
func (p *product) blocked(t *testing.T, sessions int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return p.count(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == sessions
	}, 10*time.Second, 5*time.Millisecond)
}

// A second attempt of the same key waits for the first, and gets its result; where
// the first fails it does the work.
func TestTransactional_SecondAttempt(t *testing.T) {
	for name, end := range map[string]error{"after one that happened": nil, "after one that failed": errSide, "after one that was refused": tool.Refused(errSide)} {
		t.Run(name, func(t *testing.T) {
			db := newPostgres(t, "")
			claimed, goOn := make(chan struct{}), make(chan struct{})
			first := transactional(db.DB, after(func(context.Context, *sql.Tx) error { close(claimed); <-goOn; return end }))
			var ran atomic.Int32
			second := transactional(db.DB, after(func(context.Context, *sql.Tx) error { ran.Add(1); return nil }))
			type outcome struct {
				r tool.Result
				f *tool.Failure
			}
			one, two := make(chan outcome, 1), make(chan outcome, 1)
			go func() { r, f := attempt(first, keyed("k")); one <- outcome{r, f} }()
			<-claimed
			go func() { r, f := attempt(second, keyed("k")); two <- outcome{r, f} }()
			db.blocked(t, 1)
			close(goOn)
			a, b := <-one, <-two
			if end == nil {
				require.Nil(t, a.f)
				require.Nil(t, b.f)
				require.Equal(t, a.r, b.r)
				require.Zero(t, ran.Load())
			}
			untilEnded := func() (r tool.Result, f *tool.Failure) {
				for {
					if r, f = attempt(second, keyed("k")); f == nil || f.Kind == tool.FailedRefused {
						return r, f
					}
				}
			}
			_, f := untilEnded()
			switch {
			case f != nil: // the refusal was recorded first
				require.Equal(t, tool.FailedRefused, f.Kind)
				require.Zero(t, db.paid(t))
			default:
				require.Equal(t, 1, db.paid(t))
			}
			if a.f != nil && a.f.Kind == tool.FailedRefused {
				require.Zero(t, db.paid(t), "who was told that it was refused was told the truth")
			}
		})
	}
}

// What the server rolls back was not applied.
func TestTransactional_RolledBackByTheServer(t *testing.T) {
	t.Run("a deadlock", func(t *testing.T) {
		db := newPostgres(t, "deadlock_timeout=50ms")
		db.do(t, `CREATE TABLE accounts (id TEXT PRIMARY KEY, n INT)`, `INSERT INTO accounts VALUES ('a', 0), ('b', 0)`)
		both := make(chan struct{})
		var ready sync.WaitGroup
		ready.Add(2)
		go func() { ready.Wait(); close(both) }()
		var once [2]sync.Once
		move := func(i int, from, to string) tool.Runner {
			return transactional(db.DB, func(ctx context.Context, tx *sql.Tx, a args) (result, error) {
				if _, err := tx.ExecContext(ctx, `UPDATE accounts SET n = n - 1 WHERE id = $1`, from); err != nil {
					return result{}, err
				}
				once[i].Do(ready.Done)
				<-both
				_, err := tx.ExecContext(ctx, `UPDATE accounts SET n = n + 1 WHERE id = $1`, to)
				return result{N: a.N}, err
			})
		}
		failures := make(chan *tool.Failure, 2)
		for i, r := range []tool.Runner{move(0, "a", "b"), move(1, "b", "a")} {
			go func() {
				tk := keyed([]string{"k", "l"}[i])
				_, f := attempt(r, tk)
				failures <- f
				untilSettled(t, r, tk)
				failures <- nil
			}()
		}
		victims := 0
		for range 4 {
			if f := <-failures; f != nil {
				victims++
				isFailure(t, f, tool.FailedNotApplied, false, "deadlock detected")
			}
		}
		require.Equal(t, 1, victims)
		require.Equal(t, 0, db.count(t, `SELECT sum(n * n) FROM accounts`))
		require.Equal(t, 2, db.count(t, `SELECT count(*) FROM interlock_effects`))
	})
	t.Run("a conflict of serializable transactions", func(t *testing.T) {
		db := newPostgres(t, "default_transaction_isolation=serializable")
		untilSettled(t, transactional(db.DB, pay), keyed("first"))
		stepped := make(chan struct{})
		r := transactional(db.DB, func(ctx context.Context, tx *sql.Tx, a args) (result, error) {
			var n int
			if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM payments`).Scan(&n); err != nil {
				return result{}, err
			}
			select {
			case <-stepped: // the second attempt
			default:
				// Another one reads and writes the same, and commits first.
				other, err := db.BeginTx(ctx, nil)
				require.NoError(t, err)
				require.NoError(t, other.QueryRowContext(ctx, `SELECT count(*) FROM payments`).Scan(&n))
				_, err = other.ExecContext(ctx, `INSERT INTO payments (n) VALUES (1)`)
				require.NoError(t, err)
				require.NoError(t, other.Commit())
				close(stepped)
			}
			return pay(ctx, tx, a)
		})
		_, f := attempt(r, keyed("k"))
		isFailure(t, f, tool.FailedNotApplied, false, "could not serialize access")
		_, f = attempt(r, keyed("k"))
		require.Nil(t, f)
		require.Equal(t, 3, db.paid(t))
	})
	t.Run("a constraint at the commit", func(t *testing.T) {
		db := newPostgres(t, "")
		db.do(t, `ALTER TABLE payments ADD UNIQUE (n) DEFERRABLE INITIALLY DEFERRED`)
		twice := transactional(db.DB, after(func(ctx context.Context, tx *sql.Tx) error {
			_, err := pay(ctx, tx, args{N: 9007199254740993})
			return err
		}))
		_, f := attempt(twice, keyed("k"))
		isFailure(t, f, tool.FailedNotApplied, false, "commit: ERROR: duplicate key value")
		_, f = attempt(transactional(db.DB, pay), keyed("k"))
		require.Nil(t, f)
	})
	t.Run("an error that the function swallows", func(t *testing.T) {
		db := newPostgres(t, "")
		r := transactional(db.DB, after(func(ctx context.Context, tx *sql.Tx) error { _, _ = tx.ExecContext(ctx, `SELECT 1/0`); return nil }))
		_, f := attempt(r, keyed("k"))
		isFailure(t, f, tool.FailedNotApplied, false, "current transaction is aborted")
		require.Zero(t, db.paid(t))
	})
	t.Run("a session that is terminated", func(t *testing.T) {
		db := newPostgres(t, "")
		admin := connect(t, "pgx", db.dsn)
		r := transactional(db.DB, after(func(ctx context.Context, tx *sql.Tx) error {
			var pid int
			require.NoError(t, tx.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&pid))
			_, err := admin.ExecContext(ctx, `SELECT pg_terminate_backend($1)`, pid)
			return err
		}))
		_, f := attempt(r, keyed("k"))
		isFailure(t, f, tool.FailedNotApplied, false, "settle: ")
		require.Zero(t, db.paid(t))
		_, f = attempt(transactional(db.DB, pay), keyed("k"))
		require.Nil(t, f)
	})
	t.Run("a statement that is too long", func(t *testing.T) {
		db := newPostgres(t, "")
		slow := transactional(db.DB, after(func(_ context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(context.Background(), `SELECT pg_sleep(60)`) // a function that forgets its context
			return err
		}))
		began := time.Now()
		_, f := attempt(slow, keyed("k"))
		isFailure(t, f, tool.FailedNotApplied, false, "the transaction was longer than 2s")
		require.Less(t, time.Since(began), 10*time.Second, "the server ends it")
		require.Zero(t, db.paid(t))
	})
}

// A database that takes no writes tells what stands, and is waited for.
func TestTransactional_NoWrites(t *testing.T) {
	db := newPostgres(t, "")
	r := transactional(db.DB, pay)
	untilSettled(t, r, keyed("before"))
	standby := transactional(connect(t, "pgx", db.dsn+"&default_transaction_read_only=on"), pay)
	out, f := attempt(standby, keyed("before"))
	require.Nil(t, f)
	require.Equal(t, paidResult, out.JSON.String())
	_, f = attempt(standby, keyed("k"))
	isFailure(t, f, tool.FailedStore, false, "the tool's database takes no writes")
	require.Equal(t, 1, db.paid(t))
}

// A server that is away is waited for; what was done before stands after.
func TestTransactional_ServerIsAway(t *testing.T) {
	for name, end := range map[string]func(*pgtest.Server){"stopped": (*pgtest.Server).Stop, "crashed": (*pgtest.Server).Crash} {
		t.Run(name, func(t *testing.T) {
			server := pgtest.StartServer(t, "fsync=on")
			db := newProduct(t, "pgx", server.DSN(t))
			r := transactional(db.DB, pay)
			untilSettled(t, r, keyed("before"))
			end(server)
			_, f := attempt(r, keyed("k"))
			isFailure(t, f, tool.FailedStore, false, "")
			_, f = attempt(transactional(db.DB, pay), keyed("k")) // a process that does not know the table yet
			isFailure(t, f, tool.FailedStore, false, "does not answer")
			server.Start()
			untilSettled(t, r, keyed("before"))
			untilSettled(t, r, keyed("k"))
			require.Equal(t, 2, db.paid(t))
		})
	}
}

// proxy stands before a server, and loses connections at the commit.
type proxy struct {
	net.Listener
	server string
	// cut is what happens at the next commit: nothing, or the connection is lost
	// before it reaches the server, or after the server has answered.
	cut    atomic.Pointer[string]
	closed atomic.Bool // no new connection
}

const (
	beforeCommit = "before the commit"
	afterCommit  = "after the commit"
)

// newProxy returns the DSN through it.
func newProxy(t *testing.T, dsn string) (*proxy, string) {
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	q := u.Query()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{Listener: l, server: q.Get("host") + "/.s.PGSQL." + q.Get("port")}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	host, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	q.Set("host", host)
	q.Set("port", port)
	u.RawQuery = q.Encode()
	return p, u.String()
}

func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	if p.closed.Load() {
		return
	}
	server, err := net.Dial("unix", p.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var mute atomic.Bool
	answered := make(chan struct{}, 100)
	go func() {
		defer func() { _ = client.Close() }()
		for b := make([]byte, 1<<16); ; {
			n, err := server.Read(b)
			if err != nil {
				return
			}
			if mute.Load() {
				answered <- struct{}{}
				continue
			}
			if _, err := client.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	for b := make([]byte, 1<<16); ; {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		cut := p.cut.Load()
		if cut == nil || !bytes.Contains(b[:n], []byte("commit\x00")) {
			if _, err := server.Write(b[:n]); err != nil {
				return
			}
			continue
		}
		p.cut.Store(nil)
		if *cut == afterCommit {
			mute.Store(true)
			if _, err := server.Write(b[:n]); err == nil {
				<-answered
			}
		}
		return
	}
}

// A connection that is lost during the commit leaves it unknown, until somebody
// can ask: at once, or by the next attempt.
func TestTransactional_LostCommit(t *testing.T) {
	for _, at := range []string{beforeCommit, afterCommit} {
		t.Run(at, func(t *testing.T) {
			direct := newPostgres(t, "")
			p, dsn := newProxy(t, direct.dsn)
			db := connect(t, "pgx", dsn)
			r := transactional(db, pay)
			untilSettled(t, r, keyed("first"))

			// The database can be asked at once.
			p.cut.Store(&at)
			out, f := attempt(r, keyed("k"))
			if at == afterCommit {
				require.Nil(t, f)
				require.Equal(t, paidResult, out.JSON.String())
			} else {
				isFailure(t, f, tool.FailedUnknown, true, "commit: ")
			}
			untilSettled(t, r, keyed("k"))
			require.Equal(t, 2, direct.paid(t))

			// It cannot.
			p.cut.Store(&at)
			p.closed.Store(true)
			_, f = attempt(r, keyed("l"))
			isFailure(t, f, tool.FailedUnknown, true, "commit: ")
			_, f = attempt(r, keyed("l"))
			isFailure(t, f, tool.FailedStore, false, "")
			p.closed.Store(false)
			untilSettled(t, r, keyed("l"))
			require.Equal(t, 3, direct.paid(t))
		})
	}
}

// The commit of an earlier attempt is under way when the next one comes: whoever
// cannot see its end may not say that nothing happened.
func TestTransactional_CommitUnderWay(t *testing.T) {
	db := newPostgres(t, "")
	r := transactional(db.DB, pay)
	untilSettled(t, r, keyed("first"))
	// A transaction that holds the key, as one whose commit waits for a standby.
	earlier, err := db.BeginTx(context.Background(), nil)
	require.NoError(t, err)
	_, err = earlier.Exec(`INSERT INTO interlock_effects (tenant, key, scope, tool, step, args, at, result)
SELECT tenant, 'k', scope, tool, step, args, at, result FROM interlock_effects`)
	require.NoError(t, err)
	_, f := attempt(r, keyed("k"))
	isFailure(t, f, tool.FailedStore, false, "claim: ")
	require.NoError(t, earlier.Commit())
	_, f = attempt(r, keyed("k"))
	require.Nil(t, f)
	require.Equal(t, 1, db.paid(t), "the earlier one's result")
}
