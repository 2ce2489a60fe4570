package postgres

import (
	"context"
	"errors"
	"strconv"
	"time"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	beginPlace  = `INSERT INTO interlock.places (reader, place) VALUES ($1, $2) ON CONFLICT (reader) DO NOTHING`
	movePlace   = `UPDATE interlock.places SET place = $3 WHERE reader = $1 AND place = $2`
	deadColumns = `n, tenant, id, target, kind, address, first_run_id, notice, reason, retry, buried_at, ended, ended_by, ended_at`
	buryNotice  = `INSERT INTO interlock.dead_notices AS d (tenant, id, target, kind, address, first_run_id, notice, reason, retry, buried_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, coalesce($10::timestamptz, clock_timestamp()))
ON CONFLICT (tenant, id, target) DO UPDATE SET reason = excluded.reason, retry = excluded.retry, buried_at = excluded.buried_at
WHERE d.ended = '' AND excluded.retry > d.retry`
	lockDead   = `SELECT ` + deadColumns + ` FROM interlock.dead_notices WHERE tenant = $1 AND id = $2 AND target = $3 FOR UPDATE`
	settleDead = `UPDATE interlock.dead_notices SET ended = $4, ended_by = $5, ended_at = coalesce($6::timestamptz, clock_timestamp())
WHERE tenant = $1 AND id = $2 AND target = $3 RETURNING ` + deadColumns
)

// Place implements [store.Notices].
func (s *Store) Place(ctx context.Context, reader string) (place string, err error) {
	const operation = "look-up of a reader's place"
	if err := store.CheckNamed("reader", reader); err != nil {
		return "", fail(operation, err)
	}
	err = s.read(ctx, operation, `SELECT place FROM interlock.places WHERE reader = $1`, []any{reader}, func(r row) error { return r.Scan(&place) })
	return place, err
}

// MovePlace implements [store.Notices].
func (s *Store) MovePlace(ctx context.Context, reader, from, to string) error {
	const operation = "move of a reader's place"
	if err := store.CheckPlaces(reader, from, to); err != nil {
		return fail(operation, err)
	}
	return s.write(ctx, operation, func(t *transaction) error {
		var n int64
		if from == "" {
			t.count(&n, beginPlace, reader, to)
		} else {
			t.count(&n, movePlace, reader, from, to)
		}
		if err := t.flush(ctx); err != nil {
			return err
		}
		if n == 0 {
			return rules.Moved(reader, from)
		}
		return nil
	})
}

// Bury implements [store.Notices].
func (s *Store) Bury(ctx context.Context, d store.DeadNotice) error {
	const operation = "burial of a notice"
	if err := d.Check(); err != nil {
		return fail(operation, err)
	}
	return s.write(ctx, operation, func(t *transaction) error {
		t.exec(buryNotice, d.Tenant, d.ID, d.Target, d.Kind, d.Address, d.FirstRunID, d.Notice.String(), d.Reason, d.Retry, s.clock())
		return nil
	})
}

// DeadNotices implements [store.Notices].
func (s *Store) DeadNotices(ctx context.Context, tenant string, f store.DeadFilter) (found []store.DeadNotice, err error) {
	const operation = "list of dead notices"
	if err := errors.Join(store.CheckNamed("tenant", tenant), f.Check()); err != nil {
		return nil, fail(operation, err)
	}
	q := rules.Query{Text: `SELECT ` + deadColumns + ` FROM interlock.dead_notices WHERE tenant = $1`, Args: []any{tenant}, Mark: "$"}
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
	scan := func(r row) (err error) { d, err = scanDead(r); return err }
	err = s.write(ctx, operation, func(t *transaction) error {
		t.rows(scan, lockDead, tenant, id, target)
		if err := t.flush(ctx); err != nil {
			return err
		}
		switch {
		case d.ID == "":
			return rules.NoDead(id, target)
		case d.End != "":
			return rules.DeadEnded(d)
		}
		t.rows(scan, settleDead, tenant, id, target, string(how), by, s.clock())
		return nil
	})
	return d, err
}

func scanDead(r row) (d store.DeadNotice, err error) {
	var n int64
	var notice string
	var ended *time.Time
	err = r.Scan(&n, &d.Tenant, &d.ID, &d.Target, &d.Kind, &d.Address, &d.FirstRunID, &notice, &d.Reason, &d.Retry, &d.BuriedAt, &d.End, &d.EndedBy, &ended)
	d.Notice, d.BuriedAt, d.EndedAt, d.Cursor = agent.JSON(notice), d.BuriedAt.UTC(), utc(ended), strconv.FormatInt(n, 10)
	return d, err
}
