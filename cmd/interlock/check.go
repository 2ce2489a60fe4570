package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
)

// expected is what the world may hold after the demo, found without the agent:
// from the order, the agent's limit and the verdict.
type expected struct {
	phase    string
	refunds  []shop.Refund
	receipts []mail.Message
	reason   string // of the one ruling; "" for none
}

// check compares what the shop, the outbox and the run hold with what the
// verdict allows.
func (d *demo) check(ctx context.Context, r *report) error {
	order, err := d.stage.shop.Find(ctx, shop.FindArgs{OrderID: d.order})
	if err != nil && !errors.Is(err, shop.ErrNoSuchOrder) {
		return err
	}
	want := d.expect(order)
	gaveUp := d.model != "" && d.verdict != agent.Reject && order.CustomerID == demoCustomer && r.Run.Phase == "declined"
	if gaveUp {
		want.phase, want.refunds, want.receipts = "declined", nil, nil
	}
	if !d.foreseen() {
		return nil
	}
	if err := want.compare(r); err != nil {
		return err
	}
	if gaveUp {
		return errors.New("the model ended the run without the refund that was asked for, and nothing else was done: try again, or another model")
	}
	return nil
}

// expect is what an order and the verdict allow. The zero order is one that the
// shop does not have.
func (d *demo) expect(order shop.Order) expected {
	e := expected{phase: "declined"}
	mine := order.CustomerID == demoCustomer
	free := order.Total.Minor <= refund.Limit
	if mine && (free || d.verdict == agent.Approve) {
		e.phase = "done"
		e.refunds = []shop.Refund{{ID: "r-" + order.ID, OrderID: order.ID, Amount: order.Total}}
		e.receipts = []mail.Message{mail.Receipt{RefundID: "r-" + order.ID, OrderID: order.ID, CustomerID: demoCustomer, Amount: order.Total}.Message()}
	}
	if d.verdict == agent.Reject {
		e.reason = d.reason
	}
	return e
}

func (e expected) compare(r *report) error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if !reflect.DeepEqual(append([]shop.Refund{}, e.refunds...), append([]shop.Refund{}, r.Refunds...)) {
		say("the shop's database holds the refunds %v, the verdict allows %v", r.Refunds, e.refunds)
	}
	sent := []mail.Message{}
	for _, m := range r.Receipts {
		sent = append(sent, m.Message)
	}
	if !reflect.DeepEqual(append([]mail.Message{}, e.receipts...), sent) {
		say("the outbox holds %d receipts %q, the verdict allows %d %q", len(sent), sent, len(e.receipts), e.receipts)
	}
	if r.Run.Status != agent.RunCompleted || r.Run.Phase != e.phase {
		say("the run is %s in phase %s, it should be completed in phase %s", r.Run.Status, r.Run.Phase, e.phase)
	}
	reasons := []string{}
	for _, g := range r.Rulings {
		reasons = append(reasons, g.Reason)
	}
	want := []string{}
	if e.reason != "" {
		want = append(want, e.reason)
	}
	if !reflect.DeepEqual(want, reasons) {
		say("the rulings have the reasons %q, they should be %q", reasons, want)
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("the demo went wrong, please report it:\n%w", err)
	}
	return nil
}
