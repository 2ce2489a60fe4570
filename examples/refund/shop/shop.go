// Package shop is the outside world of the sample agent: a small shop with a
// database of its own. It knows nothing of agents, runs or workflows, beyond
// the type of money; it is what a team already has when it adds an agent.
package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"interlock/agent"
)

// Shop is the shop's orders and refunds.
type Shop struct {
	db *sql.DB
}

// FindArgs names the order to look up.
type FindArgs struct {
	OrderID string `json:"order_id" jsonschema:"the number of the order as the customer gave it, for example 1017"`
}

// Order is what the shop says of an order. Status is paid, shipped, delivered
// or refunded.
type Order struct {
	ID         string      `json:"id"`
	CustomerID string      `json:"customer_id"`
	Item       string      `json:"item"`
	Total      agent.Money `json:"total"`
	Status     string      `json:"status"`
}

// RefundArgs says which order to refund, and how much of it.
type RefundArgs struct {
	OrderID string      `json:"order_id" jsonschema:"the number of the order to refund"`
	Amount  agent.Money `json:"amount" jsonschema:"what the customer gets back, at most the order's total, in its currency"`
}

// Refund is money that the shop has given back.
type Refund struct {
	ID      string      `json:"id"`
	OrderID string      `json:"order_id"`
	Amount  agent.Money `json:"amount"`
}

// ErrNoSuchOrder is in the chain of every error about an order that the shop
// does not have.
var ErrNoSuchOrder = errors.New("no such order")

// Refusal is the shop's no, for a reason of its business: the same refund will
// be refused again, so that trying again is of no use. Every other error of
// [Shop.Refund] is a failure of the database.
type Refusal struct {
	OrderID string
	Reason  string
	Err     error // ErrNoSuchOrder, or nil
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("order %q is not refunded: %s", r.OrderID, r.Reason)
}

func (r *Refusal) Unwrap() error { return r.Err }

// DB is the shop's database, for a caller that makes a refund part of a
// transaction of its own. Its transactions take the write lock when they begin
// and wait up to 1.5 s for it, so that one that has begun never fails for a
// lock: keep them short, and do nothing in them but SQL.
func (s *Shop) DB() *sql.DB { return s.db }

// Close closes the database.
func (s *Shop) Close() error { return s.db.Close() }

// Find looks an order up by its exact number. It does not ask whose order it
// is: that is for the caller, who knows the customer.
func (s *Shop) Find(ctx context.Context, a FindArgs) (Order, error) {
	// That an order was refunded is told by its refund alone, so that the two
	// tables cannot contradict each other.
	row := s.db.QueryRowContext(ctx, `
		SELECT o.id, o.customer_id, o.item, o.total_minor, o.currency,
		       CASE WHEN r.id IS NULL THEN o.status ELSE 'refunded' END
		FROM orders o LEFT JOIN refunds r ON r.order_id = o.id
		WHERE o.id = ?`, a.OrderID)
	var o Order
	err := row.Scan(&o.ID, &o.CustomerID, &o.Item, &o.Total.Minor, &o.Total.Currency, &o.Status)
	if errors.Is(err, sql.ErrNoRows) {
		return Order{}, fmt.Errorf("%w: %q; order numbers are digits only, such as 1017", ErrNoSuchOrder, a.OrderID)
	}
	if err != nil {
		return Order{}, fmt.Errorf("find order %q: %w", a.OrderID, err)
	}
	return o, nil
}

// Refund gives money back for an order. All that it reads and writes is in tx,
// so that the refund stands exactly when tx is committed. The refund's id is
// made from the order's: an order has one refund, whatever crashed in between.
//
// A [Refusal] leaves tx as it was, and usable.
func (s *Shop) Refund(ctx context.Context, tx *sql.Tx, a RefundArgs) (Refund, error) {
	total, err := orderTotal(ctx, tx, a.OrderID)
	if err != nil {
		return Refund{}, err
	}
	if reason := badAmount(a.Amount, total); reason != "" {
		return Refund{}, &Refusal{OrderID: a.OrderID, Reason: reason}
	}
	r := Refund{ID: "r-" + a.OrderID, OrderID: a.OrderID, Amount: a.Amount}
	// One statement both asks and claims, so that the answer is right even in
	// a transaction that did not take the write lock first.
	res, err := tx.ExecContext(ctx, `
		INSERT INTO refunds (id, order_id, amount_minor, currency) VALUES (?, ?, ?, ?)
		ON CONFLICT DO NOTHING`, r.ID, r.OrderID, r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return Refund{}, fmt.Errorf("refund order %q: %w", a.OrderID, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return Refund{}, fmt.Errorf("refund order %q: %w", a.OrderID, err)
	}
	if n == 0 {
		return Refund{}, &Refusal{OrderID: a.OrderID, Reason: "it has been refunded already"}
	}
	return r, nil
}

func orderTotal(ctx context.Context, tx *sql.Tx, id string) (agent.Money, error) {
	var total agent.Money
	err := tx.QueryRowContext(ctx, `SELECT total_minor, currency FROM orders WHERE id = ?`, id).
		Scan(&total.Minor, &total.Currency)
	if errors.Is(err, sql.ErrNoRows) {
		return total, &Refusal{OrderID: id, Reason: "the shop has no such order", Err: ErrNoSuchOrder}
	}
	if err != nil {
		return total, fmt.Errorf("read order %q: %w", id, err)
	}
	return total, nil
}

// badAmount is why an amount cannot be given back for an order of that total,
// "" where it can.
func badAmount(amount, total agent.Money) string {
	switch {
	case amount.Minor <= 0:
		return fmt.Sprintf("%s is not an amount to give back", amount)
	case amount.Currency != total.Currency:
		return fmt.Sprintf("it was paid in %s, not in %q", total.Currency, amount.Currency)
	case amount.Minor > total.Minor:
		return fmt.Sprintf("%s is more than its total of %s", amount, total)
	}
	return ""
}

// Refunds lists all refunds, by id.
func (s *Shop) Refunds(ctx context.Context) ([]Refund, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, order_id, amount_minor, currency FROM refunds ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("list refunds: %w", err)
	}
	defer rows.Close()
	var list []Refund
	for rows.Next() {
		var r Refund
		if err := rows.Scan(&r.ID, &r.OrderID, &r.Amount.Minor, &r.Amount.Currency); err != nil {
			return nil, fmt.Errorf("list refunds: %w", err)
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list refunds: %w", err)
	}
	return list, nil
}
