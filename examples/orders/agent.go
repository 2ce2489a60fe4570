package orders

import (
	_ "embed"
	"errors"
	"fmt"
	"time"

	"interlock/agent"
	"interlock/tool"
)

//go:embed instructions.md
var instructions string

// FreeUpTo is the fee, in the smallest unit, above which a dispatcher decides.
const FreeUpTo = 20_00

// Agent is the agent's definition.
func Agent(shop Shop) *agent.Definition { return agent.Define(spec(shop)) }

func spec(shop Shop) agent.Spec[Start, State] {
	check := tool.ReadOnly("check_day", shop.CheckDay, takeFee).
		Doc("Says whether an order can come on a day, and what the change costs.")

	change := tool.Keyed("change_day", shop.ChangeDay, func(s *State, made Change, c Changed) error {
		s.ChangeID, s.MovedTo, s.Charged = c.ID, made.Day, made.Fee // what was done: a dispatcher may have edited it
		return nil
	}).
		Doc("Moves the delivery.").
		Gate(tool.Gate[State, Change]{
			Policy:  "a fee above 20 needs a dispatcher's approval",
			Roles:   []string{"dispatch"},
			Reads:   []string{"order_id", "day", "fee", "shipped"},
			Edit:    []string{"day", "fee"},
			Expires: 4 * time.Hour,
			When:    func(_ agent.Situation[State], c Change) bool { return c.Fee.Minor > FreeUpTo },
			Title: func(_ agent.Situation[State], c Change) string {
				return "Move order " + c.OrderID + " to " + c.Day + " for " + c.Fee.String()
			},
		})

	notify := tool.Keyed("notify", shop.Notify, func(s *State, _ Notice, n Notified) error { s.NoticeID = n.ID; return nil }).
		Doc("Mails the customer.")

	return agent.Spec[Start, State]{
		Name: "orders", Version: 1, Instructions: instructions,
		Init: func(in Start) (State, error) { return State{CustomerID: in.CustomerID}, nil },
		Phases: []agent.Phase[State]{
			{
				Name: "agree", Doc: "Agree with the customer on order, day and fee.",
				Tools: []agent.Tool[State]{check},
				Moves: []agent.Move[State]{{To: "change", Doc: "the customer said yes to order, day and fee", When: agreed}, {To: "closed"}},
			},
			{
				Name: "change", Doc: "The change is made by code, after a dispatcher's approval where one is needed.",
				Enter: func(s agent.Situation[State]) []agent.Call {
					return []agent.Call{change.With(Change{OrderID: s.State.OrderID, Day: s.State.Day, Fee: s.State.Fee})}
				},
				Moves: []agent.Move[State]{{To: "closed", Auto: true, When: changed}, {To: "agree", Doc: "the customer wants another day"}},
			},
			{
				Name: "closed", Final: true, Say: lastWord,
				Enter: func(s agent.Situation[State]) []agent.Call {
					if s.State.ChangeID == "" {
						return nil
					}
					return []agent.Call{notify.With(Notice{CustomerID: s.State.CustomerID, OrderID: s.State.OrderID, Day: s.State.MovedTo})}
				},
			},
		},
		Tools: []agent.Tool[State]{notify}, // only Enter calls it, and not on an empty state
	}
}

// takeFee is the Commit of check_day. What the model looked up for another order
// or day is no fee of this change.
func takeFee(s *State, w Wish, q Quote) error {
	if w.OrderID != s.OrderID || w.Day != s.Day {
		return fmt.Errorf("checked were order %q and %s, agreed on are order %q and %s: set the fields first", w.OrderID, w.Day, s.OrderID, s.Day)
	}
	s.Fee = q.Fee
	return nil
}

// agreed guards the phase change.
func agreed(s agent.Situation[State]) error {
	if s.State.Shipped {
		return errors.New("the parcel has left, so its day stays")
	}
	return s.Confirmed("order_id", "day", "fee")
}

func changed(s agent.Situation[State]) error {
	if s.State.ChangeID == "" {
		return errors.New("the change is not made yet")
	}
	return nil
}

func lastWord(s agent.Situation[State]) string {
	if s.State.ChangeID == "" {
		return "Your order comes as it was planned."
	}
	return fmt.Sprintf("Order %s comes on %s. The change costs %s.", s.State.OrderID, s.State.MovedTo, s.State.Charged)
}
