package agent

import (
	"slices"
	"time"
)

// Stopping is why a running step is told to stop. One that has not begun is fenced
// and ends so; one that has begun goes on to its end, unless Undo is set.
type Stopping struct {
	As     StepStatus `json:"as"` // how it ends where it has not begun
	Reason string     `json:"reason"`
	Again  bool       `json:"again,omitempty"` // a step in its place is made then
	// Unapproved: whoever approved it may not any more.
	Unapproved bool `json:"unapproved,omitempty"`
	Undo       bool `json:"undo,omitempty"` // it is told to stop although it has begun, and undone if it has happened
}

func applyStepStopping(r *Run, e Event, d Stopping) {
	if s := r.step(e.Step); s != nil {
		s.Stopping = &d
	}
	if d.Undo {
		r.standInDoubt(e)
	}
}

// told reports whether a step was told to stop and is undone if it has happened.
func (s *Step) told() bool { return s.Stopping != nil && s.Stopping.Undo }

// stopStep tells a running step to stop. Whether it has begun is found out by a
// fence: until that answers the step runs, and nothing takes its place. What only
// reads ends at once, and its result is dropped.
func (m *Machine) stopStep(s Step, why Stopping) {
	why.Reason = clip(why.Reason, reasonLimit)
	old := s.Stopping
	switch {
	case s.Status != StepRunning || s.Kind != KindTool:
		return
	case s.Key == "":
		m.emit(EventStepSettled, s.ID, StepSettledData{Status: why.As, Reason: why.Reason, Again: why.Again})
		m.command(CancelStep{Step: s.ID})
		return
	case s.Begun && !why.Undo: // it goes on to its end
		return
	case old != nil && (old.Undo || !why.Undo) && (!old.Again || why.Again): // it was told as much
		return
	}
	why.Undo = why.Undo || old != nil && old.Undo
	m.emit(EventStepStopping, s.ID, why)
	m.stopped = append(m.stopped, s.ID)
}

// stepStopped takes the answer of a fence: the step has not begun, and its effect never
// happens. A fence that the run has not asked for is of a branch before a reset: the
// call is made once more.
func (m *Machine) stepStopped(in StepStopped) {
	s := m.run.step(in.Step)
	if s == nil || s.Status != StepRunning {
		return
	}
	why := Stopping{As: StepCancelled, Reason: StoppedBeforeReset, Again: m.run.Cancel == nil && m.run.Cut == nil}
	if s.Stopping != nil {
		why = *s.Stopping
	}
	m.emit(EventStepSettled, s.ID, StepSettledData{Status: why.As, Reason: why.Reason, ForGood: s.Key != "", Again: why.Again})
}

// StoppedBeforeReset is why a step ends that a branch before a reset has stopped.
const StoppedBeforeReset = "it was stopped before the run was reset"

// stepBegun lets a step go on that was told to stop and had begun.
func (m *Machine) stepBegun(in StepBegun) {
	s := m.run.step(in.Step)
	if s == nil || s.Status != StepRunning || s.Begun && s.Stopping == nil {
		return
	}
	m.emit(EventStepBegun, s.ID, StepBegunData{Reason: clip(in.Reason, reasonLimit)})
}

func applyStepBegun(r *Run, e Event, _ StepBegunData) {
	if s := r.step(e.Step); s != nil {
		s.Begun, s.Stopping = true, nil
	}
}

// judgeAgain lets a step begin that waited, where what it was decided on still holds.
func (m *Machine) judgeAgain(in JudgeAgain) {
	m.judgeSteps()
	if s := m.run.step(in.Step); s != nil && s.Status == StepRunning && s.Stopping == nil {
		m.command(RunStep{Task: m.task(s)})
	}
}

// unapproved stops a step that was approved and has not begun, since an approval
// counts no more.
func (m *Machine) unapproved(in StepUnapproved) {
	if s := m.run.step(in.Step); s != nil {
		s := *s
		s.Begun = false
		m.stopStep(s, Stopping{As: StepVoid, Reason: in.Reason, Again: true, Unapproved: true})
	}
}

// judgeSteps stops the steps that may not begin any more as they were decided. As
// long as nobody knows that a step has begun, it has not.
func (m *Machine) judgeSteps() {
	for _, s := range slices.Clone(m.run.Steps) {
		if s.Status != StepRunning || s.Kind != KindTool || s.Begun || s.Stopping != nil {
			continue
		}
		if why := m.lapsed(&s); why != "" {
			m.stopStep(s, Stopping{As: StepVoid, Reason: why, Again: true})
		}
	}
}

// lapsed says why what a step was decided on holds no more; "" where it does. A
// policy that asks for nobody any more does not stop what people have approved.
func (m *Machine) lapsed(s *Step) string {
	c, ok := m.again(s)
	if !ok {
		return ""
	}
	if why := m.run.lostYes(s); why != "" && s.Status == StepRunning { // else it is free again
		return why
	}
	policy, needed := m.needsGate(c.gate, c.args)
	g := m.run.approval(s)
	if g == nil {
		if needed {
			return "its policy asks for a person now: " + policy
		}
		return ""
	}
	for _, f := range g.Reads {
		if m.run.changedSince([]string{f}, m.run.step(g.StepID()).Seq) {
			return f + " changed after it was approved"
		}
	}
	if until := g.approvedUntil(); until != nil && !m.at.Before(*until) {
		return "its approval was good until " + stamp(*until)
	}
	if !needed {
		return ""
	}
	c.from = g
	now := m.newGate(g.ID, c, policy)
	if g.Status == GateEdited { // the editor's word was enough, of other arguments than the gate shows
		if g.By == nil || !m.approvedByEditor(&now, &Approval{By: *g.By}) {
			return "its policy has changed since it was approved"
		}
		return ""
	}
	if now.Digest != g.Digest {
		return "its policy has changed since it was approved"
	}
	return ""
}

// approval is the gate at which people let a step run; nil where nobody was asked.
// It goes with a call that is made again and has not happened.
func (r *Run) approval(s *Step) *Gate {
	g, old := r.gate(s.ID), r.step(s.Replaces)
	switch {
	case g != nil:
	case old == nil:
	case old.Status == StepFailed || old.Status == StepCancelled:
		return r.approval(old)
	case s.EditedBy != "":
		g = r.gate(old.ID) // its editor's word was enough
	}
	if g == nil || g.Kind != KindTool || g.Status != GateApproved && g.Status != GateEdited {
		return nil
	}
	return g
}

// approvedUntil is until when what a gate let run may begin: an approval is good for
// as long as its gate was open for one. nil: no bound.
func (g *Gate) approvedUntil() *time.Time {
	if g.ExpiresAt == nil || g.ClosedAt == nil {
		return nil
	}
	until := g.ClosedAt.Add(g.ExpiresAt.Sub(g.OpenedAt))
	return &until
}

// approvers are those whose approvals let a step run; nil where nobody was asked.
func (r *Run) approvers(s *Step) *Approved {
	g := r.approval(s)
	if g == nil {
		return nil
	}
	out := &Approved{Roles: g.Roles}
	for _, a := range g.Approvals {
		out.By = append(out.By, a.By)
	}
	if g.By != nil && (len(out.By) == 0 || g.Status == GateEdited) { // what others approved was not what the editor made of it
		out.By = []Principal{*g.By}
	}
	return out
}

// renew makes a step in the place of one that was stopped before it began, and is
// wanted still. It reports whether it did. While the model has a message to read none
// is made, so that it can withdraw the call.
func (m *Machine) renew() bool {
	r := m.run
	if r.Cut != nil || r.Calling || r.unread() || m.held {
		return false
	}
	for i := range r.Steps {
		s := r.Steps[i]
		if !s.Again || s.By == ByUndo { // that one's turn comes by itself
			continue
		}
		c, ok := m.again(&s)
		c = m.inPlaceOf(c, &s)
		if why := m.notAgain(c, ok); why != "" {
			m.emit(EventStepStarted, r.nextID(), StepStartedData{Kind: s.Kind, Tool: s.Tool, Args: s.Args, By: s.By, Status: StepRefused,
				Reason: clip(why, reasonLimit), Replaces: s.ID})
			return true
		}
		m.commit(c)
		return true
	}
	return false
}

// inPlaceOf is a call that takes the place of a stopped step. What people have
// approved goes with it where it holds still; what had lapsed is asked for anew.
func (m *Machine) inPlaceOf(c commitment, s *Step) commitment {
	g := m.run.approval(s)
	c.call, c.replaces = "", s.ID
	c.carried = s.Status == StepCancelled && m.lapsed(s) == ""
	c.escalated, c.from = g != nil && g.escalated(), g
	return c
}

// notAgain says why a call is not made once more; "" where it is.
func (m *Machine) notAgain(c commitment, ok bool) string {
	if !ok {
		return "this version of the agent has no tool " + c.tool
	}
	if done := m.stands(c); done != nil {
		return "it happened already, as step " + done.ID
	}
	return m.forbids(c, "")
}

// waitsAgain reports whether a stopped step is to be made anew.
func (r *Run) waitsAgain() bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Again && s.By != ByUndo })
}
