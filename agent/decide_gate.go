package agent

import (
	"fmt"
	"slices"
)

// approvedBy reports whether a person's approval counts already.
func (g Gate) approvedBy(subject string) bool {
	return slices.ContainsFunc(g.Approvals, func(a Approval) bool { return SamePerson(a.By.Subject, subject) })
}

// needsGate evaluates a policy. It fails closed: code that panics opens the gate.
func (m *Machine) needsGate(g *gateDef, args JSON) (policy string, needed bool) {
	if g == nil {
		return "", false
	}
	if g.when == nil {
		return g.says("every such call needs a person"), true
	}
	defer func() {
		if r := recover(); r != nil {
			policy, needed = "the policy could not be evaluated, so a person must decide", true
		}
	}()
	return g.says("the agent's policy asks for a person here"), g.when(m.situation(), args)
}

// says is the policy in its author's words, where there are any.
func (g *gateDef) says(otherwise string) string {
	if g.policy != "" {
		return clip(g.policy, 300)
	}
	return otherwise
}

func (m *Machine) newGate(id string, c commitment, policy string) Gate {
	g := Gate{ID: id, Kind: c.kind, Tool: c.tool, Args: c.args, Policy: policy, Roles: c.gate.roles, Reads: c.gate.reads,
		OpenedAt: m.at, Status: GateOpen, Distinct: c.gate.distinct, Edit: c.gate.edit, Replaces: c.replaces}
	if g.Title = m.worded(c.gate.title, c.args, 300); g.Title == "" {
		g.Title = c.tool // the arguments stand beside it; here they could leak a sensitive value to the model
	}
	g.Risk = m.worded(c.gate.risk, c.args, 300)
	g.Shown = m.values(g.Reads)
	if c.gate.quorum > 1 {
		g.Quorum = c.gate.quorum
	}
	g.Askers = m.askers(c, g.Reads)
	if c.gate.expires > 0 {
		at := m.at.Add(c.gate.expires)
		g.ExpiresAt = &at
	}
	g.TakeBack = c.gate.takeBack
	if e := c.gate.escalate; e.After > 0 {
		g.Escalation = &Escalation{At: m.at.Add(e.After), Roles: e.Roles}
	}
	for _, r := range m.run.Rulings {
		if r.Tool == c.tool && r.Args == digest(c.args) && !r.Draft {
			g.Rulings = append(g.Rulings, r.words())
		}
	}
	if g.Digest = m.gateDigest(g); c.escalated && g.Escalation != nil {
		g.Escalation.At = m.at
		g = g.Escalated(g.Escalation.Roles)
	}
	return g
}

// worded is what a policy's code says of a call; "" where it says nothing, or
// panics.
func (m *Machine) worded(f func(situation, JSON) string, args JSON, limit int) (text string) {
	if f == nil {
		return ""
	}
	defer func() { _ = recover() }()
	return clip(f(m.situation(), args), limit)
}

// askers are those who asked for a call, whoever edited it last first.
func (m *Machine) askers(c commitment, reads []string) (out []string) {
	first := c.editedBy
	if c.undoes != nil {
		if u := m.run.undoOf(c.undoes.ID); u != nil {
			first = u.By
		}
	}
	all := []string{first, m.run.User, m.run.Principal.Subject}
	for _, f := range reads {
		if p := m.run.Provenance[f]; p.Source == SourceAmend {
			all = append(all, p.By)
		}
	}
	if c.from != nil {
		all = append(all, c.from.Askers...)
	}
	for _, s := range all {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// gateDigest binds a verdict to its run and to what was shown: tool, arguments, policy and
// the values of the Reads fields. What a gate has none of is left out, so that
// digests stay as they were.
func (m *Machine) gateDigest(g Gate) string {
	parts := []any{m.run.Tenant, m.run.Address(), m.run.FirstRunID, g.ID, g.Tool, g.Args, g.Policy, g.Roles, g.Shown}
	if g.Quorum > 1 {
		parts = append(parts, "quorum", g.Quorum)
	}
	if g.Distinct {
		parts = append(parts, "distinct", slices.Sorted(slices.Values(g.Askers)))
	}
	if g.Escalation != nil {
		parts = append(parts, "escalation", g.Escalation.Roles)
	}
	if len(g.Schema) > 0 {
		parts = append(parts, "schema", g.Schema)
	}
	return digest(parts)
}

// again is a waiting step's call as it would be made now; ok is false where the
// agent has its tool or move no more.
func (m *Machine) again(s *Step) (c commitment, ok bool) {
	c = commitment{kind: s.Kind, tool: s.Tool, args: s.Args, by: s.By, editedBy: s.EditedBy, replaces: s.Replaces}
	if s.Kind == KindMove {
		mv := m.moveOf(s.Args)
		if mv == nil {
			return c, false
		}
		c.gate = mv.gate
		return c, true
	}
	if c.t = m.def.tools[s.Tool]; c.t == nil {
		return c, false
	}
	c.gate = c.t.gate
	return m.undoAgain(c, s), true
}

// changedPolicy reports whether a gate's policy asks for something else now than
// the gate shows: it was opened by other code. One that asks for nobody any more
// does not.
func (m *Machine) changedPolicy(g Gate) (commitment, bool) {
	if g.Kind != KindTool && g.Kind != KindMove {
		return commitment{}, false
	}
	c, ok := m.again(m.run.step(g.StepID()))
	if !ok {
		return c, false // what takes the verdict says so
	}
	c.from = &g
	policy, needed := m.needsGate(c.gate, c.args)
	return c, needed && m.newGate(g.ID, c, policy).Digest != g.Digest
}

// askAnew closes a gate whose policy has changed, and opens one that shows the
// policy as it is. No verdict on the old one counts.
func (m *Machine) askAnew(v Verdict, body string, g Gate, c commitment) Receipt {
	id := m.run.nextID()
	why := fmt.Sprintf("the policy of gate %s has changed since it was shown; gate %s shows it as it is now", g.ID, id)
	if c.by == ByUndo {
		why = fmt.Sprintf("the policy of gate %s has changed since it was shown; the undo is asked for anew", g.ID)
	}
	r := m.voided(v, body, CodeStale, why)
	m.emit(EventGateClosed, g.ID, GateClosedData{Gate: g.ID, Status: GateVoid, Reason: why})
	m.emit(EventStepSettled, g.StepID(), StepSettledData{Status: StepVoid, Reason: why, Again: c.by == ByUndo})
	if c.by != ByUndo { // else it is the next undo, which is begun as any is
		c.replaces, c.escalated = g.ID, g.escalated()
		m.commit(c)
	}
	r.Gate = m.gateOutcome(g.ID)
	return r
}

// expireGates closes the gates whose time is up. A kept verdict that arrived
// in time is judged first.
func (m *Machine) expireGates() {
	for _, g := range slices.Clone(m.run.Gates) {
		if g.Status != GateOpen || g.Pending != nil || g.ExpiresAt == nil || m.at.Before(*g.ExpiresAt) {
			continue
		}
		if slices.ContainsFunc(m.run.Kept, func(v Verdict) bool { return v.Gate == g.ID && v.At.Before(*g.ExpiresAt) }) {
			continue
		}
		m.closeStep(g.ID, GateExpired, StepExpired, "nobody decided until "+stamp(*g.ExpiresAt))
	}
}

// escalateGates lets more roles decide the gates whose time for that has come.
func (m *Machine) escalateGates() {
	for _, g := range slices.Clone(m.run.Gates) {
		if e := g.Escalation; g.Status == GateOpen && e != nil && !e.Done && !m.at.Before(e.At) {
			m.emit(EventGateEscalated, g.ID, GateEscalatedData{Gate: g.ID, Roles: e.Roles})
		}
	}
}

func (m *Machine) gateOutcome(id string) *GateOutcome {
	g := m.run.gate(id)
	if g == nil {
		return nil
	}
	out := &GateOutcome{ID: g.ID, Status: g.Status, At: g.ClosedAt}
	if g.By != nil {
		out.By = g.By.Subject
	}
	return out
}
