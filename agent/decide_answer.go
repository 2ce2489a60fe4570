package agent

import (
	"fmt"
	"slices"
	"strings"
)

// checkAnswer says whether an answer is one at all.
func checkAnswer(a *Answer) error {
	switch {
	case a == nil || a.Confirm == nil && len(a.Fields) == 0:
		return Errorf(CodeInvalid, "an answer has confirm, true or false, or fields with their values, or both")
	case len(a.Fields) == 0:
		return nil
	}
	v, err := parseValue([]byte(a.Fields.String()))
	if err != nil {
		return Errorf(CodeInvalid, "the fields of an answer: %w", err)
	}
	if o, ok := v.(map[string]any); !ok || len(o) == 0 {
		return Errorf(CodeInvalid, "the fields of an answer are an object: {\"field\": value}")
	}
	return nil
}

// answerSchema is what an answer to a question may set: those of the fields that it
// names which the user may set; nil where there are none.
func (m *Machine) answerSchema(fields []string) JSON {
	properties := map[string]any{}
	for _, name := range fields {
		if f, _ := m.def.field(name); f.Settable("user") {
			v, _ := parseOwn(f.Schema)
			properties[name] = v
		}
	}
	if len(properties) == 0 {
		return nil
	}
	return encodeValue(map[string]any{"type": "object", "properties": properties, "additionalProperties": false})
}

// answered is an answer in canonical form, where the gate's question takes it.
func (m *Machine) answered(g Gate, a Answer) (*Answer, error) {
	if a.Confirm != nil && len(g.Reads) == 0 {
		return nil, Errorf(CodeInvalid, "gate %s shows no values that could be confirmed: answer with fields, or by a message", g.ID)
	}
	if len(a.Fields) == 0 {
		return &a, nil
	}
	state, err := m.answeredState(g, a.Fields)
	if err != nil {
		return nil, err
	}
	changed := changedFields(object(m.run.State), object(state))
	next := object(state)
	changed = append(changed, m.resetFollowers(next, changed)...)
	for _, name := range g.Reads {
		if a.Confirm != nil && *a.Confirm && slices.Contains(changed, name) {
			return nil, Errorf(CodeInvalid, "the answer confirms %s as shown and changes it: do one or the other", name)
		}
	}
	fields, _ := parseValue([]byte(a.Fields.String()))
	a.Fields = encodeValue(fields)
	return &a, nil
}

// answeredState is the state with the fields of an answer.
func (m *Machine) answeredState(g Gate, fields JSON) (JSON, error) {
	asked, _ := object(g.Schema)["properties"].(map[string]any)
	given, err := parseValue([]byte(fields.String()))
	if err != nil {
		return nil, Errorf(CodeInvalid, "the fields of an answer: %w", err)
	}
	next := object(m.run.State)
	values, _ := given.(map[string]any)
	for _, name := range sortedKeys(values) {
		if _, ok := asked[name]; !ok {
			return nil, Errorf(CodeInvalid, "gate %s does not ask for %s; an answer may set: %s", g.ID, clip(name, idLimit), orNone(sortedKeys(asked)))
		}
		if values[name] == nil {
			return nil, Errorf(CodeInvalid, "%s needs a value", name)
		}
		next[name] = values[name]
	}
	state, err := m.def.checkState(encodeValue(normalState(next)))
	if err != nil {
		return nil, err
	}
	for _, name := range changedFields(object(m.run.State), object(state)) {
		if _, named := values[name]; !named {
			return nil, Errorf(CodeInvalid, "%s would change too", name)
		}
	}
	return state, m.fits(state)
}

// takeAnswer sets what the user answered, and binds a yes to the values shown.
func (m *Machine) takeAnswer(v Verdict, g Gate, closed GateClosedData) {
	closed.Status = GateAnswered
	closed.No = v.Answer.Confirm != nil && !*v.Answer.Confirm
	m.emit(EventGateClosed, g.ID, closed)
	m.voidUnconfirmed()
	var said []string
	if c := v.Answer.Confirm; c != nil {
		if said = append(said, "no to the values shown"); *c {
			said[0] = "yes to " + strings.Join(g.Reads, ", ")
			m.emit(EventConfirmed, "", ConfirmedData{Fields: g.Reads, Quote: "yes, at gate " + g.ID, How: ClickedYes})
		}
	}
	if len(v.Answer.Fields) > 0 {
		said = append(said, "set "+clip(v.Answer.Fields.String(), reasonLimit/2))
		state, err := m.answeredState(g, v.Answer.Fields)
		if err == nil { // it was checked
			m.set(origin{source: "user", by: v.Principal.Subject}, state, nil)
		}
	}
	reason := fmt.Sprintf("answered by %s: %s", v.Principal.Subject, strings.Join(said, "; "))
	if v.Reason != "" {
		reason += ". " + v.Principal.Subject + " adds: " + v.Reason
	}
	m.emit(EventStepSettled, g.ID, StepSettledData{Status: StepDone, Reason: clip(reason, reasonLimit)})
}
