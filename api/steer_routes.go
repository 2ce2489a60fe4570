package api

import (
	"context"
	"net/http"

	"interlock/agent"
	"interlock/api/access"
	"interlock/signals"
	"interlock/starter"
)

// SentInput is what was sent to a run, and what the run says to it.
type SentInput struct {
	Address string        `json:"address"`
	ID      string        `json:"id" doc:"the Idempotency-Key, which is the input's id in the run"`
	Receipt agent.Receipt `json:"receipt"`
}

// MessageBody is what the user says.
type MessageBody struct {
	Text   string `json:"text" minLength:"1" maxLength:"65536"`
	Policy string `json:"policy,omitempty" enum:"queue,reject,interrupt,rollback" doc:"what the message does while the run is busy; none: the agent's own"`
	AsUser string `json:"as_user,omitempty" maxLength:"200"`
}

// CancelBody says why a run is ended, and what is undone before.
type CancelBody struct {
	Reason string `json:"reason,omitempty" maxLength:"1000"`
	Undo   string `json:"undo,omitempty" enum:"none,turn,run"`
	AsUser string `json:"as_user,omitempty" maxLength:"200"`
}

// AmendBody sets fields of the state from outside.
type AmendBody struct {
	Fields agent.JSON `json:"fields" doc:"an object: each field's new value, whole; null sets its zero value"`
	Reason string     `json:"reason,omitempty" maxLength:"1000"`
	AsUser string     `json:"as_user,omitempty" maxLength:"200"`
}

// ReasonBody says why.
type ReasonBody struct {
	Reason string `json:"reason,omitempty" maxLength:"1000"`
}

// UndoBody names steps that happened.
type UndoBody struct {
	Steps  []string `json:"steps" minItems:"1" maxItems:"100" doc:"such as 3.1: all of them are undone, or none"`
	Reason string   `json:"reason" minLength:"1" maxLength:"1000" doc:"the model is told"`
}

type (
	messageInput struct {
		RunPath
		Keyed
		Body MessageBody
	}
	cancelInput struct {
		RunPath
		Keyed
		Body *CancelBody
	}
	amendInput struct {
		RunPath
		Keyed
		Body AmendBody
	}
	reasonInput struct {
		RunPath
		Keyed
		Body *ReasonBody
	}
	undoInput struct {
		RunPath
		Keyed
		Body UndoBody
	}
)

func (s *Server) steerRoutes() {
	route := func(name, summary string, act access.Act) Route {
		return Route{Method: http.MethodPost, Path: "/v1/runs/{agent}/{key}/" + name, ID: string(act) + "-run", Tag: "steering", Summary: summary, Act: act, Acts: true}
	}
	handle(s, route("messages", "Tell a run what the user says", access.Message), s.message)
	handle(s, route("cancel", "End a run", access.Cancel), s.cancel)
	handle(s, route("amend", "Set fields of a run's state from outside", access.Amend), s.amend)
	handle(s, route("pause", "Stop a run until it is resumed", access.Pause), s.pause)
	handle(s, route("resume", "Let a paused run go on", access.Resume), s.resume)
	handle(s, route("undo", "Undo steps that happened", access.Undo), s.undo)
}

// sent is the answer to an input.
func (c *call) sent(address string, r agent.Receipt, err error) (*body[SentInput], error) {
	if err != nil {
		return nil, err
	}
	return &body[SentInput]{SentInput{address, c.key, r}}, nil
}

func (s *Server) message(ctx context.Context, c *call, in *messageInput) (*body[SentInput], error) {
	c.asUser = in.Body.AsUser
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	r, err := s.runs.Message(ctx, address, signals.Message{ID: c.key, Principal: c.principal(), Text: in.Body.Text, Policy: agent.MessagePolicy(in.Body.Policy), TraceID: c.trace})
	return c.sent(address, r, err)
}

func (s *Server) cancel(ctx context.Context, c *call, in *cancelInput) (*body[SentInput], error) {
	b := given(in.Body)
	c.asUser = b.AsUser
	undo := agent.UndoScope(b.Undo)
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{Undo: undo})
	if err != nil {
		return nil, err
	}
	r, err := s.runs.Cancel(ctx, address, signals.Cancel{ID: c.key, Principal: c.principal(), Reason: b.Reason, Undo: undo, TraceID: c.trace})
	return c.sent(address, r, err)
}

func (s *Server) amend(ctx context.Context, c *call, in *amendInput) (*body[SentInput], error) {
	c.asUser = in.Body.AsUser
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	r, err := s.runs.Amend(ctx, address, signals.Amend{ID: c.key, Principal: c.principal(), Fields: in.Body.Fields, Reason: in.Body.Reason, TraceID: c.trace})
	return c.sent(address, r, err)
}

func (s *Server) pause(ctx context.Context, c *call, in *reasonInput) (*body[SentInput], error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	r, err := s.runs.Pause(ctx, address, signals.Pause{ID: c.key, Principal: c.principal(), Reason: given(in.Body).Reason, TraceID: c.trace})
	return c.sent(address, r, err)
}

func (s *Server) resume(ctx context.Context, c *call, in *reasonInput) (*body[SentInput], error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	r, err := s.runs.Resume(ctx, address, signals.Resume{ID: c.key, Principal: c.principal(), Reason: given(in.Body).Reason, TraceID: c.trace})
	return c.sent(address, r, err)
}

func (s *Server) undo(ctx context.Context, c *call, in *undoInput) (*body[starter.Undone], error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	out, err := s.runs.Undo(ctx, address, signals.Undo{ID: c.key, Principal: c.principal(), Steps: in.Body.Steps, Reason: in.Body.Reason, TraceID: c.trace})
	if err != nil {
		return nil, within(err)
	}
	return &body[starter.Undone]{out}, nil
}

// given is an optional body.
func given[T any](b *T) (v T) {
	if b != nil {
		v = *b
	}
	return v
}
