package rules

import (
	"context"
	"encoding/json"
	"fmt"

	"interlock/agent"
	"interlock/store"
)

// Append takes a batch into the journal, or refuses it, by the contract of
// [store.Journal]. hashes are those of [store.CheckAppend]. soon: nobody waits
// for the disk.
func Append(ctx context.Context, j Journal, ref store.RunRef, batch agent.Batch, hashes []string, soon bool) error {
	a := appending{Journal: j, ref: ref, batch: batch, hashes: hashes, soon: soon}
	return a.run(ctx)
}

// appending is one batch on its way into the journal.
type appending struct {
	Journal
	ref    store.RunRef
	batch  agent.Batch
	hashes []string // of the chain at each event of the batch
	soon   bool
	head   Head // of the batch's own chain; all zero where it has no event yet
	nth    int  // of the batch's own chain
}

func (a *appending) run(ctx context.Context) error {
	if len(a.batch.Events) == 0 {
		return a.holds(ctx)
	}
	return a.lostEvents(a.take(ctx))
}

func (a *appending) take(ctx context.Context) (err error) {
	if a.head, err = a.Head(ctx); err != nil {
		return err
	}
	if err := a.admit(ctx); err != nil {
		return err
	}
	known, err := a.compare(ctx)
	if err != nil {
		return err
	}
	if err := a.project(ctx, known); err != nil {
		return err
	}
	if known == len(a.batch.Events) {
		if a.soon {
			return nil
		}
		// They may stand by an AppendSoon: a write of its own makes this commit
		// wait for the disk, and them with it.
		return a.Touch(ctx)
	}
	return a.insert(ctx, a.batch.Events[known:], a.hashes[known:])
}

// insert appends events as our branch's, and brings the gates to what they say.
func (a *appending) insert(ctx context.Context, events []agent.Event, hashes []string) error {
	if err := a.Insert(ctx, events, hashes); err != nil {
		return err
	}
	return projectGates(ctx, a.Journal, events)
}

// admit refuses a batch by what the head says of its chain and branch, and
// settles which chain of the address it is.
func (a *appending) admit(ctx context.Context) error {
	h := a.head
	switch {
	case h.FirstRunID == "":
		a.nth = 1
	case h.FirstRunID != a.ref.FirstRunID:
		if err := a.follow(ctx); err != nil {
			return err
		}
		a.head, a.nth = Head{}, h.Nth+1
	case h.SupersededBy != "":
		return a.superseded(h.SupersededBy)
	default:
		a.nth = h.Nth
	}
	return nil
}

// follow refuses a chain where another one is the newest, unless it has no row
// yet and follows that one. Temporal starts no run under an address before the
// one there is closed: where that one's journal has no end, it was terminated. Only if
// it has gone on since this one began, it is the other way round: a reset made it
// go on, and closed this one.
func (a *appending) follow(ctx context.Context) error {
	h := a.head
	if h.Nth > 1 {
		if stood, err := a.Stood(ctx); err != nil {
			return err
		} else if stood {
			return &store.Refusal{Kind: store.Superseded, Message: fmt.Sprintf("the run that began as %s has gone on at %s after the one that began as %s, which appends nothing more",
				h.FirstRunID, a.ref.Address, a.ref.FirstRunID)}
		}
	}
	if a.batch.First > 1 {
		return a.diverged(a.batch.First, "the journal of %s is of the run that began as %s; this one, that began as %s, has no event there",
			a.ref.Address, h.FirstRunID, a.ref.FirstRunID)
	}
	started, err := startedData(a.batch.Events[0])
	if err != nil {
		return err
	}
	refusal := &store.Refusal{Kind: store.Conflict, FirstRunID: h.FirstRunID}
	switch {
	case started.After == h.FirstRunID && h.Run.Status.Ended():
		return nil
	case started.After == h.FirstRunID && !h.At.Before(a.batch.Events[0].At):
		refusal.Message = fmt.Sprintf("%s cannot be followed: the run that began as %s is %s, and has gone on since this one began", a.ref.Address, h.FirstRunID, h.Run.Status)
	case started.After == h.FirstRunID:
		return a.CloseRun(ctx, h.FirstRunID, a.batch.Events[0].At, "closed in Temporal without an end of its own; another run has followed it")
	case started.After != "":
		refusal.Message = fmt.Sprintf("%s is held by the run that began as %s, not by the one to be followed, that began as %s: another run has followed it, or it was never there",
			a.ref.Address, h.FirstRunID, started.After)
	case started.BodyDigest == h.Body:
		refusal.Kind = store.KeyUsed
		refusal.Message = a.ref.Address + " was started before with the same input; that run is the one to look at"
	default:
		refusal.Message = a.ref.Address + " was started before with another input; use another key"
	}
	return refusal
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
	if len(standing) > 0 && standing[0].Seq < a.batch.First {
		standing = standing[1:]
	}
	for i, e := range standing {
		if e.Hash == a.hashes[i] {
			continue
		}
		offered := a.batch.Events[i]
		return i, a.supersede(ctx, e, a.diverged(e.Seq,
			"event %d stands in the journal as %s (chain %s), and the run now has %s (chain %s): its code decided otherwise than before",
			e.Seq, e.Type, short(e.Hash), offered.Type, short(a.hashes[i])))
	}
	return len(standing), nil
}

// standing are the live rows from the one before the batch to the batch's last.
func (a *appending) standing(ctx context.Context) ([]Standing, error) {
	switch {
	case a.batch.First > a.head.Seq+1 || a.head.Seq == 0:
		return nil, nil
	case a.batch.First == a.head.Seq+1:
		return []Standing{{Seq: a.head.Seq, Hash: a.head.Hash}}, nil
	}
	return a.Standing(ctx)
}

// follows refuses a batch that continues another history than the journal's.
func (a *appending) follows(standing []Standing) error {
	if a.batch.First > a.head.Seq+1 {
		return a.diverged(a.batch.First, "the journal of %s ends at event %d and the batch begins at event %d (%s): what is between was never recorded",
			a.ref.Address, a.head.Seq, a.batch.First, a.batch.Events[0].Type)
	}
	before, kind := "", ""
	if a.batch.First > 1 {
		before, kind = standing[0].Hash, string(standing[0].Type)
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
func (a *appending) supersede(ctx context.Context, stands Standing, diverged error) error {
	own, err := a.OwnLast(ctx)
	switch {
	case err != nil:
		return err
	case own >= stands.Seq:
		return diverged
	case own > 0:
		return a.superseded(stands.Branch)
	}
	if err := a.Supersede(ctx, stands.Seq); err != nil {
		return err
	}
	return rewindGates(ctx, a.Journal, stands.Seq)
}

// project brings the run's row to where the batch ends. known is how many of
// its events stand already.
func (a *appending) project(ctx context.Context, known int) error {
	nothingNew := known == len(a.batch.Events)
	if a.batch.Last() < a.head.Seq && nothingNew || nothingNew && a.batch.Head == a.head.Run {
		return nil
	}
	if a.batch.First == 1 && known == 0 {
		return a.putRun(ctx, a.batch.Events[0])
	}
	return a.MoveRun(ctx, a.end())
}

// putRun makes the run's row from its start and from where the batch ends.
func (a *appending) putRun(ctx context.Context, start agent.Event) error {
	d, err := startedData(start)
	if err != nil {
		return err
	}
	return a.PutRun(ctx, Start{Nth: a.nth, At: start.At, Data: d}, a.end())
}

// end is where the journal ends once the batch is in it.
func (a *appending) end() End {
	last := len(a.batch.Events) - 1
	return End{Seq: a.batch.Last(), Hash: a.hashes[last], At: a.batch.Events[last].At, Head: a.batch.Head}
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

func startedData(e agent.Event) (d agent.StartedData, err error) {
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return d, agent.Errorf(agent.CodeInvalid, "the data of event %d (%s): %w", e.Seq, e.Type, err)
	}
	return d, nil
}
