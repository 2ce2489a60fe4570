package rules

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"interlock/store"
)

// FoundElsewhere is why a generation is raised when a store is found in another place than
// before, "" where it is not.
func FoundElsewhere(was, is string) string {
	if was == "" || is == "" || was == is {
		return ""
	}
	return fmt.Sprintf("the database was found at %s, and had been at %s: it is a copy, or has failed over", is, was)
}

// Raised is the generation that a store takes once a run has shown that it has lost
// events: a later one than any that the run was told of. It stays where the run was told
// of an earlier one only: then the loss was noticed before.
func Raised(is store.Identity, told string) int64 {
	_, text, _ := strings.Cut(told, "/")
	generation, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		generation = 1
	}
	if generation < is.Generation {
		return is.Generation
	}
	return generation + 1
}

// LostClaim is what the ledger has as the reason of an effect whose earlier claim may
// be in what the store has lost.
const LostClaim = "the store has lost events or was restored: an earlier attempt may have had this effect"

// RunBefore is what a claim without a row has to know of its run.
type RunBefore struct {
	Generation int64 // of the store when the run's first event was recorded; 0 where that is not known
	Branches   bool  // another Temporal run than the claim's has written to its journal
}

// MayBeLost reports whether an effect without a row may have been begun all the same,
// in what the store has lost: its attempt was scheduled when the store was another, or
// its run began before the store was raised and is another Temporal run since, as after
// a reset, that cannot know which steps it has seen.
func MayBeLost(c store.Claim, is store.Identity, run RunBefore) bool {
	if c.Store != "" && c.Store != is.String() {
		return true
	}
	return is.Generation > 1 && run.Generation < is.Generation && run.Branches
}

// lostEvents makes of a divergence the loss that it is, where the journal ends before
// what the run knows was acknowledged.
func (a *appending) lostEvents(err error) error {
	var r *store.Refusal
	if !errors.As(err, &r) || r.Kind != store.Diverged {
		return err
	}
	has := a.head.Seq
	if a.head.FirstRunID != a.ref.FirstRunID {
		has = 0
	}
	if a.batch.Acked <= has {
		return err
	}
	return Lost(a.ref, a.batch.Acked, has)
}

// Lost is the refusal of a store that has lost events.
func Lost(ref store.RunRef, acked, has int64) *store.Refusal {
	return &store.Refusal{Kind: store.Lost, Seq: has, Message: fmt.Sprintf(
		"the store has lost events: %s was told that events up to %d are recorded, and the journal ends at event %d: an older copy of the database was restored, or a server took over that had not received all",
		ref.Address, acked, has)}
}

// holds looks whether the journal still has what a batch without events knows was
// acknowledged.
func (a *appending) holds(ctx context.Context) (err error) {
	if a.head, err = a.Head(ctx); err != nil || a.head.SupersededBy != "" {
		return err
	}
	has := a.head.Seq
	switch {
	case a.head.FirstRunID == a.ref.FirstRunID:
	case a.head.FirstRunID == "":
		has = 0
	default:
		stood, err := a.Stood(ctx)
		if err != nil || stood {
			return err
		}
		has = 0
	}
	if a.batch.Acked <= has {
		return nil
	}
	all, err := a.Versions(ctx, a.batch.Acked, a.batch.Acked)
	if err != nil || len(all) > 0 { // a newer branch has gone on from an earlier event
		return err
	}
	return Lost(a.ref, a.batch.Acked, has)
}
