package agent

import (
	"fmt"
	"slices"
)

func applyStepStarted(r *Run, e Event, d StepStartedData) {
	s := Step{ID: e.Step, Kind: d.Kind, Tool: d.Tool, Args: d.Args, By: d.By, Status: d.Status, Reason: d.Reason,
		Turn: e.Turn, Seq: e.Seq, Key: d.Key, Effect: d.Effect, Ordinal: d.Ordinal, Compensation: d.Compensation, Undoes: d.Undoes,
		Replaces: d.Replaces, EditedBy: d.EditedBy}
	if d.Status == StepRunning {
		s.RunAt = e.At
	}
	s.Reserves = d.Reserves
	r.Steps = append(r.Steps, s)
	r.reserveYes(s.ID, s.Reserves)
	r.NextStep++
	if old := r.step(d.Replaces); old != nil {
		old.Again = false
	}
	if d.Repeatable && d.Effect != "" {
		r.ordinal(d.Effect, d.Ordinal+1)
	}
	if d.By == ByUndo {
		r.undoBegan(e, d)
		return
	}
	if d.By == ByModel && d.Call != "" {
		r.Used.Refusals = 0
		if p := r.lastTurn().Proposal; p != nil {
			for i := range p.Calls {
				if p.Calls[i].ID == d.Call {
					p.Calls[i].Step = e.Step
				}
			}
		}
	} else if d.Status == StepRefused {
		r.Used.Refusals++
		from := "made by code on entering " + r.Phase
		if d.Replaces != "" {
			from = "which was to take the place of step " + d.Replaces
		}
		r.outcome(e, e.Step, fmt.Sprintf("Step %s, %s, %s, was refused: %s", e.Step, d.Tool, from, d.Reason))
	}
}

// ordinal raises the number of the next call with this effect; it never falls,
// or a later call could take the key of one that happened.
func (r *Run) ordinal(effect string, n int) {
	if r.Ordinals == nil {
		r.Ordinals = map[string]int{}
	}
	r.Ordinals[effect] = max(r.Ordinals[effect], n)
}

func (r *Run) resume(e Event) {
	if s := r.step(e.Step); s != nil {
		s.Status, s.RunAt, s.Stopping, s.Begun = StepRunning, e.At, nil, false
	}
}

func applyStepDone(r *Run, e Event, d StepDoneData) {
	s := r.step(e.Step)
	if s == nil {
		return
	}
	r.settle(s, e, StepDone, d.Reason, d.ActiveMS)
	s.Result, s.Whole = d.Result, d.Whole
	if s.By == ByUndo {
		return // what it undid speaks for it
	}
	if !d.Uncommitted {
		r.Used.ToolErrors = 0
	}
	how := "is done"
	if d.Stood {
		how = "had happened already; this is its result"
	} else if s.Stopping != nil {
		how = "ran before it could be stopped (" + s.Stopping.Reason + ")"
	}
	r.tell(s, e, fmt.Sprintf("Step %s, %s, %s.", s.ID, s.Tool, how))
}

func applyCommitRefused(r *Run, e Event, d CommitRefusedData) {
	s := r.step(e.Step)
	if s == nil {
		return
	}
	s.Reason = "it happened, but its result was not taken into the state: " + d.Reason
	if s.By == ByUndo {
		return
	}
	if n := len(r.Opening) - 1; n >= 0 && r.Opening[n].Step == s.ID && r.Opening[n].Kind == ItemOutcome {
		r.Opening[n].Text += " Its result was not taken into the state: " + d.Reason
	}
	r.Used.ToolErrors++
}

func applyStepSettled(r *Run, e Event, d StepSettledData) {
	s := r.step(e.Step)
	if s == nil {
		return
	}
	if d.Status == StepUndone {
		r.undone(s, e, d)
		return
	}
	if s.By != ByUndo && (d.Status == StepFailed || d.Status == StepRefused) {
		r.Used.ToolErrors++
	}
	r.settle(s, e, d.Status, d.Reason, 0)
	s.Again = d.Again
	if d.Status == StepInDoubt {
		r.News = e.Seq
	}
	if d.ForGood && s.Effect != "" {
		r.ordinal(s.Effect, s.Ordinal+1)
	}
	if s.By == ByUndo {
		r.undoSettled(s, e, d)
		return
	}
	if s.Kind == KindAsk && d.Status == StepDone {
		// A message that answers it speaks for itself.
		if g := r.gate(s.ID); g != nil && g.Verdict == string(GiveAnswer) {
			r.outcome(e, "", fmt.Sprintf("The question of step %s was %s.", s.ID, d.Reason))
		}
		return
	}
	text := fmt.Sprintf("Step %s, %s: %s", s.ID, s.Tool, d.Status)
	if d.Status == StepInDoubt {
		text = fmt.Sprintf("Step %s, %s: nobody knows whether it happened; a person must find out", s.ID, s.Tool)
	}
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	r.tell(s, e, text+".")
}

func (r *Run) settle(s *Step, e Event, status StepStatus, reason string, measured int64) {
	if s.Status == StepRunning && !s.RunAt.IsZero() {
		r.Used.ActiveMS += active(measured, e.At.Sub(s.RunAt))
	}
	s.Status, s.Reason = status, reason
	r.settleYes(s, status)
}

// tell makes sure that the model learns of a step's end: as the answer of its
// call while that is still to be given, else as an item of its own.
func (r *Run) tell(s *Step, e Event, text string) {
	if s.By == ByModel && s.Turn == r.Turn && r.callOf(s.ID) != nil {
		r.Due = true
		return
	}
	r.outcome(e, s.ID, text)
}

func (r *Run) openGate(e Event, g Gate) {
	g.Seq = e.Seq
	r.Gates, r.News = append(r.Gates, g), e.Seq
	if s := r.step(g.StepID()); s != nil && r.turnOf(s) == r.Turn && s.By != ByUndo {
		r.answered() // by a proposal whose call waits; an undo, or a step of an older turn, is no answer
	}
	if g.Kind != KindAsk {
		return
	}
	if r.Shown == nil {
		r.Shown = map[string]Showing{}
	}
	for _, f := range g.Reads {
		r.Shown[f] = Showing{Seq: e.Seq}
	}
}

func applyGateClosed(r *Run, e Event, d GateClosedData) {
	g := r.gate(d.Gate)
	if g == nil {
		return
	}
	g.Status, g.Reason, g.By, g.Verified, g.ClosedAt = d.Status, d.Reason, d.By, d.Verified, &e.At
	g.Verdict, g.Pending = string(d.Verdict), nil
	r.dropPending(g.ID)
	if d.No {
		r.voidYes(g.Reads)
	}
	if d.Message != 0 {
		r.answeredBy(g, d.Message)
	}
}

func applyTrimmed(r *Run, _ Event, d TrimmedData) {
	for _, id := range d.Results {
		if s := r.step(id); s != nil && s.shown() > 0 {
			s.Archived = len(s.Result)
			if !r.keeps(*s) {
				s.Result = nil
			}
			r.Trimmed.Results++
		}
	}
	if len(d.Rulings) > 0 {
		before := len(r.Rulings)
		r.Rulings = slices.DeleteFunc(r.Rulings, func(u Ruling) bool { return slices.Contains(d.Rulings, u.ID) })
		r.Trimmed.Rulings += before - len(r.Rulings)
	}
	if n := min(d.Turns, len(r.Turns)); n > 0 {
		last := r.Turns[n-1].N
		r.Turns = slices.Delete(r.Turns, 0, n)
		r.Trimmed.Turns += n
		before := len(r.Steps)
		r.Steps = slices.DeleteFunc(r.Steps, func(s Step) bool {
			gone := s.Turn <= last && !s.Status.Open() && !s.Again && !r.keeps(s)
			if gone {
				r.forgets(s)
			}
			return gone
		})
		r.Trimmed.Steps += before - len(r.Steps)
		r.Gates = slices.DeleteFunc(r.Gates, func(g Gate) bool {
			s := r.step(g.StepID())
			return g.Status != GateOpen && (s == nil || s.Turn <= last && !s.Status.Open() && !s.Again)
		})
	}
	r.boundKept()
}
