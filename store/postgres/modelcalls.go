package postgres

import (
	"context"
	"errors"

	"interlock/agent"
	"interlock/store"
)

const (
	modelCallColumns = `tenant, key, address, turn, model, instructions, input, cache_read, cache_write, output, reasoning,
  request_bytes, answer, at`
	insertModelCall = `INSERT INTO interlock.model_calls (` + modelCallColumns + `, nth)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
  1 + (SELECT coalesce(max(nth), 0) FROM interlock.model_calls WHERE tenant = $1 AND key = $2))`
	selectModelCall = `SELECT ` + modelCallColumns + ` FROM interlock.model_calls WHERE tenant = $1 AND key = $2 AND nth = 1`
)

// RecordModelCall implements [store.ModelCalls].
func (s *Store) RecordModelCall(ctx context.Context, m store.ModelCall) (first store.ModelCall, err error) {
	operation := "recording of model call " + m.Key
	if err := m.Check(); err != nil {
		return first, fail(operation, err)
	}
	err = s.write(ctx, operation, func(t *transaction) error {
		u := m.Usage
		t.lock("model call", m.Tenant, m.Key) // for the next nth
		t.exec(insertModelCall, m.Tenant, m.Key, m.Address, m.Turn, m.Model, m.Instructions,
			u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning, m.RequestBytes, m.Answer.String(), m.At)
		t.rows(func(r row) (err error) { first, err = scanModelCall(r); return err }, selectModelCall, m.Tenant, m.Key)
		return nil
	})
	if err != nil {
		return store.ModelCall{}, err
	}
	return first, nil
}

// ModelCall implements [store.ModelCalls].
func (s *Store) ModelCall(ctx context.Context, tenant, key string) (m store.ModelCall, err error) {
	operation := "look-up of model call " + key
	if err := errors.Join(store.CheckNamed("tenant", tenant), store.CheckText("key", key)); err != nil {
		return m, fail(operation, err)
	}
	found := false
	err = s.read(ctx, operation, selectModelCall, []any{tenant, key}, func(r row) error {
		found = true
		m, err = scanModelCall(r)
		return err
	})
	if err == nil && !found {
		err = fail(operation, agent.Errorf(agent.CodeNotFound, "no answer is recorded under this key"))
	}
	return m, err
}

// ModelUsage implements [store.ModelCalls].
func (s *Store) ModelUsage(ctx context.Context, tenant, address string) (u store.ModelUsage, err error) {
	operation := "sum of the model calls of " + address
	if err := errors.Join(store.CheckNamed("tenant", tenant), store.CheckText("address", address)); err != nil {
		return u, fail(operation, err)
	}
	const query = `SELECT count(*), count(*) FILTER (WHERE nth > 1),
  coalesce(sum(input), 0)::bigint, coalesce(sum(cache_read), 0)::bigint, coalesce(sum(cache_write), 0)::bigint,
  coalesce(sum(output), 0)::bigint, coalesce(sum(reasoning), 0)::bigint, coalesce(sum(request_bytes), 0)::bigint,
  coalesce((SELECT request_bytes FROM interlock.model_calls WHERE tenant = $1 AND address = $2
    ORDER BY at DESC, turn DESC, nth DESC LIMIT 1), 0)
FROM interlock.model_calls WHERE tenant = $1 AND address = $2`
	err = s.read(ctx, operation, query, []any{tenant, address}, func(r row) error {
		return r.Scan(&u.Calls, &u.Twice, &u.Usage.Input, &u.Usage.CacheRead, &u.Usage.CacheWrite,
			&u.Usage.Output, &u.Usage.Reasoning, &u.BytesTotal, &u.BytesLast)
	})
	return u, err
}

func scanModelCall(r row) (m store.ModelCall, err error) {
	var answer string
	err = r.Scan(&m.Tenant, &m.Key, &m.Address, &m.Turn, &m.Model, &m.Instructions,
		&m.Usage.Input, &m.Usage.CacheRead, &m.Usage.CacheWrite, &m.Usage.Output, &m.Usage.Reasoning,
		&m.RequestBytes, &answer, &m.At)
	m.Answer, m.At = agent.JSON(answer), m.At.UTC()
	return m, err
}
