package tool_test

import (
	"context"
	"fmt"

	"interlock/agent"
	"interlock/tool"
)

// A charge that can be taken back, by a call of the same service, and not without a
// person's leave.
func ExampleTool_Undo() {
	type Charge struct {
		OrderID string      `json:"order_id"`
		Amount  agent.Money `json:"amount"`
	}
	type Charged struct {
		ID string `json:"id"`
	}
	type Voided struct {
		ID string `json:"id"`
	}
	type State struct {
		ChargeID string `json:"charge_id" set:"tool"`
	}
	pay := func(context.Context, tool.Key, Charge) (Charged, error) { return Charged{ID: "c-1"}, nil }
	void := func(_ context.Context, _ tool.Key, chargeID string) (Voided, error) { return Voided{ID: chargeID}, nil }

	charge := tool.Keyed("charge", pay, func(s *State, _ Charge, c Charged) error { s.ChargeID = c.ID; return nil })
	charge.Undo(tool.Keyed("void_charge",
		func(ctx context.Context, key tool.Key, d tool.Done[Charge, Charged]) (Voided, error) {
			return void(ctx, key, d.Result.ID)
		},
		func(s *State, _ tool.Done[Charge, Charged], _ Voided) error { s.ChargeID = ""; return nil }).
		Gate(tool.Gate[State, tool.Done[Charge, Charged]]{Roles: []string{"payments"}}))

	fmt.Println(charge.Spec().Undo.Spec().Name)
	// Output: void_charge
}
