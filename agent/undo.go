package agent

import (
	"fmt"
	"slices"
	"strings"
)

// Undoing is a step that is to be undone, or is being undone.
type Undoing struct {
	Step   string `json:"step"`
	By     string `json:"by"` // subject who asked for it
	Reason string `json:"reason"`
	As     string `json:"as,omitempty"` // the step that undoes it, once that has begun
	// Stands is why it could not be undone. It is kept only of a run that is about
	// to end, and of a turn that is being cut short: either then says so.
	Stands string `json:"stands,omitempty"`
}

// MaxUndo bounds the steps that are undone at a time.
const MaxUndo = maxCalls

// CheckUndo says whether a request to undo steps is one at all, before it is sent.
func CheckUndo(steps []string, reason string) error {
	switch {
	case len(steps) == 0 || len(steps) > MaxUndo:
		return Errorf(CodeInvalid, "an undo names 1 to %d steps that are to be undone, such as 3.1", MaxUndo)
	case strings.TrimSpace(reason) == "":
		return Errorf(CodeInvalid, "an undo needs a reason: it is recorded, and the model is told")
	case len(reason) > reasonLimit:
		return Errorf(CodeInvalid, "the reason has %d bytes, the limit is %d", len(reason), reasonLimit)
	}
	for i, id := range steps {
		switch {
		case id == "" || len(id) > idLimit || clean(id) != id:
			return Errorf(CodeInvalid, "%q is no step's id, such as 3.1", clip(id, 60))
		case slices.Contains(steps[:i], id):
			return Errorf(CodeInvalid, "step %s is named twice", id)
		}
	}
	return nil
}

// undoOf is the pending undo of a step, nil where there is none.
func (r *Run) undoOf(step string) *Undoing {
	for i := range r.Undo {
		if r.Undo[i].Step == step && r.Undo[i].Stands == "" {
			return &r.Undo[i]
		}
	}
	return nil
}

// undoneNow is the open step that undoes another one, whoever asked for it.
func (r *Run) undoneNow(step string) *Step {
	for i := range r.Steps {
		if s := &r.Steps[i]; s.Undoes == step && s.Status.Open() {
			return s
		}
	}
	return nil
}

// undoing is the undo that is under way or comes next, nil where none is left.
func (r *Run) undoing() *Undoing {
	for i := range r.Undo {
		if r.Undo[i].Stands == "" {
			return &r.Undo[i]
		}
	}
	return nil
}

// undoWaits reports whether the undo that is under way waits for a person.
func (r *Run) undoWaits() bool {
	u := r.undoing()
	if u == nil {
		return false
	}
	s := r.step(u.As)
	return s != nil && s.Status == StepWaiting
}

// undoable is a step that can be undone now, or why it cannot, and what to do. It
// needs no definition, so that a journal's reader can say the same.
func (r *Run) undoable(id string) (*Step, error) {
	s := r.step(id)
	no := func(code Code, format string, args ...any) (*Step, error) {
		return nil, Errorf(code, "step "+id+" cannot be undone: "+format, args...)
	}
	switch {
	case s == nil && r.Trimmed.Steps > 0:
		return no(CodeNotFound, "the run does not hold it; if it is one of the %d old steps that the run has let go of, ask again once the run has ended: a repair run undoes it", r.Trimmed.Steps)
	case s == nil:
		return no(CodeNotFound, "the run has no such step")
	case s.Kind != KindTool:
		return no(CodeInvalid, "it is a %s, not the call of a tool", s.Kind)
	case s.Undoes != "":
		return no(CodeInvalid, "it is itself the undo of step %s; to have that again, the call must be made again", s.Undoes)
	case s.Status == StepUndone:
		return no(CodeConflict, "it was undone by step %s already", s.UndoneBy)
	case s.Status == StepInDoubt:
		return no(CodeConflict, "nobody knows whether it happened; %s", r.howToFindOut(id))
	case s.Status == StepRunning:
		return no(CodeConflict, "it runs; wait for its end, and ask again")
	case s.Status == StepWaiting:
		return no(CodeConflict, "it waits at its gate and has not run; reject it there")
	case s.Status != StepDone:
		return no(CodeConflict, "it is %s: it did not happen", s.Status)
	case s.Key == "":
		return no(CodeInvalid, "%s only reads: there is nothing to undo", s.Tool)
	case s.Compensation == "":
		return no(CodeInvalid, "%s names no compensation (Undo): what it did must be undone on the other side", s.Tool)
	case r.undoOf(id) != nil:
		return no(CodeConflict, "it is being undone, as %s asked", r.undoOf(id).By)
	case !r.Status.Ended() && r.undoneNow(id) != nil:
		return no(CodeConflict, "step %s undoes it, and is %s", r.undoneNow(id).ID, r.undoneNow(id).Status)
	case len(s.Result) == 0 && s.Archived > 0:
		return no(CodeNotFound, "the run has let go of its result; ask again once the run has ended: a repair run undoes it")
	case len(s.Result) == 0 || s.Result.String() == "null":
		return no(CodeInvalid, "its result was not kept, which %s needs", s.Compensation)
	}
	for _, other := range r.Steps {
		if other.ID != id && other.Key == s.Key && (other.Status == StepUndone || r.undoOf(other.ID) != nil) {
			return no(CodeConflict, "its effect is that of step %s, which is undone or being undone", other.ID)
		}
	}
	return s, nil
}

// howToFindOut says where the word of an operator about a step in doubt is taken.
func (r *Run) howToFindOut(step string) string {
	for _, g := range r.Gates {
		if g.Kind == KindDoubt && g.Step == step && g.Status == GateOpen {
			return "say at gate " + g.ID + " what became of it, and ask again"
		}
	}
	return "and its run asks no more: find out, and undo it on the other side"
}

// undoables are steps that can all be undone now, the last first.
func (r *Run) undoables(ids []string) ([]*Step, error) {
	var out []*Step
	for _, id := range ids {
		s, err := r.undoable(id)
		if err != nil {
			return nil, err
		}
		for _, other := range out {
			if other.Key == s.Key {
				return nil, Errorf(CodeInvalid, "steps %s and %s are one effect; name one of them", other.ID, id)
			}
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *Step) int { return int(b.Seq - a.Seq) })
	return out, nil
}

// undoArgs are what a compensation gets.
func undoArgs(s *Step) JSON {
	return mustEncode(struct {
		Args   JSON `json:"args"`
		Result JSON `json:"result"`
	}{s.Args, s.Result})
}

// undoEffect is the effect of an undo. undoes is the key of what is undone.
func undoEffect(tool string, args JSON, undoes string) string {
	return digest([]any{tool, args, undoes})
}

// standing are the steps that somebody wanted undone, and that stand.
func (r *Run) standing() (out []string) {
	for _, u := range r.Undo {
		why := u.Stands
		switch {
		case why != "":
		case u.As == "":
			why = "its undo had not begun"
		default:
			why = "its undo is step " + u.As
			if s := r.step(u.As); s != nil {
				why += ", which is " + string(s.Status)
			}
		}
		tool := ""
		if s := r.step(u.Step); s != nil {
			tool = s.Tool
		}
		out = append(out, fmt.Sprintf("%s %s: stands, %s", u.Step, tool, clip(why, 300)))
	}
	return out
}
