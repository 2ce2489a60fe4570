package api

import (
	"context"
	"net/http"

	"interlock/agent"
	"interlock/api/access"
	"interlock/signals"
)

// RulingLine is a ruling, and whether it binds.
type RulingLine struct {
	agent.Ruling
	Status agent.RulingStatus `json:"status"`
}

// RulingList are the rulings of a run, oldest first.
type RulingList struct {
	Address string       `json:"address"`
	Rulings []RulingLine `json:"rulings"`
}

// LiftBody says why a ruling ends.
type LiftBody struct {
	Reason string `json:"reason" minLength:"1" maxLength:"1000" doc:"it is recorded, and the model is told"`
}

// RulingPath names a ruling in a path.
type RulingPath struct {
	RunPath
	Ruling string `path:"ruling" maxLength:"200" doc:"the ruling's id"`
}

type liftInput struct {
	RulingPath
	Keyed
	Body LiftBody
}

type confirmInput struct {
	RulingPath
	Keyed
	Body *ReasonBody
}

func (s *Server) rulingRoutes() {
	handle(s, Route{Method: http.MethodGet, Path: "/v1/runs/{agent}/{key}/rulings", ID: "list-rulings", Tag: "rulings", Summary: "List what a run must not do again",
		Act: access.RulingList}, s.listRulings)
	handle(s, Route{Method: http.MethodPost, Path: "/v1/runs/{agent}/{key}/rulings/{ruling}/lift", ID: "lift-ruling", Tag: "rulings", Summary: "Lift a ruling, or drop the draft of one",
		Act: access.RulingLift, Acts: true}, s.lift)
	handle(s, Route{Method: http.MethodPost, Path: "/v1/runs/{agent}/{key}/rulings/{ruling}/confirm", ID: "confirm-ruling", Tag: "rulings", Summary: "Make a draft of the model's binding",
		Act: access.RulingConfirm, Acts: true}, s.confirm)
}

func (s *Server) listRulings(ctx context.Context, c *call, in *RunPath) (*body[RulingList], error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	run, err := s.runs.Get(ctx, address)
	if err != nil {
		return nil, err
	}
	list := RulingList{Address: address, Rulings: []RulingLine{}}
	for _, u := range run.Rulings {
		list.Rulings = append(list.Rulings, RulingLine{u, run.RulingStatus(u)})
	}
	return &body[RulingList]{list}, nil
}

func (s *Server) lift(ctx context.Context, c *call, in *liftInput) (*body[SentInput], error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	r, err := s.runs.LiftRuling(ctx, address, signals.LiftRuling{ID: c.key, Ruling: in.Ruling, Principal: c.principal(), Reason: in.Body.Reason, TraceID: c.trace})
	return c.sent(address, r, within(err))
}

func (s *Server) confirm(ctx context.Context, c *call, in *confirmInput) (*body[SentInput], error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	r, err := s.runs.ConfirmRuling(ctx, address, signals.ConfirmRuling{ID: c.key, Ruling: in.Ruling, Principal: c.principal(), Reason: given(in.Body).Reason, TraceID: c.trace})
	return c.sent(address, r, within(err))
}
