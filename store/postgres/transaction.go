package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"interlock/agent"
)

const (
	// Read committed: what is read after a lock was waited for is what its holder
	// has committed.
	begin = `BEGIN ISOLATION LEVEL READ COMMITTED`
	// A server that does not wait for its disk by default is made to; one that waits
	// for its standbys too stays so. A process that hangs in the middle of a
	// transaction may not hold up the others.
	durably = `SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true),
  set_config('idle_in_transaction_session_timeout', '30s', true)`
	soon = `SELECT set_config('synchronous_commit', 'off', true), set_config('idle_in_transaction_session_timeout', '30s', true)`
	// advisory serialises transactions that would otherwise see nothing of each other.
	advisory = `SELECT pg_advisory_xact_lock($1)`
)

// row is what [pgx.Row] and [pgx.Rows] have in common.
type row interface{ Scan(dest ...any) error }

// transaction is one write. Its statements are queued, and sent together in one
// round trip by flush and by the commit.
type transaction struct {
	conn  *pgx.Conn
	queue *pgx.Batch
	sent  bool
}

// exec queues a statement.
func (t *transaction) exec(statement string, args ...any) { t.queue.Queue(statement, args...) }

// count queues a statement; n is how many rows it has changed, once it was sent.
func (t *transaction) count(n *int64, statement string, args ...any) {
	t.queue.Queue(statement, args...).Exec(func(tag pgconn.CommandTag) error {
		*n = tag.RowsAffected()
		return nil
	})
}

// rows queues a query, whose rows are handed to scan once it was sent.
func (t *transaction) rows(scan func(row) error, query string, args ...any) {
	t.queue.Queue(query, args...).Query(func(rows pgx.Rows) error { return each(rows, scan) })
}

// lock queues a lock on what is named, until the transaction ends.
func (t *transaction) lock(names ...string) {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	t.exec(advisory, int64(binary.BigEndian.Uint64(sum[:])))
}

// flush sends what is queued and reads the results.
func (t *transaction) flush(ctx context.Context) error {
	if t.queue.Len() == 0 {
		return nil
	}
	batch := t.queue
	t.queue, t.sent = &pgx.Batch{}, true
	return t.conn.SendBatch(ctx, batch).Close()
}

func (t *transaction) commit(ctx context.Context) error {
	t.queue.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return agent.Errorf(agent.CodeInternal, "the transaction had failed before it was committed")
		}
		return nil
	})
	return t.flush(ctx)
}

// rollback gives the connection back as it was. It goes on when ctx has ended.
func (t *transaction) rollback(ctx context.Context) {
	if !t.sent || t.conn.IsClosed() || t.conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := t.conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = t.conn.Close(ctx)
	}
}

// write runs f in one transaction: all of it is committed, or nothing.
func (s *Store) write(ctx context.Context, operation string, f func(*transaction) error) error {
	return fail(operation, s.transact(ctx, durably, f))
}

// writeSoon is write without waiting for the disk.
func (s *Store) writeSoon(ctx context.Context, operation string, f func(*transaction) error) error {
	return fail(operation, s.transact(ctx, soon, f))
}

func (s *Store) transact(ctx context.Context, settings string, f func(*transaction) error) error {
	return s.connected(ctx, func(conn *pgx.Conn) error {
		t := &transaction{conn: conn, queue: &pgx.Batch{}}
		t.exec(begin)
		t.exec(settings)
		err := f(t)
		if err == nil {
			err = t.commit(ctx)
		}
		if err != nil {
			t.rollback(ctx)
		}
		return err
	})
}

// read runs a query and hands each of its rows to scan.
func (s *Store) read(ctx context.Context, operation, query string, args []any, scan func(row) error) error {
	return fail(operation, s.plain(ctx, query, args, scan))
}

// plain is read without a name for its errors.
func (s *Store) plain(ctx context.Context, query string, args []any, scan func(row) error) error {
	return s.connected(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		return each(rows, scan)
	})
}

// connected hands one of the connections to f. When f finds the server gone, or
// to take no writes, the other connections are as bad: all are made anew.
func (s *Store) connected(ctx context.Context, f func(*pgx.Conn) error) error {
	if s.closed.Load() {
		return errClosed
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err = f(conn.Conn()); err != nil && ctx.Err() == nil && s.useless(conn, err) {
		s.pool.Reset()
	}
	if err != nil && conn.Conn().IsClosed() {
		return &lostError{err}
	}
	return err
}

func (s *Store) useless(conn *pgxpool.Conn, err error) bool {
	return conn.Conn().IsClosed() || sqlState(err) == readOnly
}

func each(rows pgx.Rows, scan func(row) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
