package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	holdColumns = `tenant, agent, tool, by, reason, at, released_by, released_at`
	insertHold  = `INSERT INTO holds (tenant, agent, tool, by, reason, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, agent, tool) WHERE released_at IS NULL DO NOTHING`
	selectHold  = `SELECT ` + holdColumns + ` FROM holds WHERE tenant = ? AND agent = ? AND tool = ? AND released_at IS NULL`
	releaseHold = `UPDATE holds SET released_by = ?, released_at = ? WHERE tenant = ? AND agent = ? AND tool = ? AND released_at IS NULL`
	// The widest first: it is what an operator has to release first.
	selectHeld = `SELECT ` + holdColumns + ` FROM holds
WHERE tenant IN ('', ?) AND agent IN ('', ?) AND tool IN ('', ?) AND released_at IS NULL ORDER BY tenant, agent, tool LIMIT 1`
)

// Hold implements [store.Holds]. A claim and a hold are writes of one file, of
// which there is one at a time.
func (s *Store) Hold(ctx context.Context, h store.Hold) (stands store.Hold, err error) {
	const operation = "hold"
	if err := h.Check(); err != nil {
		return stands, fail(operation, err)
	}
	err = s.write(ctx, operation, func(t transaction) error {
		if _, err := t.exec(ctx, insertHold, h.Tenant, h.Agent, h.Tool, h.By, h.Reason, micros(s.now())); err != nil {
			return err
		}
		stands, err = scanHold(t.row(ctx, selectHold, h.Tenant, h.Agent, h.Tool))
		return err
	})
	return stands, err
}

// ReleaseHold implements [store.Holds].
func (s *Store) ReleaseHold(ctx context.Context, h store.Hold, by string) (stands store.Hold, err error) {
	const operation = "release of a hold"
	if err := errors.Join(store.CheckNamed("name of who releases", by), store.CheckText("tenant", h.Tenant, "agent", h.Agent, "tool", h.Tool)); err != nil {
		return stands, fail(operation, err)
	}
	err = s.write(ctx, operation, func(t transaction) error {
		stands, err = scanHold(t.row(ctx, selectHold, h.Tenant, h.Agent, h.Tool))
		if errors.Is(err, sql.ErrNoRows) {
			return rules.NoHold(h)
		}
		if err != nil {
			return err
		}
		at := fromMicros(micros(s.now()))
		stands.ReleasedBy, stands.ReleasedAt = by, &at
		_, err = t.exec(ctx, releaseHold, by, micros(at), h.Tenant, h.Agent, h.Tool)
		return err
	})
	return stands, err
}

// AllHolds implements [store.Holds].
func (s *Store) AllHolds(ctx context.Context, tenant string, ended bool) (all []store.Hold, err error) {
	const operation = "list of holds"
	if err := store.CheckText("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, `SELECT `+holdColumns+` FROM holds WHERE (?1 = '' OR tenant IN ('', ?1)) AND (?2 OR released_at IS NULL) ORDER BY rowid`,
		[]any{tenant, ended}, func(r row) error {
			h, err := scanHold(r)
			all = append(all, h)
			return err
		})
	return all, err
}

// Held implements [store.Holds].
func (s *Store) Held(ctx context.Context, tenant, agent, tool string) (held *store.Hold, err error) {
	const operation = "look for a hold"
	if err := errors.Join(store.CheckNamed("tenant", tenant), store.CheckText("agent", agent, "tool", tool)); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, selectHeld, []any{tenant, agent, tool}, func(r row) error {
		h, err := scanHold(r)
		held = &h
		return err
	})
	return held, err
}

func (t transaction) held(ctx context.Context, tenant, agent, tool string) (*store.Hold, error) {
	h, err := scanHold(t.row(ctx, selectHeld, tenant, agent, tool))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &h, nil
}

func scanHold(r row) (h store.Hold, err error) {
	var at int64
	var released sql.NullInt64
	err = r.Scan(&h.Tenant, &h.Agent, &h.Tool, &h.By, &h.Reason, &at, &h.ReleasedBy, &released)
	h.At, h.ReleasedAt = fromMicros(at), fromNullMicros(released)
	return h, err
}
