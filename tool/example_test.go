package tool_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"interlock/agent"
	"interlock/tool"
)

// A payment service that can be asked for a key, in whatever language: a charge
// is sent once, and after a lost answer the service is asked before anything is
// sent again.
func Example_service() {
	type Charge struct {
		OrderID string      `json:"order_id"`
		Amount  agent.Money `json:"amount"`
	}
	type Charged struct {
		ID string `json:"id"`
	}
	type State struct {
		ChargeID string `json:"charge_id" set:"tool"`
	}
	token := func() string { return "from a vault" }

	send := tool.HTTP{
		URL: "https://pay.example/v1/orders/{order_id}/charges",
		Header: func(ctx context.Context) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer " + token()}, "X-User": {tool.CallerOf(ctx).User}}, nil
		},
	}
	ask := send
	ask.URL = "https://pay.example/v1/charges/{$key}"

	charge := tool.Reconcilable("charge", tool.Send[Charge, Charged](send), tool.LookUp[Charge, Charged](ask),
		func(s *State, _ Charge, c Charged) error { s.ChargeID = c.ID; return nil }).
		Doc("Charge the order to the customer's card.").
		Within(30*time.Second, time.Hour)

	fmt.Println(charge.Spec().Name, charge.Spec().Effect)
	// Output: charge reconcilable
}
