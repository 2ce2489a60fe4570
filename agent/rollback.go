package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SourceRollback is the source of a field that a rollback of its turn set back,
// and that had no value of somebody's before.
const SourceRollback = "rollback"

// Before is what a rollback of the turn under way goes back to: how the fields and
// the phase were that the turn itself has changed. What others have changed
// meanwhile, such as an amend, a person's answer or a step of an earlier turn, is
// not the turn's, and stays.
type Before struct {
	Fields map[string]Was `json:"fields,omitempty"`
	Phase  *PhaseWas      `json:"phase,omitempty"`
}

// Was is a field as it was.
type Was struct {
	Value      JSON        `json:"value,omitempty"` // none: the field was absent
	Provenance *Provenance `json:"provenance,omitempty"`
}

// PhaseWas is the phase as it was.
type PhaseWas struct {
	Name  string `json:"name"`
	Seq   int64  `json:"seq"` // event that had entered it
	Final bool   `json:"final,omitempty"`
}

// before is what the turn has changed, to be added to.
func (r *Run) before() *Before {
	if r.Before == nil {
		r.Before = &Before{}
	}
	return r.Before
}

// ofTurn reports whether what a step did, or what was done without one by the
// source, is what the turn under way did. An undo that somebody asked for belongs to
// what it undoes.
func (r *Run) ofTurn(step, source string) bool {
	if step == "" {
		return slices.Contains([]string{"model", "auto", "user"}, source)
	}
	s := r.step(step)
	if s != nil && s.By == ByUndo {
		s = r.step(s.Undoes)
	}
	return s != nil && r.turnOf(s) == r.Turn
}

// turnOf is the turn that a step belongs to: that of the call in whose place it stands,
// where a person edited it or was asked anew.
func (r *Run) turnOf(s *Step) int {
	for s.Replaces != "" {
		old := r.step(s.Replaces)
		if old == nil { // the run holds it no more; its id begins with its turn
			turn, _, _ := strings.Cut(s.Replaces, ".")
			n, _ := strconv.Atoi(turn)
			return n
		}
		s = old
	}
	return s.Turn
}

// noteFields notes how the fields are that an event is about to change.
func (r *Run) noteFields(e Event, d StateSetData) {
	if d.Source == SourceRollback {
		return
	}
	changed := slices.Concat(d.Fields, d.Reset)
	if d.By != "" || !r.ofTurn(e.Step, d.Source) { // By: a person did it
		r.forgetFields(changed)
		return
	}
	old, b := object(r.State), r.before()
	for _, f := range changed {
		if _, noted := b.Fields[f]; noted {
			continue
		}
		was := Was{}
		if v, set := old[f]; set {
			was.Value = encodeValue(v)
		}
		if p, known := r.Provenance[f]; known {
			was.Provenance = &p
		}
		if b.Fields == nil {
			b.Fields = map[string]Was{}
		}
		b.Fields[f] = was
	}
}

// forgetFields leaves fields to whoever else has set them.
func (r *Run) forgetFields(fields []string) {
	if r.Before == nil {
		return
	}
	for _, f := range fields {
		delete(r.Before.Fields, f)
	}
}

// notePhase notes the phase that an event is about to leave.
func (r *Run) notePhase(d PhaseEnteredData) {
	switch {
	case d.By == "start" || d.By == SourceRollback:
	case !r.ofTurn(d.Step, d.By):
		if r.Before != nil {
			r.Before.Phase = nil
		}
	default:
		if b := r.before(); b.Phase == nil {
			b.Phase = &PhaseWas{Name: r.Phase, Seq: r.PhaseSeq, Final: r.Final}
		}
	}
}

// setBack is where a field that a rollback sets back has its value from. The change
// is one all the same: what was shown, confirmed and ruled on before it stays void.
func (r *Run) setBack(field string, e Event) Provenance {
	p := Provenance{Source: SourceRollback, Turn: e.Turn}
	if r.Before != nil && r.Before.Fields[field].Provenance != nil {
		p = *r.Before.Fields[field].Provenance
	}
	p.Rev = e.Seq
	return p
}

// rollBack sets the fields and the phase back to what they were before the turn
// that is cut short, and says so. It does so only where nothing that the turn did
// stands: the state must not deny what has happened. No call is made by it: what
// Enter had made before, and the turn made void, comes again by moving there anew,
// through the move's guard.
func (m *Machine) rollBack() (told string, done bool) {
	r := m.run
	if stands := r.stillStands(); stands != "" {
		return "Fields and the phase were not set back, since " + stands + ": they are as they are shown.", false
	}
	yes := ""
	for _, f := range sortedKeys(r.Confirmed) {
		if r.Confirmed[f].Turn == r.Cut.Turn {
			yes += ", " + f
		}
	}
	if yes != "" {
		yes = " The yes that it took for one to these counts no more: " + yes[2:] + "."
	}
	b := r.Before
	if b == nil {
		return "It had changed no field and no phase." + yes, true
	}
	next := object(r.State)
	for _, f := range sortedKeys(b.Fields) {
		if delete(next, f); b.Fields[f].Value != nil {
			next[f], _ = parseOwn(b.Fields[f].Value)
		}
	}
	state, err := m.def.checkState(encodeValue(next))
	if err == nil {
		err = m.fits(state)
	}
	if err != nil {
		return fmt.Sprintf("Fields and the phase were not set back, since with what was set meanwhile they would be no good state (%s): they are as they are shown.", clip(err.Error(), 300)), false
	}
	back := changedFields(object(r.State), object(state))
	phase := b.Phase
	m.set(origin{source: SourceRollback}, state, nil)
	if phase != nil && (phase.Name != r.Phase || phase.Seq != r.PhaseSeq) { // also where the turn left it and came back
		if phase.Name != r.Phase {
			back = append(back, "the phase, "+phase.Name)
		}
		m.emit(EventPhaseEntered, "", PhaseEnteredData{Phase: phase.Name, Final: phase.Final, By: SourceRollback, Since: phase.Seq})
		if p, ok := m.def.phase(phase.Name); ok {
			m.voidOutside(p)
		}
	}
	if len(back) == 0 {
		return "Fields and the phase are as they were before it." + yes, true
	}
	return "Set back to what it was before: " + strings.Join(back, ", ") + "." + yes, true
}

// stoodBefore reports whether the effect of a step is that of an earlier turn: it was
// called again by code, and given the standing result. The later turn has not done it.
func (r *Run) stoodBefore(s *Step) bool {
	return s.Status == StepDone && slices.ContainsFunc(r.Steps, func(o Step) bool {
		return o.Key == s.Key && o.Status == StepDone && r.turnOf(&o) < r.turnOf(s)
	})
}

// stillStands says what of the turn that is cut short has happened, or may have,
// and is not undone; "" is nothing.
func (r *Run) stillStands() string {
	for _, s := range r.Steps {
		if r.turnOf(&s) != r.Cut.Turn || s.Kind != KindTool || s.Key == "" || s.By == ByUndo || r.stoodBefore(&s) {
			continue
		}
		if o := r.step(s.Undoes); o != nil && o.UndoneBy == s.ID && r.turnOf(o) == r.Cut.Turn {
			continue // it took back what the same turn had done
		}
		switch s.Status {
		case StepDone:
			return "step " + s.ID + " stands"
		case StepInDoubt:
			return "nobody knows whether step " + s.ID + " happened"
		}
	}
	return ""
}
