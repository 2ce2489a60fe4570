package agent_test

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"interlock/agent"
	"interlock/tool"
)

// The agents that scripts and properties run. Their tools' functions are never
// called here: a script says what came back.

type start struct {
	CustomerID string `json:"customer_id"`
}

type state struct {
	CustomerID string      `json:"customer_id" set:"start"`
	OrderID    string      `json:"order_id"    set:"user" doc:"the order that the user named"`
	Amount     agent.Money `json:"amount"      set:"tool" follows:"order_id"`
	RefundID   string      `json:"refund_id"   set:"tool"`
	ReceiptID  string      `json:"receipt_id"  set:"tool"`
	Note       string      `json:"note"        set:"model"`
	Secret     string      `json:"secret"      set:"tool" sensitive:"true"`
	Trace      string      `json:"trace"       set:"tool" view:"-"`
}

type findArgs struct {
	OrderID string `json:"order_id"`
	Hint    string `json:"hint,omitempty"`
}
type order struct {
	ID    string      `json:"id"`
	Total agent.Money `json:"total"`
}
type refundArgs struct {
	OrderID string      `json:"order_id"`
	Amount  agent.Money `json:"amount"`
}
type refund struct {
	ID string `json:"id"`
}
type mail struct {
	RefundID string `json:"refund_id"`
}
type sent struct {
	ID string `json:"id"`
}

func none[A, R any](context.Context, A) (r R, err error)            { return r, errors.New("not here") }
func keyed[A, R any](context.Context, tool.Key, A) (r R, err error) { return r, errors.New("not here") }
func inTx[A, R any](context.Context, *sql.Tx, A) (r R, err error)   { return r, errors.New("not here") }
func refunded(s agent.Situation[state]) error {
	if s.State.RefundID == "" {
		return errors.New("nothing is refunded yet")
	}
	return nil
}

func findTool() *tool.Tool[state, findArgs, order] {
	return tool.ReadOnly("find_order", none[findArgs, order], func(s *state, a findArgs, o order) error {
		if a.OrderID != s.OrderID {
			return errors.New("not the order that the user chose")
		}
		s.Amount = o.Total
		return nil
	})
}

func refundAgent() *agent.Definition {
	find := findTool()
	pay := tool.Transactional("issue_refund", nil, inTx[refundArgs, refund], func(s *state, _ refundArgs, r refund) error {
		s.RefundID = r.ID
		return nil
	}).Confirmed("order_id", "amount").Gate(tool.Gate[state, refundArgs]{
		Roles: []string{"refunds"}, Reads: []string{"order_id", "amount"}, Expires: 24 * time.Hour,
		When: func(_ agent.Situation[state], a refundArgs) bool { return a.Amount.Minor > 50_00 },
		Title: func(_ agent.Situation[state], a refundArgs) string {
			return "Refund " + a.Amount.String() + " for " + a.OrderID
		},
	})
	receipt := tool.Keyed("send_receipt", keyed[mail, sent], func(s *state, _ mail, m sent) error {
		s.ReceiptID = m.ID
		return nil
	})
	return agent.Define(agent.Spec[start, state]{
		Name: "refund", Version: 1, Instructions: "Refund what the customer wants refunded.",
		Init: func(in start) (state, error) {
			if in.CustomerID == "" {
				return state{}, errors.New("customer_id is empty")
			}
			return state{CustomerID: in.CustomerID}, nil
		},
		Phases: []agent.Phase[state]{
			{Name: "collect", Tools: []agent.Tool[state]{find},
				Moves: []agent.Move[state]{{To: "pay", When: func(s agent.Situation[state]) error { return s.Confirmed("order_id", "amount") }}, {To: "declined"}}},
			{Name: "pay", Enter: func(s agent.Situation[state]) []agent.Call {
				return []agent.Call{pay.With(refundArgs{s.State.OrderID, s.State.Amount})}
			}, Moves: []agent.Move[state]{{To: "done", Auto: true, When: refunded}, {To: "collect"}, {To: "declined"}}},
			{Name: "done", Final: true, Enter: func(s agent.Situation[state]) []agent.Call { return []agent.Call{receipt.With(mail{s.State.RefundID})} }},
			{Name: "declined", Final: true},
		},
	})
}

// deskAgent has what the refund does not: tools with every effect in one
// phase, a repeatable one, gated moves, tight limits, and a last word by code.
func deskAgent() *agent.Definition {
	type box = state
	find := findTool()
	charge := tool.Keyed("charge", keyed[refundArgs, refund], func(s *box, _ refundArgs, r refund) error { s.RefundID = r.ID; return nil })
	ping := tool.Keyed("ping", keyed[mail, sent], func(s *box, _ mail, m sent) error { return nil }).Repeatable()
	risky := tool.Keyed("risky", keyed[refundArgs, refund], func(s *box, _ refundArgs, r refund) error { s.RefundID = r.ID; return nil }).
		Gate(tool.Gate[box, refundArgs]{Roles: []string{"boss"}, Reads: []string{"order_id"}, When: func(_ agent.Situation[box], a refundArgs) bool {
			if a.Amount.Currency == "XPF" {
				panic("policy")
			}
			return a.Amount.Minor > 10
		}})
	charge.Undo(tool.Keyed("void", keyed[tool.Done[refundArgs, refund], sent], func(s *box, d tool.Done[refundArgs, refund], _ sent) error {
		if s.RefundID == d.Result.ID {
			s.RefundID = ""
		}
		return nil
	}).Gate(tool.Gate[box, tool.Done[refundArgs, refund]]{Roles: []string{"boss"}, Expires: time.Hour,
		When: func(_ agent.Situation[box], d tool.Done[refundArgs, refund]) bool { return d.Args.OrderID == "78" }}))
	shot := tool.Once("shot", none[mail, sent], func(s *box, _ mail, m sent) error { s.ReceiptID = m.ID; return nil })
	shot.Undo(tool.Once("unshoot", none[tool.Done[mail, sent], sent], func(s *box, d tool.Done[mail, sent], m sent) error {
		s.ReceiptID = ""
		return nil
	}))
	wire := tool.Keyed("wire", keyed[mail, sent], func(s *box, _ mail, m sent) error { s.ReceiptID = m.ID; return nil }).
		Gate(tool.Gate[box, mail]{Roles: []string{"boss"}, Reads: []string{"note"}, Quorum: 2, Distinct: true, Expires: 48 * time.Hour,
			Escalate: agent.Escalate{After: time.Hour, Roles: []string{"refunds"}}})
	spoil := tool.ReadOnly("spoil", none[mail, sent], func(s *box, _ mail, m sent) error { s.Note = m.ID; return nil })
	return agent.Define(agent.Spec[start, box]{
		Name: "desk", Version: 1, Instructions: "Work.",
		Init: func(in start) (box, error) { return box{CustomerID: in.CustomerID, Secret: in.CustomerID}, nil },
		Phases: []agent.Phase[box]{
			{Name: "work", Tools: []agent.Tool[box]{find, charge, ping, risky, shot, spoil, wire},
				Moves: []agent.Move[box]{
					{To: "close", Gate: &agent.MoveGate[box]{Roles: []string{"boss"}, Reads: []string{"note"}}},
					{To: "spin_a"}, {To: "end"}}},
			{Name: "close", Moves: []agent.Move[box]{{To: "end", Auto: true, Gate: &agent.MoveGate[box]{Roles: []string{"boss"}, Reads: []string{"note"}, Expires: time.Hour}}, {To: "work"}}},
			{Name: "spin_a", Moves: []agent.Move[box]{{To: "spin_b", Auto: true}}},
			{Name: "spin_b", Moves: []agent.Move[box]{{To: "spin_a", Auto: true}}},
			{Name: "end", Final: true, Say: func(s agent.Situation[box]) string { return "Closed for " + s.State.CustomerID + "." }},
		},
		Limits: agent.Limits{State: 2000, Shown: 1500, Result: 800, Active: 400, Window: 6, Facts: 60},
		Budget: agent.Budget{Refusals: 4, ToolErrors: 3, SameCall: 3, Turns: 40, ModelCalls: 40, Tokens: 100_000},
	})
}

var agents = map[string]func() *agent.Definition{"refund": refundAgent, "desk": deskAgent}
