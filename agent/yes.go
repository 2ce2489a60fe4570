package agent

import (
	"maps"
	"slices"
	"strings"
)

// Showing is an `ask` that has shown a field's present value to the user.
type Showing struct {
	Seq     int64  `json:"seq"`               // of the event that showed it; fields that were shown together share it
	Message int64  `json:"message,omitempty"` // the user's message that closed the ask; 0: none has
	Quote   string `json:"quote,omitempty"`   // that message, whole
}

// Confirmation is the user's yes to a value that code had shown. A change of any value
// that it covers voids it for good. It is used once: by the step that reserves it, and
// spent when that is done, undone or in doubt.
type Confirmation struct {
	Quote   string `json:"quote"` // the message that the model took for a yes, whole; of a click, what was clicked
	How     string `json:"how"`   // [SaidYes] or [ClickedYes]
	Turn    int    `json:"turn"`
	Seq     int64  `json:"seq"`               // fields that were confirmed together share it
	Showing int64  `json:"showing,omitempty"` // the Seq of what was shown
	Step    string `json:"step,omitempty"`    // that reserves it
}

// How a user confirms. Persisted; never rename.
const (
	SaidYes    = "message" // in words, which the model read as a yes
	ClickedYes = "answer"  // by the verdict answer: no model had a part in it
)

// confirm binds the user's yes to values that code has shown. The message that closed
// the ask is the one that it refers to, whole: the model can choose no other words.
func confirm(m *Machine, a confirmArgs) (string, error) {
	if len(a.Fields) == 0 {
		return "", Errorf(CodeInvalid, "name the fields that the user confirmed")
	}
	var by Showing
	for _, name := range a.Fields {
		if _, ok := m.def.field(name); !ok {
			return "", Errorf(CodeInvalid, "there is no field %s", name)
		}
		at, ok := m.run.Shown[name]
		switch {
		case !ok:
			return "", Errorf(CodeInvalid, "%s was not shown to the user with its present value; ask with this field first", name)
		case at.Message == 0:
			return "", Errorf(CodeInvalid, "no message of the user's has answered the question that showed %s; ask with this field again", name)
		case by.Message != 0 && by.Message != at.Message:
			return "", Errorf(CodeInvalid, "these fields were shown in different questions; confirm them in two calls, or ask with all of them")
		}
		by = at
	}
	if !slices.ContainsFunc(a.Fields, func(f string) bool { c, ok := m.run.Confirmed[f]; return !ok || c.Showing != m.run.Shown[f].Seq }) {
		return "confirmed already: " + strings.Join(a.Fields, ", "), nil
	}
	if m.wroteAfter(by.Message) {
		return "", Errorf(CodeInvalid, "the user has written again since the answer to that question; ask once more")
	}
	slices.Sort(a.Fields)
	m.emit(EventConfirmed, "", ConfirmedData{Fields: slices.Compact(a.Fields), Quote: by.Quote, How: SaidYes, Message: by.Message})
	return "confirmed: " + strings.Join(slices.Compact(a.Fields), ", "), nil
}

// wroteAfter reports whether the user has sent a message after another one.
func (m *Machine) wroteAfter(seq int64) bool {
	later := func(it Item) bool { return it.Kind == ItemMessage && m.ofUser(it) && it.Seq > seq }
	return slices.ContainsFunc(m.run.Opening, later) ||
		slices.ContainsFunc(m.run.Turns, func(t Turn) bool { return slices.ContainsFunc(t.Opening, later) })
}

// needsYes says why a call may not be made without the user: its tool names a
// confirmation that is missing, is used by another step, or was of another value.
// instead is the step whose place the call would take. An effect that stands needs none.
func (m *Machine) needsYes(c commitment, instead string) string {
	if c.t == nil || len(c.t.confirmed) == 0 || c.undone != "" || m.stands(c) != nil {
		return ""
	}
	args, state := object(c.args), object(m.run.State)
	for _, f := range c.t.confirmed {
		yes, ok := m.run.Confirmed[f]
		switch v, carried := args[f]; {
		case !ok:
			return c.tool + " needs the user's yes to " + f + ", used for nothing else: ask with this field, then confirm"
		case yes.Step != "" && yes.Step != instead:
			return "the user's yes to " + f + " is used by step " + yes.Step + " already: ask with this field again"
		case carried && instead == "" && !sameValue(v, state[f]):
			return "the user said yes to " + f + " as " + clip(encodeValue(state[f]).String(), 200) + ", and the call has another: call with that value"
		}
	}
	return ""
}

// reserves are the fields whose confirmations a step of a call takes.
func (m *Machine) reserves(c commitment) []string {
	if c.t == nil || c.undone != "" || m.stands(c) != nil {
		return nil
	}
	for _, f := range c.t.confirmed {
		if yes, ok := m.run.Confirmed[f]; !ok || yes.Step != "" {
			return nil // an operator has it run again, whose word it is then
		}
	}
	return c.t.confirmed
}

// lostYes says why a step that has reserved confirmations may not go on; "" is nothing.
func (r *Run) lostYes(s *Step) string {
	for _, f := range s.Reserves {
		if r.Confirmed[f].Step != s.ID {
			return "what the user said yes to has changed: " + f
		}
	}
	return ""
}

// voidUnconfirmed ends the waiting steps whose confirmation is void.
func (m *Machine) voidUnconfirmed() {
	for _, g := range slices.Clone(m.run.Gates) {
		if s := m.run.step(g.ID); g.Status == GateOpen && s != nil && s.Status == StepWaiting {
			if why := m.run.lostYes(s); why != "" {
				m.voidGate(g, why)
			}
		}
	}
}

func (r *Run) reserveYes(step string, fields []string) {
	for _, f := range fields {
		if yes, ok := r.Confirmed[f]; ok {
			yes.Step = step
			r.Confirmed[f] = yes
		}
	}
}

// settleYes spends what a step had reserved where its effect happened or may have, and
// frees it where it did not.
func (r *Run) settleYes(s *Step, status StepStatus) {
	for _, f := range s.Reserves {
		switch yes, ok := r.Confirmed[f]; {
		case !ok || yes.Step != s.ID:
		case status == StepDone || status == StepUndone || status == StepInDoubt:
			delete(r.Confirmed, f)
			delete(r.Shown, f)
		default:
			yes.Step = ""
			r.Confirmed[f] = yes
		}
	}
}

// voidYes voids, for good, every showing and confirmation that covers one of the
// fields, with all that was shown or confirmed together.
func (r *Run) voidYes(fields []string) {
	for _, f := range fields {
		if at, ok := r.Shown[f]; ok {
			r.voidShowing(at.Seq)
		}
		if yes, ok := r.Confirmed[f]; ok {
			r.voidShowing(yes.Showing)
			maps.DeleteFunc(r.Confirmed, func(_ string, c Confirmation) bool { return c.Seq == yes.Seq })
		}
	}
}

func (r *Run) voidShowing(seq int64) {
	maps.DeleteFunc(r.Confirmed, func(f string, c Confirmation) bool { return c.Showing == seq && seq != 0 || r.Shown[f].Seq == seq })
	maps.DeleteFunc(r.Shown, func(_ string, s Showing) bool { return s.Seq == seq })
}

// answeredBy notes the message that has closed an ask: the one that a yes can be in.
func (r *Run) answeredBy(g *Gate, message int64) {
	i := slices.IndexFunc(r.Opening, func(it Item) bool { return it.Seq == message && it.Kind == ItemMessage })
	if i < 0 {
		return
	}
	for _, f := range g.Reads {
		if at, ok := r.Shown[f]; ok && at.Seq == g.Seq {
			at.Message, at.Quote = message, r.Opening[i].Text
			r.Shown[f] = at
		}
	}
}

func applyConfirmed(r *Run, e Event, d ConfirmedData) {
	if r.Confirmed == nil {
		r.Confirmed = map[string]Confirmation{}
	}
	for _, f := range d.Fields {
		r.Confirmed[f] = Confirmation{Quote: d.Quote, How: d.How, Turn: e.Turn, Seq: e.Seq, Showing: r.Shown[f].Seq, Step: r.Confirmed[f].Step}
	}
}
