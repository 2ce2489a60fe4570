package scripted

import (
	"interlock/agent"
	"interlock/llm"
)

// The control calls, each as an answer of one call; [Then] puts several into
// one answer.

// SetFields sets fields of the state. quote is the user's words that hold the
// values, word for word; "" for fields that the model may set by itself.
func SetFields(quote string, fields Args) llm.Response {
	args := Args{"fields": fields}
	if quote != "" {
		args["quote"] = quote
	}
	return Call(agent.CallSetFields, args)
}

// Ask asks the user. Code shows the values of the fields.
func Ask(question string, fields ...string) llm.Response {
	args := Args{"question": question}
	if len(fields) > 0 {
		args["fields"] = fields
	}
	return Call(agent.CallAsk, args)
}

// Confirm takes the user's answer for a yes to the values that were shown.
func Confirm(fields ...string) llm.Response {
	return Call(agent.CallConfirm, Args{"fields": fields})
}

// MoveTo moves to a phase.
func MoveTo(phase string) llm.Response { return Call(agent.CallMove, Args{"to": phase}) }

// RecordFact keeps what the user said.
func RecordFact(quote string) llm.Response { return Call(agent.CallRecordFact, Args{"quote": quote}) }

// Withdraw takes a waiting call back.
func Withdraw(step, reason string) llm.Response {
	args := Args{"step": step}
	if reason != "" {
		args["reason"] = reason
	}
	return Call(agent.CallWithdraw, args)
}

// Finish is the run's last word.
func Finish(text string) llm.Response { return Call(agent.CallFinish, Args{"text": text}) }
