package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/rules"
)

// Effect implements [store.Ledger].
func (s *Store) Effect(ctx context.Context, tenant, key string) (store.Effect, error) {
	operation := "look-up of effect " + key
	if err := errors.Join(store.CheckNamed("tenant", tenant), store.CheckText("key", key)); err != nil {
		return store.Effect{}, fail(operation, err)
	}
	found, err := s.effects(ctx, operation, selectEffect, tenant, key)
	if err == nil && len(found) == 0 {
		err = fail(operation, rules.NoEffect())
	}
	if err != nil {
		return store.Effect{}, err
	}
	return found[0], nil
}

// Attempts implements [store.Ledger].
func (s *Store) Attempts(ctx context.Context, tenant, key string) (all []store.Attempt, err error) {
	operation := "list of the attempts of effect " + key
	if err := errors.Join(store.CheckNamed("tenant", tenant), store.CheckText("key", key)); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, `SELECT n, at, deadline, branch, reason FROM effect_attempts WHERE tenant = ? AND key = ? ORDER BY n`,
		[]any{tenant, key}, func(r row) error {
			var a store.Attempt
			var at, deadline int64
			err := r.Scan(&a.N, &at, &deadline, &a.Branch, &a.Reason)
			a.At, a.Deadline = fromMicros(at), fromMicros(deadline)
			all = append(all, a)
			return err
		})
	return all, err
}

// Effects implements [store.Ledger].
func (s *Store) Effects(ctx context.Context, tenant string, f store.EffectFilter) ([]store.Effect, error) {
	const operation = "list of effects"
	if err := errors.Join(store.CheckNamed("tenant", tenant), f.Check()); err != nil {
		return nil, fail(operation, err)
	}
	q := rules.Query{Text: `SELECT ` + effectColumns + ` FROM effects e WHERE e.tenant = ?1`, Args: []any{tenant}, Mark: "?"}
	err := rules.Effects(&q, f, rules.EffectDialect{ID: "rowid", Turn: "CAST(e.step AS INTEGER)", ModelCalls: "model_calls",
		Time: func(t time.Time) any { return micros(t) }, Now: s.now()})
	if err != nil {
		return nil, fail(operation, err)
	}
	return s.effects(ctx, operation, q.Text, q.Args...)
}

// OpenTenants implements [store.Ledger].
func (s *Store) OpenTenants(ctx context.Context) (all []string, err error) {
	err = s.read(ctx, "list of tenants with open effects",
		`SELECT DISTINCT tenant FROM effects WHERE status = 'claimed' AND attempts > released ORDER BY tenant`, nil, func(r row) error {
			var tenant string
			err := r.Scan(&tenant)
			all = append(all, tenant)
			return err
		})
	return all, err
}

func (s *Store) effects(ctx context.Context, operation, query string, args ...any) (found []store.Effect, err error) {
	err = s.read(ctx, operation, query, args, func(r row) error {
		e, err := scanEffect(r)
		found = append(found, e)
		return err
	})
	return found, err
}

func scanEffect(r row) (e store.Effect, err error) {
	var args string
	var result, ref sql.NullString
	var size, began, deadline, settled, doubt, undone sql.NullInt64
	var claimed, attempt, id int64
	err = r.Scan(&e.Tenant, &e.Key, &e.Address, &e.Scope, &e.Agent, &e.Version, &e.Tool, &e.Kind, &e.Step, &e.Ordinal, &args,
		&e.Status, &result, &ref, &size, &e.Reason, &e.By, &e.Fenced, &e.Attempts, &e.Released, &e.Unknown,
		&claimed, &attempt, &began, &deadline, &settled, &doubt, &undone, &e.UndoneBy, &id)
	if err != nil {
		return e, err
	}
	e.Args, e.ClaimedAt, e.AttemptAt, e.Cursor = agent.JSON(args), fromMicros(claimed), fromMicros(attempt), strconv.FormatInt(id, 10)
	e.SettledAt, e.DoubtAt, e.UndoneAt = fromNullMicros(settled), fromNullMicros(doubt), fromNullMicros(undone)
	if b := fromNullMicros(began); b != nil {
		e.BeganAt = *b
	}
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
