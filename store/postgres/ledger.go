package postgres

import (
	"context"
	"errors"
	"time"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	effectColumns = `tenant, key, address, scope, agent, version, tool, kind, step, ordinal, args,
  status, result, whole_ref, whole_bytes, reason, attempts, released, unknown, claimed_at, attempt_at, deadline, settled_at`
	selectEffect = `SELECT ` + effectColumns + ` FROM interlock.effects WHERE tenant = $1 AND key = $2`
	// One reading of the clock, which would go on within a row.
	insertEffect = `WITH clock AS MATERIALIZED (SELECT coalesce($12::timestamptz, clock_timestamp()) AS now)
INSERT INTO interlock.effects (tenant, key, address, scope, agent, version, tool, kind, step, ordinal, args, claimed_at, attempt_at, deadline)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, now, now, now + $13::bigint * interval '1 microsecond' FROM clock
ON CONFLICT (tenant, key) DO NOTHING`
	selectClock  = `SELECT coalesce($1::timestamptz, clock_timestamp())`
	countAttempt = `UPDATE interlock.effects SET attempts = attempts + 1, attempt_at = $3, deadline = $4
WHERE tenant = $1 AND key = $2 AND status = 'claimed'`
	settleEffect = `UPDATE interlock.effects SET status = $3, result = $4, whole_ref = $5, whole_bytes = $6, reason = $7,
  settled_at = coalesce($8::timestamptz, clock_timestamp())
WHERE tenant = $1 AND key = $2 AND status = 'claimed'`
	markUnknown = `UPDATE interlock.effects SET unknown = true, reason = $3
WHERE tenant = $1 AND key = $2 AND status = 'claimed'`
	releaseEffect = `UPDATE interlock.effects SET released = released + 1, deadline = CASE WHEN released + 1 < attempts THEN deadline END
WHERE tenant = $1 AND key = $2 AND status = 'claimed' AND released < attempts`
)

// Claim implements [store.Ledger]. The row is locked before the clock is read: who
// waited for another claim judges by what it left, at the time when it ended.
func (s *Store) Claim(ctx context.Context, c store.Claim) (e store.Effect, fresh bool, err error) {
	operation := "claim of effect " + c.Key
	if err := c.Check(); err != nil {
		return e, false, fail(operation, err)
	}
	err = s.write(ctx, operation, func(t *transaction) error {
		var inserted int64
		var now time.Time
		t.count(&inserted, insertEffect, c.Tenant, c.Key, c.Address, c.Scope, c.Agent, c.Version, c.Tool, string(c.Kind),
			c.Step, c.Ordinal, c.Args.String(), s.clock(), c.Attempt.Microseconds())
		t.rows(func(r row) (err error) { e, err = scanEffect(r); return err }, selectEffect+` FOR UPDATE`, c.Tenant, c.Key)
		t.rows(func(r row) error { return r.Scan(&now) }, selectClock, s.clock())
		if err := t.flush(ctx); err != nil {
			return err
		}
		if fresh = inserted == 1; fresh {
			return nil
		}
		now = now.UTC()
		counts, wait, err := rules.Judge(e, c, now)
		if e.Wait = wait; err != nil || !counts {
			return err
		}
		e.Attempts, e.AttemptAt, e.Deadline = e.Attempts+1, now, now.Add(c.Attempt.Truncate(time.Microsecond))
		t.exec(countAttempt, c.Tenant, c.Key, e.AttemptAt, e.Deadline)
		return nil
	})
	if err != nil {
		return store.Effect{}, false, err
	}
	return e, fresh, nil
}

// Settle implements [store.Ledger].
func (s *Store) Settle(ctx context.Context, tenant, key string, o store.Outcome) error {
	operation := "settlement of effect " + key
	if err := errors.Join(store.CheckNamed("tenant", tenant, "key", key), o.Check()); err != nil {
		return fail(operation, err)
	}
	var result, ref *string
	var size *int
	if len(o.Result) > 0 {
		text := string(o.Result)
		result = &text
	}
	if o.Whole != nil {
		ref, size = &o.Whole.Ref, &o.Whole.Bytes
	}
	settled, e, err := s.change(ctx, operation, tenant, key, settleEffect, string(o.Status), result, ref, size, o.Reason, s.clock())
	if err != nil || settled {
		return err
	}
	return fail(operation, rules.JudgeSettled(e, o))
}

// MarkUnknown implements [store.Ledger].
func (s *Store) MarkUnknown(ctx context.Context, tenant, key, reason string) error {
	operation := "marking of effect " + key + " as unknown"
	if err := errors.Join(store.CheckNamed("tenant", tenant, "key", key), store.CheckText("reason", reason)); err != nil {
		return fail(operation, err)
	}
	_, _, err := s.change(ctx, operation, tenant, key, markUnknown, reason)
	return err
}

// Release implements [store.Ledger].
func (s *Store) Release(ctx context.Context, tenant, key string) error {
	operation := "release of effect " + key
	if err := store.CheckNamed("tenant", tenant, "key", key); err != nil {
		return fail(operation, err)
	}
	_, _, err := s.change(ctx, operation, tenant, key, releaseEffect)
	return err
}

// change runs a statement that changes only a claimed row, and reads what stands
// then.
func (s *Store) change(ctx context.Context, operation, tenant, key, statement string, args ...any) (changed bool, e store.Effect, err error) {
	var n int64
	found := false
	err = s.write(ctx, operation, func(t *transaction) error {
		t.count(&n, statement, append([]any{tenant, key}, args...)...)
		t.rows(func(r row) (err error) { e, err = scanEffect(r); found = true; return err }, selectEffect, tenant, key)
		return nil
	})
	if err == nil && !found {
		err = fail(operation, rules.NoEffect())
	}
	return n == 1, e, err
}

// Effect implements [store.Ledger].
func (s *Store) Effect(ctx context.Context, tenant, key string) (store.Effect, error) {
	operation := "look-up of effect " + key
	found, err := s.effects(ctx, operation, selectEffect, tenant, key)
	if err == nil && len(found) == 0 {
		err = fail(operation, rules.NoEffect())
	}
	if err != nil {
		return store.Effect{}, err
	}
	return found[0], nil
}

// Effects implements [store.Ledger].
func (s *Store) Effects(ctx context.Context, tenant, address string) ([]store.Effect, error) {
	return s.effects(ctx, "list of the effects of "+address,
		`SELECT `+effectColumns+` FROM interlock.effects WHERE tenant = $1 AND address = $2 ORDER BY claimed_at, id`, tenant, address)
}

func (s *Store) effects(ctx context.Context, operation, query, tenant, of string) (found []store.Effect, err error) {
	if err := errors.Join(store.CheckNamed("tenant", tenant), store.CheckText("key", of)); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, query, []any{tenant, of}, func(r row) error {
		e, err := scanEffect(r)
		found = append(found, e)
		return err
	})
	return found, err
}

func scanEffect(r row) (e store.Effect, err error) {
	var args string
	var result, ref *string
	var size *int
	var deadline *time.Time
	err = r.Scan(&e.Tenant, &e.Key, &e.Address, &e.Scope, &e.Agent, &e.Version, &e.Tool, &e.Kind, &e.Step, &e.Ordinal, &args,
		&e.Status, &result, &ref, &size, &e.Reason, &e.Attempts, &e.Released, &e.Unknown, &e.ClaimedAt, &e.AttemptAt, &deadline, &e.SettledAt)
	if err != nil {
		return e, err
	}
	e.Args, e.ClaimedAt, e.AttemptAt, e.SettledAt = agent.JSON(args), e.ClaimedAt.UTC(), e.AttemptAt.UTC(), utc(e.SettledAt)
	if deadline != nil {
		e.Deadline = deadline.UTC()
	}
	if result != nil {
		e.Result = agent.JSON(*result)
	}
	if ref != nil && size != nil {
		e.Whole = &agent.Blob{Ref: *ref, Bytes: *size}
	}
	return e, nil
}
