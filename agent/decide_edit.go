package agent

import (
	"strings"
)

// editedArgs are the arguments of an edit, as the tool would get them, where the
// call could be made so.
func (m *Machine) editedArgs(g Gate, text JSON) (JSON, error) {
	s := m.run.step(g.StepID())
	switch {
	case g.Kind == KindMove:
		return nil, Errorf(CodeInvalid, "a move has nothing to edit: return it with a note, or reject it")
	case s.Undoes != "":
		return nil, Errorf(CodeInvalid, "step %s undoes step %s, with what that was called with: there is nothing to edit", s.ID, s.Undoes)
	}
	t := m.def.tools[s.Tool]
	if t == nil {
		return nil, Errorf(CodeInvalid, "this version of the agent has no tool %s", s.Tool)
	}
	args, err := m.arguments(t, text)
	if err != nil {
		return nil, Errorf(CodeInvalid, "these are no arguments of %s: %w; the gate stays open", t.name, err)
	}
	if err := mayEdit(g, args); err != nil {
		return nil, err
	}
	if args.Equal(g.Args) {
		return nil, Errorf(CodeInvalid, "these are the arguments that gate %s shows: approve it instead", g.ID)
	}
	c, err := m.known(commitment{kind: KindTool, tool: t.name, args: args, t: t})
	if err != nil {
		return nil, Errorf(CodeConflict, "with these arguments it cannot be called: %v; the gate stays open", err)
	}
	if done := m.stands(c); done != nil {
		return nil, Errorf(CodeConflict, "with these arguments it happened already, as step %s; the gate stays open", done.ID)
	}
	if reason := m.forbids(c, s.ID); reason != "" {
		return nil, Errorf(CodeConflict, "with these arguments it cannot be called: %s; the gate stays open", reason)
	}
	return c.args, nil
}

// mayEdit says which arguments of a gate's call an edit changes that it may not.
func mayEdit(g Gate, args JSON) error {
	if len(g.Edit) == 0 {
		return Errorf(CodeDenied, "nothing of a call of %s may be edited (its gate names no argument in Edit): return it with a note, or reject it", g.Tool)
	}
	for _, name := range changedFields(object(g.Args), object(args)) {
		if !g.MayEdit(name) {
			return Errorf(CodeDenied, "/%s of a call of %s may not be edited, only %s: return it with a note, or reject it", clip(name, idLimit), g.Tool, joinOr(g.Edit))
		}
	}
	return nil
}

// edit puts the edited call into the place of the one that a gate shows: a
// proposal of the reviewer, who has approved it as far as the policy allows.
func (m *Machine) edit(v Verdict, g Gate, closed GateClosedData) (told string) {
	closed.Status = GateEdited
	m.emit(EventGateClosed, g.ID, closed)
	s := m.run.step(g.StepID())
	c, _ := m.again(s)
	c.args, c.replaces, c.editedBy = v.Args, s.ID, v.Principal.Subject
	c.undoes, c.undone = nil, ""
	c, _ = m.known(c) // it was known when the edit was checked
	c.escalated, c.from = g.escalated(), &g
	c.approval = &Approval{By: v.Principal, Verified: v.Verified, Reason: v.Reason, At: v.At}
	id := m.run.nextID()
	m.emit(EventStepSettled, s.ID, StepSettledData{Status: StepEdited, Reason: m.editedTo(v, id, changes(g.Args, v.Args))})
	m.commit(c)
	told = "step " + id + " takes its place"
	if open := m.run.gate(id); open != nil {
		told += ", and waits at gate " + id + " for " + joinOr(open.Roles)
	}
	return told
}

// editedTo tells the model who edited its call, why, and to what. A long reason is cut
// before the difference is, which the model cannot learn elsewhere.
func (m *Machine) editedTo(v Verdict, step, changes string) string {
	who, then := v.Principal.Subject+" edited it: ", ". Step "+step+" takes its place, with "+changes
	return clip(who+clip(v.Reason, max(reasonLimit/2, reasonLimit-len(who+then)))+then, reasonLimit)
}

// changes says how two objects differ, member by member.
func changes(old, next JSON) string {
	before, after := object(old), object(next)
	value := func(o map[string]any, name string) string {
		v, ok := o[name]
		if !ok {
			return "nothing"
		}
		return clip(encodeValue(v).String(), 200)
	}
	var out []string
	for _, name := range changedFields(before, after) {
		out = append(out, name+" "+value(after, name)+" instead of "+value(before, name))
	}
	return strings.Join(out, ", ")
}
