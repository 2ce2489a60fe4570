package main

import (
	"context"
	"fmt"
	"time"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/tool"
)

// begin is the start input: how many turns the run is to have.
type begin struct {
	Turns int `json:"turns"`
}

type state struct {
	Turns int    `json:"turns" set:"start"`
	Seen  int    `json:"seen" set:"tool" doc:"the latest page that was looked up"`
	Title string `json:"title" set:"tool" doc:"its title"`
}

type lookup struct {
	Page int `json:"page"`
}

// page is a result of about 1 KB, with the structure that results have: one
// long text would be kinder to whoever parses it.
type page struct {
	Page  int    `json:"page"`
	Title string `json:"title"`
	Lines []line `json:"lines"`
}

type line struct {
	SKU      string      `json:"sku"`
	Name     string      `json:"name"`
	Quantity int         `json:"quantity"`
	Price    agent.Money `json:"price"`
	Note     string      `json:"note,omitempty"`
}

func find(_ context.Context, l lookup) (page, error) {
	p := page{Page: l.Page, Title: fmt.Sprintf("Page %d of the catalogue", l.Page)}
	for i := range 7 {
		p.Lines = append(p.Lines, line{SKU: fmt.Sprintf("SKU-%04d-%d", l.Page, i), Name: "Garden chair <oak & steel>", Quantity: 3 + i,
			Price: agent.Money{Minor: int64(8990 + l.Page + i), Currency: "EUR"}, Note: "ships in 3 days"})
	}
	return p, nil
}

// definition is an agent whose run has as many turns as its start input says:
// each looks one page up. Then the model replies, without a call, and an Auto
// move ends the run; that reply is no turn in the sense of the benchmark.
func definition(name string, quick bool) *agent.Definition {
	look := tool.ReadOnly("look_up", find, func(s *state, _ lookup, p page) error {
		s.Seen, s.Title = p.Page, p.Title
		return nil
	}).Doc("Looks a page of the catalogue up.")
	if quick {
		look.Quick()
	}
	return agent.Define(agent.Spec[begin, state]{
		Name: name, Version: 1, Instructions: "You read the catalogue, page by page.",
		Init: func(in begin) (state, error) { return state{Turns: in.Turns}, nil },
		Phases: []agent.Phase[state]{
			{Name: "read", Doc: "Look all pages up.", Tools: []agent.Tool[state]{look},
				Moves: []agent.Move[state]{{To: "done", Auto: true, When: func(s agent.Situation[state]) error {
					if s.State.Seen < s.State.Turns {
						return fmt.Errorf("page %d comes next", s.State.Seen+1)
					}
					return nil
				}}}},
			{Name: "done", Final: true, Say: func(agent.Situation[state]) string { return "That was the catalogue." }},
		},
		Budget: agent.Budget{Turns: -1, ModelCalls: -1, Tokens: -1, Active: 24 * time.Hour},
	})
}

// model answers at once, with fresh arguments in each turn.
func model() *scripted.Model {
	return scripted.Func("scripted", func(r llm.Request) llm.Response {
		if r.View.Turn > scripted.Field[int](r.View, "turns") {
			return scripted.Say("All pages are read.")
		}
		return scripted.Call("look_up", lookup{Page: r.View.Turn})
	})
}
