package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"interlock/agent"
	"interlock/store"
	"interlock/store/pgtest"
	"interlock/store/postgres"
	"interlock/store/sqlite"
	"interlock/tool"
)

// warm is how many effects come first and do not count.
const warm = 20

// booking are the arguments of a Transactional tool that writes one row.
type booking struct {
	N int `json:"n"`
}

const book = `INSERT INTO bookings (n) VALUES ($1)`

// measureEffects measures the effect protocol on both databases; n 0: not at all.
// A row of a database that is not here says why.
func measureEffects(ctx context.Context, dir string, n int, progress io.Writer) ([]effectCost, error) {
	if n == 0 {
		return []effectCost{}, nil
	}
	lite, err := sqlite.Open(ctx, filepath.Join(dir, "ledger.db"), &sqlite.Options{Synchronous: synchronous})
	if err != nil {
		return nil, err
	}
	defer func() { _ = lite.Close() }()
	product := "file:" + filepath.Join(dir, "product.db") + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(" + synchronous + ")"
	first, err := effectsOf(ctx, "sqlite", lite, "sqlite", product, n)
	if err != nil {
		return nil, err
	}
	second := effectCost{Database: "postgres"}
	dsn, stop, err := pgtest.StartForProgram("fsync=on", "full_page_writes=on")
	if err != nil {
		second.Absent = err.Error()
		fmt.Fprintf(progress, "effects: not on PostgreSQL: %v\n", err)
		return []effectCost{first, second}, nil
	}
	defer stop()
	server, err := postgres.Open(ctx, dsn, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = server.Close() }()
	if second, err = effectsOf(ctx, "postgres", server, "pgx", dsn, n); err != nil {
		return nil, err
	}
	for _, e := range []effectCost{first, second} {
		fmt.Fprintf(progress, "effects in %-8s: claim %6.0f µs, settle %6.0f µs, Transactional %6.0f µs, the bare transaction %6.0f µs\n",
			e.Database, e.Claim.Median, e.Settle.Median, e.Transactional.Median, e.Bare.Median)
	}
	return []effectCost{first, second}, nil
}

func effectsOf(ctx context.Context, database string, ledger store.Ledger, driver, dsn string, n int) (effectCost, error) {
	out := effectCost{Database: database, Effects: n}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return out, err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, `CREATE TABLE bookings (n BIGINT)`); err != nil {
		return out, err
	}
	run := func(ctx context.Context, tx *sql.Tx, b booking) (booking, error) {
		_, err := tx.ExecContext(ctx, book, b.N)
		return b, err
	}
	runner := tool.Transactional("book", db, run, func(*state, booking, booking) error { return nil })
	args := agent.JSON(`{"n":1}`)
	for _, m := range []struct {
		to   **spread
		what func(key string) error
	}{
		{&out.Claim, func(key string) error {
			_, _, err := ledger.Claim(ctx, store.Claim{Tenant: tenant, Key: key, Address: "bench/book/k", Scope: "bench/book/k/r", Agent: "book", Version: 1,
				Tool: "book", Kind: agent.Keyed, Step: "1.1", Args: args, Attempt: time.Minute})
			return err
		}},
		{&out.Settle, func(key string) error {
			return ledger.Settle(ctx, tenant, key, store.Outcome{Status: store.EffectApplied, Result: args})
		}},
		{&out.Bare, func(string) error { return bareTransaction(ctx, db) }},
		{&out.Transactional, func(key string) error {
			_, err := runner.Attempt(ctx, agent.Task{Step: "1.1", Agent: "book", Version: 1, Tool: "book", Args: args, Effect: agent.Transactional, Key: key,
				Scope: "bench/book/k/r", Tenant: tenant, Limit: 16 << 10}, tool.Ports{})
			return err
		}},
	} {
		if *m.to, err = loop(n, m.what); err != nil {
			return out, fmt.Errorf("effects in %s: %w", database, err)
		}
	}
	return out, nil
}

func bareTransaction(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, book, 1); err != nil {
		return err
	}
	return tx.Commit()
}

// loop is what each of n calls took, in microseconds. Every loop has the same keys.
func loop(n int, call func(key string) error) (*spread, error) {
	var took []float64
	for i := range warm + n {
		began := time.Now()
		if err := call(strconv.Itoa(i)); err != nil {
			return nil, err
		}
		if i >= warm {
			took = append(took, float64(time.Since(began))/float64(time.Microsecond))
		}
	}
	s := spreadOf(took)
	return &s, nil
}
