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
	effectColumns = `tenant, key, address, scope, agent, version, tool, kind, step, ordinal, args,
  status, result, whole_ref, whole_bytes, reason, attempts, released, unknown, claimed_at, attempt_at, deadline, settled_at`
	selectEffect = `SELECT ` + effectColumns + ` FROM effects WHERE tenant = ? AND key = ?`
	insertEffect = `INSERT INTO effects (tenant, key, address, scope, agent, version, tool, kind, step, ordinal, args, claimed_at, attempt_at, deadline)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?12, ?12, ?13) ON CONFLICT (tenant, key) DO NOTHING`
	countAttempt = `UPDATE effects SET attempts = attempts + 1, attempt_at = ?, deadline = ? WHERE tenant = ? AND key = ? AND status = 'claimed'`
	settleEffect = `UPDATE effects SET status = ?, result = ?, whole_ref = ?, whole_bytes = ?, reason = ?, settled_at = ?
WHERE tenant = ? AND key = ? AND status = 'claimed'`
	markUnknown   = `UPDATE effects SET unknown = 1, reason = ? WHERE tenant = ? AND key = ? AND status = 'claimed'`
	releaseEffect = `UPDATE effects SET released = released + 1, deadline = CASE WHEN released + 1 < attempts THEN deadline END
WHERE tenant = ? AND key = ? AND status = 'claimed' AND released < attempts`
)

// Claim implements [store.Ledger].
func (s *Store) Claim(ctx context.Context, c store.Claim) (e store.Effect, fresh bool, err error) {
	operation := "claim of effect " + c.Key
	if err := c.Check(); err != nil {
		return e, false, fail(operation, err)
	}
	err = s.write(ctx, operation, func(t transaction) error {
		now := fromMicros(micros(s.now()))
		deadline := now.Add(c.Attempt.Truncate(time.Microsecond))
		inserted, err := t.exec(ctx, insertEffect, c.Tenant, c.Key, c.Address, c.Scope, c.Agent, c.Version, c.Tool, string(c.Kind),
			c.Step, c.Ordinal, c.Args.String(), micros(now), micros(deadline))
		if err != nil {
			return err
		}
		fresh = inserted == 1
		if e, err = t.effect(ctx, c.Tenant, c.Key); err != nil || fresh {
			return err
		}
		counts, wait, err := rules.Judge(e, c, now)
		if e.Wait = wait; err != nil || !counts {
			return err
		}
		e.Attempts, e.AttemptAt, e.Deadline = e.Attempts+1, now, deadline
		_, err = t.exec(ctx, countAttempt, micros(now), micros(deadline), c.Tenant, c.Key)
		return err
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
	var ref sql.NullString
	var size sql.NullInt64
	if o.Whole != nil {
		ref, size = sql.NullString{String: o.Whole.Ref, Valid: true}, sql.NullInt64{Int64: int64(o.Whole.Bytes), Valid: true}
	}
	result := sql.NullString{String: string(o.Result), Valid: len(o.Result) > 0}
	return s.write(ctx, operation, func(t transaction) error {
		settled, err := t.exec(ctx, settleEffect, string(o.Status), result, ref, size, o.Reason, micros(s.now()), tenant, key)
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
func (s *Store) MarkUnknown(ctx context.Context, tenant, key, reason string) error {
	operation := "marking of effect " + key + " as unknown"
	if err := errors.Join(store.CheckNamed("tenant", tenant, "key", key), store.CheckText("reason", reason)); err != nil {
		return fail(operation, err)
	}
	return s.mark(ctx, operation, tenant, key, markUnknown, reason, tenant, key)
}

// Release implements [store.Ledger].
func (s *Store) Release(ctx context.Context, tenant, key string) error {
	operation := "release of effect " + key
	if err := store.CheckNamed("tenant", tenant, "key", key); err != nil {
		return fail(operation, err)
	}
	return s.mark(ctx, operation, tenant, key, releaseEffect, tenant, key)
}

// mark changes a claimed row; a settled one stays, and that is no error.
func (s *Store) mark(ctx context.Context, operation, tenant, key, statement string, args ...any) error {
	return s.write(ctx, operation, func(t transaction) error {
		marked, err := t.exec(ctx, statement, args...)
		if err != nil || marked == 1 {
			return err
		}
		_, err = t.effect(ctx, tenant, key) // settled, or not there
		return err
	})
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
		`SELECT `+effectColumns+` FROM effects WHERE tenant = ? AND address = ? ORDER BY claimed_at, rowid`, tenant, address)
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

func (t transaction) effect(ctx context.Context, tenant, key string) (store.Effect, error) {
	e, err := scanEffect(t.row(ctx, selectEffect, tenant, key))
	if errors.Is(err, sql.ErrNoRows) {
		return e, rules.NoEffect()
	}
	return e, err
}

func scanEffect(r row) (e store.Effect, err error) {
	var args string
	var result, ref sql.NullString
	var size, deadline, settled sql.NullInt64
	var claimed, attempt int64
	err = r.Scan(&e.Tenant, &e.Key, &e.Address, &e.Scope, &e.Agent, &e.Version, &e.Tool, &e.Kind, &e.Step, &e.Ordinal, &args,
		&e.Status, &result, &ref, &size, &e.Reason, &e.Attempts, &e.Released, &e.Unknown, &claimed, &attempt, &deadline, &settled)
	if err != nil {
		return e, err
	}
	e.Args, e.ClaimedAt, e.AttemptAt, e.SettledAt = agent.JSON(args), fromMicros(claimed), fromMicros(attempt), fromNullMicros(settled)
	if d := fromNullMicros(deadline); d != nil {
		e.Deadline = *d
	}
	if result.Valid {
		e.Result = agent.JSON(result.String)
	}
	if ref.Valid {
		e.Whole = &agent.Blob{Ref: ref.String, Bytes: int(size.Int64)}
	}
	return e, nil
}
