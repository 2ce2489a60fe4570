package agent

import (
	"slices"
	"time"
)

// gateDef is a policy without its types.
type gateDef struct {
	policy       string
	roles, reads []string
	expires      time.Duration
	quorum       int
	distinct     bool
	edit         []string
	escalate     Escalate
	takeBack     time.Duration
	when         func(situation, JSON) bool
	title, risk  func(situation, JSON) string
}

func eraseGate[S any](g *GateSpec[S]) *gateDef {
	d := &gateDef{policy: g.Policy, roles: g.Roles, reads: g.Reads, expires: g.Expires, quorum: g.Quorum, distinct: g.Distinct, edit: g.Edit, escalate: g.Escalate, takeBack: g.TakeBack}
	if g.When != nil {
		d.when = func(u situation, args JSON) bool { return g.When(typed[S](u), args) }
	}
	if g.Title != nil {
		d.title = func(u situation, args JSON) string { return g.Title(typed[S](u), args) }
	}
	if g.Risk != nil {
		d.risk = func(u situation, args JSON) string { return g.Risk(typed[S](u), args) }
	}
	return d
}

func eraseMoveGate[S any](g *MoveGate[S]) *gateDef {
	spec := &GateSpec[S]{Policy: g.Policy, Roles: g.Roles, Reads: g.Reads, Expires: g.Expires, Quorum: g.Quorum, Distinct: g.Distinct, Escalate: g.Escalate, TakeBack: g.TakeBack}
	if g.When != nil {
		spec.When = func(s Situation[S], _ JSON) bool { return g.When(s) }
	}
	if g.Title != nil {
		spec.Title = func(s Situation[S], _ JSON) string { return g.Title(s) }
	}
	if g.Risk != nil {
		spec.Risk = func(s Situation[S], _ JSON) string { return g.Risk(s) }
	}
	return eraseGate(spec)
}

// maxQuorum bounds the approvals of a gate: each is carried in every snapshot.
const maxQuorum = 10

// maxTakeBack bounds how long a verdict waits for its own person's second thought.
const maxTakeBack = 15 * time.Minute

// escalate checks when and to whom a gate is escalated.
func (c *checker) escalate(where string, g *gateDef) {
	e := g.escalate
	switch {
	case e.After == 0 && len(e.Roles) == 0:
		return
	case e.After <= 0:
		c.report(where, "gate escalates %s after it opens", e.After)
	case g.expires > 0 && e.After >= g.expires:
		c.report(where, "gate escalates %s after it opens, and has expired after %s", e.After, g.expires)
	case len(e.Roles) == 0:
		c.report(where, "gate escalates to no role")
	}
	for _, r := range e.Roles {
		if !validName(r) {
			c.report(where, "escalation role %q is not [a-z][a-z0-9_]*", r)
		}
		if slices.Contains(g.roles, r) {
			c.report(where, "escalation adds role %s, which may decide anyway", r)
		}
	}
}
