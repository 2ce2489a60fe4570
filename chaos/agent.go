package main

import (
	"context"
	"database/sql"
	"net/netip"
	"time"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/tool"
)

const (
	agentName = "chaos"
	tenant    = "chaos"
)

// An attempt of a tool, and all attempts of it. Together with what the tool
// package adds to an attempt, the next one of a Reconcilable tool asks after 32 s.
const (
	attemptTime  = 2 * time.Second
	deadline     = time.Minute
	mayActWithin = attemptTime + tool.Overhead + tool.Grace
)

// maxTurns is when the model gives up: then something is wrong.
const maxTurns = 25

type begin struct {
	ID string `json:"id"`
}

type state struct {
	ID     string `json:"id" set:"start"`
	Looked string `json:"looked" set:"tool"`
	Sent   string `json:"sent" set:"tool"`
	Order  string `json:"order" set:"tool"`
	Paid   string `json:"paid" set:"tool"`
	Booked string `json:"booked" set:"tool"`
	Fired  string `json:"fired" set:"tool"`
}

// thing is what each tool is called with: the run's id.
type thing struct {
	ID string `json:"id"`
}

type receipt struct {
	Ref string `json:"ref"`
}

// receiptOf is the only result that a tool's effect has.
func receiptOf(tool, id string) receipt { return receipt{Ref: tool + "-" + id} }

// definition is an agent with a tool of each effect. All but pay act on the
// harness, by requests as the tool package makes them.
func definition(url string, db *sql.DB, how breakage) *agent.Definition {
	at := func(path string) tool.HTTP {
		return tool.HTTP{URL: url + path, Header: carried, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	}
	fetch := tool.Fetch[thing, receipt](at("/look/{id}"))
	shoot := effect(tool.Send[thing, receipt](at("/fire/{id}")))
	looks := tool.ReadOnly(look, func(ctx context.Context, a thing) (receipt, error) { return fetch(ctx, a) },
		func(s *state, _ thing, r receipt) error { s.Looked = r.Ref; return nil })
	sends := tool.Keyed(send, effect(tool.Send[thing, receipt](at("/send/{id}"))),
		func(s *state, _ thing, r receipt) error { s.Sent = r.Ref; return nil })
	orders := tool.Keyed(order, effect(tool.Send[thing, receipt](at("/order/{id}"))),
		func(s *state, _ thing, r receipt) error { s.Order = r.Ref; return nil })
	pays := tool.Transactional(pay, db, payment, func(s *state, _ thing, r receipt) error { s.Paid = r.Ref; return nil })
	books := tool.Reconcilable(book, effect(tool.Send[thing, receipt](at("/book/{id}"))), tool.LookUp[thing, receipt](at("/booked/{$key}")),
		func(s *state, _ thing, r receipt) error { s.Booked = r.Ref; return nil })
	// The other side of fire heeds no key; a Send must have one.
	fires := tool.Once(fire, func(ctx context.Context, a thing) (receipt, error) { return shoot(ctx, "none", a) },
		func(s *state, _ thing, r receipt) error { s.Fired = r.Ref; return nil })
	tools := []agent.Tool[state]{looks}
	for _, t := range []*tool.Tool[state, thing, receipt]{sends, orders, pays, books, fires} {
		tools = append(tools, observedTool{t.Within(attemptTime, deadline), how})
	}
	return agent.Define(agent.Spec[begin, state]{
		Name: agentName, Version: 1, Instructions: "Do everything once.",
		Init: func(in begin) (state, error) { return state{ID: in.ID}, nil },
		Phases: []agent.Phase[state]{
			{Name: "work", Tools: tools, Moves: []agent.Move[state]{{To: "end"}}},
			{Name: "end", Final: true, Say: func(agent.Situation[state]) string { return "That was all." }},
		},
		Budget: agent.Budget{Turns: -1, ModelCalls: -1, Tokens: -1, Active: 24 * time.Hour, Refusals: -1, ToolErrors: -1, SameCall: -1},
	})
}

// effect reaches the windows around a tool's request.
func effect(run func(context.Context, tool.Key, thing) (receipt, error)) func(context.Context, tool.Key, thing) (receipt, error) {
	return func(ctx context.Context, k tool.Key, a thing) (receipt, error) {
		at := attemptOf(ctx)
		at.reach(toEffect)
		r, err := run(ctx, k, a)
		if err == nil || tool.IsRefused(err) {
			at.reach(toSettle)
		}
		return r, err
	}
}

// payment is the effect in the product's database.
func payment(ctx context.Context, tx *sql.Tx, a thing) (receipt, error) {
	at := attemptOf(ctx)
	at.reach(toEffect)
	if _, err := tx.ExecContext(ctx, `INSERT INTO payments (id) VALUES ($1)`, a.ID); err != nil {
		return receipt{}, err
	}
	at.reach(toSettle)
	return receiptOf(pay, a.ID), nil
}

// script has each tool called until it has its result: look first, then all
// others side by side. A fire that is known not to have happened is given up.
func script() llm.Model {
	return scripted.Func("scripted", func(r llm.Request) llm.Response {
		v := r.View
		id, field := scripted.Field[string](v, "id"), func(name string) bool { return scripted.Field[string](v, name) != "" }
		if !field("looked") && v.Turn < maxTurns {
			return scripted.Call(look, thing{id})
		}
		var calls []llm.Response
		for _, t := range []struct{ tool, field string }{{send, "sent"}, {order, "order"}, {pay, "paid"}, {book, "booked"}, {fire, "fired"}} {
			if !field(t.field) && !(t.tool == fire && called(v, fire)) {
				calls = append(calls, scripted.Call(t.tool, thing{id}))
			}
		}
		if len(calls) == 0 || v.Turn >= maxTurns {
			return scripted.MoveTo("end")
		}
		return scripted.Then(calls...)
	})
}

func called(v agent.View, tool string) bool {
	_, ok := scripted.Answer(v, tool)
	return ok
}
