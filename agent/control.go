package agent

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// The control calls: answered by code, without an activity. Persisted in
// journals; never rename.
const (
	CallSetFields  = "set_fields"
	CallMove       = "move"
	CallConfirm    = "confirm"
	CallRecordFact = "record_fact"
	CallAsk        = "ask"
	CallWithdraw   = "withdraw"
	CallReadResult = "read_result"
	CallRuleOut    = "rule_out"
	CallFinish     = "finish"
)

// ControlCalls are all control calls: no tool may have one of these names.
var ControlCalls = []string{CallSetFields, CallMove, CallConfirm, CallRecordFact, CallAsk, CallWithdraw, CallReadResult, CallRuleOut, CallFinish}

type setFieldsArgs struct {
	Fields map[string]JSON `json:"fields"`
	Quote  string          `json:"quote,omitempty"`
}
type moveArgs struct {
	To string `json:"to"`
}
type confirmArgs struct {
	Fields []string `json:"fields"`
}
type factArgs struct {
	Quote string `json:"quote"`
}
type askArgs struct {
	Question string   `json:"question"`
	Fields   []string `json:"fields,omitempty"`
}
type withdrawArgs struct {
	Step   string `json:"step"`
	Reason string `json:"reason,omitempty"`
}
type readArgs struct {
	Step   string `json:"step"`
	Offset int    `json:"offset,omitempty"`
}
type finishArgs struct {
	Text string `json:"text"`
}

// controlSchemas check what the model writes; package prompt shows richer ones.
var controlSchemas = func() map[reflect.Type]*schema {
	out := map[reflect.Type]*schema{}
	for _, t := range []reflect.Type{reflect.TypeFor[setFieldsArgs](), reflect.TypeFor[moveArgs](), reflect.TypeFor[confirmArgs](),
		reflect.TypeFor[factArgs](), reflect.TypeFor[askArgs](), reflect.TypeFor[withdrawArgs](), reflect.TypeFor[readArgs](), reflect.TypeFor[finishArgs](), reflect.TypeFor[ruleOutArgs]()} {
		s, err := schemaOf(t)
		if err != nil {
			panic(err)
		}
		out[t] = s
	}
	return out
}()

func controlArgs[A any](c ProposedCall) (A, error) {
	var a A
	t := reflect.TypeFor[A]()
	args, err := controlSchemas[t].arguments(c.Args.String(), t)
	if err != nil {
		return a, err
	}
	err = decodeStrict(args, &a)
	return a, err
}

// control makes a handler of one that takes the call's arguments and returns
// the answer's text, or an error that refuses the call.
func control[A any](f func(m *Machine, a A) (string, error)) func(*Machine, ProposedCall) {
	return func(m *Machine, c ProposedCall) {
		a, err := controlArgs[A](c)
		if err != nil {
			m.refuse(c, err.Error())
			return
		}
		text, err := f(m, a)
		if err != nil {
			m.refuse(c, err.Error())
			return
		}
		m.answer(c, "done", text)
	}
}

var controls map[string]func(*Machine, ProposedCall)

func init() {
	controls = map[string]func(*Machine, ProposedCall){
		CallSetFields:  control(setFields),
		CallMove:       (*Machine).moveCall,
		CallConfirm:    control(confirm),
		CallRecordFact: control(recordFact),
		CallAsk:        (*Machine).askCall,
		CallWithdraw:   control(withdraw),
		CallReadResult: (*Machine).readCall,
		CallRuleOut:    (*Machine).ruleOut,
		CallFinish:     control(func(*Machine, finishArgs) (string, error) { return "", errNotFinal }),
	}
}

var errNotFinal = Errorf(CodeInvalid, "the run can finish only in a final phase, when its steps are settled; move there first")

// setFields writes fields that the model may set, and fields that the user may
// set where the user's own words hold the value.
func setFields(m *Machine, a setFieldsArgs) (string, error) {
	if len(a.Fields) == 0 {
		return "", Errorf(CodeInvalid, "name at least one field")
	}
	next := object(m.run.State)
	source := ""
	for _, name := range sortedKeys(a.Fields) {
		f, ok := m.def.field(name)
		v, err := parseValue(a.Fields[name])
		switch {
		case !ok:
			return "", Errorf(CodeInvalid, "there is no field %s", name)
		case err != nil:
			return "", err
		}
		by, err := m.setter(f, v, a.Quote)
		switch {
		case err != nil:
			return "", err
		case source != "" && source != by:
			return "", Errorf(CodeInvalid, "set fields of the user's and fields of your own in two calls")
		}
		source, next[name] = by, v
	}
	state, err := m.def.checkState(encodeValue(normalState(next)))
	if err != nil {
		return "", err
	}
	changed := changedFields(object(m.run.State), object(state))
	for _, name := range changed {
		if _, named := a.Fields[name]; !named {
			return "", Errorf(CodeInvalid, "%s would change too", name)
		}
	}
	if err := m.fits(state); err != nil {
		return "", err
	}
	if len(changed) == 0 {
		return "no change: the fields hold these values already", nil
	}
	m.set(origin{source: source}, state, nil)
	return "set: " + strings.Join(changed, ", "), nil
}

// setter says as whom the model may set a field to a value.
func (m *Machine) setter(f Field, v any, quote string) (string, error) {
	switch {
	case f.Settable("model"):
		return "model", nil
	case f.Settable("user"):
		if err := m.quoted(quote, v); err != nil {
			return "", Errorf(CodeInvalid, "%s is set by the user: %v", f.Name, err)
		}
		return "user", nil
	}
	return "", Errorf(CodeDenied, "%s is set by %s, not by you", f.Name, strings.Join(f.Set, " or "))
}

func recordFact(m *Machine, a factArgs) (string, error) {
	seq, err := m.said(a.Quote)
	if err != nil {
		return "", err
	}
	size := len(mustEncode(Fact{Quote: a.Quote, Turn: m.run.Turn, Seq: seq}))
	for _, f := range m.run.Facts {
		if f.Quote == a.Quote {
			return "recorded already", nil
		}
		size += len(mustEncode(f))
	}
	if size > m.run.Limits.Facts {
		return "", Errorf(CodeInvalid, "the facts would pass %d bytes; quote less", m.run.Limits.Facts)
	}
	m.emit(EventFactRecorded, "", FactData{Quote: a.Quote, Message: seq})
	return "recorded", nil
}

func withdraw(m *Machine, a withdrawArgs) (string, error) {
	s := m.run.step(a.Step)
	if s == nil || s.Status != StepWaiting && s.Status != StepRunning && !s.Again {
		return "", Errorf(CodeInvalid, "step %q does not wait", a.Step)
	}
	if s.By == ByUndo {
		return "", Errorf(CodeDenied, "step %s undoes step %s, which a person asked for; you cannot withdraw it", s.ID, s.Undoes)
	}
	reason := "withdrawn by the model" + because(a.Reason)
	switch {
	case s.Again:
		m.emit(EventStepSettled, s.ID, StepSettledData{Status: StepWithdrawn, Reason: reason})
		return "step " + a.Step + " is withdrawn, and no other is made in its place", nil
	case s.Status == StepRunning:
		m.stopStep(*s, Stopping{As: StepWithdrawn, Reason: reason})
		return "step " + a.Step + " is told to stop; what became of it is told", nil
	}
	m.closeStep(s.ID, GateWithdrawn, StepWithdrawn, reason)
	return "step " + a.Step + " is withdrawn and its gate closed", nil
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + clip(reason, 300)
}

// guard evaluates a move's condition.
func (m *Machine) guard(mv *moveDef) error {
	if mv.when == nil {
		return nil
	}
	return mv.when(m.situation())
}

// moveCall makes a move that the model proposes, or opens its gate.
func (m *Machine) moveCall(c ProposedCall) {
	a, err := controlArgs[moveArgs](c)
	if err != nil {
		m.refuse(c, err.Error())
		return
	}
	args := mustEncode(a)
	mv := m.moveOf(args)
	if mv == nil || mv.auto {
		m.refuse(c, fmt.Sprintf("there is no move to %s from phase %s; you can move to: %s", a.To, m.run.Phase, orNone(m.movesByModel())))
		return
	}
	if err := m.guard(mv); err != nil {
		m.refuse(c, "not yet: "+err.Error())
		return
	}
	if _, needed := m.needsGate(mv.gate, args); needed {
		if reason := m.forbidsMove(args); reason != "" {
			m.refuse(c, reason)
			return
		}
		m.commit(commitment{kind: KindMove, tool: CallMove, args: args, by: ByModel, call: c.ID, gate: mv.gate})
		return
	}
	m.answer(c, "done", "the run is in phase "+a.To)
	to, _ := m.def.phase(a.To)
	m.enter(to, "model", "")
}

func (m *Machine) forbidsMove(args JSON) string {
	if r := m.ruling(CallMove, args); r != nil {
		return fmt.Sprintf("%s rejected this move (%s); it stays refused while %s unchanged", r.By.Subject, r.Reason, unchanged(r.Reads))
	}
	for _, s := range m.run.Steps {
		if s.Kind == KindMove && s.Status == StepWaiting && s.Args.Equal(args) {
			return "the same move waits already as step " + s.ID
		}
	}
	return ""
}

func (m *Machine) movesByModel() []string {
	var out []string
	if p, ok := m.def.phase(m.run.Phase); ok {
		for _, mv := range p.moves {
			if !mv.auto {
				out = append(out, mv.to)
			}
		}
	}
	return out
}

// askCall shows values to the run's user; the next message is the answer, or the
// verdict answer, which may set those of the named fields that the user may set.
func (m *Machine) askCall(c ProposedCall) {
	a, err := controlArgs[askArgs](c)
	if err == nil && strings.TrimSpace(a.Question) == "" {
		err = Errorf(CodeInvalid, "a question is needed")
	}
	for _, name := range a.Fields {
		f, ok := m.def.field(name)
		switch {
		case err != nil:
		case !ok:
			err = Errorf(CodeInvalid, "there is no field %s", name)
		case f.Sensitive:
			err = Errorf(CodeDenied, "%s is sensitive and is not shown", name)
		case m.unset(name) && !f.Settable("user"):
			err = Errorf(CodeInvalid, "%s has no value that could be shown", name)
		}
	}
	if err != nil {
		m.refuse(c, err.Error())
		return
	}
	slices.Sort(a.Fields)
	a.Fields = slices.Compact(a.Fields)
	args := mustEncode(a)
	id := m.run.nextID()
	m.emit(EventStepStarted, id, StepStartedData{Kind: KindAsk, Tool: CallAsk, Args: args, By: ByModel, Call: c.ID, Status: StepWaiting})
	g := Gate{ID: id, Kind: KindAsk, Tool: CallAsk, Args: args, Title: clip(a.Question, reasonLimit), OpenedAt: m.at, Status: GateOpen}
	for _, name := range a.Fields {
		if !m.unset(name) {
			g.Reads = append(g.Reads, name)
		}
	}
	g.Schema = m.answerSchema(a.Fields)
	g.Shown = m.values(g.Reads)
	g.Digest = m.gateDigest(g)
	m.emit(EventGateOpened, id, GateOpenedData{Gate: g})
}

// unset reports a field that holds nothing.
func (m *Machine) unset(field string) bool {
	return sameValue(object(m.run.State)[field], object(m.def.zero)[field])
}

// readCall lets the next context hold a part of a result that is not shown whole.
func (m *Machine) readCall(c ProposedCall) {
	a, err := controlArgs[readArgs](c)
	if err != nil || a.Offset < 0 {
		m.refuse(c, "read_result takes a step and an offset of 0 or more")
		return
	}
	s := m.run.step(a.Step)
	if s == nil && m.run.Trimmed.Steps == 0 {
		m.refuse(c, fmt.Sprintf("there is no step %q", a.Step))
		return
	}
	if s != nil && s.Status != StepDone {
		m.refuse(c, fmt.Sprintf("step %s has no result: it is %s", a.Step, s.Status))
		return
	}
	m.emit(EventCallAnswered, "", CallAnsweredData{Call: c.ID, Status: "done", Text: "a part of the result of step " + a.Step, Read: &Read{Step: a.Step, Offset: a.Offset}})
}
