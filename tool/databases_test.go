package tool_test

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store/pgtest"
	"interlock/tool"
)

// product is a product's own database, with a table of payments in it.
type product struct {
	*sql.DB
	name string // of the engine
	dsn  string
}

// openers make an empty database of each engine.
var openers = map[string]func(t testing.TB) *product{
	"sqlite": func(t testing.TB) *product {
		return newSQLite(t, "_pragma=busy_timeout(3000)&_pragma=journal_mode(WAL)")
	},
	"postgres": func(t testing.TB) *product { return newPostgres(t, "") },
}

func newSQLite(t testing.TB, params string) *product {
	return newProduct(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "product.db")+"?"+params)
}

// newPostgres: params is a part of the DSN's query.
func newPostgres(t testing.TB, params string) *product {
	dsn := pgtest.New(t)
	if params != "" {
		dsn += "&" + params
	}
	return newProduct(t, "pgx", dsn)
}

func newProduct(t testing.TB, driver, dsn string) *product {
	p := &product{DB: connect(t, driver, dsn), name: map[string]string{"sqlite": "sqlite", "pgx": "postgres"}[driver], dsn: dsn}
	p.do(t, `CREATE TABLE payments (n BIGINT)`)
	return p
}

func connect(t testing.TB, driver, dsn string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// as is the DSN with another user.
func as(t testing.TB, dsn, user string) string {
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	u.User = url.User(user)
	return u.String()
}

func (p *product) do(t testing.TB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := p.ExecContext(context.Background(), s)
		require.NoError(t, err, s)
	}
}

func (p *product) count(t testing.TB, query string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, p.QueryRowContext(context.Background(), query, args...).Scan(&n), query)
	return n
}

// paid is how many payments there are.
func (p *product) paid(t testing.TB) int {
	t.Helper()
	return p.count(t, `SELECT count(*) FROM payments`)
}

type txFunc func(ctx context.Context, tx *sql.Tx, a args) (result, error)

// pay writes a payment.
func pay(ctx context.Context, tx *sql.Tx, a args) (result, error) {
	_, err := tx.ExecContext(ctx, `INSERT INTO payments (n) VALUES ($1)`, a.N)
	return result{N: a.N}, err
}

func transactional(db *sql.DB, run txFunc) tool.Runner {
	return tool.Transactional("t", db, run, func(*state, args, result) error { return nil })
}

// keyed is the task of another effect.
func keyed(key string) agent.Task {
	tk := task
	tk.Key, tk.Scope = key, "acme/a/k/run-1"
	return tk
}

func attempt(r tool.Runner, tk agent.Task) (tool.Result, *tool.Failure) {
	ctx, cancel := context.WithTimeout(context.Background(), tool.DefaultTimeout)
	defer cancel()
	out, err := r.Attempt(ctx, tk, tool.Ports{})
	if err == nil {
		return out, nil
	}
	return out, err.(*tool.Failure) //nolint:errorlint // the Runner's contract
}

// untilSettled tries as Temporal does, until the effect has happened or is refused.
func untilSettled(t testing.TB, r tool.Runner, tk agent.Task) tool.Result {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		out, f := attempt(r, tk)
		if f == nil {
			return out
		}
		if f.Kind != tool.FailedNotApplied && f.Kind != tool.FailedStore || time.Now().After(deadline) {
			t.Errorf("%s: %v", f.Kind, f)
			return out
		}
	}
}

func isFailure(t testing.TB, f *tool.Failure, kind tool.FailureKind, open bool, says string) {
	t.Helper()
	require.NotNil(t, f)
	require.Equal(t, kind, f.Kind, f.Error())
	require.Equal(t, open, f.Open, f.Error())
	require.Contains(t, f.Error(), says)
}

const paidResult = `{"n":9007199254740993}`
