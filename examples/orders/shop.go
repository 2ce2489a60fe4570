package orders

import (
	"context"

	"interlock/agent"
	"interlock/tool"
)

// Shop is what the agent needs of the product: three calls. Each says of its
// errors what is known, by tool.Refused and tool.NotApplied.
type Shop interface {
	// CheckDay says what it costs to move a delivery. It changes nothing.
	CheckDay(context.Context, Wish) (Quote, error)
	// ChangeDay moves a delivery. A key that it has seen before is the same
	// change: it is not made twice.
	ChangeDay(context.Context, tool.Key, Change) (Changed, error)
	// Notify mails the customer, once for each key.
	Notify(context.Context, tool.Key, Notice) (Notified, error)
}

// The arguments and results of the calls. Those of CheckDay are written by the
// model, after the schema that comes of this type.
type (
	Wish struct {
		OrderID string `json:"order_id"`
		Day     string `json:"day"`
	}
	Quote struct {
		Fee agent.Money `json:"fee"`
	}
	Change struct {
		OrderID string      `json:"order_id"`
		Day     string      `json:"day"`
		Fee     agent.Money `json:"fee"`
	}
	Changed struct {
		ID string `json:"id"`
	}
	Notice struct {
		CustomerID string `json:"customer_id"`
		OrderID    string `json:"order_id"`
		Day        string `json:"day"`
	}
	Notified struct {
		ID string `json:"id"`
	}
)
