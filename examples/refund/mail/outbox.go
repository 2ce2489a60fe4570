package mail

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite"
)

// Stored is a message in the outbox.
type Stored struct {
	ID  string `json:"id"`
	Key string `json:"key"`
	Message
	StoredAt string `json:"stored_at"` // RFC 3339, UTC
}

// errOtherMessage says that a key stands with another message.
var errOtherMessage = errors.New("this key was used for another message")

// outbox is the messages that were sent, in a file. A message that put has
// returned is there after a kill and after a power cut.
type outbox struct{ db *sql.DB }

// AUTOINCREMENT: an id is never given twice, also when rows were deleted.
const outboxSchema = `
CREATE TABLE IF NOT EXISTS outbox (
    n         INTEGER PRIMARY KEY AUTOINCREMENT,
    key       TEXT NOT NULL UNIQUE,
    recipient TEXT NOT NULL,
    subject   TEXT NOT NULL,
    text      TEXT NOT NULL,
    stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT`

func openOutbox(ctx context.Context, path string) (*outbox, error) {
	if path == "" || path == ":memory:" {
		return nil, errors.New("the outbox must be a file")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	q := url.Values{"_pragma": {"busy_timeout(2000)", "journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: abs}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	if _, err := db.ExecContext(ctx, outboxSchema); err != nil {
		return nil, errors.Join(fmt.Errorf("outbox %q: %w", path, err), db.Close())
	}
	return &outbox{db: db}, nil
}

func (o *outbox) close() error { return o.db.Close() }

// put stores a message under its key and says whether it is new. One statement
// asks and stores: of two at the same time, one stores and the other repeats.
func (o *outbox) put(ctx context.Context, key string, m Message) (id string, isNew bool, err error) {
	res, err := o.db.ExecContext(ctx, `
		INSERT INTO outbox (key, recipient, subject, text) VALUES (?, ?, ?, ?)
		ON CONFLICT (key) DO NOTHING`, key, m.To, m.Subject, m.Text)
	if err != nil {
		return "", false, fmt.Errorf("store message: %w", err)
	}
	added, err := res.RowsAffected()
	if err != nil {
		return "", false, fmt.Errorf("store message: %w", err)
	}
	var n int64
	var stands Message
	err = o.db.QueryRowContext(ctx, `SELECT n, recipient, subject, text FROM outbox WHERE key = ?`, key).
		Scan(&n, &stands.To, &stands.Subject, &stands.Text)
	if err != nil {
		return "", false, fmt.Errorf("read message: %w", err)
	}
	if stands != m {
		return "", false, errOtherMessage
	}
	return messageID(n), added == 1, nil
}

func messageID(n int64) string { return fmt.Sprintf("m-%d", n) }

// list is never nil: an empty outbox is an empty JSON array.
func (o *outbox) list(ctx context.Context) ([]Stored, error) {
	rows, err := o.db.QueryContext(ctx, `SELECT n, key, recipient, subject, text, stored_at FROM outbox ORDER BY n`)
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	defer rows.Close()
	list := []Stored{}
	for rows.Next() {
		var n int64
		var m Stored
		if err := rows.Scan(&n, &m.Key, &m.To, &m.Subject, &m.Text, &m.StoredAt); err != nil {
			return nil, fmt.Errorf("list messages: %w", err)
		}
		m.ID = messageID(n)
		list = append(list, m)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	return list, nil
}
