package sqlite

import (
	"context"

	"interlock/agent"
	"interlock/store"
)

const (
	modelCallColumns = `tenant, key, address, turn, model, instructions, input, cache_read, cache_write, output, reasoning,
  request_bytes, answer, at`
	insertModelCall = `INSERT INTO model_calls (` + modelCallColumns + `, nth)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,
  1 + (SELECT coalesce(max(nth), 0) FROM model_calls WHERE tenant = ?1 AND key = ?2)) RETURNING nth`
	selectModelCall = `SELECT ` + modelCallColumns + ` FROM model_calls WHERE tenant = ? AND key = ? AND nth = 1`
)

// RecordModelCall implements [store.ModelCalls].
func (s *Store) RecordModelCall(ctx context.Context, m store.ModelCall) (first store.ModelCall, err error) {
	operation := "recording of model call " + m.Key
	if err := m.Check(); err != nil {
		return first, fail(operation, err)
	}
	err = s.write(ctx, operation, func(t transaction) error {
		u := m.Usage
		nth := 0
		if err := t.row(ctx, insertModelCall, m.Tenant, m.Key, m.Address, m.Turn, m.Model, m.Instructions,
			u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning, m.RequestBytes, m.Answer.String(), micros(m.At)).Scan(&nth); err != nil {
			return err
		}
		if first = m; nth == 1 {
			return nil
		}
		first, err = scanModelCall(t.row(ctx, selectModelCall, m.Tenant, m.Key))
		return err
	})
	if err != nil {
		return store.ModelCall{}, err
	}
	return first, nil
}

// ModelCall implements [store.ModelCalls].
func (s *Store) ModelCall(ctx context.Context, tenant, key string) (m store.ModelCall, err error) {
	operation := "look-up of model call " + key
	if err := store.CheckNamed("tenant", tenant); err != nil {
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
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return u, fail(operation, err)
	}
	const query = `SELECT count(*), count(*) FILTER (WHERE nth > 1),
  coalesce(sum(input), 0), coalesce(sum(cache_read), 0), coalesce(sum(cache_write), 0),
  coalesce(sum(output), 0), coalesce(sum(reasoning), 0), coalesce(sum(request_bytes), 0),
  coalesce((SELECT request_bytes FROM model_calls WHERE tenant = ?1 AND address = ?2
    ORDER BY at DESC, turn DESC, nth DESC LIMIT 1), 0)
FROM model_calls WHERE tenant = ?1 AND address = ?2`
	err = s.read(ctx, operation, query, []any{tenant, address}, func(r row) error {
		return r.Scan(&u.Calls, &u.Twice, &u.Usage.Input, &u.Usage.CacheRead, &u.Usage.CacheWrite,
			&u.Usage.Output, &u.Usage.Reasoning, &u.BytesTotal, &u.BytesLast)
	})
	return u, err
}

func scanModelCall(r row) (m store.ModelCall, err error) {
	var answer string
	var at int64
	err = r.Scan(&m.Tenant, &m.Key, &m.Address, &m.Turn, &m.Model, &m.Instructions,
		&m.Usage.Input, &m.Usage.CacheRead, &m.Usage.CacheWrite, &m.Usage.Output, &m.Usage.Reasoning,
		&m.RequestBytes, &answer, &at)
	m.Answer, m.At = agent.JSON(answer), fromMicros(at)
	return m, err
}
