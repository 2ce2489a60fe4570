package scripted

import (
	"fmt"
	"strings"

	"interlock/agent"
)

// What rules ask of a view. All of it is in the view: nothing is remembered.

// Open is the turn that is to be answered, zero if there is none.
func Open(v agent.View) agent.ViewTurn {
	if n := len(v.Turns); n > 0 && v.Turns[n-1].N == v.Turn {
		return v.Turns[n-1]
	}
	return agent.ViewTurn{}
}

// LastMessage is the text of the latest user message that is shown, or "".
func LastMessage(v agent.View) string {
	for i := len(v.Turns) - 1; i >= 0; i-- {
		if text, ok := message(v.Turns[i]); ok {
			return text
		}
	}
	return ""
}

// NewMessage is the latest user message that the open turn began with.
func NewMessage(v agent.View) (text string, ok bool) { return message(Open(v)) }

func message(t agent.ViewTurn) (string, bool) {
	for i := len(t.Opening) - 1; i >= 0; i-- {
		if t.Opening[i].Kind == agent.ItemMessage {
			return t.Opening[i].Text, true
		}
	}
	return "", false
}

// NewOutcome is the text that the open turn began with of a step's outcome; an
// empty step stands for any.
func NewOutcome(v agent.View, step string) (text string, ok bool) {
	opening := Open(v).Opening
	for i := len(opening) - 1; i >= 0; i-- {
		it := opening[i]
		if it.Kind == agent.ItemOutcome && (step == "" || it.Step == step) {
			return it.Text, true
		}
	}
	return "", false
}

// Waiting is the latest open gate of a tool's call.
func Waiting(v agent.View, tool string) (gate agent.ViewGate, ok bool) {
	for i := len(v.Waiting) - 1; i >= 0; i-- {
		if v.Waiting[i].Tool == tool {
			return v.Waiting[i], true
		}
	}
	return agent.ViewGate{}, false
}

// Answer is the latest shown answer to a tool's call, whether the model made
// the call or code did on entering a phase.
func Answer(v agent.View, tool string) (answer agent.ViewItem, ok bool) {
	for i := len(v.Turns) - 1; i >= 0; i-- {
		t := v.Turns[i]
		for j := len(t.Calls) - 1; j >= 0; j-- {
			if t.Calls[j].Tool == tool {
				return t.Calls[j].Answer, true
			}
		}
		for j := len(t.Results) - 1; j >= 0; j-- { // what the turn opened with
			if t.Results[j].Tool == tool {
				return t.Results[j], true
			}
		}
	}
	return agent.ViewItem{}, false
}

// Answered reports whether the latest answer to a tool's call has that status.
func Answered(v agent.View, tool string, status agent.StepStatus) bool {
	a, ok := Answer(v, tool)
	return ok && a.Status == string(status)
}

// Shown reports whether code has shown the field's present value to the user.
func Shown(v agent.View, field string) bool { return v.Provenance[field].Shown }

// Confirmed reports whether the user said yes to the field's present value.
func Confirmed(v agent.View, field string) bool { return v.Provenance[field].Confirmed != "" }

// Set reports whether the field was ever set.
func Set(v agent.View, field string) bool {
	_, ok := v.Provenance[field]
	return ok
}

// Field is the value of a field of the shown state. A field that is not shown,
// or is no T, is a mistake in the script and panics.
func Field[T any](v agent.View, name string) T {
	var value T
	if err := field(v.State, name, &value); err != nil {
		panic(fmt.Sprintf("scripted: field %s: %v", name, err))
	}
	return value
}

// In reports whether the run is in one of the phases.
func In(phases ...string) func(agent.View) bool {
	return func(v agent.View) bool {
		for _, p := range phases {
			if v.Phase == p {
				return true
			}
		}
		return false
	}
}

// Says reports whether the open turn's latest message contains part, in any
// case of letters.
func Says(part string) func(agent.View) bool {
	return func(v agent.View) bool {
		text, ok := NewMessage(v)
		return ok && strings.Contains(strings.ToLower(text), strings.ToLower(part))
	}
}

// LastWord reports whether only finish is left.
func LastWord(v agent.View) bool { return v.LastWord }

// All holds where each condition does.
func All(conditions ...func(agent.View) bool) func(agent.View) bool {
	return func(v agent.View) bool {
		for _, c := range conditions {
			if !c(v) {
				return false
			}
		}
		return true
	}
}

// Not holds where the condition does not.
func Not(condition func(agent.View) bool) func(agent.View) bool {
	return func(v agent.View) bool { return !condition(v) }
}

// Describe is a view in a line or two, for error messages.
func Describe(v agent.View) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/v%d turn %d in phase %s", v.Agent, v.Version, v.Turn, v.Phase)
	if v.LastWord {
		b.WriteString(", last word")
	}
	for _, g := range v.Waiting {
		fmt.Fprintf(&b, ", %s waits at gate %s", g.Tool, g.ID)
	}
	for _, it := range Open(v).Opening {
		what := string(it.Kind)
		if it.Step != "" {
			what += " of step " + it.Step
		}
		fmt.Fprintf(&b, ", %s %q", what, short(it.Text))
	}
	if n := len(v.Turns); len(Open(v).Opening) == 0 && n > 1 {
		for _, c := range v.Turns[n-2].Calls {
			fmt.Fprintf(&b, ", %s %s", c.Tool, c.Answer.Status)
		}
	}
	return fmt.Sprintf("%s; state %s", b.String(), short(v.State.String()))
}

// short is the first 120 characters.
func short(s string) string {
	const most = 120
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}
