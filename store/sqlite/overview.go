package sqlite

import (
	"context"
	"errors"
	"time"

	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	countRuns = `SELECT agent, status, CASE WHEN instr(reason, ':') > 0 THEN substr(reason, 1, instr(reason, ':') - 1) ELSE reason END AS kind, count(*)
FROM (SELECT agent, status, reason FROM runs WHERE tenant = ?1 AND status IN ('running', 'waiting', 'paused')
  UNION ALL SELECT agent, status, reason FROM runs WHERE tenant = ?1 AND ended_at >= ?2)
GROUP BY agent, status, kind ORDER BY agent, status, kind LIMIT ?3`
	// The agent is the second part of an address.
	sumSpent = `SELECT at / ?4 * ?4 AS step, substr(rest, 1, instr(rest || '/', '/') - 1) AS name, model, count(*),
  sum(input), sum(cache_read), sum(cache_write), sum(output), sum(reasoning)
FROM (SELECT *, substr(address, instr(address, '/') + 1) AS rest FROM model_calls WHERE tenant = ?1 AND at >= ?2 AND at < ?3)
GROUP BY step, name, model ORDER BY step, name, model LIMIT ?5`
)

// CountRuns implements [store.Overview].
func (s *Store) CountRuns(ctx context.Context, tenant string, since time.Time) (all []store.RunCount, err error) {
	const operation = "count of runs"
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, countRuns, []any{tenant, micros(rules.Ceil(since)), store.MaxOverview}, func(r row) error {
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
	args := []any{tenant, micros(rules.Ceil(f.From)), micros(rules.Ceil(f.To)), f.Step.Microseconds(), store.MaxOverview}
	err = s.read(ctx, operation, sumSpent, args, func(r row) error {
		var x store.Spent
		var at int64
		u := &x.Usage
		err := r.Scan(&at, &x.Agent, &x.Model, &x.Calls, &u.Input, &u.CacheRead, &u.CacheWrite, &u.Output, &u.Reasoning)
		x.At = fromMicros(at)
		all = append(all, x)
		return err
	})
	return all, err
}
