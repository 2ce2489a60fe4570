package sqlite

import (
	"context"
	"database/sql"
	"strconv"
	"time"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/rules"
)

// Appended implements [store.Feed]. One write follows another, so that ids are in
// the order of commits.
func (s *Store) Appended(ctx context.Context, f store.FeedFilter) (found []store.Appended, next string, err error) {
	const operation = "reading of the feed"
	after := int64(0)
	if err := f.Check(); err != nil {
		return nil, "", fail(operation, err)
	}
	if f.After != "" {
		if after, err = strconv.ParseInt(f.After, 10, 64); err != nil || after < 0 {
			return nil, "", fail(operation, rules.BadPlace(f.After))
		}
	}
	end, err := s.FeedEnd(ctx)
	if err != nil {
		return nil, "", err
	}
	// Ids only rise. A place behind the last is of a store that had more, before it
	// was put back from a copy: whoever went on from there would silently miss what
	// comes until then.
	if last, err := strconv.ParseInt(end, 10, 64); err == nil && after > last {
		return nil, "", fail(operation, rules.BadPlace(f.After))
	}
	q := rules.Query{Text: `SELECT id, tenant, address, first_run_id, superseded_by <> '', seq, at, type, v, turn, step, trace_id, data
FROM events WHERE id > ?1 AND id <= ?2`, Args: []any{after, end}, Mark: "?"}
	q.Equal("tenant", f.Tenant)
	rules.AnyType(&q, f.Types)
	limit := rules.PageSize(f.Limit)
	q.End(`ORDER BY id LIMIT %`, limit)
	err = s.read(ctx, operation, q.Text, q.Args, func(r row) error {
		var a store.Appended
		var at int64
		var data string
		e := &a.Event
		err := r.Scan(&a.Place, &a.Tenant, &a.Address, &a.FirstRunID, &a.Superseded, &e.Seq, &at, &e.Type, &e.V, &e.Turn, &e.Step, &e.TraceID, &data)
		e.Tenant, e.At, e.Data = a.Tenant, fromMicros(at), agent.JSON(data)
		found = append(found, a)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if len(found) == limit {
		end = found[limit-1].Place
	}
	return found, end, nil
}

// FeedEnd implements [store.Feed].
func (s *Store) FeedEnd(ctx context.Context) (place string, err error) {
	err = s.read(ctx, "look-up of the feed's end", `SELECT coalesce(max(id), 0) FROM events`, nil, func(r row) error { return r.Scan(&place) })
	return place, err
}

// Follow implements [store.Feed].
func (s *Store) Follow(ctx context.Context, scope store.Scope) <-chan struct{} {
	return s.hub.Follow(ctx, scope)
}

// Tell implements [store.Deltas]. Other processes do not hear it: nothing but the
// file is between them.
func (s *Store) Tell(d store.Delta) { s.hub.Told(d) }

// Hear implements [store.Deltas].
func (s *Store) Hear(ctx context.Context, scope store.Scope) <-chan store.Delta {
	return s.hub.Hear(ctx, scope)
}

// looks is how often it is looked for commits of other processes, while anybody
// follows. A look asks the log in shared memory, and reads nothing.
const looks = 100 * time.Millisecond

// listen wakes who follows what other processes append to.
func (s *Store) listen(ctx context.Context) {
	tick := time.NewTicker(looks)
	defer tick.Stop()
	var conn *sql.Conn // the version is told by each connection for itself
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	seen, last := int64(-1), int64(-1)
	for {
		var err error
		if conn == nil {
			conn, err = s.reader.Conn(ctx)
		}
		if err == nil {
			seen, last, err = s.look(ctx, conn, seen, last)
		}
		if err != nil && ctx.Err() == nil {
			s.hub.WakeAll() // whoever reads sees what is wrong
			if conn != nil {
				_ = conn.Close()
			}
			conn, seen, last = nil, -1, -1
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look wakes who follows what was appended since the last look, and returns what
// the next one compares with.
func (s *Store) look(ctx context.Context, conn *sql.Conn, seen, last int64) (version, end int64, err error) {
	if err := conn.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&version); err != nil || version == seen {
		return seen, last, err
	}
	if err := conn.QueryRowContext(ctx, `SELECT coalesce(max(id), 0) FROM events`).Scan(&end); err != nil {
		return seen, last, err
	}
	if last < 0 { // the first look: what came before it is not known
		s.hub.WakeAll()
		return version, end, nil
	}
	rows, err := conn.QueryContext(ctx, `SELECT DISTINCT tenant, address FROM events WHERE id > ? AND id <= ?`, last, end)
	if err != nil {
		return seen, last, err
	}
	err = each(rows, func(r row) error {
		var tenant, address string
		err := r.Scan(&tenant, &address)
		s.hub.Wake(tenant, address)
		return err
	})
	return version, end, err
}
