package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"interlock/agent"
)

const (
	insertRun = `INSERT INTO runs (tenant, address, first_run_id, agent, version, key, user, body,
  seq, hash, status, reason, phase, turn, started_at, updated_at, ended_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, address) DO UPDATE SET agent = excluded.agent, version = excluded.version, key = excluded.key,
  user = excluded.user, body = excluded.body, seq = excluded.seq, hash = excluded.hash, status = excluded.status,
  reason = excluded.reason, phase = excluded.phase, turn = excluded.turn, started_at = excluded.started_at,
  updated_at = excluded.updated_at, ended_at = excluded.ended_at`
	// It must change something: SQLite writes no page that stays as it is.
	touchRun  = `UPDATE runs SET touched = touched + 1 WHERE tenant = ? AND address = ?`
	updateRun = `UPDATE runs SET seq = ?, hash = ?, status = ?, reason = ?, phase = ?, turn = ?, updated_at = ?, ended_at = ?
WHERE tenant = ? AND address = ?`
	insertGate = `INSERT INTO gates (tenant, address, gate, opened, status, roles, opened_at, expires_at, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, address, gate) DO UPDATE SET opened = excluded.opened, closed = NULL, status = excluded.status,
  roles = excluded.roles, opened_at = excluded.opened_at, expires_at = excluded.expires_at, data = excluded.data`
	selectGate  = `SELECT data FROM gates WHERE tenant = ? AND address = ? AND gate = ?`
	updateGate  = `UPDATE gates SET closed = ?, status = ?, data = ? WHERE tenant = ? AND address = ? AND gate = ?`
	deleteGates = `DELETE FROM gates WHERE tenant = ? AND address = ? AND opened >= ?`
	// Gates that were closed by an event that does not count any more, as
	// they were when they opened.
	selectReopened = `SELECT e.seq, e.data FROM gates g
JOIN events e ON e.tenant = g.tenant AND e.address = g.address AND e.seq = g.opened AND e.superseded_by = ''
WHERE g.tenant = ? AND g.address = ? AND g.closed >= ?`
)

// project brings the run's row to where the batch ends. known is how many of
// its events stand already.
func (a *appending) project(ctx context.Context, known int) error {
	last, h := len(a.batch.Events)-1, a.batch.Head
	nothingNew := known > last
	if a.batch.Last() < a.head.seq && nothingNew || nothingNew && h == a.head.run {
		return nil
	}
	if a.batch.First == 1 && known == 0 {
		return a.writeRun(ctx, a.batch.Events[0])
	}
	at, ended := a.end()
	_, err := a.exec(ctx, updateRun, a.batch.Last(), a.hashes[last], string(h.Status), h.Reason, h.Phase, h.Turn, at, ended,
		a.ref.Tenant, a.ref.Address)
	return err
}

// writeRun makes the run's row from its start and from where the batch ends.
func (a *appending) writeRun(ctx context.Context, start agent.Event) error {
	d, err := startedData(start)
	if err != nil {
		return err
	}
	h := a.batch.Head
	at, ended := a.end()
	_, err = a.exec(ctx, insertRun, a.ref.Tenant, a.ref.Address, a.ref.FirstRunID, d.Agent, d.Version, d.Key, d.User, d.BodyDigest,
		a.batch.Last(), a.hashes[len(a.hashes)-1], string(h.Status), h.Reason, h.Phase, h.Turn, micros(start.At), at, ended)
	return err
}

// end is when the batch's last event was, and when the run ended if it has.
func (a *appending) end() (at int64, ended sql.NullInt64) {
	at = micros(a.batch.Events[len(a.batch.Events)-1].At)
	return at, sql.NullInt64{Int64: at, Valid: a.batch.Head.Status.Ended()}
}

// projectGate brings a gate's row to what the event says.
func (a *appending) projectGate(ctx context.Context, e agent.Event) error {
	switch e.Type {
	case agent.EventGateOpened:
		return a.openGate(ctx, e.Seq, e.Data)
	case agent.EventGateClosed:
		return a.closeGate(ctx, e)
	}
	return nil
}

func (a *appending) openGate(ctx context.Context, seq int64, data agent.JSON) error {
	var d agent.GateOpenedData
	if err := json.Unmarshal(data, &d); err != nil {
		return agent.Errorf(agent.CodeInvalid, "the gate that event %d opens: %w", seq, err)
	}
	g := d.Gate
	text, err := agent.Encode(g)
	if err != nil {
		return err
	}
	roles, err := agent.Encode(append([]string{}, g.Roles...))
	if err != nil {
		return err
	}
	_, err = a.exec(ctx, insertGate, a.ref.Tenant, a.ref.Address, g.ID, seq, string(g.Status), roles.String(),
		micros(g.OpenedAt), nullMicros(g.ExpiresAt), text.String())
	return err
}

// closeGate writes what decided the gate. A gate without a row is left alone:
// lists are derived, and may not hold up a run.
func (a *appending) closeGate(ctx context.Context, e agent.Event) error {
	var d agent.GateClosedData
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return agent.Errorf(agent.CodeInvalid, "the gate that event %d closes: %w", e.Seq, err)
	}
	var text string
	err := a.row(ctx, selectGate, a.ref.Tenant, a.ref.Address, d.Gate).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	var g agent.Gate
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		return err
	}
	at := e.At.UTC()
	g.Status, g.Reason, g.Verdict, g.By, g.Verified, g.ClosedAt = d.Status, d.Reason, string(d.Verdict), d.By, d.Verified, &at
	closed, err := agent.Encode(g)
	if err != nil {
		return err
	}
	_, err = a.exec(ctx, updateGate, e.Seq, string(g.Status), closed.String(), a.ref.Tenant, a.ref.Address, g.ID)
	return err
}

// rewindGates makes the gates what the events before seq say.
func (a *appending) rewindGates(ctx context.Context, seq int64) error {
	if _, err := a.exec(ctx, deleteGates, a.ref.Tenant, a.ref.Address, seq); err != nil {
		return err
	}
	rows, err := a.rows(ctx, selectReopened, a.ref.Tenant, a.ref.Address, seq)
	if err != nil {
		return err
	}
	opened := map[int64]string{}
	if err := each(rows, func(r row) error {
		var at int64
		var data string
		err := r.Scan(&at, &data)
		opened[at] = data
		return err
	}); err != nil {
		return err
	}
	for at, data := range opened {
		if err := a.openGate(ctx, at, agent.JSON(data)); err != nil {
			return err
		}
	}
	return nil
}

func startedData(e agent.Event) (d agent.StartedData, err error) {
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return d, agent.Errorf(agent.CodeInvalid, "the data of event %d (%s): %w", e.Seq, e.Type, err)
	}
	return d, nil
}
