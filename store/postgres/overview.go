package postgres

import (
	"context"
	"errors"
	"time"

	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	countRuns = `SELECT agent, status, split_part(reason, ':', 1) AS kind, count(*)
FROM (SELECT agent, status, reason FROM interlock.runs WHERE tenant = $1 AND status IN ('running', 'waiting', 'paused')
  UNION ALL SELECT agent, status, reason FROM interlock.runs WHERE tenant = $1 AND ended_at >= $2) AS those
GROUP BY agent, status, kind ORDER BY agent, status, kind LIMIT $3`
	// The agent is the second part of an address.
	sumSpent = `SELECT (floor(extract(epoch FROM at) / $4::bigint) * $4::bigint)::bigint AS step, split_part(address, '/', 2) AS name, model, count(*),
  sum(input)::bigint, sum(cache_read)::bigint, sum(cache_write)::bigint, sum(output)::bigint, sum(reasoning)::bigint
FROM interlock.model_calls WHERE tenant = $1 AND at >= $2 AND at < $3
GROUP BY step, name, model ORDER BY step, name, model LIMIT $5`
)

// CountRuns implements [store.Overview].
func (s *Store) CountRuns(ctx context.Context, tenant string, since time.Time) (all []store.RunCount, err error) {
	const operation = "count of runs"
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, countRuns, []any{tenant, rules.Ceil(since), store.MaxOverview}, func(r row) error {
		var c store.RunCount
		err := r.Scan(&c.Agent, &c.Status, &c.Kind, &c.Runs)
		all = append(all, c)
		return err
	})
	return all, err
}

// Spent implements [store.Overview].
func (s *Store) Spent(ctx context.Context, tenant string, f store.SpentFilter) (all []store.Spent, err error) {
	const operation = "sum of model calls"
	if err := errors.Join(store.CheckNamed("tenant", tenant), f.Check()); err != nil {
		return nil, fail(operation, err)
	}
	args := []any{tenant, rules.Ceil(f.From), rules.Ceil(f.To), int64(f.Step / time.Second), store.MaxOverview}
	err = s.read(ctx, operation, sumSpent, args, func(r row) error {
		var x store.Spent
		var at int64
		u := &x.Usage
		err := r.Scan(&at, &x.Agent, &x.Model, &x.Calls, &u.Input, &u.CacheRead, &u.CacheWrite, &u.Output, &u.Reasoning)
		x.At = time.Unix(at, 0).UTC()
		all = append(all, x)
		return err
	})
	return all, err
}
