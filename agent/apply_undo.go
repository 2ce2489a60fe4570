package agent

import (
	"fmt"
	"slices"
	"strings"
)

func applyUndoRequested(r *Run, e Event, d UndoRequestedData) {
	for _, id := range d.Steps {
		u := Undoing{Step: id, By: d.Principal.Subject, Reason: d.Reason}
		r.Undo = append(r.Undo, u)
		r.tellUndo(e, u, "is being undone")
	}
	for _, s := range d.Stands {
		r.Undo = append(r.Undo, Undoing{Step: s.Step, By: d.Principal.Subject, Reason: d.Reason, Stands: s.Why})
	}
	if d.ID != "" {
		r.handled(e.Seq, d.ID, d.Body, d.Principal, Handled{})
	}
}

// tellUndo tells the model how the undo of a step stands, in the one item that
// there is of it. It does not call the model: an undo leaves the run waiting for
// what it waited for before.
func (r *Run) tellUndo(e Event, u Undoing, how string) {
	if r.Repairs != nil {
		return // it has no model
	}
	tool := ""
	if s := r.step(u.Step); s != nil {
		tool = s.Tool
	}
	r.Opening = slices.DeleteFunc(r.Opening, func(it Item) bool { return it.Undo == u.Step })
	r.Opening = append(r.Opening, Item{Kind: ItemOutcome, Seq: e.Seq, Undo: u.Step,
		Text: fmt.Sprintf("Step %s, %s, %s. %s asked for it: %s.", u.Step, tool, how, u.By, u.Reason)})
}

// undoBegan links the step that undoes another one.
func (r *Run) undoBegan(e Event, d StepStartedData) {
	u := r.undoOf(d.Undoes)
	switch {
	case u == nil:
	case d.Status == StepRefused:
		r.stands(e, *u, "it could not be undone: "+d.Reason)
	default:
		u.As = e.Step
	}
}

// undoSettled takes the end of an undo that was none: what it was to undo stands,
// or nobody knows.
func (r *Run) undoSettled(s *Step, e Event, d StepSettledData) {
	u := r.undoOf(s.Undoes)
	switch {
	case u == nil:
	case d.Again:
		u.As = ""
	case d.Status == StepInDoubt && r.undoesAtEnd(): // the run asks no operator any more, and undoes the rest
		r.stands(e, *u, undoInDoubt(s))
	case d.Status == StepInDoubt:
		r.tellUndo(e, *u, fmt.Sprintf("may have been undone: nobody knows whether step %s, %s, happened; a person must find out", s.ID, s.Tool))
	default:
		how := "was " + string(d.Status)
		if d.Status == StepFailed {
			how = string(d.Status)
		}
		if rest, said := strings.CutPrefix(d.Reason, string(d.Status)+" "); said {
			how += " " + rest
		} else if d.Reason != "" {
			how += ": " + d.Reason
		}
		r.stands(e, *u, fmt.Sprintf("its undo, step %s, %s, %s", s.ID, s.Tool, how))
	}
}

// stands ends an undo that did not happen.
func (r *Run) stands(e Event, u Undoing, why string) {
	r.tellUndo(e, u, "stands as it was: "+why)
	ending := r.Cancel != nil || r.Repairs != nil || r.Cut != nil
	for i := range r.Undo {
		if r.Undo[i].Step == u.Step && r.Undo[i].Stands == "" {
			if r.Undo[i].Stands = why; !ending {
				r.Undo = slices.Delete(r.Undo, i, i+1)
			}
			return
		}
	}
}

// undone settles a step that happened and was undone: the same call is a new
// effect.
func (r *Run) undone(s *Step, e Event, d StepSettledData) {
	s.Status, s.UndoneBy = StepUndone, d.By
	if d.ForGood && s.Effect != "" {
		r.ordinal(s.Effect, s.Ordinal+1)
	}
	if s.Archived > 0 {
		s.Result = nil
	}
	u := r.undoOf(s.ID)
	if u == nil {
		return
	}
	how := "was undone by step " + d.By
	if by := r.step(d.By); by != nil {
		how += ", " + by.Tool
		if by.Reason != "" {
			how += " (" + by.Reason + ")"
		}
	}
	r.tellUndo(e, *u, how+", and has no effect any more")
	r.Undo = slices.DeleteFunc(r.Undo, func(x Undoing) bool { return x.Step == s.ID })
}

// shown is how much of the step's result is active: an archived one is kept for
// an undo only.
func (s *Step) shown() int {
	if s.Archived > 0 {
		return 0
	}
	return len(s.Result)
}

// keeps reports whether a step must stay, with its result, for an undo.
func (r *Run) keeps(s Step) bool {
	return s.Compensation != "" && s.Status == StepDone || s.Undoes != "" && s.Status.Open()
}

// forgets counts the effects that stand and whose steps the run holds no more.
func (r *Run) forgets(s Step) {
	if s.Status == StepDone && s.Key != "" && s.Undoes == "" {
		r.Gone++
	}
}

// boundKept lets go of what is kept for an undo only, the oldest first, beyond an
// eighth of what a snapshot may hold. What is being undone stays.
func (r *Run) boundKept() {
	room := r.Limits.Snapshot / 8
	for i := len(r.Steps) - 1; i >= 0; i-- {
		s := &r.Steps[i]
		old := r.Trimmed.Turns > 0 && len(r.Turns) > 0 && s.Turn < r.Turns[0].N
		if !r.keeps(*s) || r.undoOf(s.ID) != nil || r.undoneNow(s.ID) != nil || !old && s.Archived == 0 {
			continue
		}
		if room -= len(s.Args) + len(s.Result) + 400; room >= 0 {
			continue
		}
		if s.Result = nil; old {
			r.forgets(*s)
			r.Steps = slices.Delete(r.Steps, i, i+1)
			r.Trimmed.Steps++
		}
	}
}
