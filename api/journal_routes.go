package api

import (
	"context"
	"fmt"
	"net/http"

	"interlock/agent"
	"interlock/api/access"
)

// EventPage is a part of a run's journal, sensitive fields masked.
type EventPage struct {
	Events []agent.Event `json:"events"`
	After  int64         `json:"after" doc:"the seq of the last event here: the next page's after"`
	More   bool          `json:"more" doc:"there are more events now"`
}

// Exported is a run whole: what it is, and all events that made it. It is the
// document that interlock run export --journal writes, sensitive fields masked.
type Exported struct {
	Run    agent.Run     `json:"run"`
	Events []agent.Event `json:"events"`
}

type eventsInput struct {
	RunPath
	After int64 `query:"after" minimum:"0" doc:"the seq of the last event that is known; 0: from the first on"`
	Size  int   `query:"page_size" doc:"how many at most" minimum:"1" maximum:"200" default:"50"`
}

type stateInput struct {
	RunPath
	Seq int64 `query:"seq" required:"true" minimum:"1" doc:"the event up to which the run is shown"`
}

type contextInput struct {
	RunPath
	Turn int `query:"turn" required:"true" minimum:"1" doc:"the turn whose model call is shown"`
}

type exportOutput struct {
	Name string `header:"Content-Disposition"`
	Body Exported
}

func (s *Server) journalRoutes() {
	handle(s, Route{Method: http.MethodGet, Path: "/v1/runs/{agent}/{key}/events", ID: "list-events", Tag: "journal", Summary: "Read a run's journal", Act: access.RunEvents}, s.listEvents)
	handle(s, Route{Method: http.MethodGet, Path: "/v1/runs/{agent}/{key}/state", ID: "get-state", Tag: "journal", Summary: "Get a run as it stood after an event", Act: access.RunEvents}, s.stateAt)
	handle(s, Route{Method: http.MethodGet, Path: "/v1/runs/{agent}/{key}/context", ID: "get-context", Tag: "journal", Summary: "Get what the model was shown in a turn", Act: access.RunContext}, s.contextOf)
	handle(s, Route{Method: http.MethodGet, Path: "/v1/runs/{agent}/{key}/export", ID: "export-run", Tag: "journal", Summary: "Get a run and all its events as one file", Act: access.RunExport}, s.export)
}

func (s *Server) listEvents(ctx context.Context, c *call, in *eventsInput) (*body[EventPage], error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	chain := chainOf(c.caller.Tenant, address)
	events, err := s.reads.Events(ctx, chain, in.After+1, in.Size+1)
	if err != nil {
		return nil, err
	}
	events, more := cut(events, in.Size)
	page := EventPage{Events: []agent.Event{}, After: in.After, More: more}
	if len(events) == 0 {
		return &body[EventPage]{page}, nil
	}
	page.Events, page.After = events, events[len(events)-1].Seq
	return &body[EventPage]{page}, nil
}

// journal is a run's events up to one, all of them for 0.
func (s *Server) journal(ctx context.Context, c *call, address string, upTo int64) ([]agent.Event, error) {
	if upTo > 0 { // a number beyond the end must not read the whole of it
		row, err := s.reads.RunRow(ctx, chainOf(c.caller.Tenant, address))
		if err == nil && upTo > row.Seq {
			err = access.NotFound()
		}
		if err != nil {
			return nil, err
		}
	}
	events, err := s.reads.Events(ctx, chainOf(c.caller.Tenant, address), 1, int(upTo))
	if err == nil && (len(events) == 0 || int64(len(events)) < upTo) {
		err = access.NotFound()
	}
	return events, err
}

func (s *Server) stateAt(ctx context.Context, c *call, in *stateInput) (*body[ShownRun], error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	events, err := s.journal(ctx, c, address, in.Seq)
	if err != nil {
		return nil, err
	}
	run, err := agent.Reduce(events)
	if err != nil {
		return nil, err
	}
	return &body[ShownRun]{ShownRun{Run: *run, Address: address, Waits: run.Waits()}}, nil
}

func (s *Server) contextOf(ctx context.Context, c *call, in *contextInput) (*body[agent.View], error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	events, err := s.journal(ctx, c, address, 0)
	if err != nil {
		return nil, err
	}
	view, err := agent.ViewAt(events, in.Turn)
	return &body[agent.View]{view}, within(err)
}

func (s *Server) export(ctx context.Context, c *call, in *RunPath) (*exportOutput, error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	events, err := s.journal(ctx, c, address, 0)
	if err != nil {
		return nil, err
	}
	run, err := agent.Reduce(events)
	if err != nil {
		return nil, err
	}
	return &exportOutput{fmt.Sprintf(`attachment; filename="%s-%s.json"`, in.Agent, in.Key), Exported{*run, events}}, nil
}
