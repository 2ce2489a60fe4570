package store

import (
	"context"
	"strings"
	"time"

	"interlock/agent"
)

// Notices keeps how far a reader of the feed has told what it reads, and the
// notices that could not be told.
type Notices interface {
	// Place is how far a reader has come in the feed, "" where it has not begun.
	// Readers serve all tenants, so that they have none.
	Place(ctx context.Context, reader string) (place string, err error)
	// MovePlace moves a reader from one place to another: a conflict where it stands
	// elsewhere, since another process has moved it. From "" it begins.
	MovePlace(ctx context.Context, reader, from, to string) error
	// Bury keeps a notice that is not tried any more. Again is harmless: one that
	// stands unsettled gets the reason and the time of the latest retry; a settled
	// one stays as it is.
	Bury(ctx context.Context, d DeadNotice) error
	// DeadNotices lists those of a tenant, oldest first.
	DeadNotices(ctx context.Context, tenant string, f DeadFilter) ([]DeadNotice, error)
	// SettleDead records what became of a dead notice, once: a conflict where it is
	// settled, CodeNotFound where there is none. It returns the row as it stands then.
	SettleDead(ctx context.Context, tenant, id, target string, how DeadEnd, by string) (DeadNotice, error)
}

// DeadNotice is a notice that one target did not get.
type DeadNotice struct {
	Tenant     string
	ID         string // of the notice
	Target     string
	Kind       string
	Address    string // of the run
	FirstRunID string
	Notice     agent.JSON // whole, as package notice made it
	Reason     string
	Retry      int       // how often an operator has had it told again, in vain
	BuriedAt   time.Time // the last time; by the store's clock
	End        DeadEnd   // "": it waits for an operator
	EndedBy    string
	EndedAt    *time.Time
	Cursor     string // its place in a list
}

// DeadEnd is what became of a dead notice. Persisted; never rename.
type DeadEnd string

const (
	DeadSent    DeadEnd = "sent"    // it was told again, and taken
	DeadDropped DeadEnd = "dropped" // an operator said that nobody need be told
)

// DeadFilter narrows a list of dead notices. Zero fields do not filter.
type DeadFilter struct {
	ID     string
	Target string
	Ended  bool   // those that were settled, too
	After  string // the Cursor of the last row of the page before
	Limit  int    // 0: 50; at most 500
}

// Check refuses a dead notice that no store takes.
func (d DeadNotice) Check() error {
	if err := CheckNamed("tenant", d.Tenant, "id of the notice", d.ID, "target", d.Target); err != nil {
		return err
	}
	if err := CheckText("kind", d.Kind, "address", d.Address, "first run id", d.FirstRunID, "reason", d.Reason); err != nil {
		return err
	}
	if d.Retry < 0 {
		return agent.Errorf(agent.CodeInvalid, "a notice was not told again %d times", d.Retry)
	}
	return checkJSON("notice", d.Notice)
}

// Check refuses a filter that no database can compare with.
func (f DeadFilter) Check() error {
	return CheckText("id of the notice", f.ID, "target", f.Target)
}

// CheckPlaces refuses a move of a reader that no store takes.
func CheckPlaces(reader, from, to string) error {
	if strings.ContainsAny(from+to, " \t\n") {
		return agent.Errorf(agent.CodeInvalid, "a reader goes from one place of a feed to another")
	}
	if err := CheckNamed("reader", reader, "place", to); err != nil {
		return err
	}
	return CheckText("place", from)
}

// CheckDeadEnd refuses what can become of no dead notice.
func CheckDeadEnd(tenant, id, target string, how DeadEnd, by string) error {
	if how != DeadSent && how != DeadDropped {
		return agent.Errorf(agent.CodeInvalid, "a dead notice cannot end as %q: %s and %s are ends", how, DeadSent, DeadDropped)
	}
	return CheckNamed("tenant", tenant, "id of the notice", id, "target", target, "name of who settles it", by)
}
