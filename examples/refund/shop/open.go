package shop

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

//go:embed schema.sql
var schema string

//go:embed seed.csv
var seed string

// Open opens the shop's database at path. A new one gets its tables and the
// orders of seed.csv; one that has orders is left as it is. Several processes
// may open the same file, at the same time too.
func Open(ctx context.Context, path string) (*Shop, error) {
	if path == "" || path == ":memory:" {
		// In memory each connection of the pool would have its own database.
		return nil, errors.New("open shop: the database must be a file")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open shop: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(abs))
	if err != nil {
		return nil, fmt.Errorf("open shop: %w", err)
	}
	// Readers never wait for the one writer; more connections than these would
	// only queue for the write lock.
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	if err := createOrWait(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("open shop %q: %w", path, err), db.Close())
	}
	return &Shop{db: db}, nil
}

// dsn has the settings that every connection needs. An immediate transaction
// takes the write lock when it begins: one that read first and then had to
// upgrade could fail halfway. synchronous(FULL): what is committed survives a
// power cut, which WAL alone does not promise.
func dsn(path string) string {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(1500)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
	}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// createOrWait is create, again while the database is busy: of two that turn a
// new file to WAL at the same time, SQLite gives one the error at once, without
// the wait that busy_timeout asks for.
func createOrWait(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		err := create(ctx, db)
		if busy := new(sqlite.Error); !errors.As(err, &busy) || busy.Code()&0xff != sqlite3.SQLITE_BUSY {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// create makes tables and orders in one transaction: a crash leaves all or
// nothing, and the second of two openers finds the first one's.
func create(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing after a commit
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	var seeded bool
	if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM orders)`).Scan(&seeded); err != nil {
		return err
	}
	if !seeded {
		if err := insertSeed(ctx, tx); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	return tx.Commit()
}

func insertSeed(ctx context.Context, tx *sql.Tx) error {
	rows, err := csv.NewReader(strings.NewReader(seed)).ReadAll()
	if err != nil {
		return err
	}
	insert, err := tx.PrepareContext(ctx, `
		INSERT INTO orders (id, customer_id, item, total_minor, currency, ordered_on, status)
		VALUES (?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, r := range rows[1:] { // the first names the columns
		minor, err := strconv.ParseInt(r[3], 10, 64)
		if err != nil {
			return fmt.Errorf("order %s: %w", r[0], err)
		}
		if _, err := insert.ExecContext(ctx, r[0], r[1], r[2], minor, r[4], r[5], r[6]); err != nil {
			return fmt.Errorf("order %s: %w", r[0], err)
		}
	}
	return nil
}
