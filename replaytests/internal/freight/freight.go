// Package freight is an agent for recorded histories of what people do to a run:
// they interrupt it, take back what it did, and decide at gates of every kind. Each
// of its tools is for one of these.
package freight

import (
	"context"
	"time"

	"interlock/agent"
	"interlock/tool"
)

// Start is what a run is started with.
type Start struct {
	OrderID string `json:"order_id"`
}

// State is what the agent knows.
type State struct {
	OrderID string `json:"order_id" set:"start"`
	Seen    string `json:"seen"     set:"tool"`
	Slot    string `json:"slot"     set:"tool" doc:"the slot on the lorry"`
	Shipped string `json:"shipped"  set:"tool"`
	Paid    string `json:"paid"     set:"tool"`
	Called  string `json:"called"   set:"tool" doc:"who was told by telephone"`
}

// Args are what every tool takes.
type Args struct {
	OrderID string `json:"order_id"`
	Boxes   int    `json:"boxes"`
}

// Mark is what every tool answers.
type Mark struct {
	Mark string `json:"mark"`
}

// Taken is what is undone.
type Taken = tool.Done[Args, Mark]

// World is what the tools do. Zero is for replays: nothing is ever called then.
type World struct {
	Track   func(context.Context, Args) (Mark, error)
	Reserve func(context.Context, tool.Key, Args) (Mark, error)
	Ship    func(context.Context, tool.Key, Args) (Mark, error)
	Ring    func(context.Context, Args) (Mark, error)
	Pay     func(context.Context, tool.Key, Args) (Mark, error)
	Release func(context.Context, tool.Key, Taken) (Mark, error)
}

// How long the gates wait. A replay never waits: what is recorded is that it did.
const (
	takeBack = 2 * time.Second
	escalate = time.Second
	expires  = 2 * time.Second
)

// The roles of those who decide.
const (
	Clerk = "clerk"
	Lead  = "lead"
)

// Agent is the agent's definition.
func Agent(w World) *agent.Definition {
	slot := func(s *State, _ Args, m Mark) error { s.Slot = m.Mark; return nil }
	paid := func(s *State, _ Args, m Mark) error { s.Paid = m.Mark; return nil }
	release := tool.Keyed("release", w.Release, func(s *State, _ Taken, _ Mark) error { s.Slot = ""; return nil })
	pay := func(name, doc string, g tool.Gate[State, Args]) agent.Tool[State] {
		return tool.Keyed(name, w.Pay, paid).Doc(doc).Gate(g)
	}
	tools := []agent.Tool[State]{
		tool.ReadOnly("track", w.Track, func(s *State, _ Args, m Mark) error { s.Seen = m.Mark; return nil }).Doc("Finds the boxes."),
		tool.Keyed("reserve", w.Reserve, slot).Doc("Takes a slot on the lorry.").Undo(release).OnCut(agent.CutUndo),
		tool.Keyed("ship", w.Ship, func(s *State, _ Args, m Mark) error { s.Shipped = m.Mark; return nil }).Doc("Has the boxes fetched."),
		tool.Once("ring", w.Ring, func(s *State, _ Args, m Mark) error { s.Called = m.Mark; return nil }).Doc("Tells the receiver by telephone."),
		pay("pay", "Pays the carrier.", tool.Gate[State, Args]{Roles: []string{Clerk}, Edit: []string{agent.EveryArgument}}),
		pay("pay_two", "Pays the carrier much.", tool.Gate[State, Args]{Roles: []string{Clerk}, Edit: []string{agent.EveryArgument}, Quorum: 2}),
		pay("pay_later", "Pays the carrier, unless somebody thinks better of it.", tool.Gate[State, Args]{Roles: []string{Clerk}, Edit: []string{agent.EveryArgument}, TakeBack: takeBack}),
		pay("pay_soon", "Pays the carrier, if at all soon.", tool.Gate[State, Args]{Roles: []string{Clerk}, Edit: []string{agent.EveryArgument}, Expires: expires,
			Escalate: agent.Escalate{After: escalate, Roles: []string{Lead}}}),
	}
	return agent.Define(agent.Spec[Start, State]{
		Name: "freight", Version: 1, Instructions: "Bring the boxes on their way.",
		Init: func(in Start) (State, error) { return State{OrderID: in.OrderID}, nil },
		Phases: []agent.Phase[State]{
			{Name: "plan", Tools: tools, Moves: []agent.Move[State]{{To: "closed"}}},
			{Name: "closed", Final: true, Say: func(agent.Situation[State]) string { return "That was all." }},
		},
	})
}
