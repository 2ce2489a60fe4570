package agent

import (
	"encoding/json"
	"fmt"
	"time"
)

// Situation is what guards, predicates, Enter and Say are given. It is a copy:
// changing it changes nothing.
type Situation[S any] struct {
	State     S
	At        time.Time // of the input that is being decided
	Phase     string
	Principal Principal // who started the run

	run *Run
	def *Definition
}

// Confirmed is nil when the user said yes to the present value of each field
// after code had shown it; else it says which is missing.
func (s Situation[S]) Confirmed(fields ...string) error {
	for _, f := range fields {
		s.def.mustField(f)
	}
	for _, f := range fields {
		if _, yes := s.run.Confirmed[f]; !yes {
			return Errorf(CodeInvalid, "%s is not confirmed: ask with this field, then confirm with the user's answer", f)
		}
	}
	return nil
}

// Answered is nil when the user said yes to the present value of each field by a click
// or a token of their own, the verdict answer, and not in words that a model read as a
// yes; else it says which is missing.
func (s Situation[S]) Answered(fields ...string) error {
	if err := s.Confirmed(fields...); err != nil {
		return err
	}
	for _, f := range fields {
		if s.run.Confirmed[f].How != ClickedYes {
			return Errorf(CodeInvalid, "%s is confirmed in words only: ask with this field, and have the user answer the question itself", f)
		}
	}
	return nil
}

// Provenance says where a field's present value comes from; ok is false where
// the field was never set.
func (s Situation[S]) Provenance(field string) (p Provenance, ok bool) {
	p, ok = s.run.Provenance[field]
	return p, ok
}

// VerifiedWithin is nil when an outside source verified the field's value at
// most d before this input.
func (s Situation[S]) VerifiedWithin(field string, d time.Duration) error {
	s.def.mustField(field)
	p, ok := s.run.Provenance[field]
	if !ok || p.VerifiedAt == nil {
		return Errorf(CodeInvalid, "%s was never verified by an outside source", field)
	}
	if age := s.At.Sub(*p.VerifiedAt); age > d {
		return Errorf(CodeInvalid, "%s was verified %s ago; at most %s is allowed", field, age.Round(time.Second), d)
	}
	return nil
}

// Settled lists the ended steps of a tool that the run still holds, oldest
// first: "did the receipt fail" is asked here.
func (s Situation[S]) Settled(tool string) []StepStatus {
	var out []StepStatus
	for _, st := range s.run.Steps {
		if st.Tool == tool && !st.Status.Open() {
			out = append(out, st.Status)
		}
	}
	return out
}

// situation is the untyped form that the machine works with.
type situation struct {
	at  time.Time
	run *Run
	def *Definition
}

// typed decodes the state; it cannot fail on a state that Define accepted.
func typed[S any](u situation) Situation[S] {
	s := Situation[S]{At: u.at, run: u.run, def: u.def}
	if u.run != nil {
		s.Phase, s.Principal = u.run.Phase, u.run.Principal
		if len(u.run.State) > 0 {
			if err := json.Unmarshal(u.run.State, &s.State); err != nil {
				panic(fmt.Sprintf("agent %s: state of run %s does not decode: %v", u.def.Name, u.run.Address(), err))
			}
		}
	}
	return s
}

// unknownField is the panic of a guard that names a field which does not exist;
// Define finds most of these by trying each guard on a zero state.
type unknownField struct{ agent, field string }

func (u unknownField) Error() string {
	return fmt.Sprintf("agent %s: a guard names %q, which is no field of the state", u.agent, u.field)
}

func (d *Definition) mustField(name string) {
	if _, known := d.field(name); !known {
		panic(unknownField{d.Name, name})
	}
}
