// Package trip is a sample agent whose user changes their mind while its tools
// run: one is waited for, one is let go, and one is told to stop and undone.
package trip

import (
	"context"
	_ "embed"

	"interlock/agent"
	"interlock/tool"
)

//go:embed instructions.md
var instructions string

// Start is the start input.
type Start struct {
	Traveller string `json:"traveller"`
}

// State is what a run knows.
type State struct {
	Traveller string `json:"traveller" set:"start"`
	Flight    string `json:"flight"    set:"tool"`
	Car       string `json:"car"       set:"tool"`
	Hotel     string `json:"hotel"     set:"tool"`
}

// Where is what each tool takes: a place, or a flight's number.
type Where struct {
	To string `json:"to"`
}

// Agent is the travel agent, over a desk.
func Agent(desk *Desk) *agent.Definition {
	release := tool.Keyed("release_flight", func(ctx context.Context, key tool.Key, d tool.Done[Where, Booked]) (Booked, error) {
		return desk.Release(ctx, key, d.Result.ID)
	}, func(s *State, _ tool.Done[Where, Booked], _ Booked) error { s.Flight = ""; return nil })
	flight := tool.Keyed("book_flight", desk.Flight, func(s *State, _ Where, b Booked) error { s.Flight = b.ID; return nil }).
		Doc("Books a seat.").Undo(release).OnCut(agent.CutUndo)
	car := tool.Keyed("reserve_car", desk.Car, func(s *State, _ Where, b Booked) error { s.Car = b.ID; return nil }).
		Doc("Reserves a car, without charge.")
	hotels := tool.ReadOnly("compare_hotels", desk.Hotels, func(s *State, _ Where, b Booked) error { s.Hotel = b.ID; return nil }).
		Doc("Looks for the cheapest hotel.")
	return agent.Define(agent.Spec[Start, State]{
		Name: "trip", Version: 1, Instructions: instructions, OnMessage: agent.MessageInterrupt,
		Init: func(in Start) (State, error) { return State{Traveller: in.Traveller}, nil },
		Phases: []agent.Phase[State]{
			{Name: "plan", Tools: []agent.Tool[State]{flight, car, hotels}, Moves: []agent.Move[State]{{To: "done"}}},
			{Name: "done", Final: true},
		},
	})
}
