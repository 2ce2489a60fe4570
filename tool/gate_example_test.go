package tool_test

import (
	"context"
	"fmt"
	"time"

	"interlock/agent"
	"interlock/tool"
)

// A payment that two different persons must approve, neither of whom asked for it;
// after four hours their lead may too.
func ExampleTool_Gate() {
	type Payment struct {
		OrderID string      `json:"order_id"`
		Amount  agent.Money `json:"amount"`
	}
	type Paid struct {
		ID string `json:"id"`
	}
	type State struct {
		OrderID string      `json:"order_id" set:"user"`
		Amount  agent.Money `json:"amount" set:"tool" follows:"order_id"`
		PaidID  string      `json:"paid_id" set:"tool"`
	}
	transfer := func(context.Context, tool.Key, Payment) (Paid, error) { return Paid{ID: "p-1"}, nil }

	pay := tool.Keyed("pay", transfer, func(s *State, _ Payment, p Paid) error { s.PaidID = p.ID; return nil })
	pay.Gate(tool.Gate[State, Payment]{
		Roles: []string{"finance"}, Reads: []string{"order_id", "amount"}, Expires: 24 * time.Hour,
		// Two different persons, none of whom asked for it: neither the user, nor who
		// started the run, nor who edited the call. One reject closes the gate.
		Quorum: 2, Distinct: true,
		// From then on their lead may decide too.
		Escalate: agent.Escalate{After: 4 * time.Hour, Roles: []string{"finance_lead"}},
	})

	fmt.Println(pay.Spec().Gate.Quorum)
	// Output: 2
}
