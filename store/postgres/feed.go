package postgres

import (
	"context"
	"strconv"
	"strings"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/rules"
)

// Appended implements [store.Feed]. A transaction takes its number with its first
// write; below the oldest that is still under way nothing more can come.
func (s *Store) Appended(ctx context.Context, f store.FeedFilter) (found []store.Appended, next string, err error) {
	const operation = "reading of the feed"
	if err := f.Check(); err != nil {
		return nil, "", fail(operation, err)
	}
	xid, id, ok := parsePlace(f.After)
	if !ok {
		return nil, "", fail(operation, rules.BadPlace(f.After))
	}
	end, err := s.FeedEnd(ctx)
	if err != nil {
		return nil, "", err
	}
	below, _, _ := parsePlace(end)
	// The end only rises. A place behind it is of another feed, such as this one's
	// before it was put back from a copy: whoever went on from there would silently
	// miss what comes until then.
	if beyond(xid, below) {
		return nil, "", fail(operation, rules.BadPlace(f.After))
	}
	q := rules.Query{Text: `SELECT xid::text || '.' || id, tenant, address, first_run_id, superseded_by <> '', seq, at, type, v, turn, step, trace_id, data
FROM interlock.events WHERE (xid, id) > ($1::text::xid8, $2::bigint) AND xid < $3::text::xid8`, Args: []any{xid, id, below}, Mark: "$"}
	q.Equal("tenant", f.Tenant)
	rules.AnyType(&q, f.Types)
	limit := rules.PageSize(f.Limit)
	// A column of the result has the name, too.
	q.End(`ORDER BY events.xid, events.id LIMIT %`, limit)
	err = s.read(ctx, operation, q.Text, q.Args, func(r row) error {
		var a store.Appended
		var data string
		e := &a.Event
		err := r.Scan(&a.Place, &a.Tenant, &a.Address, &a.FirstRunID, &a.Superseded, &e.Seq, &e.At, &e.Type, &e.V, &e.Turn, &e.Step, &e.TraceID, &data)
		e.Tenant, e.At, e.Data = a.Tenant, e.At.UTC(), agent.JSON(data)
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
	err = s.read(ctx, "look-up of the feed's end", `SELECT pg_snapshot_xmin(pg_current_snapshot())::text || '.0'`, nil, func(r row) error { return r.Scan(&place) })
	return place, err
}

// parsePlace is the transaction's number and the row's id that a place names. A
// number without an id is before all rows of that transaction.
func parsePlace(place string) (xid string, id int64, ok bool) {
	if place == "" {
		return "0", 0, true
	}
	xid, rest, found := strings.Cut(place, ".")
	if _, err := strconv.ParseUint(xid, 10, 64); err != nil || !found {
		return "", 0, false
	}
	id, err := strconv.ParseInt(rest, 10, 64)
	return xid, id, err == nil && id >= 0
}

// beyond compares numbers of transactions.
func beyond(xid, below string) bool {
	a, _ := strconv.ParseUint(xid, 10, 64)
	b, _ := strconv.ParseUint(below, 10, 64)
	return a > b
}

// Follow implements [store.Feed].
func (s *Store) Follow(ctx context.Context, scope store.Scope) <-chan struct{} {
	return s.hub.Follow(ctx, scope)
}
