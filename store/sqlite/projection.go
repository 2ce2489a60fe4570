package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"interlock/agent"
	"interlock/store/internal/rules"
)

const (
	insertRun = `INSERT INTO runs (tenant, address, first_run_id, nth, agent, version, key, user, body,
  seq, hash, status, reason, phase, turn, started_at, updated_at, ended_at, generation)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, CASE WHEN ? THEN (SELECT generation FROM store) ELSE 0 END)
ON CONFLICT (tenant, address, first_run_id) DO UPDATE SET agent = excluded.agent, version = excluded.version, key = excluded.key,
  user = excluded.user, body = excluded.body, seq = excluded.seq, hash = excluded.hash, status = excluded.status,
  reason = excluded.reason, phase = excluded.phase, turn = excluded.turn, started_at = excluded.started_at,
  updated_at = excluded.updated_at, ended_at = excluded.ended_at`
	// It must change something: SQLite writes no page that stays as it is.
	touchRun  = `UPDATE runs SET touched = touched + 1 WHERE tenant = ? AND address = ? AND first_run_id = ?`
	updateRun = `UPDATE runs SET seq = ?, hash = ?, status = ?, reason = ?, phase = ?, turn = ?, updated_at = ?, ended_at = ?
WHERE tenant = ? AND address = ? AND first_run_id = ?`
	closeRun = `UPDATE runs SET status = 'cancelled', reason = ?, updated_at = ?, ended_at = ?
WHERE tenant = ? AND address = ? AND first_run_id = ?`
	dropOpenGates = `DELETE FROM gates WHERE tenant = ? AND address = ? AND first_run_id = ? AND status = 'open'`
	putGate       = `INSERT INTO gates (tenant, address, first_run_id, gate, opened, closed, status, roles, opened_at, expires_at, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, address, first_run_id, gate) DO UPDATE SET opened = excluded.opened, closed = excluded.closed, status = excluded.status,
  roles = excluded.roles, opened_at = excluded.opened_at, expires_at = excluded.expires_at, data = excluded.data`
	selectGate     = `SELECT opened, data FROM gates WHERE tenant = ? AND address = ? AND first_run_id = ? AND gate = ?`
	deleteGates    = `DELETE FROM gates WHERE tenant = ? AND address = ? AND first_run_id = ? AND opened >= ?`
	selectReopened = `SELECT g.opened, e.data FROM gates g
JOIN events e ON e.tenant = g.tenant AND e.address = g.address AND e.first_run_id = g.first_run_id AND e.seq = g.opened AND e.superseded_by = ''
WHERE g.tenant = ? AND g.address = ? AND g.first_run_id = ? AND (g.closed >= ? OR g.closed IS NULL)`
	selectCounted = `SELECT seq, type, data FROM events
WHERE tenant = ? AND address = ? AND first_run_id = ? AND superseded_by = '' AND seq < ? AND type IN ('gate_counted', 'gate_escalated', 'gate_pending') ORDER BY seq`
)

func (j *journal) PutRun(ctx context.Context, s rules.Start, e rules.End) error {
	d, h := s.Data, e.Head
	_, err := j.exec(ctx, insertRun, j.chain(s.Nth, d.Agent, d.Version, d.Key, d.User, d.BodyDigest,
		e.Seq, e.Hash, string(h.Status), h.Reason, h.Phase, h.Turn, micros(s.At), micros(e.At), nullMicros(e.EndedAt()), j.ref.Branch == j.ref.FirstRunID)...)
	return err
}

func (j *journal) MoveRun(ctx context.Context, e rules.End) error {
	h := e.Head
	_, err := j.exec(ctx, updateRun, e.Seq, e.Hash, string(h.Status), h.Reason, h.Phase, h.Turn, micros(e.At), nullMicros(e.EndedAt()),
		j.ref.Tenant, j.ref.Address, j.ref.FirstRunID)
	return err
}

func (j *journal) CloseRun(ctx context.Context, firstRunID string, at time.Time, reason string) error {
	_, err := j.exec(ctx, closeRun, reason, micros(at), micros(at), j.ref.Tenant, j.ref.Address, firstRunID)
	if err == nil {
		_, err = j.exec(ctx, dropOpenGates, j.ref.Tenant, j.ref.Address, firstRunID)
	}
	return err
}

func (j *journal) Touch(ctx context.Context) error {
	_, err := j.exec(ctx, touchRun, j.chain()...)
	return err
}

func (j *journal) Gates(ctx context.Context, ids []string) (found []rules.Gate, err error) {
	for _, id := range ids {
		var g rules.Gate
		var data string
		switch err := j.row(ctx, selectGate, j.chain(id)...).Scan(&g.Opened, &data); {
		case errors.Is(err, sql.ErrNoRows):
			continue
		case err != nil:
			return nil, err
		}
		g.Data = agent.JSON(data)
		found = append(found, g)
	}
	return found, nil
}

func (j *journal) Reopened(ctx context.Context, seq int64) (found []rules.Gate, err error) {
	rows, err := j.rows(ctx, selectReopened, j.chain(seq)...)
	if err != nil {
		return nil, err
	}
	err = each(rows, func(r row) error {
		var g rules.Gate
		var data string
		err := r.Scan(&g.Opened, &data)
		g.Data = agent.JSON(data)
		found = append(found, g)
		return err
	})
	return found, err
}

func (j *journal) Counted(ctx context.Context, seq int64) (found []agent.Event, err error) {
	rows, err := j.rows(ctx, selectCounted, j.chain(seq)...)
	if err != nil {
		return nil, err
	}
	err = each(rows, func(r row) error {
		var e agent.Event
		var data string
		err := r.Scan(&e.Seq, &e.Type, &data)
		e.Data = agent.JSON(data)
		found = append(found, e)
		return err
	})
	return found, err
}

func (j *journal) PutGate(ctx context.Context, g rules.Gate) error {
	roles, err := agent.Encode(append([]string{}, g.Roles...))
	if err != nil {
		return err
	}
	_, err = j.exec(ctx, putGate, j.chain(g.ID, g.Opened, sql.NullInt64{Int64: g.Closed, Valid: g.Closed > 0}, string(g.Status), roles.String(),
		micros(g.OpenedAt), nullMicros(g.ExpiresAt), g.Data.String())...)
	return err
}

func (j *journal) DropGates(ctx context.Context, seq int64) error {
	_, err := j.exec(ctx, deleteGates, j.chain(seq)...)
	return err
}
