package rules

import (
	"strconv"
	"time"

	"interlock/agent"
	"interlock/store"
)

// Judge says what a claim gets of the row that stands under its key, by the
// ledger's clock: counts, another attempt of it; else the row says why not: it is
// settled, it is Held, the claim must Wait for the attempts before or is Late. An
// error is a row that is not its own.
func Judge(stands *store.Effect, c store.Claim, held *store.Hold, now time.Time) (counts bool, err error) {
	if err := SameCall(*stands, c); err != nil || stands.Status != store.EffectClaimed {
		return false, err
	}
	if stands.Held = held; held != nil {
		return false, nil
	}
	if began := c.Began.Truncate(time.Microsecond); !began.IsZero() && began.Before(stands.BeganAt) {
		return false, agent.Errorf(agent.CodeUnavailable, "an attempt that began %s later has claimed this effect: this one is overtaken", stands.BeganAt.Sub(began))
	}
	if !stands.Begun() && Late(c, now) {
		stands.Late = true
		return false, nil
	}
	if c.Exclusive {
		stands.Wait = MayAct(*stands, c, now)
	}
	return stands.Wait == 0, nil
}

// MayAct is how long the attempts of an open row may still act.
func MayAct(stands store.Effect, c store.Claim, now time.Time) time.Duration {
	if !stands.Open() || stands.Deadline.IsZero() {
		return 0
	}
	return max(stands.Deadline.Add(c.Grace).Sub(now), 0)
}

// Late reports whether a claim comes too late to begin its effect.
func Late(c store.Claim, now time.Time) bool { return !c.NotAfter.IsZero() && now.After(c.NotAfter) }

// SameCall refuses a row that is another call's.
func SameCall(stands store.Effect, c store.Claim) error {
	if stands.Scope != c.Scope || stands.Tool != c.Tool || !stands.Args.Equal(c.Args) {
		return agent.Errorf(agent.CodeConflict, "the key is of another call: %s %s of %s", stands.Tool, stands.Args, stands.Scope)
	}
	return nil
}

// JudgeSettled says whether an outcome may be told to the caller as settled,
// where the row was so before.
func JudgeSettled(stands store.Effect, o store.Outcome) error {
	if stands.Outcome.Equal(o) {
		return nil
	}
	return agent.Errorf(agent.CodeConflict, "it is settled as %s, which stays, and not as this %s", stands.Status, o.Status)
}

// JudgeUndone says whether a row may be told to be undone by an effect.
func JudgeUndone(stands store.Effect, by string) error {
	switch {
	case stands.UndoneBy == by:
		return nil
	case stands.UndoneBy != "":
		return agent.Errorf(agent.CodeConflict, "it was undone already, by effect %s", stands.UndoneBy)
	}
	return agent.Errorf(agent.CodeConflict, "it did not happen, so there is nothing to undo: it is %s", stands.State())
}

// Effects adds a filter's conditions to a query over effects, named e, and their
// order.
func Effects(q *Query, f store.EffectFilter, d EffectDialect) error {
	q.Equal("e.address", f.Address)
	q.Equal("e.agent", f.Agent)
	q.Equal("e.tool", f.Tool)
	if f.Version > 0 {
		q.And("e.version = %", f.Version)
	}
	if condition := states[f.State]; condition != "" {
		q.And(condition)
	}
	if !f.Since.IsZero() {
		q.And("e.claimed_at >= %", d.Time(Ceil(f.Since)))
	}
	if !f.Until.IsZero() {
		q.And("e.claimed_at < %", d.Time(Ceil(f.Until)))
	}
	if f.Instructions != "" {
		q.And(`EXISTS (SELECT 1 FROM `+d.ModelCalls+` m WHERE m.tenant = e.tenant AND m.address = e.address AND m.turn = `+d.Turn+
			` AND m.instructions LIKE %)`, f.Instructions+"\x25")
	}
	if f.Stranded {
		q.And("e.status = 'claimed' AND e.attempts > e.released AND (e.deadline IS NULL OR e.deadline < %)", d.Time(d.Now.Add(-f.Grace)))
	}
	if f.After != "" {
		id, err := strconv.ParseInt(f.After, 10, 64)
		if err != nil {
			return agent.Errorf(agent.CodeInvalid, "%q is no cursor of a list of effects", f.After)
		}
		q.And("e."+d.ID+" > %", id)
	}
	end, limit := "ORDER BY e."+d.ID, []any(nil)
	if f.Limit > 0 {
		end, limit = end+" LIMIT %", []any{f.Limit}
	}
	q.End(end, limit...)
	return nil
}

// EffectDialect is how a database tells what every list of effects needs.
type EffectDialect struct {
	ID         string              // column of the order of claims
	Turn       string              // expression of the turn of e.step
	ModelCalls string              // table
	Time       func(time.Time) any // as the database keeps it
	Now        time.Time           // by the database's clock
}

// states are the conditions of [store.EffectState].
var states = map[store.EffectState]string{
	store.StateApplied:    "e.status = 'applied' AND e.undone_at IS NULL",
	store.StateRefused:    "e.status = 'refused'",
	store.StateUndone:     "e.undone_at IS NOT NULL",
	store.StateNotApplied: "e.status = 'claimed' AND e.attempts = e.released",
	store.StateOpen:       "e.status = 'claimed' AND e.attempts > e.released AND e.doubt_at IS NULL",
	store.StateInDoubt:    "e.status = 'claimed' AND e.attempts > e.released AND e.doubt_at IS NOT NULL",
}

// NoEffect is the answer for a key without a row.
func NoEffect() error { return agent.Errorf(agent.CodeNotFound, "the ledger has no such key") }

// NoHold is the answer where no such hold stands.
func NoHold(h store.Hold) error {
	return agent.Errorf(agent.CodeNotFound, "nothing is held with tenant %q, agent %q and tool %q (\"\" is all of them); list what is held, and release it by the same three", h.Tenant, h.Agent, h.Tool)
}
