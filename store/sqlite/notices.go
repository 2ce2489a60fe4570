package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	beginPlace  = `INSERT INTO places (reader, place) VALUES (?, ?) ON CONFLICT (reader) DO NOTHING`
	movePlace   = `UPDATE places SET place = ? WHERE reader = ? AND place = ?`
	deadColumns = `n, tenant, id, target, kind, address, first_run_id, notice, reason, retry, buried_at, ended, ended_by, ended_at`
	buryNotice  = `INSERT INTO dead_notices (tenant, id, target, kind, address, first_run_id, notice, reason, retry, buried_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, id, target) DO UPDATE SET reason = excluded.reason, retry = excluded.retry, buried_at = excluded.buried_at
WHERE ended = '' AND excluded.retry > retry`
	selectDead = `SELECT ` + deadColumns + ` FROM dead_notices WHERE tenant = ? AND id = ? AND target = ?`
	settleDead = `UPDATE dead_notices SET ended = ?, ended_by = ?, ended_at = ? WHERE tenant = ? AND id = ? AND target = ?`
)

// Place implements [store.Notices].
func (s *Store) Place(ctx context.Context, reader string) (place string, err error) {
	const operation = "look-up of a reader's place"
	if err := store.CheckNamed("reader", reader); err != nil {
		return "", fail(operation, err)
	}
	err = s.read(ctx, operation, `SELECT place FROM places WHERE reader = ?`, []any{reader}, func(r row) error { return r.Scan(&place) })
	return place, err
}

// MovePlace implements [store.Notices].
func (s *Store) MovePlace(ctx context.Context, reader, from, to string) error {
	const operation = "move of a reader's place"
	if err := store.CheckPlaces(reader, from, to); err != nil {
		return fail(operation, err)
	}
	return s.write(ctx, operation, func(t transaction) error {
		statement, args := movePlace, []any{to, reader, from}
		if from == "" {
			statement, args = beginPlace, []any{reader, to}
		}
		n, err := t.exec(ctx, statement, args...)
		if err == nil && n == 0 {
			err = rules.Moved(reader, from)
		}
		return err
	})
}

// Bury implements [store.Notices].
func (s *Store) Bury(ctx context.Context, d store.DeadNotice) error {
	const operation = "burial of a notice"
	if err := d.Check(); err != nil {
		return fail(operation, err)
	}
	return s.write(ctx, operation, func(t transaction) error {
		_, err := t.exec(ctx, buryNotice, d.Tenant, d.ID, d.Target, d.Kind, d.Address, d.FirstRunID, d.Notice.String(), d.Reason, d.Retry, micros(s.now()))
		return err
	})
}

// DeadNotices implements [store.Notices].
func (s *Store) DeadNotices(ctx context.Context, tenant string, f store.DeadFilter) (found []store.DeadNotice, err error) {
	const operation = "list of dead notices"
	if err := errors.Join(store.CheckNamed("tenant", tenant), f.Check()); err != nil {
		return nil, fail(operation, err)
	}
	q := rules.Query{Text: `SELECT ` + deadColumns + ` FROM dead_notices WHERE tenant = ?1`, Args: []any{tenant}, Mark: "?"}
	if err := rules.Dead(&q, f); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, q.Text, q.Args, func(r row) error {
		d, err := scanDead(r)
		found = append(found, d)
		return err
	})
	return found, err
}

// SettleDead implements [store.Notices].
func (s *Store) SettleDead(ctx context.Context, tenant, id, target string, how store.DeadEnd, by string) (d store.DeadNotice, err error) {
	const operation = "settlement of a dead notice"
	if err := store.CheckDeadEnd(tenant, id, target, how, by); err != nil {
		return d, fail(operation, err)
	}
	err = s.write(ctx, operation, func(t transaction) error {
		d, err = scanDead(t.row(ctx, selectDead, tenant, id, target))
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return rules.NoDead(id, target)
		case err != nil:
			return err
		case d.End != "":
			return rules.DeadEnded(d)
		}
		at := fromMicros(micros(s.now()))
		d.End, d.EndedBy, d.EndedAt = how, by, &at
		_, err := t.exec(ctx, settleDead, string(how), by, micros(at), tenant, id, target)
		return err
	})
	return d, err
}

func scanDead(r row) (d store.DeadNotice, err error) {
	var n, buried int64
	var notice string
	var ended sql.NullInt64
	err = r.Scan(&n, &d.Tenant, &d.ID, &d.Target, &d.Kind, &d.Address, &d.FirstRunID, &notice, &d.Reason, &d.Retry, &buried, &d.End, &d.EndedBy, &ended)
	d.Notice, d.BuriedAt, d.EndedAt, d.Cursor = agent.JSON(notice), fromMicros(buried), fromNullMicros(ended), strconv.FormatInt(n, 10)
	return d, err
}
