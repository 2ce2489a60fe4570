package web

import (
	"interlock/agent"
	"interlock/signals"
)

// The names of what a question and a doubt ask for, in a form.
const (
	answerName = "answer"
	resultName = "result"
)

// answerControl is the form of the fields that an answer may set: each may be left
// as it is. nil where there are none.
func answerControl(g agent.Gate) *control {
	s := schemaOf(g.Schema)
	if s == nil || len(s.Properties) == 0 {
		return nil
	}
	s.Required = nil
	c := controlOf(s, agent.JSON("{}"), answerName, "Fields", false)
	return &c
}

// answerOf is what a user answers. No, 0 and an empty text are answers.
func (v *visit) answerOf(out signals.Verdict, g agent.Gate, form *verdictForm) (signals.Verdict, error) {
	answer := &agent.Answer{}
	switch v.form("confirm") {
	case "yes", "no":
		yes := v.form("confirm") == "yes"
		answer.Confirm = &yes
	}
	if form.Answer = answerControl(g); form.Answer != nil {
		fields, ok := form.Answer.fill(v.r.PostForm)
		if !ok {
			return out, agent.Errorf(agent.CodeInvalid, "something is wrong with the answer: it is said where")
		}
		if fields.String() != "{}" {
			answer.Fields = fields
		}
	}
	if answer.Confirm == nil && len(answer.Fields) == 0 {
		return out, agent.Errorf(agent.CodeInvalid, "there is no answer yet: say yes or no, or give a value")
	}
	out.Answer = answer
	return out, nil
}

// resultControl is the form of the result that a tool would have given.
func (v *visit) resultControl(g foundGate) *control {
	t, _ := v.toolOf(g.run, g.gate.Tool)
	c := controlOf(schemaOf(t.Result), nil, resultName, "Result", false)
	return &c
}

// resolutionOf is what an operator found out about a step in doubt.
func (v *visit) resolutionOf(out signals.Verdict, g foundGate, form *verdictForm) (signals.Verdict, error) {
	out.Reason = v.form("reason")
	how := needed(out.Reason, "say how you found out: it is recorded, and the next operator sees it")
	if out.Verdict == agent.DidNotHappen {
		switch v.form("again") {
		case "yes", "no":
			out.Again = v.form("again") == "yes"
		default:
			return out, agent.Errorf(agent.CodeInvalid, "say whether it is to run again")
		}
		return out, how
	}
	form.Result = v.resultControl(g)
	result, ok := form.Result.fill(v.r.PostForm)
	if !ok {
		return out, agent.Errorf(agent.CodeInvalid, "something is wrong with the result: it is said where")
	}
	out.Result = result
	return out, how
}
