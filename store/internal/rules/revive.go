package rules

import (
	"context"
	"slices"

	"interlock/agent"
)

// revive makes the history that the batch follows the live one, where all of
// it is recorded: a reset of a run that a newer one has superseded goes on with
// events that do not count any more. A row can be superseded only once, so they
// are appended again as our branch's. Where they are not recorded, or our own
// branch wrote what stands in their place, it answers refusal.
func (a *appending) revive(ctx context.Context, refusal error) error {
	lost, stands, err := a.lost(ctx)
	if err != nil {
		return err
	}
	if len(lost) == 0 {
		return refusal
	}
	if stands != nil {
		e := Standing{Seq: stands.Event.Seq, Hash: stands.Hash, Branch: stands.Branch, Type: stands.Event.Type}
		if err := a.supersede(ctx, e, refusal); err != nil {
			return err
		}
	}
	events, hashes := make([]agent.Event, len(lost)), make([]string, len(lost))
	for i, v := range lost {
		events[i], hashes[i] = v.Event, v.Hash
	}
	if events[0].Seq == 1 {
		if err := a.putRun(ctx, events[0]); err != nil { // another start: of another version, perhaps
			return err
		}
	}
	return a.insert(ctx, events, hashes)
}

// lost are the superseded rows that lead from a live row, or from nothing, to
// the event before the batch. It is empty where they do not. stands is the live
// row in the place of the first of them, if there is one.
//
// An event names the one before it only by their common hash, so the walk is
// backwards, and which branch wrote a row does not matter.
func (a *appending) lost(ctx context.Context) (lost []Version, stands *Version, err error) {
	leads := func(hash string) bool { return hash == a.batch.Before }
	walk := walk{journal: a.Journal}
	for seq := a.batch.First - 1; seq >= 1; seq-- {
		all, err := walk.versions(ctx, seq)
		if err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(all, func(v Version) bool { return leads(v.Hash) })
		if i < 0 {
			return nil, nil, nil
		}
		found := all[i]
		if found.Live {
			slices.Reverse(lost)
			return lost, stands, nil
		}
		lost, stands = append(lost, found), nil
		if all[0].Live {
			stands = &all[0]
		}
		leads = func(hash string) bool { return found.Event.Chain(a.batch.Salt, hash) == found.Hash }
	}
	if !leads("") {
		return nil, nil, nil
	}
	slices.Reverse(lost)
	return lost, stands, nil
}

// walk reads versions backwards, some at a time: most walks are short, and each
// read may be a round trip.
type walk struct {
	journal Journal
	read    []Version // the last event first
	next    int64     // the first event that was read
}

const walkStride = 16

// versions are all rows of an event, the live one first. Each call is for the
// event before that of the last.
func (w *walk) versions(ctx context.Context, seq int64) (all []Version, err error) {
	if w.next == 0 || seq < w.next {
		w.next = max(1, seq-walkStride+1)
		if w.read, err = w.journal.Versions(ctx, w.next, seq); err != nil {
			return nil, err
		}
	}
	n := 0
	for n < len(w.read) && w.read[n].Event.Seq == seq {
		n++
	}
	all, w.read = w.read[:n], w.read[n:]
	return all, nil
}
