package postgres

import (
	"context"
	"time"

	"interlock/agent"
	"interlock/store/internal/rules"
)

const (
	putRun = `INSERT INTO interlock.runs (tenant, address, first_run_id, nth, agent, version, key, "user", body,
  seq, hash, status, reason, phase, turn, started_at, updated_at, ended_at, generation)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
  CASE WHEN $19::boolean THEN (SELECT generation FROM interlock.store) ELSE 0 END)
ON CONFLICT (tenant, address, first_run_id) DO UPDATE SET agent = excluded.agent, version = excluded.version, key = excluded.key,
  "user" = excluded."user", body = excluded.body, seq = excluded.seq, hash = excluded.hash, status = excluded.status,
  reason = excluded.reason, phase = excluded.phase, turn = excluded.turn, started_at = excluded.started_at,
  updated_at = excluded.updated_at, ended_at = excluded.ended_at`
	moveRun = `UPDATE interlock.runs SET seq = $4, hash = $5, status = $6, reason = $7, phase = $8, turn = $9, updated_at = $10, ended_at = $11
WHERE tenant = $1 AND address = $2 AND first_run_id = $3`
	// The same value is a new row: only a transaction that has written to the log
	// waits for it.
	touchRun = `UPDATE interlock.runs SET seq = seq WHERE tenant = $1 AND address = $2 AND first_run_id = $3`
	putGate  = `INSERT INTO interlock.gates (tenant, address, first_run_id, gate, opened, closed, status, roles, opened_at, expires_at, data)
VALUES ($1, $2, $3, $4, $5, nullif($6::bigint, 0), $7, $8, $9, $10, $11)
ON CONFLICT (tenant, address, first_run_id, gate) DO UPDATE SET opened = excluded.opened, closed = excluded.closed, status = excluded.status,
  roles = excluded.roles, opened_at = excluded.opened_at, expires_at = excluded.expires_at, data = excluded.data`
	selectGates = `SELECT gate, opened, data FROM interlock.gates
WHERE tenant = $1 AND address = $2 AND first_run_id = $3 AND gate = ANY($4)`
	closeRun = `UPDATE interlock.runs SET status = 'cancelled', reason = $4, updated_at = $5, ended_at = $5
WHERE tenant = $1 AND address = $2 AND first_run_id = $3`
	dropOpenGates  = `DELETE FROM interlock.gates WHERE tenant = $1 AND address = $2 AND first_run_id = $3 AND status = 'open'`
	dropGates      = `DELETE FROM interlock.gates WHERE tenant = $1 AND address = $2 AND first_run_id = $3 AND opened >= $4`
	selectReopened = `SELECT g.gate, g.opened, e.data FROM interlock.gates g
JOIN interlock.events e ON e.tenant = g.tenant AND e.address = g.address AND e.first_run_id = g.first_run_id AND e.seq = g.opened AND e.superseded_by = ''
WHERE g.tenant = $1 AND g.address = $2 AND g.first_run_id = $3 AND (g.closed >= $4 OR g.closed IS NULL)`
	selectCounted = `SELECT seq, type, data FROM interlock.events
WHERE tenant = $1 AND address = $2 AND first_run_id = $3 AND superseded_by = '' AND seq < $4 AND type IN ('gate_counted', 'gate_escalated', 'gate_pending') ORDER BY seq`
)

func (j *journal) PutRun(_ context.Context, s rules.Start, e rules.End) error {
	d, h := s.Data, e.Head
	j.exec(putRun, j.chain(s.Nth, d.Agent, d.Version, d.Key, d.User, d.BodyDigest,
		e.Seq, e.Hash, string(h.Status), h.Reason, h.Phase, h.Turn, s.At, e.At, e.EndedAt(), j.ref.Branch == j.ref.FirstRunID)...)
	return nil
}

func (j *journal) MoveRun(_ context.Context, e rules.End) error {
	h := e.Head
	j.exec(moveRun, j.chain(e.Seq, e.Hash, string(h.Status), h.Reason, h.Phase, h.Turn, e.At, e.EndedAt())...)
	return nil
}

func (j *journal) CloseRun(_ context.Context, firstRunID string, at time.Time, reason string) error {
	j.exec(closeRun, j.ref.Tenant, j.ref.Address, firstRunID, reason, at)
	j.exec(dropOpenGates, j.ref.Tenant, j.ref.Address, firstRunID)
	return nil
}

func (j *journal) Touch(context.Context) error {
	j.exec(touchRun, j.chain()...)
	return nil
}

func (j *journal) Gates(ctx context.Context, ids []string) (found []rules.Gate, err error) {
	for _, id := range ids {
		g, read := j.gates[id]
		if !read {
			return j.readGates(ctx, selectGates, ids)
		}
		if g != nil {
			found = append(found, *g)
		}
	}
	return found, nil
}

func (j *journal) Reopened(ctx context.Context, seq int64) ([]rules.Gate, error) {
	return j.readGates(ctx, selectReopened, seq)
}

func (j *journal) Counted(ctx context.Context, seq int64) (found []agent.Event, err error) {
	j.rows(func(r row) error {
		var e agent.Event
		var data string
		err := r.Scan(&e.Seq, &e.Type, &data)
		e.Data = agent.JSON(data)
		found = append(found, e)
		return err
	}, selectCounted, j.chain(seq)...)
	err = j.flush(ctx)
	return found, err
}

func (j *journal) readGates(ctx context.Context, query string, by any) (found []rules.Gate, err error) {
	j.rows(func(r row) error {
		g, err := scanGate(r)
		found = append(found, g)
		return err
	}, query, j.chain(by)...)
	err = j.flush(ctx)
	return found, err
}

func scanGate(r row) (g rules.Gate, err error) {
	var data string
	err = r.Scan(&g.ID, &g.Opened, &data)
	g.Data = agent.JSON(data)
	return g, err
}

func (j *journal) PutGate(_ context.Context, g rules.Gate) error {
	clear(j.gates)
	j.exec(putGate, j.chain(g.ID, g.Opened, g.Closed, string(g.Status), append([]string{}, g.Roles...), g.OpenedAt, g.ExpiresAt, g.Data.String())...)
	return nil
}

func (j *journal) DropGates(_ context.Context, seq int64) error {
	clear(j.gates)
	j.exec(dropGates, j.chain(seq)...)
	return nil
}
