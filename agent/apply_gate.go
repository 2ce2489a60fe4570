package agent

import (
	"fmt"
	"slices"
	"time"
)

func applyGateCounted(r *Run, _ Event, d GateCountedData) {
	if g := r.gate(d.Gate); g != nil {
		g.Approvals = d.Approvals
	}
}

func applyGateEscalated(r *Run, _ Event, d GateEscalatedData) {
	if g := r.gate(d.Gate); g != nil {
		*g = g.Escalated(d.Roles)
	}
}

// Escalated is the gate once roles may decide it too.
func (g Gate) Escalated(roles []string) Gate {
	g.Roles = slices.Clone(g.Roles)
	for _, role := range roles {
		if !slices.Contains(g.Roles, role) {
			g.Roles = append(g.Roles, role)
		}
	}
	if g.Escalation != nil {
		e := *g.Escalation
		e.Done = true
		g.Escalation = &e
	}
	return g
}

// escalatesAt is when the gate is to be escalated; nil where it is not.
func (g Gate) escalatesAt() *time.Time {
	if e := g.Escalation; e != nil && !e.Done {
		return &e.At
	}
	return nil
}

// replaced reports whether another step stands in a step's place.
func (r *Run) replaced(id string) bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Replaces == id })
}

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
	r.handled(d.ID, d.Body, e.Seq)
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
	r.handled(d.ID, d.Body, e.Seq)
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
