// Package prompt renders what a model is shown of a run: messages, tools, and a
// report of what fitted. [Render] is pure and deterministic: equal inputs give
// equal bytes, on any machine.
//
// The order is from stable to changing, so that a provider's prefix cache keeps
// hitting: the system message (instructions, house rules, fields), then the
// recent turns as a conversation, then the situation, which is new each time.
// What the open turn began with stands before the situation: it stays where it
// is in the next context, and code has the last word, so that nothing that a
// user or a tool wrote can pose as a newer situation.
//
// Tools stand before all messages, so they depend on the definition and the phase
// alone, except in the last word, which has one.
//
// Who wrote what can always be told. A user's text is fenced, and its fence is
// longer than any in the text; a line that begins with [ outside a fence is
// code's; in code's own items no line but the first begins in column one.
package prompt

import (
	"fmt"
	"slices"

	"interlock/agent"
	"interlock/llm"
)

// ReadBytes is how much of a whole result one read_result should fetch.
const ReadBytes = 4 << 10

// Input is all that [Render] reads.
type Input struct {
	Instructions string
	Phase        Phase   // that the view is in
	Fields       []Field // of the state, in the order in which they are shown
	View         agent.View
	Reads        map[string]Part // by call id: what the view's read_result calls read
	Limits       agent.Limits    // of which View counts; 0 takes the default
}

// Phase is a phase as the model is shown it.
type Phase struct {
	Name  string
	Doc   string
	Final bool
	Tools []Tool
	Moves []Move
}

// Tool is a tool that the model may call in the phase.
type Tool struct {
	Name   string
	Doc    string
	Schema agent.JSON // of its arguments
	Effect string     // an [agent.Effect]
	Gated  bool       // a call may wait for a person
}

// Move is a move out of the phase.
type Move struct {
	To    string
	Doc   string
	Gated bool
	Auto  bool // taken by code; the model cannot
}

// Field is a field of the state.
type Field struct {
	Name    string
	Doc     string
	Setters []string   // start, user, model, tool, reviewer, system
	Follows string     // cleared when that field changes
	Schema  agent.JSON // of its value, for set_fields; empty: any

	Sensitive bool // masked in the view; never shown to the user by ask
}

// Part is a part of a whole result, fetched for a read_result call.
type Part struct {
	Text  string // from the call's offset on
	Whole int    // bytes of the whole; 0: not known
}

// Output is what is sent.
type Output struct {
	Messages []llm.Message // pass [llm.Validate]
	Tools    []llm.Tool
	Only     string // the one tool that must be called: finish, in the last word
	Report   Report
}

// Report says what of the view was shown. An item is a message, an outcome, a
// fact, a ruling, or a call's result.
type Report struct {
	Delivered int `json:"delivered"` // items shown whole
	Starved   int `json:"starved"`   // items that the view has or names, and that are not shown
	Partial   int `json:"partial"`   // results shown in part, and marked so
	Turns     int `json:"turns"`     // turns shown
	Dropped   int `json:"dropped"`   // turns of the view that did not fit
	Budget    int `json:"budget"`    // bytes of the view that could be shown
	Used      int `json:"used"`      // of them
	Bytes     int `json:"bytes"`     // of the whole request, fixed words and tools included
}

// Render makes the messages and tools of the next model call.
//
// Every call has exactly one answer, directly after its message. Items are whole
// or absent; only a result that is too large to be shown is a marked part. The
// bytes that come from the view are at most Limits.View, where the fixed words
// around them do not count: a view within that limit is shown whole. State,
// rulings and open gates are never starved: it is an error if they do not fit, or
// if the view makes no valid message list. What the open turn began with is never
// starved either: where it is beyond the limit alone, the rest goes and it stays.
func Render(in Input) (Output, error) {
	if in.View.Phase != in.Phase.Name {
		return Output{}, fmt.Errorf("prompt: the view is in phase %q, the input describes %q", in.View.Phase, in.Phase.Name)
	}
	state, err := readState(in.View.State)
	if err != nil {
		return Output{}, err
	}
	content, err := fit(in)
	if err != nil {
		return Output{}, err
	}
	tools, err := offer(in)
	if err != nil {
		return Output{}, err
	}

	b := &builder{messages: []llm.Message{llm.System(system(in))}, gates: in.View.Waiting}
	b.turns(content)
	b.note(situation(in, content, state))
	b.flush()

	out := Output{Messages: b.messages, Tools: tools, Report: content.report}
	if in.View.LastWord {
		out.Only = agent.CallFinish
	}
	if err := llm.Validate(out.Messages); err != nil {
		return Output{}, fmt.Errorf("prompt: the view of turn %d makes no valid message list: %w", in.View.Turn, err)
	}
	out.Report.Bytes = llm.Request{Messages: out.Messages, Tools: out.Tools}.Bytes()
	return out, nil
}

// settable lists the fields that set_fields can set.
func settable(fields []Field) []Field {
	var out []Field
	for _, f := range fields {
		if slices.Contains(f.Setters, "model") || slices.Contains(f.Setters, "user") {
			out = append(out, f)
		}
	}
	return out
}
