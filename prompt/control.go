package prompt

import (
	"fmt"
	"slices"

	"interlock/agent"
	"interlock/llm"
)

// control is a control call: what the model is told of it, and when it can make
// sense.
type control struct {
	name string
	doc  string
	when func(in Input, c content) bool
}

// controls is in the order of the system message. The tool list is in another,
// see offer.
var controls = []control{
	{agent.CallSetFields, "Sets fields of the state. A field that only the user may set needs a quote from a user message that contains the value.",
		func(in Input, _ content) bool { return len(settable(in.Fields)) > 0 }},
	{agent.CallAsk, "Asks the user a question. The program shows the user the present values of the fields that you name. This is the only way to have values shown that the user is to confirm.",
		func(Input, content) bool { return true }},
	{agent.CallConfirm, "Records the user's yes to values that the program has shown, with a quote from a user message that came after the showing.",
		func(in Input, _ content) bool { return anyShown(in.View) }},
	{agent.CallRecordFact, "Keeps something that the user said, word for word.",
		func(Input, content) bool { return true }},
	{agent.CallMove, "Moves to another phase, if its condition holds.",
		func(in Input, _ content) bool { return len(moves(in.Phase)) > 0 }},
	{agent.CallWithdraw, "Takes back a call that waits at a gate.",
		func(in Input, _ content) bool { return len(in.View.Waiting) > 0 }},
	{agent.CallReadResult, "Reads a result that is not shown, or reads on in one that is shown in part.",
		func(_ Input, c content) bool { return c.more }},
	{agent.CallFinish, "Ends the run with your last words to the user.",
		func(in Input, _ content) bool { return in.View.LastWord }},
}

// controlSchemas make the schema of each control call's arguments. They depend
// on the definition and the phase, never on the rest of the view, so that a tool
// list changes only where a call comes or goes.
var controlSchemas = map[string]func(in Input) agent.JSON{
	agent.CallSetFields: func(in Input) agent.JSON {
		return object(members{
			"fields": object(fieldValues(in.Fields)).described("the fields to set, with their new values"),
			"quote":  words("the user's words, copied exactly from one user message, that contain the value"),
		}, "fields").json()
	},
	agent.CallAsk: func(in Input) agent.JSON {
		m := members{"question": words("the question, as the user is to read it")}
		if len(in.Fields) > 0 {
			m["fields"] = names(in.Fields, "the fields whose values the program shows with the question")
		}
		return object(m, "question").json()
	},
	agent.CallConfirm: func(in Input) agent.JSON {
		return object(members{
			"fields": names(in.Fields, "the fields whose values the user said yes to"),
			"quote":  words("the user's yes, copied exactly from one user message"),
		}, "fields", "quote").json()
	},
	agent.CallRecordFact: func(Input) agent.JSON {
		return object(members{"quote": words("the user's words, copied exactly from one user message")}, "quote").json()
	},
	agent.CallMove: func(in Input) agent.JSON {
		to := []any{}
		for _, m := range moves(in.Phase) {
			to = append(to, m.To)
		}
		return object(members{"to": {"type": "string", "enum": to}}, "to").json()
	},
	agent.CallWithdraw: func(Input) agent.JSON {
		return object(members{
			"step":   words("the step that waits, such as 3.1"),
			"reason": words("why, in a few words"),
		}, "step").json()
	},
	agent.CallReadResult: func(Input) agent.JSON {
		return object(members{
			"step":   words("the step whose result is to be read, such as 3.1"),
			"offset": {"type": "integer", "minimum": 0, "description": "the byte to read from"},
		}, "step", "offset").json()
	},
	agent.CallFinish: func(Input) agent.JSON {
		return object(members{"text": words("your last words to the user")}, "text").json()
	},
}

// offer lists the tools, from stable to changing: providers put them before the
// messages, so that a change costs the cache of all behind it. First the
// controls that the whole agent has, then those of the phase, then those that
// come and go with the view.
func offer(in Input, c content) ([]llm.Tool, error) {
	if in.View.LastWord {
		return controlTools(in, c, agent.CallFinish), nil
	}
	tools := controlTools(in, c, agent.CallSetFields, agent.CallAsk, agent.CallRecordFact)
	taken := map[string]bool{}
	for _, ctl := range controls {
		taken[ctl.name] = true
	}
	for _, t := range in.Phase.Tools {
		if taken[t.Name] {
			return nil, fmt.Errorf("prompt: phase %s has two tools named %s, or one with the name of a control call", in.Phase.Name, t.Name)
		}
		taken[t.Name] = true
		tools = append(tools, llm.Tool{Name: t.Name, Description: describe(t), Schema: argsSchema(t)})
	}
	return append(tools, controlTools(in, c, agent.CallMove, agent.CallConfirm, agent.CallWithdraw, agent.CallReadResult)...), nil
}

func controlTools(in Input, c content, wanted ...string) []llm.Tool {
	var out []llm.Tool
	for _, name := range wanted {
		i := slices.IndexFunc(controls, func(ctl control) bool { return ctl.name == name })
		if ctl := controls[i]; ctl.when(in, c) {
			out = append(out, llm.Tool{Name: ctl.name, Description: ctl.doc, Schema: controlSchemas[name](in)})
		}
	}
	return out
}

// argsSchema is the tool's, or that of no arguments.
func argsSchema(t Tool) agent.JSON {
	if len(t.Schema) == 0 {
		return object(members{}).json()
	}
	return t.Schema
}

// effects says what each effect means for whoever proposes a call.
var effects = map[string]string{
	string(agent.ReadOnly):      "It only reads.",
	string(agent.Keyed):         "It has a side effect, which happens once however often the same call is made.",
	string(agent.Transactional): "It has a side effect, which happens once however often the same call is made.",
	string(agent.Reconcilable):  "It has a side effect, which happens once however often the same call is made.",
	string(agent.Once):          "It has a side effect that cannot be repeated safely: if it is interrupted, a person must say whether it happened.",
}

func describe(t Tool) string {
	out := valid(t.Doc)
	add := func(s string) {
		if out != "" && s != "" {
			out += "\n"
		}
		out += s
	}
	add(effects[t.Effect])
	if t.Gated {
		add("A call may have to wait until a person approves it.")
	}
	return out
}

func anyShown(v agent.View) bool {
	for _, p := range v.Provenance {
		if p.Shown {
			return true
		}
	}
	return false
}

// moves lists the moves that the model can propose.
func moves(p Phase) []Move {
	var out []Move
	for _, m := range p.Moves {
		if !m.Auto {
			out = append(out, m)
		}
	}
	return out
}
