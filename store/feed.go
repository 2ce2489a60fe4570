package store

import (
	"context"
	"strings"
	"time"

	"interlock/agent"
)

// Feed tells what is appended to any run, for whoever must miss nothing: notices,
// live pages. Its order never changes: what is read behind a place became readable
// after all that is before it, however late its transaction committed.
type Feed interface {
	// Appended lists events behind f.After in the order of the feed, those that
	// have been superseded meanwhile too. next is the place to go on from, also
	// where nothing was found.
	//
	// An event may come some moments after readers of its run see it: as soon as all
	// writes that had begun before it have ended. A place that this feed cannot have
	// named, such as one behind its end, is CodeInvalid.
	Appended(ctx context.Context, f FeedFilter) (found []Appended, next string, err error)
	// FeedEnd is the place behind which nothing stands yet.
	FeedEnd(ctx context.Context) (place string, err error)
	// Follow returns a channel that gets a value soon after something was appended to
	// what the scope names, by whatever process, until ctx ends; it is never closed.
	// It is a hint to read again: several become one, and one may come for nothing.
	// Where one was lost (a connection broke) another comes within [FollowWithin].
	// Whoever follows reads after Follow has returned, and then after each value.
	Follow(ctx context.Context, scope Scope) <-chan struct{}
}

// FollowWithin is how late the hint of an append may be at most that another process
// made, where its own was lost.
const FollowWithin = 30 * time.Second

// Scope is what is followed.
type Scope struct {
	Tenant  string // "": of all tenants
	Address string // "": all runs
}

// FeedFilter narrows a feed. Zero fields do not filter; a feed over all tenants is
// for processes that serve them all, never for a caller.
type FeedFilter struct {
	Tenant string
	Types  []agent.EventType
	After  string // a place; "": the beginning
	Limit  int    // 0: 50; at most 500
}

// Place is where a reader of a tenant's feed goes on: at the place that it names, which
// is CodeInvalid where the feed cannot have named it, or at the feed's end.
func Place(ctx context.Context, f Feed, tenant, named string) (string, error) {
	if named == "" {
		return f.FeedEnd(ctx)
	}
	_, _, err := f.Appended(ctx, FeedFilter{Tenant: tenant, After: named, Limit: 1})
	return named, err
}

// Check refuses a filter that no database can compare with.
func (f FeedFilter) Check() error {
	pairs := []string{"tenant", f.Tenant, "place", f.After}
	for _, t := range f.Types {
		pairs = append(pairs, "type", string(t))
	}
	if f.Limit < 0 || strings.ContainsAny(f.After, " \t\n") {
		return agent.Errorf(agent.CodeInvalid, "a feed is read from a place that it has named, and by no less than one event a page")
	}
	return CheckText(pairs...)
}

// Appended is one event of a feed.
type Appended struct {
	Chain
	Event      agent.Event
	Superseded bool   // it counts no more: its run was reset to an earlier point
	Place      string // to go on from, behind it
}
