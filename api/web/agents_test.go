package web_test

import (
	"context"
	"time"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/llm/scripted"
	"interlock/tool"
)

// payState is the state of the tests' agent.
type payState struct {
	Customer string      `json:"customer" set:"start"`
	OrderID  string      `json:"order_id" set:"user" doc:"the order"`
	Gift     bool        `json:"gift" set:"user"`
	Count    int64       `json:"count" set:"user"`
	Note     string      `json:"note" set:"user"`
	Amount   agent.Money `json:"amount" set:"tool" follows:"order_id"`
	Card     string      `json:"card" set:"tool" sensitive:"true"`
	Paid     string      `json:"paid" set:"tool"`
}

type payStart struct {
	Customer string `json:"customer"`
}

// payment has a member of every kind that a form must keep.
type payment struct {
	OrderID string            `json:"order_id"`
	Amount  agent.Money       `json:"amount"`
	Account int64             `json:"account"`
	Urgent  bool              `json:"urgent"`
	Text    string            `json:"text,omitempty"`
	Limit   *int64            `json:"limit,omitempty"`
	Lines   []string          `json:"lines,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	To      struct {
		Name string `json:"name"`
		Bank struct {
			IBAN string `json:"iban"`
		} `json:"bank"`
	} `json:"to"`
}

type paid struct {
	ID    string `json:"id"`
	Count int64  `json:"count"`
}

type order struct {
	OrderID string `json:"order_id"`
}

type found struct {
	Amount agent.Money `json:"amount"`
	Card   string      `json:"card"`
}

// payOptions change the agent's gate.
type payOptions struct {
	risk, title, policy string
	quorum              int
	takeBack            time.Duration
	distinct            bool
	escalate            agent.Escalate
	roles               []string
}

// payAgent pays, after a person with role refunds has approved it.
func payAgent(o payOptions) *agent.Definition {
	find := tool.ReadOnly("find_order", func(context.Context, order) (found, error) { return found{}, nil },
		func(s *payState, _ order, f found) error { s.Amount, s.Card = f.Amount, f.Card; return nil })
	if o.title == "" {
		o.title = "Pay the order back"
	}
	if o.roles == nil {
		o.roles = []string{"refunds"}
	}
	if o.policy == "" {
		o.policy = "a payment needs a colleague's approval"
	}
	pay := tool.Once("pay", func(context.Context, payment) (paid, error) { return paid{}, nil },
		func(s *payState, _ payment, p paid) error { s.Paid = p.ID; return nil }).
		Gate(tool.Gate[payState, payment]{
			Policy: o.policy, Roles: o.roles, Edit: []string{agent.EveryArgument}, Reads: []string{"order_id", "amount", "card"}, Expires: 24 * time.Hour,
			Quorum: o.quorum, Distinct: o.distinct, Escalate: o.escalate, TakeBack: o.takeBack,
			Title: func(agent.Situation[payState], payment) string { return o.title },
			Risk:  func(agent.Situation[payState], payment) string { return o.risk },
		})
	return agent.Define(agent.Spec[payStart, payState]{
		Name: "pay", Version: 1, Instructions: "Pay.",
		Init: func(in payStart) (payState, error) { return payState{Customer: in.Customer}, nil },
		Phases: []agent.Phase[payState]{
			{Name: "talk", Tools: []agent.Tool[payState]{find, pay}, Moves: []agent.Move[payState]{{To: "done"}}},
			{Name: "done", Final: true},
		},
	})
}

// args are arguments of pay that careless hands change.
const args = `{"account":9007199254740993,"amount":{"currency":"EUR","minor":9223372036854775807},"labels":{"a<b":"c&d"},"limit":-9007199254740995,` +
	`"lines":["1","two"],"order_id":"1042","text":"first\nsecond\r\nthird","to":{"bank":{"iban":"DE00"},"name":"Zoë"},"urgent":false}`

// smallArgs are arguments that fit a row.
const smallArgs = `{"account":1,"amount":{"currency":"EUR","minor":8990},"order_id":"1042","to":{"bank":{"iban":"DE00"},"name":"Zoe"},"urgent":false}`

// atGate brings a run to the gate of a payment, 2.1.
func (w *world) atGate(key string, o payOptions, text string) *agenttest.Run {
	w.t.Helper()
	run := w.start(payAgent(o), key, payStart{Customer: "c-017"})
	run.Says("Please refund order 1042, it broke")
	run.Propose(scripted.SetFields("order 1042", scripted.Args{"order_id": "1042"}), scripted.Call("find_order", order{"1042"}))
	run.Done("1.1", found{agent.Money{Minor: 8990, Currency: "EUR"}, "4111 1111"})
	run.Propose(scripted.RecordFact("it broke"), scripted.Raw("pay", text))
	w.keep(run)
	return run
}

// path is the page of a gate of the agent pay.
func path(key, gate string) string { return "/runs/pay/" + key + "/gates/" + gate }
