package refund

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
)

var orderNumber = regexp.MustCompile(`\b[0-9]{4}\b`)

// Model plays the refund conversation by rules: no account and no network is
// needed to try the agent. Like a real model it only proposes.
func Model() *scripted.Model {
	return scripted.Rules("scripted-refund",
		scripted.Rule{When: scripted.LastWord, Do: lastWord},
		scripted.Rule{When: namesAnotherOrder, Do: takeOrder},
		scripted.Rule{When: givesUp, Do: decline},
		scripted.Rule{When: scripted.In("pay"), Do: whilePaying},
		scripted.Rule{When: saysYes, Do: func(v agent.View) llm.Response {
			return scripted.Then(
				scripted.Confirm("order_id", "amount"),
				scripted.Call(agent.CallMove, scripted.Args{"to": "pay"}))
		}},
		scripted.Rule{When: scripted.All(confirmed, mentions("again")), Do: func(agent.View) llm.Response {
			return scripted.Call(agent.CallMove, scripted.Args{"to": "pay"})
		}},
		scripted.Rule{When: scripted.All(hasOrder, scripted.Not(hasAmount)), Do: lookUp},
		scripted.Rule{When: scripted.All(hasAmount, scripted.Not(shown)), Do: func(agent.View) llm.Response {
			return scripted.Call(agent.CallAsk, scripted.Args{"question": "Shall I refund this order?", "fields": []string{"order_id", "amount"}})
		}},
		scripted.Rule{Do: func(agent.View) llm.Response {
			return scripted.Say("Which order is it? Its number has four digits and stands on the invoice.")
		}},
	)
}

func hasOrder(v agent.View) bool  { return scripted.Field[string](v, "order_id") != "" }
func hasAmount(v agent.View) bool { return scripted.Field[agent.Money](v, "amount").Minor > 0 }
func shown(v agent.View) bool     { return scripted.Shown(v, "order_id") && scripted.Shown(v, "amount") }
func confirmed(v agent.View) bool {
	return scripted.Confirmed(v, "order_id") && scripted.Confirmed(v, "amount")
}

func mentions(words ...string) func(agent.View) bool {
	return func(v agent.View) bool {
		text, ok := scripted.NewMessage(v)
		return ok && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(text), w) })
	}
}

var gaveUp = mentions("forget it", "never mind", "cancel that")

func givesUp(v agent.View) bool { return gaveUp(v) && !v.LastWord }

var said = mentions("yes", "that one", "please do")

func saysYes(v agent.View) bool { return v.Phase == "collect" && said(v) && shown(v) && hasAmount(v) }

// namesAnotherOrder: the customer's new message names an order that is not the
// one in the state.
func namesAnotherOrder(v agent.View) bool {
	text, ok := scripted.NewMessage(v)
	n := orderNumber.FindString(text)
	return ok && n != "" && n != scripted.Field[string](v, "order_id")
}

func takeOrder(v agent.View) llm.Response {
	text := scripted.LastMessage(v)
	n := orderNumber.FindString(text)
	set := scripted.Call(agent.CallSetFields, scripted.Args{"fields": scripted.Args{"order_id": n}, "quote": text})
	if v.Phase == "pay" {
		return scripted.Then(set, scripted.Call(agent.CallMove, scripted.Args{"to": "collect"}))
	}
	return scripted.Then(set, scripted.Call("find_order", scripted.Args{"order_id": n}))
}

// lookUp tries once; then the customer is told.
func lookUp(v agent.View) llm.Response {
	order := scripted.Field[string](v, "order_id")
	if a, ok := scripted.Answer(v, "find_order"); ok && len(scripted.Open(v).Opening) == 0 {
		if a.Status != string(agent.StepDone) {
			return scripted.Say(fmt.Sprintf("I cannot refund order %s: %s.", order, a.Text))
		}
	}
	return scripted.Call("find_order", scripted.Args{"order_id": order})
}

func decline(v agent.View) llm.Response {
	move := scripted.Call(agent.CallMove, scripted.Args{"to": "declined"})
	if g, ok := scripted.Waiting(v, "issue_refund"); ok {
		return scripted.Then(scripted.Call(agent.CallWithdraw, scripted.Args{"step": g.ID, "reason": "the customer gave up"}), move)
	}
	return move
}

func whilePaying(v agent.View) llm.Response {
	a, _ := scripted.Answer(v, "issue_refund")
	switch agent.StepStatus(a.Status) {
	case agent.StepRejected, agent.StepRefused:
		return scripted.Then(scripted.Say("I am sorry, this refund was not approved."), decline(v))
	case agent.StepExpired, agent.StepVoid, agent.StepFailed:
		return scripted.Then(scripted.Say("The refund was not made. Say \"again\" and I ask once more."), scripted.Call(agent.CallMove, scripted.Args{"to": "collect"}))
	case agent.StepDone:
		return scripted.Say("The money is on its way.")
	case agent.StepInDoubt:
		return scripted.Say("A colleague is finding out whether the refund went through.")
	}
	return scripted.Say("A colleague is looking at it.")
}

func lastWord(v agent.View) llm.Response {
	text := "Nothing was refunded."
	if v.Phase == "done" {
		text = fmt.Sprintf("Order %s: %s is on its way back to you.", scripted.Field[string](v, "order_id"), scripted.Field[agent.Money](v, "refunded"))
	}
	return scripted.Call(agent.CallFinish, scripted.Args{"text": text})
}
