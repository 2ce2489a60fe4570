// Package orders is an agent in a module of its own: it moves the delivery of an
// order to another day. It is written to be read from top to bottom, and to be
// copied: state.go, shop.go, agent.go, then the tests, then worker and backend,
// then v2.go.
package orders

import "interlock/agent"

// Start is what the product's backend starts a run with.
type Start struct {
	CustomerID string `json:"customer_id"`
}

// State is all that a run knows. set says who may write a field: the model
// cannot set the fee, and nobody but a backend can say that the parcel has left.
type State struct {
	CustomerID string      `json:"customer_id" set:"start"`
	OrderID    string      `json:"order_id"    set:"user"   doc:"the order that the customer named"`
	Day        string      `json:"day"         set:"model"  doc:"the new day of delivery, as 2026-04-03" follows:"order_id"`
	Fee        agent.Money `json:"fee"         set:"tool"   doc:"what the change costs the customer"     follows:"day"`
	Shipped    bool        `json:"shipped"     set:"system" doc:"the parcel has left: its day stays"`
	ChangeID   string      `json:"change_id"   set:"tool"   doc:"the change, once it is made"`
	MovedTo    string      `json:"moved_to"    set:"tool"   doc:"the day that it was moved to"`
	Charged    agent.Money `json:"charged"     set:"tool"   doc:"what was charged for it"`
	NoticeID   string      `json:"notice_id"   set:"tool"`
}
