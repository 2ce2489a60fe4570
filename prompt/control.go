package prompt

import (
	"fmt"

	"interlock/agent"
	"interlock/llm"
)

// control is a control call: what the model is told of it, and for which agents
// and phases it is offered. Whether it makes sense at the moment is not asked: a
// tool list that changes costs the provider's cache of all messages behind it,
// and code refuses a senseless call with its reason.
type control struct {
	name string
	doc  string
	when func(in Input) bool // nil: always
}

// controls is in the order of the tool list.
var controls = []control{
	{agent.CallSetFields, "Sets fields of the state. A field that only the user may set needs a quote from a user message that contains the value.",
		func(in Input) bool { return len(settable(in.Fields)) > 0 }},
	{agent.CallAsk, "Asks the user a question. The program shows the user the question with the present values of the fields that you name; the user can set those of them that are the user's. This is the only way to have values shown that the user is to confirm.", nil},
	{agent.CallConfirm, "Records that the user's answer to your last ask is a clear yes to the values that it showed. The program keeps the whole answer with it. Never for a no, a question, a maybe, or a yes to something else: ask again.", nil},
	{agent.CallRecordFact, "Keeps something that the user said, word for word.", nil},
	{agent.CallWithdraw, "Takes back a call that waits at a gate.", nil},
	{agent.CallRuleOut, "Proposes that a call be refused from now on, for example because the user said never to make it. It binds nothing until a person confirms it.", nil},
	{agent.CallReadResult, "Reads a result that is not shown, or reads on in one that is shown in part.", nil},
	{agent.CallMove, "Moves to another phase, if its condition holds.",
		func(in Input) bool { return len(moves(in.Phase)) > 0 }},
}

// finish is the only tool of the last word, and offered nowhere else.
var finish = control{agent.CallFinish, "Ends the run with your last words to the user.", nil}

// controlSchemas make the schema of each control call's arguments, from the
// definition and the phase.
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
		}, "fields").json()
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
	agent.CallRuleOut: func(Input) agent.JSON {
		return object(members{
			"tool":   words("the tool, or move"),
			"args":   {"type": "object", "description": "the exact arguments of the call that is to be refused"},
			"reason": words("why, for the person who decides"),
		}, "tool", "args", "reason").json()
	},
	agent.CallFinish: func(Input) agent.JSON {
		return object(members{"text": words("your last words to the user")}, "text").json()
	},
}

// offer lists the tools. They stand before all messages, so the list depends on
// the definition and the phase alone, and goes from stable to changing: the
// controls that the whole agent has, then the phase's tools, then its moves.
func offer(in Input) ([]llm.Tool, error) {
	if in.View.LastWord {
		return []llm.Tool{finish.tool(in)}, nil
	}
	var tools, last []llm.Tool
	taken := map[string]bool{agent.CallFinish: true}
	for _, c := range controls {
		taken[c.name] = true
		switch {
		case c.when != nil && !c.when(in):
		case c.name == agent.CallMove:
			last = append(last, c.tool(in))
		default:
			tools = append(tools, c.tool(in))
		}
	}
	for _, t := range in.Phase.Tools {
		if taken[t.Name] {
			return nil, fmt.Errorf("prompt: phase %s has two tools named %s, or one with the name of a control call", in.Phase.Name, t.Name)
		}
		taken[t.Name] = true
		tools = append(tools, llm.Tool{Name: t.Name, Description: describe(t), Schema: argsSchema(t)})
	}
	return append(tools, last...), nil
}

func (c control) tool(in Input) llm.Tool {
	return llm.Tool{Name: c.name, Description: c.doc, Schema: controlSchemas[c.name](in)}
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
