package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	selectHead = `SELECT first_run_id, nth, body, seq, hash, updated_at, status, reason, phase, turn,
  coalesce((SELECT e.superseded_by FROM events e
    WHERE e.tenant = ?1 AND e.address = ?2 AND e.first_run_id = ?3 AND e.branch = ?4 AND e.superseded_by <> '' LIMIT 1), '')
FROM runs WHERE tenant = ?1 AND address = ?2 ORDER BY nth DESC LIMIT 1`
	selectStood    = `SELECT EXISTS (SELECT 1 FROM runs WHERE tenant = ? AND address = ? AND first_run_id = ?)`
	selectStanding = `SELECT seq, hash, branch, type FROM events
WHERE tenant = ? AND address = ? AND first_run_id = ? AND seq BETWEEN ? AND ? AND superseded_by = '' ORDER BY seq`
	selectOwnLast = `SELECT coalesce(max(seq), 0) FROM events
WHERE tenant = ? AND address = ? AND first_run_id = ? AND branch = ? AND superseded_by = ''`
	selectVersions = `SELECT seq, branch, superseded_by = '', at, type, v, turn, step, trace_id, data, hash FROM events
WHERE tenant = ? AND address = ? AND first_run_id = ? AND seq BETWEEN ? AND ? ORDER BY seq DESC, superseded_by = '' DESC`
	supersedeTail = `UPDATE events SET superseded_by = ?
WHERE tenant = ? AND address = ? AND first_run_id = ? AND seq >= ? AND superseded_by = ''`
	insertEvent = `INSERT INTO events (tenant, address, first_run_id, seq, branch, at, type, v, turn, step, trace_id, data, hash)
VALUES ` + eventRow
	eventRow = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// Append implements [store.Journal].
func (s *Store) Append(ctx context.Context, ref store.RunRef, batch agent.Batch) error {
	return s.appendBy(ctx, ref, batch, s.write, false)
}

// AppendSoon implements [store.Journal]: the commit does not wait for the disk,
// and SQLite writes its log in order, so the next commit that waits covers it.
func (s *Store) AppendSoon(ctx context.Context, ref store.RunRef, batch agent.Batch) error {
	return s.appendBy(ctx, ref, batch, s.writeSoon, true)
}

func (s *Store) appendBy(ctx context.Context, ref store.RunRef, batch agent.Batch,
	write func(ctx context.Context, operation string, f func(transaction) error) error, soon bool) error {
	if len(batch.Events) == 0 && batch.Acked == 0 {
		return nil
	}
	operation := fmt.Sprintf("append of events %d to %d to %s", batch.First, batch.Last(), ref.Address)
	hashes, err := store.CheckAppend(ref, batch)
	if err != nil {
		return fail(operation, err)
	}
	var id store.Identity
	err = write(ctx, operation, func(t transaction) (err error) {
		if id, err = t.identity(ctx); err != nil {
			return err
		}
		return rules.Append(ctx, &journal{t, ref, batch}, ref, batch, hashes, soon)
	})
	var refusal *store.Refusal
	if errors.As(err, &refusal) && refusal.Kind == store.Lost {
		_, raised := s.raise(ctx, operation, refusal.Message, func(is store.Identity) int64 { return rules.Raised(is, batch.Store) })
		return errors.Join(refusal, raised)
	}
	if err == nil {
		s.acknowledges.Store(id.String())
		s.hub.Wake(ref.Tenant, ref.Address)
	}
	return err
}

// journal is a [rules.Journal] in a transaction, which holds the lock for
// writing from its beginning.
type journal struct {
	transaction
	ref   store.RunRef
	batch agent.Batch
}

// chain are the arguments that name the chain, and what comes after.
func (j *journal) chain(more ...any) []any {
	return append([]any{j.ref.Tenant, j.ref.Address, j.ref.FirstRunID}, more...)
}

func (j *journal) Head(ctx context.Context) (h rules.Head, err error) {
	var at int64
	err = j.row(ctx, selectHead, j.chain(j.ref.Branch)...).Scan(&h.FirstRunID, &h.Nth, &h.Body, &h.Seq, &h.Hash, &at,
		&h.Run.Status, &h.Run.Reason, &h.Run.Phase, &h.Run.Turn, &h.SupersededBy)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	h.At = fromMicros(at)
	return h, err
}

func (j *journal) Stood(ctx context.Context) (stood bool, err error) {
	err = j.row(ctx, selectStood, j.chain()...).Scan(&stood)
	return stood, err
}

func (j *journal) Standing(ctx context.Context) (standing []rules.Standing, err error) {
	rows, err := j.rows(ctx, selectStanding, j.chain(j.batch.First-1, j.batch.Last())...)
	if err != nil {
		return nil, err
	}
	err = each(rows, func(r row) error {
		var e rules.Standing
		err := r.Scan(&e.Seq, &e.Hash, &e.Branch, &e.Type)
		standing = append(standing, e)
		return err
	})
	return standing, err
}

func (j *journal) OwnLast(ctx context.Context) (seq int64, err error) {
	err = j.row(ctx, selectOwnLast, j.chain(j.ref.Branch)...).Scan(&seq)
	return seq, err
}

func (j *journal) Versions(ctx context.Context, first, last int64) (all []rules.Version, err error) {
	rows, err := j.rows(ctx, selectVersions, j.chain(first, last)...)
	if err != nil {
		return nil, err
	}
	err = each(rows, func(r row) error {
		v := rules.Version{Event: agent.Event{Tenant: j.ref.Tenant}}
		e := &v.Event
		var at int64
		var data string
		err := r.Scan(&e.Seq, &v.Branch, &v.Live, &at, &e.Type, &e.V, &e.Turn, &e.Step, &e.TraceID, &data, &v.Hash)
		e.At, e.Data = fromMicros(at), agent.JSON(data)
		all = append(all, v)
		return err
	})
	return all, err
}

func (j *journal) Supersede(ctx context.Context, seq int64) error {
	_, err := j.exec(ctx, supersedeTail, j.ref.Branch, j.ref.Tenant, j.ref.Address, j.ref.FirstRunID, seq)
	return err
}

// insertEvents inserts 1, 2, … events by one statement: a batch has a handful.
var insertEvents = func() (out [8]string) {
	for n := range out {
		out[n] = insertEvent + strings.Repeat(", "+eventRow, n)
	}
	return out
}()

func (j *journal) Insert(ctx context.Context, events []agent.Event, hashes []string) error {
	for len(events) > 0 {
		n := min(len(events), len(insertEvents))
		args := make([]any, 0, 13*n)
		for i, e := range events[:n] {
			args = append(args, j.ref.Tenant, j.ref.Address, j.ref.FirstRunID, e.Seq, j.ref.Branch, micros(e.At), string(e.Type),
				e.V, e.Turn, e.Step, e.TraceID, e.Data.String(), hashes[i])
		}
		if _, err := j.exec(ctx, insertEvents[n-1], args...); err != nil {
			return err
		}
		events, hashes = events[n:], hashes[n:]
	}
	return nil
}
