package postgres

import (
	"context"
	"errors"
	"time"

	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	effectColumns = `e.tenant, e.key, e.address, e.scope, e.agent, e.version, e.tool, e.kind, e.step, e.ordinal, e.args,
  e.status, e.result, e.whole_ref, e.whole_bytes, e.reason, e.resolved_by, e.fenced, e.attempts, e.released, e.unknown,
  e.claimed_at, e.attempt_at, e.began_at, e.deadline, e.settled_at, e.doubt_at, e.undone_at, e.undone_by, e.id`
	selectEffect = `SELECT ` + effectColumns + ` FROM interlock.effects e WHERE tenant = $1 AND key = $2`
	// One reading of the clock, which would go on within a row; and nothing where a
	// hold is on it, or it comes too late.
	insertEffect = `WITH clock AS MATERIALIZED (SELECT coalesce($12::timestamptz, clock_timestamp()) AS now),
inserted AS (
  INSERT INTO interlock.effects (tenant, key, address, scope, agent, version, tool, kind, step, ordinal, args, claimed_at, attempt_at, deadline, began_at)
  SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, now, now, now + $13::bigint * interval '1 microsecond', $15::timestamptz FROM clock
  WHERE NOT EXISTS (SELECT 1 FROM interlock.holds WHERE tenant IN ('', $1) AND agent IN ('', $5) AND tool IN ('', $7) AND released_at IS NULL)
    AND ($16::timestamptz IS NULL OR now <= $16)
  ON CONFLICT (tenant, key) DO NOTHING RETURNING tenant, key, claimed_at, deadline
)
INSERT INTO interlock.effect_attempts (tenant, key, n, at, deadline, branch) SELECT tenant, key, 1, claimed_at, deadline, $14 FROM inserted`
	selectClock = `SELECT coalesce($1::timestamptz, clock_timestamp())`
	// The wait is for the last of the attempts, whose deadline may be an earlier
	// one's: a deploy can shorten a tool's time.
	countAttempt = `UPDATE interlock.effects SET attempts = attempts + 1, attempt_at = $3, deadline = greatest($4, deadline), began_at = coalesce($5, began_at)
WHERE tenant = $1 AND key = $2 AND status = 'claimed'`
	insertFence = `INSERT INTO interlock.effects (tenant, key, address, scope, agent, version, tool, kind, step, ordinal, args, claimed_at, attempt_at, settled_at, reason, status, fenced, attempts)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, now, now, now, $13, 'refused', true, 0 FROM (SELECT coalesce($12::timestamptz, clock_timestamp()) AS now) c
ON CONFLICT (tenant, key) DO NOTHING`
	// What another transaction has claimed or released meanwhile is seen: the row is
	// waited for.
	fenceEffect = `UPDATE interlock.effects SET status = 'refused', fenced = true, reason = $3, settled_at = coalesce($4::timestamptz, clock_timestamp())
WHERE tenant = $1 AND key = $2 AND status = 'claimed' AND attempts = released`
	insertAttempt = `INSERT INTO interlock.effect_attempts (tenant, key, n, at, deadline, branch) VALUES ($1, $2, $3, $4, $5, $6)`
	settleEffect  = `UPDATE interlock.effects SET status = $3, result = $4, whole_ref = $5, whole_bytes = $6, reason = $7, resolved_by = $8,
  settled_at = coalesce($9::timestamptz, clock_timestamp())
WHERE tenant = $1 AND key = $2 AND status = 'claimed'`
	markUnknown = `WITH attempt AS (
  UPDATE interlock.effect_attempts a SET reason = $4 FROM interlock.effects e
  WHERE a.tenant = $1 AND a.key = $2 AND a.n = $3 AND e.tenant = $1 AND e.key = $2 AND e.status = 'claimed'
)
UPDATE interlock.effects SET unknown = true, reason = $4 WHERE tenant = $1 AND key = $2 AND status = 'claimed'`
	lockEffect     = `SELECT 1 FROM interlock.effects WHERE tenant = $1 AND key = $2 FOR UPDATE`
	deleteAttempts = `DELETE FROM interlock.effect_attempts WHERE tenant = $1 AND key = $2 AND n BETWEEN $3 AND $4
  AND EXISTS (SELECT 1 FROM interlock.effects WHERE tenant = $1 AND key = $2 AND status = 'claimed')`
	// Where they had been released already the counts are right as they are.
	releaseEffect = `UPDATE interlock.effects e SET released = attempts - a.open, deadline = a.deadline
FROM (SELECT count(*) AS open, max(deadline) AS deadline FROM interlock.effect_attempts WHERE tenant = $1 AND key = $2) a
WHERE e.tenant = $1 AND e.key = $2 AND e.status = 'claimed'`
	markDoubt = `UPDATE interlock.effects SET reason = $3, doubt_at = coalesce($4::timestamptz, clock_timestamp())
WHERE tenant = $1 AND key = $2 AND status = 'claimed' AND doubt_at IS NULL`
	undo = `UPDATE interlock.effects SET undone_by = $3, undone_at = coalesce($4::timestamptz, clock_timestamp())
WHERE tenant = $1 AND key = $2 AND status = 'applied' AND undone_at IS NULL`
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
		var held *store.Hold
		var began, notAfter *time.Time
		if !c.Began.IsZero() {
			began = &c.Began
		}
		if !c.NotAfter.IsZero() {
			notAfter = &c.NotAfter
		}
		found, id, before := false, identified{}, rules.RunBefore{}
		t.shareHolds()
		t.count(&inserted, insertEffect, c.Tenant, c.Key, c.Address, c.Scope, c.Agent, c.Version, c.Tool, string(c.Kind),
			c.Step, c.Ordinal, c.Args.String(), s.clock(), c.Attempt.Microseconds(), c.Branch, began, notAfter)
		t.rows(func(r row) (err error) { e, err = scanEffect(r); found = true; return err }, selectEffect+` FOR UPDATE`, c.Tenant, c.Key)
		t.rows(func(r row) error { h, err := scanHold(r); held = &h; return err }, selectHeld, c.Tenant, c.Agent, c.Tool)
		t.rows(func(r row) error { return r.Scan(&now) }, selectClock, s.clock())
		if c.Exclusive {
			s.queueIdentity(t, &id)
			t.rows(func(r row) error { return r.Scan(&before.Generation, &before.Branches) }, selectRunBefore, c.Tenant, c.Address, c.Branch)
		}
		if err := t.flush(ctx); err != nil {
			return err
		}
		if fresh = inserted == 1; fresh {
			if c.Exclusive && rules.MayBeLost(c, id.Identity, before) {
				fresh = false
				t.exec(insertLost, c.Tenant, c.Key, rules.LostClaim)
				t.exec(secondAttempt, c.Tenant, c.Key)
				t.exec(lostAttempt, c.Tenant, c.Key, rules.LostClaim)
				t.rows(func(r row) (err error) { e, err = scanEffect(r); return err }, selectEffect, c.Tenant, c.Key)
			}
			return nil
		}
		if !found {
			e = store.Effect{Claim: c, Held: held, Late: held == nil}
			return nil
		}
		now = now.UTC()
		counts, err := rules.Judge(&e, c, held, now)
		if err != nil || !counts {
			return err
		}
		deadline := now.Add(c.Attempt.Truncate(time.Microsecond))
		t.exec(countAttempt, c.Tenant, c.Key, now, deadline, began)
		t.exec(insertAttempt, c.Tenant, c.Key, e.Attempts+1, now, deadline, c.Branch)
		t.rows(func(r row) (err error) { e, err = scanEffect(r); return err }, selectEffect, c.Tenant, c.Key)
		return nil
	})
	if err != nil {
		return store.Effect{}, false, err
	}
	return e, fresh, nil
}

// Fence implements [store.Ledger]. The row is locked by the update, which waits for
// a claim under way and judges what that has left.
func (s *Store) Fence(ctx context.Context, c store.Claim, reason string) (e store.Effect, err error) {
	operation, now := "fence of effect "+c.Key, time.Time{}
	if err := c.CheckFence(reason); err != nil {
		return e, fail(operation, err)
	}
	err = s.write(ctx, operation, func(t *transaction) error {
		t.exec(insertFence, c.Tenant, c.Key, c.Address, c.Scope, c.Agent, c.Version, c.Tool, string(c.Kind), c.Step, c.Ordinal, c.Args.String(), s.clock(), reason)
		t.rows(func(r row) (err error) { e, err = scanEffect(r); return err }, selectEffect, c.Tenant, c.Key)
		if err := t.flush(ctx); err != nil {
			return err
		}
		if err := rules.SameCall(e, c); err != nil || e.Fenced {
			return err
		}
		t.exec(fenceEffect, c.Tenant, c.Key, reason, s.clock())
		t.rows(func(r row) (err error) { e, err = scanEffect(r); return err }, selectEffect, c.Tenant, c.Key)
		t.rows(func(r row) error { return r.Scan(&now) }, selectClock, s.clock())
		return nil
	})
	if err != nil {
		return store.Effect{}, err
	}
	e.Wait = rules.MayAct(e, c, now)
	return e, nil
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
	settled, e, err := s.change(ctx, operation, tenant, key, settleEffect, string(o.Status), result, ref, size, o.Reason, o.By, s.clock())
	if err != nil || settled {
		return err
	}
	return fail(operation, rules.JudgeSettled(e, o))
}

// MarkUnknown implements [store.Ledger].
func (s *Store) MarkUnknown(ctx context.Context, tenant, key string, attempt int, reason string) (store.Effect, error) {
	operation := "marking of effect " + key + " as unknown"
	if err := errors.Join(store.CheckNamed("tenant", tenant, "key", key), store.CheckText("reason", reason)); err != nil {
		return store.Effect{}, fail(operation, err)
	}
	_, e, err := s.change(ctx, operation, tenant, key, markUnknown, attempt, reason)
	return e, err
}

// Release implements [store.Ledger]. The row is locked first: of two attempts that
// are released at once, the second counts what the first has left.
func (s *Store) Release(ctx context.Context, tenant, key string, first, last int) (e store.Effect, err error) {
	operation := "release of effect " + key
	if err := store.CheckNamed("tenant", tenant, "key", key); err != nil {
		return e, fail(operation, err)
	}
	found := false
	err = s.write(ctx, operation, func(t *transaction) error {
		t.exec(lockEffect, tenant, key)
		t.exec(deleteAttempts, tenant, key, first, last)
		t.exec(releaseEffect, tenant, key)
		t.rows(func(r row) (err error) { e, err = scanEffect(r); found = true; return err }, selectEffect, tenant, key)
		return nil
	})
	if err == nil && !found {
		err = fail(operation, rules.NoEffect())
	}
	return e, err
}

// MarkDoubt implements [store.Ledger].
func (s *Store) MarkDoubt(ctx context.Context, tenant, key, reason string) error {
	operation := "marking of effect " + key + " as in doubt"
	if err := errors.Join(store.CheckNamed("tenant", tenant, "key", key), store.CheckText("reason", reason)); err != nil {
		return fail(operation, err)
	}
	_, _, err := s.change(ctx, operation, tenant, key, markDoubt, reason, s.clock())
	return err
}

// MarkUndone implements [store.Ledger].
func (s *Store) MarkUndone(ctx context.Context, tenant, key, by string) error {
	operation := "marking of effect " + key + " as undone"
	if err := store.CheckNamed("tenant", tenant, "key", key, "key of the undoing effect", by); err != nil {
		return fail(operation, err)
	}
	undone, e, err := s.change(ctx, operation, tenant, key, undo, by, s.clock())
	if err != nil || undone {
		return err
	}
	return fail(operation, rules.JudgeUndone(e, by))
}

// change runs a statement that changes only a row that it may change, and reads
// what stands then.
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
