// Package refund is a sample agent to copy: it refunds an order that the
// customer names, after the customer confirmed which one and, above 50 in the
// order's currency, after a person with role refunds approved it.
package refund

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"interlock/agent"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/tool"
)

//go:embed instructions.md
var instructions string

// Start is what a product backend starts the agent with.
type Start struct {
	CustomerID string `json:"customer_id"`
}

// State is what the agent knows; the tags say who may set what.
type State struct {
	CustomerID string      `json:"customer_id" set:"start" doc:"the customer who is signed in"`
	OrderID    string      `json:"order_id"    set:"user"  doc:"the order that the user named"`
	Amount     agent.Money `json:"amount"      set:"tool"  follows:"order_id" doc:"what the order cost"` // cleared when order_id changes
	RefundID   string      `json:"refund_id"   set:"tool"  doc:"the refund, once it is issued"`
	Refunded   agent.Money `json:"refunded"    set:"tool"  doc:"what was paid back: an approver may have made it less"`
	ReceiptID  string      `json:"receipt_id"  set:"tool"  doc:"the receipt, once it is sent"`
}

// Limit is the amount in the smallest unit above which a person must approve.
const Limit = 50_00

// Agent is the agent's definition. It is a function of what the agent needs.
func Agent(s *shop.Shop, m mail.Client) *agent.Definition {
	find := tool.ReadOnly("find_order", findFor(s), func(s *State, a shop.FindArgs, o shop.Order) error {
		if a.OrderID != s.OrderID {
			return errors.New("not the order that the user chose")
		}
		s.Amount = o.Total
		return nil
	}).Doc("Looks an order up and takes its amount into the state.")

	pay := tool.Transactional("issue_refund", s.DB(), refundIn(s), func(s *State, _ shop.RefundArgs, r shop.Refund) error {
		s.RefundID, s.Refunded = r.ID, r.Amount // what was done, not what was asked for
		return nil
	}).Doc("Pays the money back.").Confirmed("order_id", "amount").Gate(tool.Gate[State, shop.RefundArgs]{
		Policy: "a refund above 50 needs a colleague's approval",
		Roles:  []string{"refunds"}, Reads: []string{"order_id", "amount"}, Edit: []string{"amount"}, Expires: 24 * time.Hour,
		When: func(_ agent.Situation[State], a shop.RefundArgs) bool { return a.Amount.Minor > Limit },
		Title: func(_ agent.Situation[State], a shop.RefundArgs) string {
			return "Refund " + a.Amount.String() + " for order " + a.OrderID
		},
	})

	receipt := tool.Keyed("send_receipt", sendBy(m), func(s *State, _ mail.Receipt, sent mail.Sent) error {
		s.ReceiptID = sent.ID
		return nil
	}).Doc("Mails the customer a receipt.")

	return agent.Define(agent.Spec[Start, State]{
		Name: "refund", Version: 1, Instructions: instructions,
		Init: func(in Start) (State, error) {
			if in.CustomerID == "" {
				return State{}, errors.New("customer_id is empty")
			}
			return State{CustomerID: in.CustomerID}, nil
		},
		Phases: []agent.Phase[State]{
			{Name: "collect", Doc: "Find out which order the customer means, show order and amount, get a yes.",
				Tools: []agent.Tool[State]{find},
				Moves: []agent.Move[State]{
					{To: "pay", Doc: "the customer confirmed order and amount", When: func(s agent.Situation[State]) error { return s.Confirmed("order_id", "amount") }},
					{To: "declined", Doc: "the customer does not want a refund, or it is not possible"}}},
			{Name: "pay", Doc: "The refund is issued by code, after a person's approval where one is needed.",
				Enter: func(s agent.Situation[State]) []agent.Call {
					return []agent.Call{pay.With(shop.RefundArgs{OrderID: s.State.OrderID, Amount: s.State.Amount})}
				},
				Moves: []agent.Move[State]{{To: "done", Auto: true, When: refunded}, {To: "collect", Doc: "the customer means another order"}, {To: "declined"}}},
			{Name: "done", Final: true, Enter: func(s agent.Situation[State]) []agent.Call {
				return []agent.Call{receipt.With(mail.Receipt{RefundID: s.State.RefundID, OrderID: s.State.OrderID, CustomerID: s.State.CustomerID, Amount: s.State.Refunded})}
			}},
			{Name: "declined", Final: true},
		},
	})
}

func refunded(s agent.Situation[State]) error {
	if s.State.RefundID == "" {
		return errors.New("the refund is not issued yet")
	}
	return nil
}

// findFor shows a customer no orders but their own: whose a run is comes from
// the run, and the model cannot say otherwise.
func findFor(s *shop.Shop) func(context.Context, shop.FindArgs) (shop.Order, error) {
	return func(ctx context.Context, a shop.FindArgs) (shop.Order, error) {
		o, err := s.Find(ctx, a)
		if errors.Is(err, shop.ErrNoSuchOrder) || err == nil && o.CustomerID != tool.CallerOf(ctx).User {
			return shop.Order{}, tool.Refused(fmt.Errorf("this customer has no order %s", a.OrderID))
		}
		return o, err
	}
}

// refundIn tells what the shop refuses for good from what may work later.
func refundIn(s *shop.Shop) func(context.Context, *sql.Tx, shop.RefundArgs) (shop.Refund, error) {
	return func(ctx context.Context, tx *sql.Tx, a shop.RefundArgs) (shop.Refund, error) {
		r, err := s.Refund(ctx, tx, a)
		var no *shop.Refusal
		if errors.As(err, &no) {
			return r, tool.Refused(err)
		}
		return r, err
	}
}

// sendBy says of each failure what is known: not sent, refused, or neither.
func sendBy(m mail.Client) func(context.Context, tool.Key, mail.Receipt) (mail.Sent, error) {
	return func(ctx context.Context, key tool.Key, r mail.Receipt) (mail.Sent, error) {
		sent, err := m.SendReceipt(ctx, string(key), r)
		var e *mail.Error
		if errors.As(err, &e) {
			switch e.Kind {
			case mail.NotSent:
				return sent, tool.NotApplied(err)
			case mail.Refused:
				return sent, tool.Refused(err)
			}
		}
		return sent, err
	}
}
