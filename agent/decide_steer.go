package agent

import (
	"slices"
	"strings"
)

// amend sets fields from outside. It does not call the model: a gate that it
// voids does, and so may an Auto move that the new state allows.
func (m *Machine) amend(in AmendRun) Receipt {
	body := digest([]any{"amend", clean(string(in.Fields)), clean(in.Reason)})
	if r, stop := m.steer("amend", in.ID, body, in.Principal, in.Reason); stop {
		return r
	}
	state, names, err := m.amended(in.Fields, in.Principal)
	if err != nil {
		return refused(ErrorCode(err), "%v", err)
	}
	e := m.emit(EventAmended, "", AmendedData{ID: in.ID, Principal: in.Principal, Fields: names, Reason: clean(in.Reason), Body: body})
	m.set(origin{source: SourceAmend, by: in.Principal.Subject}, state, nil)
	return Receipt{Status: Accepted, Seq: e.Seq}
}

// amended is the state after an amend, and the fields that it names.
func (m *Machine) amended(fields JSON, who Principal) (state JSON, names []string, err error) {
	if err := CheckAmend(fields); err != nil {
		return nil, nil, err
	}
	given, next, zero := object(fields), object(m.run.State), object(m.def.zero)
	for _, name := range sortedKeys(given) {
		f, ok := m.def.field(name)
		switch {
		case !ok:
			return nil, nil, Errorf(CodeInvalid, "there is no field %s; an amend may set: %s", clip(name, idLimit), orNone(m.amendable()))
		case amendable(f) && !m.mayAmend(f, who):
			return nil, nil, Errorf(CodeDenied, "%s is a reviewer's to set: amending it needs a role of one of this agent's gates (%s)", name, joinOr(m.def.deciders()))
		case !amendable(f):
			return nil, nil, Errorf(CodeDenied, "%s is set by %s only; an amend may set: %s", name, joinOr(f.Set), orNone(m.amendable()))
		}
		if next[name] = given[name]; given[name] == nil {
			next[name] = zero[name]
		}
		names = append(names, name)
	}
	if state, err = m.def.checkState(encodeValue(normalState(next))); err != nil {
		return nil, nil, err
	}
	for _, name := range changedFields(object(m.run.State), object(state)) {
		if !slices.Contains(names, name) {
			return nil, nil, Errorf(CodeInvalid, "%s would change too", name)
		}
	}
	return state, names, m.fits(state)
}

// amendable: a tool's result and the start input cannot be written by hand.
func amendable(f Field) bool {
	return slices.ContainsFunc([]string{"user", "system", "model", "reviewer"}, f.Settable)
}

// mayAmend reports whether somebody may set a field that only reviewers set.
func (m *Machine) mayAmend(f Field, who Principal) bool {
	if !f.Settable("reviewer") || slices.ContainsFunc([]string{"user", "system", "model"}, f.Settable) {
		return true
	}
	return slices.ContainsFunc(m.def.deciders(), func(r string) bool { return slices.Contains(who.Roles, r) })
}

// deciders are the roles that decide at any of the agent's gates.
func (d *Definition) deciders() (out []string) {
	add := func(g *gateDef) {
		if g != nil {
			out = append(append(out, g.roles...), g.escalate.Roles...)
		}
	}
	for _, name := range sortedKeys(d.tools) {
		add(d.tools[name].gate)
	}
	for _, p := range d.phases {
		for _, mv := range p.moves {
			add(mv.gate)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (m *Machine) amendable() []string {
	var out []string
	for _, f := range m.def.fields {
		if amendable(f) {
			out = append(out, f.Name)
		}
	}
	return out
}

// CheckAmend says whether an amend's fields are an object with members, before
// it is sent.
func CheckAmend(fields JSON) error {
	v, err := parseValue([]byte(fields.String()))
	if err != nil {
		return Errorf(CodeInvalid, "the fields of an amend: %w", err)
	}
	if o, ok := v.(map[string]any); !ok || len(o) == 0 {
		return Errorf(CodeInvalid, "an amend names the fields that it sets, as an object: {\"field\": value}")
	}
	return nil
}

// pause stops the run. A model call under way is let go, so that its proposal
// starts nothing; what has begun goes on to its end, and what has not is made anew
// when the run is resumed.
func (m *Machine) pause(in PauseRun) Receipt {
	body := digest([]any{"pause", clean(in.Reason)})
	if r, stop := m.steer("pause", in.ID, body, in.Principal, in.Reason); stop {
		return r
	}
	if m.run.Status == RunPaused {
		return Receipt{Status: Repeated, Seq: m.run.Seq, Reason: "the run is paused already: " + m.run.Reason}
	}
	if m.run.Calling {
		m.emit(EventTurnCut, "", TurnCutData{Reason: "the run was paused", LetGo: true})
	}
	reason := "asked by " + in.Principal.Subject
	if in.Reason != "" {
		reason += ": " + clean(in.Reason)
	}
	e := m.emit(EventPaused, "", PausedData{Reason: reason, ID: in.ID, Principal: &in.Principal, Body: body})
	for _, s := range slices.Clone(m.run.Steps) {
		m.stopStep(s, Stopping{As: StepCancelled, Reason: "the run was paused before it began", Again: true})
	}
	return Receipt{Status: Accepted, Seq: e.Seq}
}

// resume lets a paused run go on, whatever it was paused for.
func (m *Machine) resume(in ResumeRun) Receipt {
	body := digest([]any{"resume", clean(in.Reason)})
	if r, stop := m.steer("resume", in.ID, body, in.Principal, in.Reason); stop {
		return r
	}
	if m.run.Status != RunPaused {
		return refused(CodeConflict, "the run is not paused: it is %s", strings.TrimSpace(string(m.run.Status)+" "+m.run.Reason))
	}
	budget, _ := strings.CutPrefix(m.run.Reason, "budget:")
	if budget == m.run.Reason {
		budget = ""
	}
	e := m.emit(EventResumed, "", ResumedData{ID: in.ID, Principal: in.Principal, Reason: clean(in.Reason), Body: body, Budget: budget})
	return Receipt{Status: Accepted, Seq: e.Seq}
}

// steer checks what amend, pause and resume have in common.
func (m *Machine) steer(what, id, body string, who Principal, reason string) (r Receipt, stop bool) {
	if r, stop := m.sent(what, id, body, who); stop {
		return r, true
	}
	switch {
	case who.Subject == "":
		return refused(CodeInvalid, "a %s names its principal: who sends it", what), true
	case len(reason) > reasonLimit:
		return refused(CodeInvalid, "the reason has %d bytes, the limit is %d", len(reason), reasonLimit), true
	case m.run.Cancel != nil:
		return refused(CodeEnded, "the run is being cancelled"), true
	case m.run.LastWord:
		return refused(CodeEnded, "the run is ending"), true
	}
	return Receipt{}, false
}

// SourceAmend is the source of a field that was set from outside.
const SourceAmend = "amend"

// origin is on whose account fields are set.
type origin struct{ source, by, step string }
