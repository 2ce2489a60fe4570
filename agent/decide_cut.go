package agent

import (
	"fmt"
	"slices"
	"strings"
)

// policy is what a message does while the run is busy. The first one comes with
// the start: what runs then is no turn of its sender's, and a refusal would reach
// nobody.
func (m *Machine) policy(in Message) MessagePolicy {
	switch {
	case in.First:
		return MessageQueue
	case in.Policy != "":
		return in.Policy
	case m.def.onMessage != "":
		return m.def.onMessage
	}
	return MessageQueue
}

// doing says what the run is busy with.
func (m *Machine) doing() string {
	var out []string
	if m.run.Calling {
		out = append(out, fmt.Sprintf("the model is called for turn %d", m.run.Turn))
	}
	for _, s := range m.run.Steps {
		if s.Status == StepRunning {
			how := "runs"
			if s.Stopping != nil {
				how = "is being stopped"
			}
			out = append(out, fmt.Sprintf("step %s, %s, %s", s.ID, s.Tool, how))
		}
	}
	return clip(strings.Join(out, "; "), 300)
}

// takes says where a message takes effect that is about to be taken in.
func (m *Machine) takes(in Message, busy bool) *Took {
	r, policy := m.run, m.policy(in)
	took := &Took{How: TookQueued, Turn: r.Turn + 1}
	switch {
	case !busy && r.Cut == nil:
		if r.Status != RunPaused && !m.held {
			took.How = TookNow
		}
		return took
	case policy != MessageInterrupt && policy != MessageRollback:
		return took
	case !r.Calling && !r.inFlight() && (policy == MessageInterrupt || r.Cut == nil):
		return took // only an undo runs: no turn is under way that could be cut or rolled back
	}
	took.How = TookInterrupted
	if policy == MessageRollback {
		took.How = TookRollingBack
	}
	if r.Cut != nil {
		took.How = TookMerged
	}
	return took
}

// interrupt lets a message that was just taken in cut the turn short, where that is
// how it takes effect.
func (m *Machine) interrupt(in Message, took *Took) {
	if took.How == TookNow || took.How == TookQueued {
		return
	}
	r, d := m.run, InterruptedData{Message: in.ID, Principal: in.Principal}
	if m.policy(in) == MessageRollback {
		d.Undo = UndoTurn
	}
	for _, s := range r.Steps {
		if s.Status == StepRunning && s.By != ByUndo && (r.Cut == nil || !slices.Contains(r.Cut.Steps, s.ID)) {
			d.Steps = append(d.Steps, s.ID)
		}
	}
	m.emit(EventInterrupted, "", d)
	m.letGo("a message of " + in.Principal.Subject + " came")
	for _, s := range slices.Clone(r.Steps) {
		switch {
		case s.Status == StepRunning:
			m.cutStep(s, "the turn was cut short by a message")
		case d.Undo != "" && s.Status == StepWaiting && r.turnOf(&s) == r.Turn && s.By != ByUndo:
			m.closeStep(s.ID, GateVoid, StepCancelled, "the turn was rolled back by a message")
		}
	}
}

// letGo lets go of the model call, where one runs.
func (m *Machine) letGo(reason string) {
	if m.run.Calling {
		m.emit(EventTurnCut, "", TurnCutData{Reason: reason, LetGo: true})
	}
}

// cutStep stops a running step of a turn that is cut short, or of a run that is
// cancelled. One that has begun does what its tool chose. An undo is stopped only by
// a cancel that undoes nothing.
func (m *Machine) cutStep(s Step, reason string) {
	t := m.def.tools[s.Tool]
	switch {
	case s.By == ByUndo && (m.run.Cancel == nil || m.run.Cancel.Undo != "") || t == nil:
	case t.onCut == CutAbandon:
		m.emit(EventStepSettled, s.ID, StepSettledData{Status: StepAbandoned, Reason: reason})
	case t.effect != ReadOnly || t.onCut == CutUndo:
		m.stopStep(s, Stopping{As: StepCancelled, Reason: reason, Undo: t.onCut == CutUndo})
	}
}

// notApplied is the end of a step that did not happen: of one that was told to
// stop, that it was stopped in time.
func (m *Machine) notApplied(in StepNotApplied) StepSettledData {
	d := StepSettledData{Status: failedStatus(in.ForGood), Reason: clip(in.Reason, reasonLimit), ForGood: in.ForGood}
	if s := m.run.step(in.Step); s != nil && s.told() {
		d.Status = StepCancelled
	}
	return d
}

// settleCut brings a turn that was cut short to its end: its steps end, then what
// is to be undone is, one after the other, and then the model is told. It reports
// whether it did something. An undo that waits for a person does not hold the
// turn.
func (m *Machine) settleCut() bool {
	r := m.run
	if r.Cut == nil || r.inFlight() {
		return false
	}
	if m.askUndo(r.Cut.By, "the turn was cut short") {
		return true
	}
	if u := r.undoing(); u != nil {
		if s := r.step(u.As); u.As == "" || s != nil && s.Status == StepRunning {
			return false
		}
	}
	head, text, steps := r.account()
	d := InterruptSettledData{Account: head + " " + text, Steps: steps}
	if r.Cut.Undo != "" {
		told, done := m.rollBack()
		d.Account, d.RolledBack = head+" "+told+" "+text, done
	}
	d.Account = clip(d.Account, accountLimit)
	m.emit(EventInterruptSettled, "", d)
	return true
}

// askUndo asks for the undo of all that a cut or a cancel wants undone, the last
// first, and notes what cannot be. It reports false where there is nothing more.
func (m *Machine) askUndo(by Principal, reason string) bool {
	d := UndoRequestedData{Principal: by, Reason: reason}
	var keys []string
	for i := len(m.run.Steps) - 1; i >= 0; i-- {
		s := &m.run.Steps[i]
		if !m.wantsUndone(s) || slices.Contains(keys, s.Key) || m.undoneEarlier(i) {
			continue
		}
		keys = append(keys, s.Key)
		_, err := m.run.undoable(s.ID)
		if err == nil {
			_, err = m.compensation(s)
		}
		if err == nil {
			d.Steps = append(d.Steps, s.ID)
			continue
		}
		d.Stands = append(d.Stands, Standing{Step: s.ID, Why: clip(strings.TrimPrefix(err.Error(), "step "+s.ID+" cannot be undone: "), 300)})
	}
	if len(d.Steps)+len(d.Stands) == 0 {
		return false
	}
	m.emit(EventUndoRequested, "", d)
	return true
}

// undoneEarlier reports whether the effect of a step happened as an earlier one, which
// is to be undone too: its turn comes where it happened, after all that came later.
func (m *Machine) undoneEarlier(i int) bool {
	s := &m.run.Steps[i]
	for j := range m.run.Steps[:i] {
		o := &m.run.Steps[j]
		if o.Key != s.Key || !m.wantsUndone(o) {
			continue
		}
		if _, err := m.run.undoable(o.ID); err == nil {
			return true
		}
	}
	return false
}

// wantsUndone reports whether a step is to be undone by what is under way, and
// nobody has asked for it yet.
func (m *Machine) wantsUndone(s *Step) bool {
	r := m.run
	if s.Status != StepDone || s.Kind != KindTool || s.Undoes != "" || s.Key == "" || r.asked(s.ID) {
		return false
	}
	scope, turn := UndoScope(""), r.Turn
	switch {
	case r.Cancel != nil:
		scope = r.Cancel.Undo
	case r.Cut != nil:
		scope, turn = r.Cut.Undo, r.Cut.Turn
	}
	if !s.told() && scope != UndoRun && (scope != UndoTurn || r.turnOf(s) != turn) {
		return false
	}
	if scope != UndoRun && r.stoodBefore(s) {
		return false
	}
	return !slices.ContainsFunc(r.Steps, func(o Step) bool { // one effect is undone once
		return o.ID != s.ID && o.Key == s.Key && (o.Status == StepUndone || r.asked(o.ID))
	})
}

// cancelling ends a run that was cancelled, once its steps have ended and what is
// to be undone before is undone, or stands.
func (m *Machine) cancelling() {
	r := m.run
	if r.undoesAtEnd() {
		m.expireGates()
		m.escalateGates()
		if len(r.Kept) > 0 { // a verdict about an undo; the messages are not answered any more
			m.judgeKept()
			return
		}
		if m.pendingOver() {
			m.judgePending()
			return
		}
		if !r.inFlight() && m.askUndo(r.Cancel.Principal, "the run is being cancelled") || m.undoNext() || r.undoing() != nil {
			return
		}
	}
	if r.busy() {
		return
	}
	failed := append(m.inDoubt(), r.standing()...)
	if r.Cancel.Undo == UndoRun && r.Gone > 0 {
		failed = append(failed, fmt.Sprintf("%d earlier effects, whose steps the run holds no more: they stand; a repair run can undo those that name an undo", r.Gone))
	}
	m.emit(EventCancelled, "", EndedData{Reason: r.Cancel.Reason, Failed: failed})
}
