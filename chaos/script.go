package main

import (
	"slices"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
)

// maxTurns is when the model gives up: then something is wrong.
const maxTurns = 40

// stages are the tools with the fields that say they are done.
var stages = []struct{ tool, field string }{{send, "sent"}, {order, "order"}, {pay, "paid"}, {book, "booked"}, {fire, "fired"}}

// script has each tool called until it has its result: look first, then all others
// side by side. A fire that is known not to have happened is given up, and so is what
// a person has rejected. It never looks at what users say: they only cut it short.
func script() llm.Model {
	return scripted.Func("scripted", func(r llm.Request) llm.Response {
		v := r.View
		id, field := scripted.Field[string](v, "id"), func(name string) bool { return scripted.Field[string](v, name) != "" }
		switch {
		case v.Phase == "end": // it is asked while an undo waits for a person, and has nothing to do
			return scripted.Say("That is all but for what a person must decide.")
		case v.Turn >= maxTurns:
			return scripted.MoveTo("end")
		}
		if !field("looked") {
			return scripted.Call(look, thing{id})
		}
		var calls []llm.Response
		for _, t := range stages {
			if !field(t.field) && !(t.tool == fire && called(v, fire)) {
				calls = append(calls, scripted.Call(t.tool, thing{id}))
			}
		}
		_, waits := scripted.Waiting(v, ship)
		if hasUsers(id) && !field("shipped") && !waits && !scripted.Answered(v, ship, agent.StepRejected) && !ruledOut(v) {
			calls = append(calls, scripted.Call(ship, load{id, 1}))
		}
		switch {
		case len(calls) > 0 && inVain(v):
			return scripted.Say("I wait.") // a person must find something out first
		case len(calls) > 0:
			return scripted.Then(calls...)
		case waits:
			return scripted.Say("It waits for a person.")
		}
		return scripted.MoveTo("end")
	})
}

func called(v agent.View, tool string) bool {
	_, ok := scripted.Answer(v, tool)
	return ok
}

// ruledOut reports that a person has rejected ship.
func ruledOut(v agent.View) bool { return len(v.Rulings) > 0 }

// inVain reports whether code has refused all that the latest proposal called, so
// that calling it again would bring nothing.
func inVain(v agent.View) bool {
	n := len(v.Turns) - 1
	if n >= 0 && v.Turns[n].N == v.Turn {
		if _, said := scripted.NewMessage(v); said {
			return false
		}
		n--
	}
	return n >= 0 && len(v.Turns[n].Calls) > 0 && !slices.ContainsFunc(v.Turns[n].Calls, func(c agent.ViewCall) bool {
		return c.Answer.Status != string(agent.StepRefused) || c.Answer.Step != ""
	})
}
