package postgres

import (
	"context"
	"errors"
	"time"

	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	holdColumns = `tenant, agent, tool, by, reason, at, released_by, released_at`
	insertHold  = `INSERT INTO interlock.holds (tenant, agent, tool, by, reason, at)
VALUES ($1, $2, $3, $4, $5, coalesce($6::timestamptz, clock_timestamp()))
ON CONFLICT (tenant, agent, tool) WHERE released_at IS NULL DO NOTHING`
	selectHold  = `SELECT ` + holdColumns + ` FROM interlock.holds WHERE tenant = $1 AND agent = $2 AND tool = $3 AND released_at IS NULL`
	releaseHold = `UPDATE interlock.holds SET released_by = $4, released_at = coalesce($5::timestamptz, clock_timestamp())
WHERE tenant = $1 AND agent = $2 AND tool = $3 AND released_at IS NULL RETURNING ` + holdColumns
	// The widest first: it is what an operator has to release first.
	selectHeld = `SELECT ` + holdColumns + ` FROM interlock.holds
WHERE tenant IN ('', $1) AND agent IN ('', $2) AND tool IN ('', $3) AND released_at IS NULL ORDER BY tenant, agent, tool LIMIT 1`

	// Claims share the lock and a hold wants it alone: a claim that has not seen the
	// hold is committed when the hold is.
	holdsLock      = int64(0x696e74686f6c6473)
	shareHoldsLock = `SELECT pg_advisory_xact_lock_shared($1)`
	selectAllHolds = `SELECT ` + holdColumns + ` FROM interlock.holds WHERE ($1 = '' OR tenant IN ('', $1)) AND ($2 OR released_at IS NULL) ORDER BY id`
)

func (t *transaction) shareHolds() { t.exec(shareHoldsLock, holdsLock) }

// Hold implements [store.Holds].
func (s *Store) Hold(ctx context.Context, h store.Hold) (stands store.Hold, err error) {
	const operation = "hold"
	if err := h.Check(); err != nil {
		return stands, fail(operation, err)
	}
	err = s.write(ctx, operation, func(t *transaction) error {
		t.exec(advisory, holdsLock)
		t.exec(insertHold, h.Tenant, h.Agent, h.Tool, h.By, h.Reason, s.clock())
		t.rows(func(r row) (err error) { stands, err = scanHold(r); return err }, selectHold, h.Tenant, h.Agent, h.Tool)
		return nil
	})
	return stands, err
}

// ReleaseHold implements [store.Holds].
func (s *Store) ReleaseHold(ctx context.Context, h store.Hold, by string) (stands store.Hold, err error) {
	const operation = "release of a hold"
	if err := errors.Join(store.CheckNamed("name of who releases", by), store.CheckText("tenant", h.Tenant, "agent", h.Agent, "tool", h.Tool)); err != nil {
		return stands, fail(operation, err)
	}
	found := false
	err = s.write(ctx, operation, func(t *transaction) error {
		t.rows(func(r row) (err error) { stands, err = scanHold(r); found = true; return err }, releaseHold, h.Tenant, h.Agent, h.Tool, by, s.clock())
		return nil
	})
	if err == nil && !found {
		err = fail(operation, rules.NoHold(h))
	}
	return stands, err
}

// AllHolds implements [store.Holds].
func (s *Store) AllHolds(ctx context.Context, tenant string, ended bool) (all []store.Hold, err error) {
	const operation = "list of holds"
	if err := store.CheckText("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, selectAllHolds, []any{tenant, ended}, func(r row) error {
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

func scanHold(r row) (h store.Hold, err error) {
	var released *time.Time
	err = r.Scan(&h.Tenant, &h.Agent, &h.Tool, &h.By, &h.Reason, &h.At, &h.ReleasedBy, &released)
	h.At, h.ReleasedAt = h.At.UTC(), utc(released)
	return h, err
}
