package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	effectColumns = `e.tenant, e.key, e.address, e.scope, e.agent, e.version, e.tool, e.kind, e.step, e.ordinal, e.args,
  e.status, e.result, e.whole_ref, e.whole_bytes, e.reason, e.resolved_by, e.fenced, e.attempts, e.released, e.unknown,
  e.claimed_at, e.attempt_at, e.began_at, e.deadline, e.settled_at, e.doubt_at, e.undone_at, e.undone_by, e.rowid`
	selectEffect = `SELECT ` + effectColumns + ` FROM effects e WHERE tenant = ? AND key = ?`
	insertEffect = `INSERT INTO effects (tenant, key, address, scope, agent, version, tool, kind, step, ordinal, args, claimed_at, attempt_at, deadline, began_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?12, ?12, ?13, ?14)`
	insertLost = `UPDATE effects SET attempts = 2, unknown = 1, reason = ? WHERE tenant = ? AND key = ?`
	// The wait is for the last of the attempts, whose deadline may be an earlier
	// one's: a deploy can shorten a tool's time.
	countAttempt = `UPDATE effects SET attempts = attempts + 1, attempt_at = ?, deadline = max(?, coalesce(deadline, 0)), began_at = coalesce(?, began_at)
WHERE tenant = ? AND key = ? AND status = 'claimed'`
	insertFence = `INSERT INTO effects (tenant, key, address, scope, agent, version, tool, kind, step, ordinal, args, claimed_at, attempt_at, settled_at, reason, status, fenced, attempts)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?12, ?12, ?12, ?13, 'refused', 1, 0)`
	fenceEffect = `UPDATE effects SET status = 'refused', fenced = 1, settled_at = ?, reason = ?
WHERE tenant = ? AND key = ? AND status = 'claimed' AND attempts = released`
	insertAttempt = `INSERT INTO effect_attempts (tenant, key, n, at, deadline, branch) VALUES (?, ?, ?, ?, ?, ?)`
	settleEffect  = `UPDATE effects SET status = ?, result = ?, whole_ref = ?, whole_bytes = ?, reason = ?, resolved_by = ?, settled_at = ?
WHERE tenant = ? AND key = ? AND status = 'claimed'`
	markUnknown    = `UPDATE effects SET unknown = 1, reason = ? WHERE tenant = ? AND key = ? AND status = 'claimed'`
	explainAttempt = `UPDATE effect_attempts SET reason = ? WHERE tenant = ? AND key = ? AND n = ?`
	deleteAttempts = `DELETE FROM effect_attempts WHERE tenant = ?1 AND key = ?2 AND n BETWEEN ?3 AND ?4
  AND EXISTS (SELECT 1 FROM effects WHERE tenant = ?1 AND key = ?2 AND status = 'claimed')`
	releaseEffect = `UPDATE effects SET released = released + ?,
  deadline = (SELECT max(a.deadline) FROM effect_attempts a WHERE a.tenant = effects.tenant AND a.key = effects.key)
WHERE tenant = ? AND key = ? AND status = 'claimed'`
	markDoubt = `UPDATE effects SET doubt_at = ?, reason = ? WHERE tenant = ? AND key = ? AND status = 'claimed' AND doubt_at IS NULL`
	undo      = `UPDATE effects SET undone_at = ?, undone_by = ? WHERE tenant = ? AND key = ? AND status = 'applied' AND undone_at IS NULL`
)

// Claim implements [store.Ledger].
func (s *Store) Claim(ctx context.Context, c store.Claim) (e store.Effect, fresh bool, err error) {
	operation := "claim of effect " + c.Key
	if err := c.Check(); err != nil {
		return e, false, fail(operation, err)
	}
	err = s.write(ctx, operation, func(t transaction) error {
		e, fresh, err = t.claim(ctx, c, fromMicros(micros(s.now())))
		return err
	})
	if err != nil {
		return store.Effect{}, false, err
	}
	return e, fresh, nil
}

func (t transaction) claim(ctx context.Context, c store.Claim, now time.Time) (e store.Effect, fresh bool, err error) {
	deadline := now.Add(c.Attempt.Truncate(time.Microsecond))
	var began sql.NullInt64
	if !c.Began.IsZero() {
		began = sql.NullInt64{Int64: micros(c.Began), Valid: true}
	}
	held, err := t.held(ctx, c.Tenant, c.Agent, c.Tool)
	if err != nil {
		return e, false, err
	}
	e, err = t.effect(ctx, c.Tenant, c.Key)
	switch {
	case agent.ErrorCode(err) == agent.CodeNotFound && (held != nil || rules.Late(c, now)):
		return store.Effect{Claim: c, Held: held, Late: held == nil}, false, nil
	case agent.ErrorCode(err) == agent.CodeNotFound:
		_, err = t.exec(ctx, insertEffect, c.Tenant, c.Key, c.Address, c.Scope, c.Agent, c.Version, c.Tool, string(c.Kind),
			c.Step, c.Ordinal, c.Args.String(), micros(now), micros(deadline), began)
		fresh = true
		var lost bool
		if err == nil {
			lost, err = t.mayBeLost(ctx, c)
		}
		if lost && err == nil {
			e.Attempts, fresh = 1, false
			if _, err = t.exec(ctx, insertLost, rules.LostClaim, c.Tenant, c.Key); err == nil {
				_, err = t.exec(ctx, insertAttempt, c.Tenant, c.Key, 1, micros(now), micros(now), "")
			}
			if err == nil {
				_, err = t.exec(ctx, explainAttempt, rules.LostClaim, c.Tenant, c.Key, 1)
			}
		}
	case err == nil:
		var counts bool
		counts, err = rules.Judge(&e, c, held, now)
		if err != nil || !counts {
			return e, false, err
		}
		_, err = t.exec(ctx, countAttempt, micros(now), micros(deadline), began, c.Tenant, c.Key)
	}
	if err == nil {
		_, err = t.exec(ctx, insertAttempt, c.Tenant, c.Key, e.Attempts+1, micros(now), micros(deadline), c.Branch)
	}
	if err == nil {
		e, err = t.effect(ctx, c.Tenant, c.Key)
	}
	return e, fresh, err
}

// Fence implements [store.Ledger].
func (s *Store) Fence(ctx context.Context, c store.Claim, reason string) (e store.Effect, err error) {
	operation := "fence of effect " + c.Key
	if err := c.CheckFence(reason); err != nil {
		return e, fail(operation, err)
	}
	err = s.write(ctx, operation, func(t transaction) error {
		at := s.now()
		now := micros(at)
		e, err = t.effect(ctx, c.Tenant, c.Key)
		switch {
		case agent.ErrorCode(err) == agent.CodeNotFound:
			_, err = t.exec(ctx, insertFence, c.Tenant, c.Key, c.Address, c.Scope, c.Agent, c.Version, c.Tool, string(c.Kind),
				c.Step, c.Ordinal, c.Args.String(), now, reason)
		case err == nil:
			if err = rules.SameCall(e, c); err != nil || e.Begun() {
				e.Wait = rules.MayAct(e, c, at)
				return err
			}
			_, err = t.exec(ctx, fenceEffect, now, reason, c.Tenant, c.Key)
		}
		if err == nil {
			e, err = t.effect(ctx, c.Tenant, c.Key)
		}
		return err
	})
	if err != nil {
		return store.Effect{}, err
	}
	return e, nil
}

// Settle implements [store.Ledger].
func (s *Store) Settle(ctx context.Context, tenant, key string, o store.Outcome) error {
	operation := "settlement of effect " + key
	if err := errors.Join(store.CheckNamed("tenant", tenant, "key", key), o.Check()); err != nil {
		return fail(operation, err)
	}
	var ref sql.NullString
	var size sql.NullInt64
	if o.Whole != nil {
		ref, size = sql.NullString{String: o.Whole.Ref, Valid: true}, sql.NullInt64{Int64: int64(o.Whole.Bytes), Valid: true}
	}
	result := sql.NullString{String: string(o.Result), Valid: len(o.Result) > 0}
	return s.write(ctx, operation, func(t transaction) error {
		settled, err := t.exec(ctx, settleEffect, string(o.Status), result, ref, size, o.Reason, o.By, micros(s.now()), tenant, key)
		if err != nil || settled == 1 {
			return err
		}
		e, err := t.effect(ctx, tenant, key)
		if err != nil {
			return err
		}
		return rules.JudgeSettled(e, o)
	})
}

// MarkUnknown implements [store.Ledger].
func (s *Store) MarkUnknown(ctx context.Context, tenant, key string, attempt int, reason string) (store.Effect, error) {
	operation := "marking of effect " + key + " as unknown"
	if err := errors.Join(store.CheckNamed("tenant", tenant, "key", key), store.CheckText("reason", reason)); err != nil {
		return store.Effect{}, fail(operation, err)
	}
	return s.mark(ctx, operation, tenant, key, func(t transaction) error {
		marked, err := t.exec(ctx, markUnknown, reason, tenant, key)
		if err == nil && marked == 1 {
			_, err = t.exec(ctx, explainAttempt, reason, tenant, key, attempt)
		}
		return err
	})
}

// Release implements [store.Ledger].
func (s *Store) Release(ctx context.Context, tenant, key string, first, last int) (store.Effect, error) {
	operation := "release of effect " + key
	if err := store.CheckNamed("tenant", tenant, "key", key); err != nil {
		return store.Effect{}, fail(operation, err)
	}
	return s.mark(ctx, operation, tenant, key, func(t transaction) error {
		deleted, err := t.exec(ctx, deleteAttempts, tenant, key, first, last)
		if err == nil && deleted > 0 {
			_, err = t.exec(ctx, releaseEffect, deleted, tenant, key)
		}
		return err
	})
}

// MarkDoubt implements [store.Ledger].
func (s *Store) MarkDoubt(ctx context.Context, tenant, key, reason string) error {
	operation := "marking of effect " + key + " as in doubt"
	if err := errors.Join(store.CheckNamed("tenant", tenant, "key", key), store.CheckText("reason", reason)); err != nil {
		return fail(operation, err)
	}
	_, err := s.mark(ctx, operation, tenant, key, func(t transaction) error {
		_, err := t.exec(ctx, markDoubt, micros(s.now()), reason, tenant, key)
		return err
	})
	return err
}

// MarkUndone implements [store.Ledger].
func (s *Store) MarkUndone(ctx context.Context, tenant, key, by string) error {
	operation := "marking of effect " + key + " as undone"
	if err := store.CheckNamed("tenant", tenant, "key", key, "key of the undoing effect", by); err != nil {
		return fail(operation, err)
	}
	return s.write(ctx, operation, func(t transaction) error {
		marked, err := t.exec(ctx, undo, micros(s.now()), by, tenant, key)
		if err != nil || marked == 1 {
			return err
		}
		e, err := t.effect(ctx, tenant, key)
		if err != nil {
			return err
		}
		return rules.JudgeUndone(e, by)
	})
}

// mark changes a claimed row and reads what stands then; a settled one stays, and
// that is no error.
func (s *Store) mark(ctx context.Context, operation, tenant, key string, change func(transaction) error) (e store.Effect, err error) {
	err = s.write(ctx, operation, func(t transaction) error {
		if err := change(t); err != nil {
			return err
		}
		e, err = t.effect(ctx, tenant, key)
		return err
	})
	if err != nil {
		return store.Effect{}, err
	}
	return e, nil
}

func (t transaction) effect(ctx context.Context, tenant, key string) (store.Effect, error) {
	e, err := scanEffect(t.row(ctx, selectEffect, tenant, key))
	if errors.Is(err, sql.ErrNoRows) {
		return e, rules.NoEffect()
	}
	return e, err
}
