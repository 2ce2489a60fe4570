package tool_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/tool"
)

var errSide = errors.New("account closed")

// functions do what a tool's function may do, or must not. Whatever it is, all of
// it stands or nothing, or a person is asked.
var functions = map[string]struct {
	run  txFunc
	kind tool.FailureKind // "": it happened
	says string
	paid int              // after the attempt
	then tool.FailureKind // of an attempt by a function that does as it should
}{
	"as it should":           {run: pay, paid: 1},
	"an error after a write": {run: after(func(context.Context, *sql.Tx) error { return errSide }), kind: tool.FailedNotApplied, says: "account closed"},
	"a refusal after a write": {run: after(func(context.Context, *sql.Tx) error { return tool.Refused(errSide) }),
		kind: tool.FailedRefused, says: "account closed", then: tool.FailedRefused},
	"a panic after a write": {run: after(func(context.Context, *sql.Tx) error { panic("oops") }), kind: tool.FailedNotApplied, says: "panicked; the worker's log says where"},
	"too long": {run: after(func(ctx context.Context, _ *sql.Tx) error { <-ctx.Done(); return ctx.Err() }),
		kind: tool.FailedNotApplied, says: "the transaction was longer than 2s"},
	"too long, and no error": {run: after(func(ctx context.Context, _ *sql.Tx) error { <-ctx.Done(); return nil }),
		kind: tool.FailedNotApplied, says: "the transaction was longer than 2s"},
	"too long, and refused": {run: after(func(ctx context.Context, _ *sql.Tx) error { <-ctx.Done(); return tool.Refused(errSide) }),
		kind: tool.FailedRefused, says: "account closed", then: tool.FailedRefused},
	"commits": {run: after(func(_ context.Context, tx *sql.Tx) error { return tx.Commit() }), paid: 1},
	"commits, and then an error": {run: after(func(_ context.Context, tx *sql.Tx) error { _ = tx.Commit(); return errSide }),
		kind: tool.FailedInDoubt, says: "committed the transaction itself", paid: 1, then: tool.FailedInDoubt},
	"commits, and then refused": {run: after(func(_ context.Context, tx *sql.Tx) error { _ = tx.Commit(); return tool.Refused(errSide) }),
		kind: tool.FailedInDoubt, says: "account closed", paid: 1, then: tool.FailedInDoubt},
	"commits, and then a panic": {run: after(func(_ context.Context, tx *sql.Tx) error { _ = tx.Commit(); panic("oops") }),
		kind: tool.FailedInDoubt, says: "panicked; the worker's log says where", paid: 1, then: tool.FailedInDoubt},
	"commits by a statement": {run: after(func(ctx context.Context, tx *sql.Tx) error { _, err := tx.ExecContext(ctx, `COMMIT`); return err }), paid: 1},
	"rolls back": {run: after(func(_ context.Context, tx *sql.Tx) error { return tx.Rollback() }),
		kind: tool.FailedNotApplied, says: "which it must leave to Interlock"},
	"rolls back, and then an error": {run: after(func(_ context.Context, tx *sql.Tx) error { _ = tx.Rollback(); return errSide }),
		kind: tool.FailedNotApplied, says: "account closed"},
	"rolls back, and then refused": {run: after(func(_ context.Context, tx *sql.Tx) error { _ = tx.Rollback(); return tool.Refused(errSide) }),
		kind: tool.FailedRefused, says: "account closed", then: tool.FailedRefused},
	"rolls back by a statement, and goes on": {run: func(ctx context.Context, tx *sql.Tx, a args) (result, error) {
		if _, err := tx.ExecContext(ctx, `ROLLBACK`); err != nil {
			return result{}, err
		}
		return pay(ctx, tx, a)
	}, kind: tool.FailedInDoubt, says: "ended the transaction by a statement of its own", paid: 1},
	"deletes its claim": {run: after(func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM interlock_effects`)
		return err
	}),
		kind: tool.FailedInDoubt, says: "or changed interlock_effects"},
	"asks to wait": {run: after(func(context.Context, *sql.Tx) error { return tool.RetryAfter(errSide, time.Minute) }), kind: tool.FailedNotApplied, says: "account closed"},
}

// after writes a payment and then does something else.
func after(then func(context.Context, *sql.Tx) error) txFunc {
	return func(ctx context.Context, tx *sql.Tx, a args) (result, error) {
		if _, err := pay(ctx, tx, a); err != nil {
			return result{}, err
		}
		return result{N: a.N}, then(ctx, tx)
	}
}

func TestTransactional_AllOrNothing(t *testing.T) {
	for engine, open := range openers {
		for name, f := range functions {
			t.Run(engine+"/"+name, func(t *testing.T) {
				t.Parallel()
				db, tk := open(t), keyed("k")
				out, failed := attempt(transactional(db.DB, f.run), tk)
				if f.kind == "" {
					require.Nil(t, failed)
					require.Equal(t, paidResult, out.JSON.String())
				} else {
					isFailure(t, failed, f.kind, f.kind == tool.FailedInDoubt, f.says)
				}
				require.Equal(t, f.paid, db.paid(t))
				right := transactional(db.DB, pay)
				_, ok, err := right.Standing(context.Background(), tk, tool.Ports{})
				require.NoError(t, err)
				require.Equal(t, f.kind == "", ok)

				if f.kind == tool.FailedInDoubt && f.then == "" {
					return // nothing is in the table that would tell
				}
				for range 2 {
					out, failed = attempt(right, tk)
					if f.then != "" {
						require.NotNil(t, failed)
						require.Equal(t, f.then, failed.Kind, failed.Error())
						require.Equal(t, f.paid, db.paid(t))
						continue
					}
					require.Nil(t, failed)
					require.Equal(t, paidResult, out.JSON.String())
					require.Equal(t, 1, db.paid(t))
				}
			})
		}
	}
}

func TestTransactional_AskedToWait(t *testing.T) {
	for engine, open := range openers {
		t.Run(engine, func(t *testing.T) {
			_, f := attempt(transactional(open(t).DB, functions["asks to wait"].run), keyed("k"))
			require.Equal(t, time.Minute, f.Wait)
		})
	}
}

// A goroutine that outlives its function changes nothing any more.
func TestTransactional_LateGoroutine(t *testing.T) {
	for engine, open := range openers {
		t.Run(engine, func(t *testing.T) {
			db := open(t)
			returned, late := make(chan struct{}), make(chan error, 1)
			run := after(func(_ context.Context, tx *sql.Tx) error {
				go func() {
					<-returned
					_, err := pay(context.Background(), tx, args{N: 7})
					late <- err
				}()
				return nil
			})
			_, f := attempt(transactional(db.DB, run), keyed("k"))
			require.Nil(t, f)
			close(returned)
			require.ErrorIs(t, <-late, sql.ErrTxDone)
			require.Equal(t, 1, db.paid(t))
		})
	}
}

// Goroutines that use the transaction while it ends are in it or not: it is one.
func TestTransactional_RacingGoroutines(t *testing.T) {
	for engine, open := range openers {
		t.Run(engine, func(t *testing.T) {
			db := open(t)
			var wg sync.WaitGroup
			run := after(func(_ context.Context, tx *sql.Tx) error {
				for range 4 {
					wg.Go(func() {
						for range 20 {
							if _, err := tx.ExecContext(context.Background(), `UPDATE payments SET n = n`); err != nil {
								return
							}
						}
					})
				}
				return nil
			})
			untilSettled(t, transactional(db.DB, run), keyed("k"))
			wg.Wait()
			require.Equal(t, 1, db.paid(t))
		})
	}
}

// pools are what products have: none of them is ours to choose.
var pools = map[string]func(t testing.TB) *product{
	"sqlite, deferred": func(t testing.TB) *product {
		return newSQLite(t, "_pragma=busy_timeout(3000)&_pragma=journal_mode(WAL)")
	},
	"sqlite, immediate": func(t testing.TB) *product {
		return newSQLite(t, "_pragma=busy_timeout(3000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	},
	"sqlite, busy at once":          func(t testing.TB) *product { return newSQLite(t, "_pragma=busy_timeout(0)&_pragma=journal_mode(WAL)") },
	"sqlite, with a rollback log":   func(t testing.TB) *product { return newSQLite(t, "_pragma=busy_timeout(3000)") },
	"sqlite, with one connection":   func(t testing.TB) *product { p := newSQLite(t, ""); p.SetMaxOpenConns(1); return p },
	"postgres":                      func(t testing.TB) *product { return newPostgres(t, "") },
	"postgres, serializable":        func(t testing.TB) *product { return newPostgres(t, "default_transaction_isolation=serializable") },
	"postgres, simple protocol":     func(t testing.TB) *product { return newPostgres(t, "default_query_exec_mode=simple_protocol") },
	"postgres, with one connection": func(t testing.TB) *product { p := newPostgres(t, ""); p.SetMaxOpenConns(1); return p },
}

// 20 attempts at once, of one effect and of 20: each happens once, and each attempt
// ends with its result, beside a reader that holds a snapshot.
func TestTransactional_AtOnce(t *testing.T) {
	for name, open := range pools {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			db.do(t, `INSERT INTO payments (n) VALUES (-1)`)
			if db.Stats().MaxOpenConnections != 1 && name != "sqlite, with a rollback log" {
				reader, err := db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
				require.NoError(t, err)
				defer func() { require.NoError(t, reader.Rollback()) }()
				var n int
				require.NoError(t, reader.QueryRow(`SELECT count(*) FROM payments`).Scan(&n))
			}
			r := transactional(db.DB, after(func(ctx context.Context, tx *sql.Tx) error {
				var n int // a read after the write, as functions do
				return tx.QueryRowContext(ctx, `SELECT count(*) FROM payments`).Scan(&n)
			}))
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() { require.Equal(t, paidResult, untilSettled(t, r, keyed("same")).JSON.String()) })
				wg.Go(func() { untilSettled(t, r, keyed(string(rune('a'+i)))) })
			}
			wg.Wait()
			require.Equal(t, 1+1+20, db.paid(t))
			require.Equal(t, 21, db.count(t, `SELECT count(*) FROM interlock_effects WHERE result <> ''`))
		})
	}
}

// The claim is the first statement: it waits for the lock, where one that had
// read before would be told at once that the database is locked.
func TestTransactional_WaitsForTheLock(t *testing.T) {
	db := newSQLite(t, "_pragma=busy_timeout(1500)&_pragma=journal_mode(WAL)")
	r := transactional(db.DB, pay)
	untilSettled(t, r, keyed("first"))
	other, err := db.BeginTx(context.Background(), nil)
	require.NoError(t, err)
	_, err = pay(context.Background(), other, args{N: 1})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		time.Sleep(300 * time.Millisecond) // a transaction of somebody else's is that long
		ended <- other.Commit()
	}()
	_, f := attempt(r, keyed("k"))
	require.Nil(t, f)
	require.NoError(t, <-ended)

	// Where the wait is too long, nothing was run, and it is tried again.
	other, err = db.BeginTx(context.Background(), nil)
	require.NoError(t, err)
	_, err = pay(context.Background(), other, args{N: 1})
	require.NoError(t, err)
	_, f = attempt(r, keyed("l"))
	isFailure(t, f, tool.FailedStore, false, "claim: ")
	out, f := attempt(r, keyed("k")) // what is settled needs no lock
	require.Nil(t, f)
	require.Equal(t, paidResult, out.JSON.String())
	require.NoError(t, other.Rollback())
	_, f = attempt(r, keyed("l"))
	require.Nil(t, f)
}
