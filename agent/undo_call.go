package agent

// known makes of a call of a compensation the undo that it is, whoever makes it: code
// on entering a phase, the model, or a person by an edit. So one effect is undone
// once, under one key, and counts as undone. What it runs with is what the run has
// recorded of the step. Any other call stays as it is.
//
// It fails where the call would undo what may not be undone now, or does not say
// which of several it means.
func (m *Machine) known(c commitment) (commitment, error) {
	if c.kind != KindTool || c.undoes != nil || !m.def.compensates(c.tool) {
		return c, nil
	}
	s, err := m.meant(c)
	if err != nil {
		return c, err
	}
	if s == nil {
		c.undone = m.letGoOf(c)
		return c, nil
	}
	if u := m.run.undoOf(s.ID); u != nil {
		return c, Errorf(CodeConflict, "step %s is being undone, as %s asked", s.ID, u.By)
	}
	c.undoes, c.undone = s, s.Key
	if full, err := m.compensation(s); err == nil && len(s.Result) > 0 {
		c.args = full.args
	}
	return c, nil
}

// undoAgain is a call that is made once more as the undo that its step was.
func (m *Machine) undoAgain(c commitment, s *Step) commitment {
	if o := m.run.step(s.Undoes); o != nil {
		c.undoes, c.undone = o, o.Key
	} else if known, err := m.known(c); err == nil {
		c = known
	}
	return c
}

// compensates reports whether a tool is another one's undo.
func (d *Definition) compensates(tool string) bool {
	for _, name := range sortedKeys(d.tools) {
		if d.tools[name].undo == tool {
			return true
		}
	}
	return false
}

// meant is the step that the call of a compensation is about: the latest one that was
// called with what it says, and gave what it says; else the only one that was called
// so and stands; nil where the run holds none.
func (m *Machine) meant(c commitment) (*Step, error) {
	said := object(c.args)
	args, result := encodeValue(said["args"]), encodeValue(said["result"])
	var exact, undone, open *Step
	var standing []*Step
	for i := range m.run.Steps {
		s := &m.run.Steps[i]
		if s.Compensation != c.tool || s.Key == "" || !s.Args.Equal(args) {
			continue
		}
		switch {
		case s.Status == StepDone:
			standing = append(standing, s)
			if s.Result.Equal(result) {
				exact = s
			}
		case s.Status == StepUndone && (undone == nil || s.Result.Equal(result) || !undone.Result.Equal(result)):
			undone = s
		case s.Status.Open():
			open = s
		}
	}
	switch {
	case exact != nil:
		return exact, nil
	case undone != nil && undone.Result.Equal(result):
		return undone, nil
	case len(standing) == 1:
		return standing[0], nil
	case len(standing) > 1:
		return nil, Errorf(CodeInvalid, "steps %s and %s were called so, and neither gave this result: say which one is meant by its result", standing[0].ID, standing[1].ID)
	case undone != nil:
		return undone, nil
	case open != nil:
		_, err := m.run.undoable(open.ID)
		return nil, err
	}
	return nil, nil
}

// letGoOf is the key of an effect that the call of a compensation names and whose step
// the run holds no more; "" where it never let go of any. A repair run, which has the
// whole journal, undoes it under the same key.
func (m *Machine) letGoOf(c commitment) string {
	if m.run.Trimmed.Steps == 0 {
		return ""
	}
	args := encodeValue(object(c.args)["args"])
	for _, name := range sortedKeys(m.def.tools) {
		t := m.def.tools[name]
		if t.undo != c.tool {
			continue
		}
		effect := effectOf(name, args)
		n := m.run.Ordinals[effect]
		if t.repeatable {
			n = max(n-1, 0)
		}
		return digest([]any{m.run.Scope(), name, effect, n})
	}
	return ""
}
