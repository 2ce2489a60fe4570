// Package sqlite keeps the store in one SQLite file, in WAL mode: many readers
// beside one writer, over any number of processes on one machine. The file must
// be on a local disk, since WAL needs shared memory.
//
// All writes go through one connection, and each is one immediate transaction:
// it waits for the lock at its start, 5 seconds at most, and can never fail
// half way for want of it. A commit is on the disk when it is acknowledged,
// but for AppendSoon.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/follow"
)

// Options change what Open does. The zero value is right for production.
type Options struct {
	// NoMigrate leaves the schema as it is: a database that is behind, or not
	// there at all, is an error. Migrate is for it.
	NoMigrate bool
	// Now is the store's clock, [time.Now] where nil.
	Now func() time.Time
	// Synchronous is SQLite's level of durability: FULL where empty. NORMAL may
	// lose the last commits when the machine (not the process) crashes, which a
	// journal must not; it is for benchmarks.
	Synchronous string
	// Readers bounds the connections that read, 8 where 0.
	Readers int
}

// Store is a [store.Store] in a SQLite file.
type Store struct {
	writer *sql.DB
	reader *sql.DB
	stmts  map[string]*sql.Stmt // of the writer
	now    func() time.Time
	closed atomic.Bool
	hub    follow.Hub

	path         string
	file         fs.FileInfo  // that was opened; nil until it is
	acknowledges atomic.Value // string: identity at the latest append

	synchronous string   // as configured
	queries     sync.Map // text: *sql.Stmt of the reader
}

var _ store.Store = (*Store)(nil)

// checkpointPages is how long the log may grow (16 MiB) before a commit folds it
// into the file. A journal changes the same few pages again and again: the
// longer the log, the fewer of them are written twice.
const checkpointPages = "4000"

// busyTimeout is how long a write waits for another process's.
const busyTimeout = "5000" // ms

// Open opens the database at path and brings its schema up to date. It refuses
// a file that another program made, one that a newer Interlock made, and one
// that it cannot write.
func Open(ctx context.Context, path string, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	s, err := connect(path, *opts)
	if err != nil {
		return nil, err
	}
	if _, _, err = s.migrate(ctx, path, opts.NoMigrate); err == nil {
		err = s.prepare(ctx)
	}
	if err == nil {
		err = s.settle(ctx)
	}
	if err != nil {
		_ = s.Close()
		return nil, fail("opening of "+path, err)
	}
	return s, nil
}

// connect makes the two pools; nothing touches the file yet.
func connect(path string, opts Options) (*Store, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Readers < 1 {
		opts.Readers = 8
	}
	if opts.Synchronous == "" {
		opts.Synchronous = "FULL"
	}
	abs, err := filepath.Abs(path)
	if err != nil || path == "" || strings.ContainsRune(path, 0) {
		return nil, agent.Errorf(agent.CodeInvalid, "%q is no path of a database file", path)
	}
	mode := "rwc"
	if opts.NoMigrate {
		mode = "rw"
	}
	s := &Store{path: abs, now: opts.Now, synchronous: opts.Synchronous}
	s.hub.Listen = s.listen
	s.writer, err = sql.Open("sqlite", address(abs, url.Values{"mode": {mode}, "_txlock": {"immediate"},
		"_journal_mode": {"WAL"}, "_synchronous": {opts.Synchronous}, "_pragma": {"wal_autocheckpoint(" + checkpointPages + ")"}}))
	if err != nil {
		return nil, fail("opening of "+path, err)
	}
	s.writer.SetMaxOpenConns(1)
	s.reader, err = sql.Open("sqlite", address(abs, url.Values{"mode": {"rw"}, "_query_only": {"1"}}))
	if err != nil {
		return nil, fail("opening of "+path, err)
	}
	s.reader.SetMaxOpenConns(opts.Readers)
	s.reader.SetMaxIdleConns(opts.Readers)
	return s, nil
}

func address(abs string, params url.Values) string {
	params.Set("_busy_timeout", busyTimeout)
	params.Set("_foreign_keys", "1")
	params.Set("_defensive", "1")
	params.Set("_dqs", "0")
	params.Set("_error_rc", "1")
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: params.Encode()}
	return u.String()
}

// prepare compiles every statement that writes. It must be done before the
// first transaction: that takes the only connection.
func (s *Store) prepare(ctx context.Context) error {
	s.stmts = make(map[string]*sql.Stmt, len(writeStatements))
	for _, text := range writeStatements {
		stmt, err := s.writer.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		s.stmts[text] = stmt
	}
	return nil
}

// Close ends all use of the store. The last process to close folds the WAL
// into the file.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.hub.Close()
	err := s.reader.Close()
	if e := s.writer.Close(); e != nil {
		err = e
	}
	return fail("closing of the store", err)
}

// transaction is one write.
type transaction struct {
	tx    *sql.Tx
	stmts map[string]*sql.Stmt
}

func (t transaction) exec(ctx context.Context, statement string, args ...any) (rows int64, err error) {
	res, err := t.tx.StmtContext(ctx, t.stmts[statement]).ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (t transaction) row(ctx context.Context, statement string, args ...any) *sql.Row {
	return t.tx.StmtContext(ctx, t.stmts[statement]).QueryRowContext(ctx, args...)
}

func (t transaction) rows(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	return t.tx.StmtContext(ctx, t.stmts[statement]).QueryContext(ctx, args...)
}

// write runs f in one transaction: all of it is committed, or nothing.
func (s *Store) write(ctx context.Context, operation string, f func(transaction) error) error {
	if s.closed.Load() {
		return fail(operation, errClosed)
	}
	return fail(operation, s.transact(ctx, s.writer, f))
}

// writeSoon is write without waiting for the disk. The writer's one connection
// is held, so that no other write slips in while it does not wait.
func (s *Store) writeSoon(ctx context.Context, operation string, f func(transaction) error) (err error) {
	if s.closed.Load() {
		return fail(operation, errClosed)
	}
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return fail(operation, err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "PRAGMA synchronous = NORMAL"); err != nil {
		return fail(operation, err)
	}
	defer func() {
		if _, restore := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous = "+s.synchronous); restore != nil {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // a new one waits again
		}
	}()
	return fail(operation, s.transact(ctx, conn, f))
}

func (s *Store) transact(ctx context.Context, on interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}, f func(transaction) error) error {
	tx, err := on.BeginTx(ctx, nil)
	if err != nil {
		return errors.Join(s.replaced(), err)
	}
	defer func() { _ = tx.Rollback() }()
	if err = s.replaced(); err == nil {
		err = f(transaction{tx, s.stmts})
	}
	if err == nil {
		err = s.replaced() // nothing is acknowledged that only this process sees
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil && ctx.Err() != nil && uncoded(err) {
		err = ctx.Err() // database/sql ended the transaction, and its statements, when the context did
	}
	return err
}

// read runs a query and hands each of its rows to scan.
func (s *Store) read(ctx context.Context, operation, query string, args []any, scan func(row) error) error {
	if s.closed.Load() {
		return fail(operation, errClosed)
	}
	if err := s.replaced(); err != nil {
		return fail(operation, err)
	}
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return fail(operation, err)
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return fail(operation, err)
	}
	return fail(operation, each(rows, scan))
}

// prepared compiles a query once; there are only so many texts of them.
func (s *Store) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := s.queries.Load(query); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := s.reader.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if first, loaded := s.queries.LoadOrStore(query, stmt); loaded {
		_ = stmt.Close()
		return first.(*sql.Stmt), nil
	}
	return stmt, nil
}

// row is what [sql.Row] and [sql.Rows] have in common.
type row interface{ Scan(dest ...any) error }

func each(rows *sql.Rows, scan func(row) error) error {
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Times are integers: microseconds since 1970, UTC.

func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

func nullMicros(t *time.Time) sql.NullInt64 {
	if t == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: micros(*t), Valid: true}
}

func fromNullMicros(n sql.NullInt64) *time.Time {
	if !n.Valid {
		return nil
	}
	t := fromMicros(n.Int64)
	return &t
}
