// Package rules is what every driver of the store obeys, written once: when the
// journal takes a batch and what becomes of its rows, when the ledger grants a
// claim, how lists are paged, which schemas are opened. A driver brings the SQL.
package rules

import (
	"context"
	"time"

	"interlock/agent"
)

// Journal is what stands under one address, as one batch of one branch finds it
// in one transaction. From Head on nobody else appends to the address until the
// transaction has ended.
//
// A write may be put off until the next read or the commit, as long as the order
// is kept and one that fails fails the transaction.
type Journal interface {
	// Head is where the address stands. It is asked first.
	Head(ctx context.Context) (Head, error)
	// Stood reports whether the batch's chain has a row, where it is not the newest.
	Stood(ctx context.Context) (bool, error)
	// Standing are the live rows of the batch's chain, in order, from the one before
	// the batch to the batch's last. It is asked before anything is written.
	Standing(ctx context.Context) ([]Standing, error)
	// OwnLast is the last live event that the batch's branch wrote, 0 where none is.
	OwnLast(ctx context.Context) (int64, error)
	// Versions are all rows of the chain's events from first to last: the last
	// event first, and of one event the live row first.
	Versions(ctx context.Context, first, last int64) ([]Version, error)

	// PutRun makes the chain's row, or makes it anew. Nth is of its first time.
	PutRun(ctx context.Context, s Start, e End) error
	// MoveRun brings the chain's row to another end.
	MoveRun(ctx context.Context, e End) error
	// CloseRun ends the row of another chain of the address, as cancelled, and drops
	// the rows of its open gates.
	CloseRun(ctx context.Context, firstRunID string, at time.Time, reason string) error
	// Touch writes without changing anything that is read, so that the commit
	// waits for the disk, and with it for all that was written before.
	Touch(ctx context.Context) error
	// Supersede marks the live rows from seq on, by the batch's branch.
	Supersede(ctx context.Context, seq int64) error
	// Insert appends events as the batch's branch's. hashes are the chain's at each.
	Insert(ctx context.Context, events []agent.Event, hashes []string) error

	// Gates are the rows of those of these gates that have one.
	Gates(ctx context.Context, ids []string) ([]Gate, error)
	// Reopened are the rows, with Opened and the opening event's data, of gates
	// that no event before seq has closed and that a live event opened.
	Reopened(ctx context.Context, seq int64) ([]Gate, error)
	// Counted are the live events before seq, in order, that count an approval or
	// escalate a gate: their Seq, Type and Data.
	Counted(ctx context.Context, seq int64) ([]agent.Event, error)
	// PutGate makes a gate's row, or makes it anew.
	PutGate(ctx context.Context, g Gate) error
	// DropGates deletes the rows of gates that an event from seq on has opened.
	DropGates(ctx context.Context, seq int64) error
}

// Head is where the newest chain of an address stands; all zero where the
// address has none.
type Head struct {
	FirstRunID string
	Nth        int // among the chains of the address, from 1
	Body       string
	Seq        int64
	Hash       string
	At         time.Time // of its last event
	Run        agent.Head
	// SupersededBy is the branch that superseded rows of the batch's branch, if
	// any did.
	SupersededBy string
}

// Standing is a live row of the journal.
type Standing struct {
	Seq          int64
	Hash, Branch string
	Type         agent.EventType
}

// Version is one of the rows that the journal has of an event.
type Version struct {
	Event        agent.Event
	Branch, Hash string
	Live         bool
}

// Start is what a chain's first event says of its row.
type Start struct {
	Nth  int
	At   time.Time
	Data agent.StartedData
}

// End is where the live events of a chain end.
type End struct {
	Seq  int64
	Hash string
	At   time.Time
	Head agent.Head
}

// EndedAt is when the run ended; nil while it has not.
func (e End) EndedAt() *time.Time {
	if !e.Head.Status.Ended() {
		return nil
	}
	return &e.At
}

// Gate is a gate's row. Opened and Closed are the events' seqs, Closed 0 while
// it is open.
type Gate struct {
	agent.Gate
	Opened, Closed int64
	Data           agent.JSON // the gate; of what is read, this and Opened are enough
}
