package agent

import (
	"fmt"
	"slices"
	"strings"
)

// maxCalls bounds the calls of one proposal, and the steps that are open at a
// time: each is an event, and an answer in the next context.
const maxCalls = 32

// maxInput bounds what a model may write for one call: more is not even read.
const maxInput = 256 << 10

// proposed takes the model's answer: its calls in order, then what remains in
// parallel. A late answer of a call that was let go is dropped.
func (m *Machine) proposed(in Proposed) {
	if !m.run.Calling || in.Turn != m.run.Turn {
		return
	}
	p := Proposal{Text: clean(in.Text), Finish: in.Finish, Model: clip(in.Model, idLimit), Instructions: in.Instructions, Usage: in.Usage, Opaque: in.Opaque,
		ActiveMS: in.ActiveMS}
	if len(in.Calls) > maxCalls {
		p.Excess, in.Calls = len(in.Calls), nil
	}
	for i, c := range in.Calls {
		p.Calls = append(p.Calls, readCall(fmt.Sprintf("c%d_%d", in.Turn, i+1), c))
	}
	last := m.run.LastWord
	m.emit(EventProposal, "", p)
	switch {
	case last:
		m.lastWord(p)
		return
	case p.bad() != "":
		for _, c := range p.Calls {
			m.refuse(c, p.bad())
		}
		return
	}
	if strings.TrimSpace(p.Text) != "" {
		m.emit(EventReply, "", ReplyData{Text: p.Text})
	}
	for _, c := range p.Calls {
		m.call(c)
	}
}

// readCall parses what the model wrote. Arguments that are no JSON we accept
// stay as text, so that the next request can show what was wrong.
func readCall(id string, c RawCall) ProposedCall {
	out := ProposedCall{ID: id, ProviderID: clip(c.ProviderID, idLimit), Tool: clip(c.Tool, idLimit)}
	text := c.Args
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	args, err := JSON(nil), Errorf(CodeInvalid, "%d bytes, the limit is %d", len(text), maxInput)
	if len(text) <= maxInput {
		args, err = Canonical([]byte(text))
	}
	if err != nil {
		out.Raw, out.Text = clip(c.Args, 2*reasonLimit), clip("the arguments are not accepted: "+err.Error(), reasonLimit)
		return out
	}
	out.Args = args
	return out
}

func (m *Machine) proposalFailed(in ProposalFailed) {
	if !m.run.Calling || in.Turn != m.run.Turn {
		return
	}
	last := m.run.LastWord
	m.emit(EventTurnCut, "", TurnCutData{Reason: clip(in.Reason, reasonLimit)})
	if !last {
		m.emit(EventPaused, "", PausedData{Reason: "model: " + clip(in.Reason, reasonLimit)})
	}
}

// lastWord ends the run with what the model said, in finish or as plain text.
func (m *Machine) lastWord(p Proposal) {
	text := p.Text
	for _, c := range p.Calls {
		if c.Tool != CallFinish || c.Raw != "" {
			m.refuse(c, "only finish is left to do")
			continue
		}
		a, err := controlArgs[finishArgs](c)
		if err != nil {
			m.refuse(c, err.Error())
			continue
		}
		text = a.Text
		m.answer(c, "done", "")
	}
	if strings.TrimSpace(text) != "" && p.bad() == "" {
		m.emit(EventReply, "", ReplyData{Text: clean(text), Last: true})
	}
}

// refuse answers a call with a reason: data for the model, never an error.
func (m *Machine) refuse(c ProposedCall, reason string) {
	m.emit(EventCallAnswered, "", CallAnsweredData{Call: c.ID, Status: string(StepRefused), Text: clip(reason, reasonLimit)})
}

func (m *Machine) answer(c ProposedCall, status, text string) {
	m.emit(EventCallAnswered, "", CallAnsweredData{Call: c.ID, Status: status, Text: clip(text, reasonLimit)})
}

// call disposes of one call of a proposal.
func (m *Machine) call(c ProposedCall) {
	if c.Raw != "" {
		m.refuse(c, c.Text)
		return
	}
	if handle, ok := controls[c.Tool]; ok {
		handle(m, c)
		return
	}
	p, _ := m.def.phase(m.run.Phase)
	t := m.def.tools[c.Tool]
	if t == nil || !slices.Contains(p.tools, c.Tool) {
		m.refuse(c, fmt.Sprintf("there is no tool %s in phase %s; available: %s", c.Tool, p.name, orNone(p.tools)))
		return
	}
	args, err := m.arguments(t, c.Args)
	if err != nil {
		m.refuse(c, err.Error())
		return
	}
	do, err := m.known(commitment{kind: KindTool, tool: t.name, args: args, by: ByModel, call: c.ID, gate: t.gate, t: t})
	if err != nil {
		m.refuse(c, err.Error())
		return
	}
	if s := m.stands(do); s != nil {
		m.emit(EventCallAnswered, "", CallAnsweredData{Call: c.ID, Status: "done", Step: s.ID,
			Text: fmt.Sprintf("this happened already, as step %s; it was not done again", s.ID)})
		return
	}
	if reason := m.forbids(do, ""); reason != "" {
		m.refuse(c, reason)
		return
	}
	m.commit(do)
}

// arguments are what the tool will get, byte for byte.
func (m *Machine) arguments(t *toolDef, text JSON) (JSON, error) {
	args, err := t.args.arguments(text.String(), t.argsType)
	if err == nil && len(args) > m.run.Limits.Result {
		err = Errorf(CodeInvalid, "the arguments have %d bytes, the limit is %d", len(args), m.run.Limits.Result)
	}
	return args, err
}

// stands finds the step that had the same effect: calling again changes nothing.
func (m *Machine) stands(c commitment) *Step {
	if c.t.effect == ReadOnly || c.t.repeatable && c.undone == "" {
		return nil
	}
	key := m.run.key(c.tool, c.effect())
	for i := range m.run.Steps {
		if s := &m.run.Steps[i]; s.Key == key && s.Status == StepDone && m.run.undoOf(s.ID) == nil {
			return s
		}
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
