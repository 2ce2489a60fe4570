package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/rules"
)

// theChain is the first run id that $3 names: where it is empty, that of the
// newest chain of the address $2 of the tenant $1.
const theChain = `(CASE WHEN $3 <> '' THEN $3 ELSE
  (SELECT first_run_id FROM interlock.runs WHERE tenant = $1 AND address = $2 ORDER BY nth DESC LIMIT 1) END)`

// Events implements [store.Reader].
func (s *Store) Events(ctx context.Context, run store.Chain, from int64, limit int) (events []agent.Event, err error) {
	operation := "reading of the events of " + run.Address
	if err := run.Check(); err != nil {
		return nil, fail(operation, err)
	}
	var most *int // all
	if limit > 0 {
		most = &limit
	}
	const query = `SELECT seq, at, type, v, turn, step, tenant, trace_id, data FROM interlock.events
WHERE tenant = $1 AND address = $2 AND first_run_id = ` + theChain + ` AND seq >= $4 AND superseded_by = '' ORDER BY seq LIMIT $5`
	err = s.read(ctx, operation, query, []any{run.Tenant, run.Address, run.FirstRunID, from, most}, func(r row) error {
		var e agent.Event
		var data string
		err := r.Scan(&e.Seq, &e.At, &e.Type, &e.V, &e.Turn, &e.Step, &e.Tenant, &e.TraceID, &data)
		e.At, e.Data = e.At.UTC(), agent.JSON(data)
		events = append(events, e)
		return err
	})
	return events, err
}

// Branches implements [store.Reader].
func (s *Store) Branches(ctx context.Context, run store.Chain) (branches []store.Branch, err error) {
	operation := "list of the branches of " + run.Address
	if err := run.Check(); err != nil {
		return nil, fail(operation, err)
	}
	// Oldest first, and of one branch the part that was superseded first: its
	// tail, from which time it was one that may not append.
	const query = `SELECT branch, superseded_by, min(seq), max(seq), count(*) FROM interlock.events
WHERE tenant = $1 AND address = $2 AND first_run_id = ` + theChain + `
GROUP BY branch, superseded_by ORDER BY min(min(id)) OVER (PARTITION BY branch), max(seq) DESC`
	err = s.read(ctx, operation, query, []any{run.Tenant, run.Address, run.FirstRunID}, func(r row) error {
		var b store.Branch
		var rows int
		err := r.Scan(&b.RunID, &b.SupersededBy, &b.First, &b.Last, &rows)
		branches = rules.AddRows(branches, b, rows)
		return err
	})
	return branches, err
}

const runColumns = `tenant, address, first_run_id, agent, version, key, "user", body, seq, status, reason, phase, turn,
  started_at, updated_at, ended_at`

// RunRow implements [store.Reader].
func (s *Store) RunRow(ctx context.Context, run store.Chain) (store.RunRow, error) {
	operation := "look-up of run " + run.Address
	if err := run.Check(); err != nil {
		return store.RunRow{}, fail(operation, err)
	}
	found, err := s.runRows(ctx, operation, `SELECT `+runColumns+` FROM interlock.runs
WHERE tenant = $1 AND address = $2 AND first_run_id = `+theChain, run.Tenant, run.Address, run.FirstRunID)
	if err == nil && len(found) == 0 {
		err = fail(operation, agent.Errorf(agent.CodeNotFound, "there is no such run"))
	}
	if err != nil {
		return store.RunRow{}, err
	}
	return found[0], nil
}

// RunRows implements [store.Reader].
func (s *Store) RunRows(ctx context.Context, tenant string, f store.RunFilter) ([]store.RunRow, error) {
	const operation = "list of runs"
	if err := errors.Join(store.CheckNamed("tenant", tenant), f.Check()); err != nil {
		return nil, fail(operation, err)
	}
	q := rules.Query{Text: `SELECT ` + runColumns + ` FROM interlock.runs WHERE tenant = $1`, Args: []any{tenant}, Mark: "$"}
	q.Equal("agent", f.Agent)
	q.Equal("status", string(f.Status))
	q.Equal(`"user"`, f.User)
	q.Equal("address", f.Address)
	q.Begins("address", f.Under)
	if f.Reason != "" {
		q.And(`starts_with(reason, %)`, f.Reason)
	}
	if f.After != "" {
		startedAt, address, firstRunID, err := rules.ParseCursor(f.After)
		if err != nil {
			return nil, fail(operation, err)
		}
		q.And(`(started_at, address, first_run_id) < (%, %, %)`, startedAt, address, firstRunID)
	}
	q.End(`ORDER BY started_at DESC, address DESC, first_run_id DESC LIMIT %`, rules.PageSize(f.Limit))
	return s.runRows(ctx, operation, q.Text, q.Args...)
}

func (s *Store) runRows(ctx context.Context, operation, query string, args ...any) (found []store.RunRow, err error) {
	err = s.read(ctx, operation, query, args, func(r row) error {
		var x store.RunRow
		err := r.Scan(&x.Tenant, &x.Address, &x.FirstRunID, &x.Agent, &x.Version, &x.Key, &x.User, &x.Body, &x.Seq,
			&x.Head.Status, &x.Head.Reason, &x.Head.Phase, &x.Head.Turn, &x.StartedAt, &x.UpdatedAt, &x.EndedAt)
		x.StartedAt, x.UpdatedAt, x.EndedAt = x.StartedAt.UTC(), x.UpdatedAt.UTC(), utc(x.EndedAt)
		x.Cursor = rules.Cursor(x.StartedAt, x.Address, x.FirstRunID)
		found = append(found, x)
		return err
	})
	return found, err
}

// GateRows implements [store.Reader].
func (s *Store) GateRows(ctx context.Context, tenant string, f store.GateFilter) (found []store.GateRow, err error) {
	const operation = "list of gates"
	if err := errors.Join(store.CheckNamed("tenant", tenant), f.Check()); err != nil {
		return nil, fail(operation, err)
	}
	q := rules.Query{Text: `SELECT g.address, g.first_run_id, r.agent, g.opened_at, g.opened, g.data FROM interlock.gates g
JOIN interlock.runs r ON r.tenant = g.tenant AND r.address = g.address AND r.first_run_id = g.first_run_id
WHERE g.tenant = $1`, Args: []any{tenant}, Mark: "$"}
	q.Equal("g.address", f.Address)
	q.Equal("r.agent", f.Agent)
	q.Equal("g.status", string(f.Status))
	if f.Kind != "" {
		q.And(`g.data::json ->> 'kind' = %`, string(f.Kind))
	}
	if f.Role != "" {
		q.And(`% = ANY(g.roles)`, f.Role)
	}
	if !f.Before.IsZero() {
		q.And(`g.opened_at < %`, rules.Ceil(f.Before))
	}
	if f.After != "" {
		at, err := rules.ParseGateCursor(f.After)
		if err != nil {
			return nil, fail(operation, err)
		}
		q.And(`(g.opened_at, g.address, g.first_run_id, g.opened) > (%, %, %, %)`, at.OpenedAt, at.Address, at.FirstRunID, at.Opened)
	}
	q.End(`ORDER BY g.opened_at, g.address, g.first_run_id, g.opened LIMIT %`, rules.PageSize(f.Limit))
	err = s.read(ctx, operation, q.Text, q.Args, func(r row) error {
		var x store.GateRow
		at, data := rules.GateCursor{}, ""
		if err := r.Scan(&x.Address, &x.FirstRunID, &x.Agent, &at.OpenedAt, &at.Opened, &data); err != nil {
			return err
		}
		at.Address, at.FirstRunID = x.Address, x.FirstRunID
		x.Cursor = at.String()
		err := json.Unmarshal([]byte(data), &x.Gate)
		found = append(found, x)
		return err
	})
	return found, err
}
