package sqlite

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"interlock/agent"
	"interlock/store"
)

// Events implements [store.Reader].
func (s *Store) Events(ctx context.Context, run store.Chain, from int64, limit int) (events []agent.Event, err error) {
	tenant, address := run.Tenant, run.Address
	operation := "reading of the events of " + address
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	if limit <= 0 {
		limit = -1 // none
	}
	const query = `SELECT seq, at, type, v, turn, step, tenant, trace_id, data FROM events
WHERE tenant = ? AND address = ? AND seq >= ? AND superseded_by = '' ORDER BY seq LIMIT ?`
	err = s.read(ctx, operation, query, []any{tenant, address, from, limit}, func(r row) error {
		var e agent.Event
		var at int64
		var data string
		err := r.Scan(&e.Seq, &at, &e.Type, &e.V, &e.Turn, &e.Step, &e.Tenant, &e.TraceID, &data)
		e.At, e.Data = fromMicros(at), agent.JSON(data)
		events = append(events, e)
		return err
	})
	return events, err
}

// Branches implements [store.Reader].
func (s *Store) Branches(ctx context.Context, run store.Chain) (branches []store.Branch, err error) {
	tenant, address := run.Tenant, run.Address
	operation := "list of the branches of " + address
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	// Oldest first, and of one branch the part that was superseded first: its
	// tail, from which time it was one that may not append.
	const query = `SELECT branch, superseded_by, min(seq), max(seq), count(*) FROM events
WHERE tenant = ? AND address = ? GROUP BY branch, superseded_by ORDER BY min(min(rowid)) OVER (PARTITION BY branch), max(seq) DESC`
	err = s.read(ctx, operation, query, []any{tenant, address}, func(r row) error {
		var b store.Branch
		var rows int
		if err := r.Scan(&b.RunID, &b.SupersededBy, &b.First, &b.Last, &rows); err != nil {
			return err
		}
		if b.SupersededBy != "" {
			b.Superseded = rows
		}
		i := slices.IndexFunc(branches, func(o store.Branch) bool { return o.RunID == b.RunID })
		if i < 0 {
			branches = append(branches, b)
			return nil
		}
		known := &branches[i]
		known.First, known.Last = min(known.First, b.First), max(known.Last, b.Last)
		known.Superseded += b.Superseded
		return nil
	})
	return branches, err
}

const runColumns = `tenant, address, first_run_id, agent, version, key, user, body, seq, status, reason, phase, turn,
  started_at, updated_at, ended_at`

// RunRow implements [store.Reader].
func (s *Store) RunRow(ctx context.Context, run store.Chain) (store.RunRow, error) {
	tenant, address := run.Tenant, run.Address
	operation := "look-up of run " + address
	found, err := s.runRows(ctx, operation, tenant, `SELECT `+runColumns+` FROM runs WHERE tenant = ? AND address = ?`, tenant, address)
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
	q := filter{query: `SELECT ` + runColumns + ` FROM runs WHERE tenant = ?`, args: []any{tenant}}
	q.equal("agent", f.Agent)
	q.equal("status", string(f.Status))
	q.equal("user", f.User)
	if f.After != "" {
		startedAt, address, err := parseCursor(f.After)
		if err != nil {
			return nil, fail(operation, err)
		}
		q.and(`(started_at, address) < (?, ?)`, startedAt, address)
	}
	q.query += ` ORDER BY started_at DESC, address DESC LIMIT ?`
	return s.runRows(ctx, operation, tenant, q.query, append(q.args, pageSize(f.Limit))...)
}

func (s *Store) runRows(ctx context.Context, operation, tenant, query string, args ...any) (found []store.RunRow, err error) {
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, query, args, func(r row) error {
		var x store.RunRow
		var started, updated int64
		var ended sql.NullInt64
		err := r.Scan(&x.Tenant, &x.Address, &x.FirstRunID, &x.Agent, &x.Version, &x.Key, &x.User, &x.Body, &x.Seq,
			&x.Head.Status, &x.Head.Reason, &x.Head.Phase, &x.Head.Turn, &started, &updated, &ended)
		x.StartedAt, x.UpdatedAt, x.EndedAt = fromMicros(started), fromMicros(updated), fromNullMicros(ended)
		x.Cursor = cursor(started, x.Address)
		found = append(found, x)
		return err
	})
	return found, err
}

// GateRows implements [store.Reader].
func (s *Store) GateRows(ctx context.Context, tenant string, f store.GateFilter) (found []store.GateRow, err error) {
	const operation = "list of gates"
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	q := filter{query: `SELECT g.address, r.agent, g.data FROM gates g JOIN runs r ON r.tenant = g.tenant AND r.address = g.address
WHERE g.tenant = ?`, args: []any{tenant}}
	q.equal("g.address", f.Address)
	q.equal("r.agent", f.Agent)
	q.equal("g.status", string(f.Status))
	if f.Role != "" {
		q.and(`EXISTS (SELECT 1 FROM json_each(g.roles) WHERE value = ?)`, f.Role)
	}
	q.query += ` ORDER BY g.opened_at, g.address, g.opened LIMIT ?`
	err = s.read(ctx, operation, q.query, append(q.args, pageSize(f.Limit)), func(r row) error {
		var x store.GateRow
		var data string
		if err := r.Scan(&x.Address, &x.Agent, &data); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(data), &x.Gate)
		found = append(found, x)
		return err
	})
	return found, err
}

// filter is a query that grows by the conditions that are asked for, so that
// SQLite plans for these alone.
type filter struct {
	query string
	args  []any
}

func (f *filter) and(condition string, args ...any) {
	f.query += " AND " + condition
	f.args = append(f.args, args...)
}

func (f *filter) equal(column, value string) {
	if value != "" {
		f.and(column+" = ?", value)
	}
}

func pageSize(limit int) int {
	if limit <= 0 {
		return 50
	}
	return min(limit, 500)
}

// cursor names a run's place in a list. It is opaque to callers.
func cursor(startedAt int64, address string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(startedAt, 10) + " " + address))
}

func parseCursor(c string) (startedAt int64, address string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(c)
	if err == nil {
		at, rest, _ := strings.Cut(string(text), " ")
		address = rest
		startedAt, err = strconv.ParseInt(at, 10, 64)
	}
	if err != nil {
		return 0, "", agent.Errorf(agent.CodeInvalid, "%q is no cursor of a list of runs", c)
	}
	return startedAt, address, nil
}
