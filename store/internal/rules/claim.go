package rules

import (
	"time"

	"interlock/agent"
	"interlock/store"
)

// Judge says what a claim gets of the row that stands under its key, by the
// ledger's clock: counts, another attempt of it; wait, how long it must wait for
// the one before; neither, a settled row; an error, a row that is not its own.
func Judge(stands store.Effect, c store.Claim, now time.Time) (counts bool, wait time.Duration, err error) {
	if stands.Scope != c.Scope || stands.Tool != c.Tool || !stands.Args.Equal(c.Args) {
		return false, 0, agent.Errorf(agent.CodeConflict, "the key is of another call: %s %s of %s", stands.Tool, stands.Args, stands.Scope)
	}
	if stands.Status != store.EffectClaimed {
		return false, 0, nil
	}
	if c.Exclusive && stands.Open() && !stands.Deadline.IsZero() {
		if wait := stands.Deadline.Add(c.Grace).Sub(now); wait > 0 {
			return false, wait, nil
		}
	}
	return true, 0, nil
}

// JudgeSettled says whether an outcome may be told to the caller as settled,
// where the row was so before.
func JudgeSettled(stands store.Effect, o store.Outcome) error {
	if stands.Outcome.Equal(o) {
		return nil
	}
	return agent.Errorf(agent.CodeConflict, "it is settled as %s, which stays, and not as this %s", stands.Status, o.Status)
}

// NoEffect is the answer for a key without a row.
func NoEffect() error { return agent.Errorf(agent.CodeNotFound, "the ledger has no such key") }
