package agent

import "slices"

// undo takes a request that steps be undone: all of them, or none where one
// cannot be. They are undone one after the other, the last first; what cannot be
// undone then stands, and the next one's turn comes. It does not call the model,
// which is told in its next turn.
func (m *Machine) undo(in UndoSteps) Receipt {
	body := undoBody(in.Steps, in.Reason)
	if r, stop := m.steer("undo", in.ID, body, in.Principal, in.Reason); stop {
		return r
	}
	if m.run.Repairs != nil {
		return refused(CodeInvalid, "this run only undoes steps of %s; what it leaves standing is undone by a repair of it, once it has ended", m.run.Repairs.Address)
	}
	steps, err := m.undoables(in.Steps, in.Reason)
	if err != nil {
		return refused(ErrorCode(err), "%v", err)
	}
	e := m.emit(EventUndoRequested, "", UndoRequestedData{ID: in.ID, Principal: in.Principal, Steps: steps, Reason: clean(in.Reason), Body: body})
	r := Receipt{Status: Accepted, Seq: e.Seq}
	if m.run.Status == RunPaused {
		r.Reason = "the run is paused (" + m.run.Reason + "); the undo begins when it is resumed"
	}
	return r
}

// undoBody tells a repeat from another request under the same id; the order in
// which steps are named is no part of it.
func undoBody(steps []string, reason string) string {
	return digest([]any{"undo", slices.Sorted(slices.Values(steps)), clean(reason)})
}

// undoables are the steps of a request in the order in which they are undone.
func (m *Machine) undoables(ids []string, reason string) ([]string, error) {
	if err := CheckUndo(ids, reason); err != nil {
		return nil, err
	}
	if n := len(ids) + len(m.run.Undo); n > MaxUndo {
		return nil, Errorf(CodeUnavailable, "%d steps would be waiting to be undone, at most %d may; ask again when the others are", n, MaxUndo)
	}
	steps, err := m.run.undoables(ids)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range steps {
		if _, err := m.compensation(s); err != nil {
			return nil, err
		}
		out = append(out, s.ID)
	}
	return out, nil
}

// compensation is the call that undoes a step.
func (m *Machine) compensation(s *Step) (commitment, error) {
	t := m.def.tools[s.Compensation]
	if t == nil {
		return commitment{}, Errorf(CodeInvalid, "step %s cannot be undone: this version of the agent has no tool %s", s.ID, s.Compensation)
	}
	args, err := t.args.arguments(undoArgs(s).String(), t.argsType)
	if err != nil {
		return commitment{}, Errorf(CodeInvalid, "step %s cannot be undone: what it was called with, and gave, is not what %s takes: %v", s.ID, t.name, err)
	}
	return commitment{kind: KindTool, tool: t.name, args: args, by: ByUndo, gate: t.gate, t: t, undoes: s, undone: s.Key}, nil
}

// undoNext begins the next undo, once the one before it has settled. It reports
// whether it did.
func (m *Machine) undoNext() bool {
	u := m.run.undoing()
	if u == nil || u.As != "" || m.held {
		return false
	}
	s := m.run.step(u.Step)
	if s == nil || s.Status != StepDone { // nothing lets go of it before; the queue must not stop at it all the same
		s = &Step{ID: u.Step}
	}
	c, err := m.compensation(s)
	if err != nil {
		m.emit(EventStepStarted, m.run.nextID(), StepStartedData{Kind: KindTool, Tool: s.Compensation, Args: JSON("{}"), By: ByUndo, Status: StepRefused,
			Reason: clip(err.Error(), reasonLimit), Undoes: u.Step})
		return true
	}
	for _, old := range m.run.Steps { // the undo was stopped before it began
		if old.Again && old.By == ByUndo && old.Undoes == u.Step && old.Status == StepCancelled {
			c = m.inPlaceOf(c, &old)
		}
	}
	m.commit(c)
	return true
}
