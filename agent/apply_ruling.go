package agent

import (
	"fmt"
	"slices"
)

// RulingStatus is how a ruling of a run stands.
type RulingStatus string

const (
	RulingBinds   RulingStatus = "binds"   // the same call is refused
	RulingChanged RulingStatus = "changed" // what it rested on has: it binds no more
	RulingLifted  RulingStatus = "lifted"  // by a person
	RulingDraft   RulingStatus = "draft"   // the model's: it binds nothing
	RulingDropped RulingStatus = "dropped" // a draft that a person lifted
)

// RulingStatus is how a ruling stands now.
func (r *Run) RulingStatus(u Ruling) RulingStatus {
	switch {
	case u.Draft && u.Lifted != nil:
		return RulingDropped
	case u.Draft:
		return RulingDraft
	case u.Lifted != nil:
		return RulingLifted
	case !r.rests(u):
		return RulingChanged
	}
	return RulingBinds
}

// rests reports whether what a ruling rests on has stayed. It asks when a field has
// changed, which is known of a masked run too.
func (r *Run) rests(u Ruling) bool { return !r.changedSince(u.Reads, u.Seq) }

func (r *Run) ruling(id string) *Ruling {
	for i := range r.Rulings {
		if r.Rulings[i].ID == id {
			return &r.Rulings[i]
		}
	}
	return nil
}

func (r *Run) rule(e Event, u Ruling) {
	u.Seq = e.Seq
	r.Rulings = append(r.Rulings, u)
}

// changedSince reports whether a field has changed after an event: for good, the
// old value coming back or not.
func (r *Run) changedSince(fields []string, seq int64) bool {
	return slices.ContainsFunc(fields, func(f string) bool { return r.Provenance[f].Rev > seq })
}

func (r *Run) lifted(id string) bool {
	u := r.ruling(id)
	return u != nil && u.Lifted != nil
}

// words say what was ruled, for whoever decides about the same again.
func (u Ruling) words() string {
	text := fmt.Sprintf("%s rejected this on %s: %s", u.By.Subject, u.At.Format("2006-01-02 15:04"), u.Reason)
	if u.Lifted != nil {
		text += fmt.Sprintf(" (lifted by %s: %s)", u.Lifted.By.Subject, u.Lifted.Reason)
	}
	return text
}

// applyRulingConfirmed makes a draft bind: from now on it is this person's.
func applyRulingConfirmed(r *Run, e Event, d RulingConfirmedData) {
	r.handled(e.Seq, d.ID, d.Body, d.Principal, Handled{})
	u := r.ruling(d.Ruling)
	if u == nil {
		return
	}
	u.Draft, u.By, u.At = false, d.Principal, e.At
	if d.Reason != "" {
		u.Reason = d.Reason
	}
	r.tellRuling(e, u, "was made binding by "+d.Principal.Subject+": the same call is refused")
}

func applyRulingLifted(r *Run, e Event, d RulingConfirmedData) {
	r.handled(e.Seq, d.ID, d.Body, d.Principal, Handled{})
	u := r.ruling(d.Ruling)
	if u == nil {
		return
	}
	u.Lifted = &Lift{By: d.Principal, Reason: d.Reason, At: e.At}
	r.tellRuling(e, u, "was lifted by "+d.Principal.Subject+" ("+d.Reason+"): the same call goes to a person again")
}

// tellRuling tells the model in its next turn; it does not call it.
func (r *Run) tellRuling(e Event, u *Ruling, how string) {
	r.Opening = append(r.Opening, Item{Kind: ItemOutcome, Seq: e.Seq, Text: "The refusal " + u.ID + " of " + u.Tool + " " + how + "."})
}
