// Package parcel is a small agent for recorded histories: what the refund does
// not have. Its model may call three tools in one turn, one of them with an
// effect, and a quick one; its phases move without a person.
package parcel

import (
	"context"
	"errors"

	"interlock/agent"
	"interlock/tool"
)

// Start is what a run is started with.
type Start struct {
	ParcelID string `json:"parcel_id"`
}

// State is what the agent knows.
type State struct {
	ParcelID string      `json:"parcel_id" set:"start"`
	Depot    string      `json:"depot"     set:"tool" doc:"where the parcel lies"`
	Fee      agent.Money `json:"fee"       set:"tool" doc:"what it costs to send it back"`
	HoldID   string      `json:"hold_id"   set:"tool" doc:"the hold, once the parcel is kept at its depot"`
	Zone     string      `json:"zone"      set:"tool"`
	Remark   string      `json:"remark,omitempty" set:"system" doc:"what the depot adds"`
}

// Args names the parcel; every tool takes it.
type Args struct {
	ParcelID string `json:"parcel_id"`
}

// Results of the tools.
type (
	Place struct {
		Depot string `json:"depot"`
	}
	Quote struct {
		Fee agent.Money `json:"fee"`
	}
	Hold struct {
		ID string `json:"id"`
	}
	Zone struct {
		Name string `json:"name"`
	}
)

// World is what the tools do, and what a variant of the agent decides otherwise.
// Zero is the agent as it is; the functions are then never to be called.
type World struct {
	Locate func(context.Context, Args) (Place, error)
	Quote  func(context.Context, Args) (Quote, error)
	Hold   func(context.Context, tool.Key, Args) (Hold, error)
	Zone   func(context.Context, Args) (Zone, error)

	Surcharge int64 // added by Commit: a changed Commit
	NeedsZone bool  // asked by the guard of check: a changed guard
	Version   int   // 0: 1
	Limits    agent.Limits
}

// Agent is the agent's definition.
func Agent(w World) *agent.Definition {
	locate := tool.ReadOnly("locate", w.Locate, func(s *State, _ Args, p Place) error { s.Depot = p.Depot; return nil }).Doc("Finds the parcel.")
	quote := tool.ReadOnly("quote", w.Quote, func(s *State, _ Args, q Quote) error {
		s.Fee = q.Fee
		s.Fee.Minor += w.Surcharge
		return nil
	}).Doc("Says what sending it back costs.")
	hold := tool.Keyed("hold", w.Hold, func(s *State, _ Args, h Hold) error { s.HoldID = h.ID; return nil }).Doc("Keeps the parcel at its depot.")
	zone := tool.ReadOnly("zone", w.Zone, func(s *State, _ Args, z Zone) error { s.Zone = z.Name; return nil }).Doc("Says in which zone the parcel is.").Quick()
	return agent.Define(agent.Spec[Start, State]{
		Name: "parcel", Version: max(w.Version, 1), Instructions: "Find the parcel, keep it where it is, and say what sending it back costs.",
		Init: func(in Start) (State, error) { return State{ParcelID: in.ParcelID}, nil },
		Phases: []agent.Phase[State]{
			{Name: "look", Tools: []agent.Tool[State]{locate, quote, hold, zone}, Moves: []agent.Move[State]{{To: "check", When: w.found}}},
			{Name: "check", Moves: []agent.Move[State]{{To: "closed"}, {To: "look"}}},
			{Name: "closed", Final: true},
		},
		Limits: w.Limits,
	})
}

// found guards the phase check.
func (w World) found(s agent.Situation[State]) error {
	switch {
	case s.State.Depot == "":
		return errors.New("the parcel is not found yet")
	case w.NeedsZone && s.State.Zone == "":
		return errors.New("the zone is not known yet")
	}
	return nil
}
