package prompt_test

import (
	"time"

	"interlock/agent"
	"interlock/prompt"
)

var (
	verified = time.Date(2026, 3, 1, 10, 0, 5, 0, time.UTC)
	expires  = time.Date(2026, 3, 2, 10, 1, 0, 0, time.UTC)
)

var fields = []prompt.Field{
	{Name: "customer_id", Setters: []string{"start"}},
	{Name: "order_id", Doc: "the order that the user named", Setters: []string{"user"}, Schema: agent.JSON(`{"type":"string"}`)},
	{Name: "amount", Setters: []string{"tool"}, Follows: "order_id"},
	{Name: "refund_id", Setters: []string{"tool"}},
}

var collect = prompt.Phase{
	Name: "collect", Doc: "Find out which order is meant.",
	Tools: []prompt.Tool{{
		Name: "find_order", Doc: "Looks an order up.", Effect: "read_only",
		Schema: agent.JSON(`{"additionalProperties":false,"properties":{"order_id":{"type":"string"}},"required":["order_id"],"type":"object"}`),
	}},
	Moves: []prompt.Move{{To: "pay", Doc: "order_id and amount are confirmed"}, {To: "declined"}},
}

var pay = prompt.Phase{
	Name:  "pay",
	Moves: []prompt.Move{{To: "done", Auto: true}, {To: "collect"}, {To: "declined"}},
}

func collecting(v agent.View) prompt.Input { return inPhase(collect, v) }

// inPhase is an input of the refund agent whose state is set as far as the
// view has provenance.
func inPhase(p prompt.Phase, v agent.View) prompt.Input {
	turns, calls, tokens := 500-v.Turn, 500-v.Turn, int64(4_990_000)
	v.Agent, v.Version, v.Phase = "refund", 1, p.Name
	v.Left = agent.Left{Turns: &turns, ModelCalls: &calls, Tokens: &tokens}
	if v.State == nil {
		v.State = agent.JSON(`{"amount":{"currency":"","minor":0},"customer_id":"c-7","order_id":"","refund_id":""}`)
	}
	if v.Provenance == nil {
		v.Provenance = map[string]agent.ViewField{"customer_id": {Source: "start"}}
	}
	return prompt.Input{
		Instructions: "You help customers of a shop to get their money back.\n",
		Phase:        p, Fields: fields, View: v, Limits: agent.DefaultLimits(),
	}
}

// found is the view's state once the order is known.
func found(v agent.View, shown bool, yes string) agent.View {
	v.State = agent.JSON(`{"amount":{"currency":"EUR","minor":4990},"customer_id":"c-7","order_id":"1042","refund_id":""}`)
	v.Provenance = map[string]agent.ViewField{
		"customer_id": {Source: "start"},
		"order_id":    {Source: "user", Turn: 1, Shown: shown, Confirmed: yes},
		"amount":      {Source: "tool", Turn: 1, VerifiedAt: &verified, Shown: shown, Confirmed: yes},
	}
	return v
}

func message(text string) agent.Item {
	return agent.Item{Kind: agent.ItemMessage, By: "c-7", Text: text}
}

func outcome(step, text string) agent.Item {
	return agent.Item{Kind: agent.ItemOutcome, Step: step, Text: text}
}

func call(id, tool, args string, answer agent.ViewItem) agent.ViewCall {
	return agent.ViewCall{ID: id, ProviderID: "p_" + id, Tool: tool, Args: agent.JSON(args), Answer: answer}
}

func done(step, result string) agent.ViewItem {
	return agent.ViewItem{Step: step, Status: "done", Result: agent.JSON(result)}
}

var ok = agent.ViewItem{Status: "done"}

func says(text string) agent.ViewItem { return agent.ViewItem{Status: "done", Text: text} }

// The turns of the refund run.
var (
	asked = agent.ViewTurn{N: 1, Opening: []agent.Item{message("refund 1042, it broke")}}

	looked = agent.ViewTurn{
		N: 1, Opening: asked.Opening, Model: "m-1", Opaque: agent.JSON(`[{"signature":"s1","type":"thinking"}]`),
		Calls: []agent.ViewCall{
			call("c1_1", "set_fields", `{"fields":{"order_id":"1042"},"quote":"refund 1042"}`, says("set: order_id")),
			call("c1_2", "find_order", `{"order_id":"1042"}`, done("1.1", `{"order_id":"1042","total":{"currency":"EUR","minor":4990}}`)),
		},
	}
	showed = agent.ViewTurn{N: 2, Text: "I found it.", Model: "m-1", Calls: []agent.ViewCall{
		call("c2_1", "ask", `{"fields":["order_id","amount"],"question":"Is it this one?"}`, agent.ViewItem{Step: "2.1", Tool: "ask", Status: "done", Text: "the user's next message is the answer"}),
	}}
	agreed = agent.ViewTurn{
		N: 3, Opening: []agent.Item{message("yes, that one")}, Model: "m-1",
		Calls: []agent.ViewCall{
			call("c3_1", "confirm", `{"fields":["order_id","amount"]}`, says("confirmed: amount, order_id")),
			call("c3_2", "move", `{"to":"pay"}`, says("the run is in phase pay")),
		},
	}
)

var gate31 = agent.ViewGate{ID: "3.1", Tool: "issue_refund", Title: "Refund 49.90 EUR for 1042", Roles: []string{"refunds", "leads"}, ExpiresAt: &expires}
