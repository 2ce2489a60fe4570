package agent

import (
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

func (g Gate) escalated() bool { return g.Escalation != nil && g.Escalation.Done }

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
