package trip

import (
	"fmt"
	"strings"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
)

// Model plays the travel agent by rules: it books all at once, and after that says
// what its state and the program's account hold.
func Model() *scripted.Model {
	return scripted.Rules("scripted-trip",
		scripted.Rule{When: func(v agent.View) bool { return v.Turn == 1 }, Do: func(agent.View) llm.Response {
			return scripted.Then(scripted.Call("book_flight", Where{"LX 318"}), scripted.Call("reserve_car", Where{"Zurich"}), scripted.Call("compare_hotels", Where{"Zurich"}))
		}},
		scripted.Rule{Do: func(v agent.View) llm.Response { return scripted.Say(standing(v)) }},
	)
}

// standing is what the traveller is told.
func standing(v agent.View) string {
	var have []string
	for _, f := range []string{"flight", "car", "hotel"} {
		if id := scripted.Field[string](v, f); id != "" {
			have = append(have, id)
		}
	}
	stands := "Nothing is booked."
	if len(have) > 0 {
		stands = fmt.Sprintf("What stands: %s. Shall I give that back, too?", strings.Join(have, ", "))
	}
	if account(v) == "" {
		return stands
	}
	return "I stopped. " + stands
}

// account is what the program says of a turn that was cut short, "" where none was.
func account(v agent.View) string {
	for _, it := range v.Turns[len(v.Turns)-1].Opening {
		if it.Kind == agent.ItemOutcome && strings.Contains(it.Text, "was cut short") {
			return it.Text
		}
	}
	return ""
}
