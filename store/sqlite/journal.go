package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"interlock/agent"
	"interlock/store"
)

const (
	selectHead = `SELECT first_run_id, body, seq, hash, status, reason, phase, turn,
  coalesce((SELECT e.superseded_by FROM events e
    WHERE e.tenant = runs.tenant AND e.address = runs.address AND e.branch = ? AND e.superseded_by <> '' LIMIT 1), '')
FROM runs WHERE tenant = ? AND address = ?`
	selectStanding = `SELECT seq, hash, branch, type FROM events
WHERE tenant = ? AND address = ? AND seq BETWEEN ? AND ? AND superseded_by = '' ORDER BY seq`
	selectOwnLast = `SELECT coalesce(max(seq), 0) FROM events
WHERE tenant = ? AND address = ? AND branch = ? AND superseded_by = ''`
	supersedeTail = `UPDATE events SET superseded_by = ?
WHERE tenant = ? AND address = ? AND seq >= ? AND superseded_by = ''`
	insertEvent = `INSERT INTO events (tenant, address, seq, branch, at, type, v, turn, step, trace_id, data, hash)
VALUES ` + eventRow
	eventRow = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// Append implements [store.Journal].
func (s *Store) Append(ctx context.Context, ref store.RunRef, batch agent.Batch) error {
	return s.appendBy(ctx, ref, batch, s.write, false)
}

// AppendSoon implements [store.Journal]: the commit does not wait for the disk,
// and SQLite writes its log in order, so the next commit that waits covers it.
func (s *Store) AppendSoon(ctx context.Context, ref store.RunRef, batch agent.Batch) error {
	return s.appendBy(ctx, ref, batch, s.writeSoon, true)
}

func (s *Store) appendBy(ctx context.Context, ref store.RunRef, batch agent.Batch,
	write func(ctx context.Context, operation string, f func(transaction) error) error, soon bool) error {
	if len(batch.Events) == 0 {
		return nil
	}
	operation := fmt.Sprintf("append of events %d to %d to %s", batch.First, batch.Last(), ref.Address)
	hashes, err := store.CheckAppend(ref, batch)
	if err != nil {
		return fail(operation, err)
	}
	return write(ctx, operation, func(t transaction) error {
		a := appending{transaction: t, ref: ref, batch: batch, hashes: hashes, soon: soon}
		return a.run(ctx)
	})
}

// appending is one batch on its way into the journal.
type appending struct {
	transaction
	ref    store.RunRef
	batch  agent.Batch
	hashes []string // of the chain at each event of the batch
	head   head
	soon   bool
}

// head is the journal's end as it stands; all zero where there is none.
type head struct {
	firstRunID, body string
	seq              int64
	hash             string
	run              agent.Head
	supersededBy     string // of our own branch
}

func (a *appending) run(ctx context.Context) error {
	h := &a.head
	err := a.row(ctx, selectHead, a.ref.Branch, a.ref.Tenant, a.ref.Address).Scan(&h.firstRunID, &h.body, &h.seq, &h.hash,
		&h.run.Status, &h.run.Reason, &h.run.Phase, &h.run.Turn, &h.supersededBy)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if err := a.admit(); err != nil {
		return err
	}
	known, err := a.compare(ctx)
	if err != nil {
		return err
	}
	if err := a.project(ctx, known); err != nil {
		return err
	}
	if known == len(a.batch.Events) && !a.soon {
		// They may stand by an AppendSoon: a write of its own makes this commit
		// wait for the disk, and them with it.
		_, err := a.exec(ctx, touchRun, a.ref.Tenant, a.ref.Address)
		return err
	}
	return a.insert(ctx, a.batch.Events[known:], a.hashes[known:])
}

// insertEvents inserts 1, 2, … events by one statement: a batch has a handful.
var insertEvents = func() (out [8]string) {
	for n := range out {
		out[n] = insertEvent + strings.Repeat(", "+eventRow, n)
	}
	return out
}()

// insert appends events as our branch's, and brings the gates to what they say.
func (a *appending) insert(ctx context.Context, events []agent.Event, hashes []string) error {
	for len(events) > 0 {
		n := min(len(events), len(insertEvents))
		args := make([]any, 0, 12*n)
		for i, e := range events[:n] {
			args = append(args, a.ref.Tenant, a.ref.Address, e.Seq, a.ref.Branch, micros(e.At), string(e.Type),
				e.V, e.Turn, e.Step, e.TraceID, e.Data.String(), hashes[i])
		}
		if _, err := a.exec(ctx, insertEvents[n-1], args...); err != nil {
			return err
		}
		for _, e := range events[:n] {
			if err := a.projectGate(ctx, e); err != nil {
				return err
			}
		}
		events, hashes = events[n:], hashes[n:]
	}
	return nil
}

// admit refuses a batch by what the head says of its chain and branch.
func (a *appending) admit() error {
	if a.head.seq > 0 && a.head.firstRunID != a.ref.FirstRunID {
		return a.otherChain()
	}
	if a.head.supersededBy != "" {
		return a.superseded(a.head.supersededBy)
	}
	return nil
}

func (a *appending) otherChain() error {
	if a.batch.First > 1 {
		return a.diverged(a.batch.First, "the journal of %s is of the run that began as %s; this one, that began as %s, has no event there",
			a.ref.Address, a.head.firstRunID, a.ref.FirstRunID)
	}
	started, err := startedData(a.batch.Events[0])
	if err != nil {
		return err
	}
	if started.BodyDigest == a.head.body {
		return &store.Refusal{Kind: store.KeyUsed, FirstRunID: a.head.firstRunID,
			Message: a.ref.Address + " was started before with the same input; that run is the one to look at"}
	}
	return &store.Refusal{Kind: store.Conflict, FirstRunID: a.head.firstRunID,
		Message: a.ref.Address + " was started before with another input; use another key"}
}

// compare walks over the events that the journal has a row for, and counts
// those that stand with the same content. The rest are to be appended; where
// one stands with other content, it and the tail behind it are superseded.
// Where the batch follows another history than the one that stands, that one is
// revived first.
func (a *appending) compare(ctx context.Context) (known int, err error) {
	standing, err := a.standing(ctx)
	if err != nil {
		return 0, err
	}
	if refusal := a.follows(standing); refusal != nil {
		return 0, a.revive(ctx, refusal)
	}
	if len(standing) > 0 && standing[0].seq < a.batch.First {
		standing = standing[1:]
	}
	for i, e := range standing {
		if e.hash == a.hashes[i] {
			continue
		}
		offered := a.batch.Events[i]
		return i, a.supersede(ctx, e, a.diverged(e.seq,
			"event %d stands in the journal as %s (chain %s), and the run now has %s (chain %s): its code decided otherwise than before",
			e.seq, e.kind, short(e.hash), offered.Type, short(a.hashes[i])))
	}
	return len(standing), nil
}

// standingEvent is a live row of the journal.
type standingEvent struct {
	seq          int64
	hash, branch string
	kind         string
}

// standing are the live rows from the one before the batch to the batch's last.
func (a *appending) standing(ctx context.Context) (standing []standingEvent, err error) {
	switch {
	case a.batch.First > a.head.seq+1 || a.head.seq == 0:
		return nil, nil
	case a.batch.First == a.head.seq+1:
		return []standingEvent{{seq: a.head.seq, hash: a.head.hash}}, nil
	}
	rows, err := a.rows(ctx, selectStanding, a.ref.Tenant, a.ref.Address, a.batch.First-1, a.batch.Last())
	if err != nil {
		return nil, err
	}
	err = each(rows, func(r row) error {
		var e standingEvent
		err := r.Scan(&e.seq, &e.hash, &e.branch, &e.kind)
		standing = append(standing, e)
		return err
	})
	return standing, err
}

// follows refuses a batch that continues another history than the journal's.
func (a *appending) follows(standing []standingEvent) error {
	if a.batch.First > a.head.seq+1 {
		return a.diverged(a.batch.First, "the journal of %s ends at event %d and the batch begins at event %d (%s): what is between was never recorded",
			a.ref.Address, a.head.seq, a.batch.First, a.batch.Events[0].Type)
	}
	before, kind := "", ""
	if a.batch.First > 1 {
		before, kind = standing[0].hash, standing[0].kind
	}
	if a.batch.Before == before {
		return nil
	}
	if kind != "" {
		kind = " (" + kind + ")"
	}
	return a.diverged(a.batch.First, "event %d (%s) follows another history: the chain before it is %s for the run, and %s in the journal after its event %d%s",
		a.batch.First, a.batch.Events[0].Type, short(a.batch.Before), short(before), a.batch.First-1, kind)
}

// supersede makes room for an event that differs from the one that stands. A
// branch can do that only before it has written anything: later its own rows
// are part of what stands, which is diverged, or show that the other branch is
// the newer one.
func (a *appending) supersede(ctx context.Context, stands standingEvent, diverged error) error {
	var own int64
	if err := a.row(ctx, selectOwnLast, a.ref.Tenant, a.ref.Address, a.ref.Branch).Scan(&own); err != nil {
		return err
	}
	switch {
	case own >= stands.seq:
		return diverged
	case own > 0:
		return a.superseded(stands.branch)
	}
	if _, err := a.exec(ctx, supersedeTail, a.ref.Branch, a.ref.Tenant, a.ref.Address, stands.seq); err != nil {
		return err
	}
	return a.rewindGates(ctx, stands.seq)
}

func (a *appending) superseded(by string) error {
	return &store.Refusal{Kind: store.Superseded, Message: fmt.Sprintf("Temporal run %s has gone on with %s; run %s appends nothing more",
		by, a.ref.Address, a.ref.Branch)}
}

func (a *appending) diverged(seq int64, format string, args ...any) error {
	return &store.Refusal{Kind: store.Diverged, Seq: seq, Message: fmt.Sprintf(format, args...)}
}

// short is enough of a hash for a person to compare.
func short(hash string) string {
	if hash == "" {
		return "empty"
	}
	return hash[:min(len(hash), 12)]
}
