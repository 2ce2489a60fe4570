package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/sse"
	"interlock/signals"
	"interlock/store"
)

// LiveDelta is a piece of a model's answer while it is being received: an event of a
// stream without an id. The answer itself follows as an event of the journal.
type LiveDelta struct {
	Turn    int    `json:"turn"`
	Attempt int    `json:"attempt" doc:"where it rises, what came before counts for nothing"`
	N       int    `json:"n" doc:"counts the pieces of an attempt from 1; a gap tells that some were lost"`
	Text    string `json:"text"`
}

// GateChange says that something has become of a gate; the gate itself is asked for
// by its own path.
type GateChange struct {
	Type    agent.EventType  `json:"type"`
	Address string           `json:"address"`
	Agent   string           `json:"agent"`
	Key     string           `json:"key"`
	Gate    string           `json:"gate"`
	Status  agent.GateStatus `json:"status"`
	Roles   []string         `json:"roles,omitempty"`
	Seq     int64            `json:"seq" doc:"of the run's event"`
}

// LastEvent is what a client that comes again sends by itself.
type LastEvent struct {
	Last string `header:"Last-Event-ID" maxLength:"100" doc:"the id of the last event that was received; it goes on behind it"`
}

type streamInput struct {
	RunPath
	LastEvent
	After int64 `query:"after" minimum:"0" doc:"where there is no Last-Event-ID: the seq of the last event that is known"`
}

type gateStreamInput struct {
	LastEvent
	Role  string `query:"role" maxLength:"200" doc:"only gates that this role may decide"`
	Agent string `query:"agent" maxLength:"64"`
}

func (s *Server) streamRoutes() {
	handle(s, Route{Method: http.MethodGet, Path: "/v1/runs/{agent}/{key}/stream", ID: "stream-events", Tag: "journal", Act: access.RunEvents, Stream: true,
		Summary: "Follow a run's journal as server-sent events: one for each event, its seq and the run it is of as id; delta: a piece of an answer on its way; end: the run has ended"}, s.streamEvents)
	handle(s, Route{Method: http.MethodGet, Path: "/v1/gates/stream", ID: "stream-gates", Tag: "gates", Act: access.GateList, Stream: true,
		Summary: "Follow the tenant's gates as server-sent events. The first, ready, names the place from which nothing is missed: list the gates after it"}, s.streamGates)
}

func (s *Server) streamEvents(ctx context.Context, c *call, in *streamInput) (*huma.StreamResponse, error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	run, after := chainOf(c.caller.Tenant, address), in.After
	if in.Last != "" {
		if after, err = s.place(ctx, c, &run, in.Last); err != nil {
			return nil, err
		}
	}
	var answered atomic.Int64 // the turn
	from := func(ctx context.Context) sse.Source {
		return s.eventsOf(ctx, run, after, &answered)
	}
	return s.stream(ctx, c, from, func(ctx context.Context) <-chan sse.Frame {
		return s.deltasOf(ctx, run, &answered)
	})
}

// placeOf is the id of an event in the stream of its run. Runs that follow one another
// under one key have the same numbers: whoever comes again after the next has begun
// would miss its beginning, and the end of the one before.
func placeOf(seq int64, run store.Chain) string {
	return strconv.FormatInt(seq, 10) + "." + run.FirstRunID
}

// place reads the id of an event, and names the run that it is of, which must serve the
// caller too. A number alone is an event of the run that stands there now.
func (s *Server) place(ctx context.Context, c *call, run *store.Chain, id string) (after int64, err error) {
	number, first, named := strings.Cut(id, ".")
	none := agent.Errorf(agent.CodeInvalid, "Last-Event-ID %q is none of this stream's: it is the id of an event that was received, or its seq alone", id)
	if after, err = strconv.ParseInt(number, 10, 64); err != nil || after < 0 || named && first == "" {
		return 0, none
	}
	if run.FirstRunID = first; !named {
		return after, nil
	}
	row, err := s.reads.RunRow(ctx, *run)
	if code := agent.ErrorCode(err); code == agent.CodeNotFound || code == agent.CodeInvalid {
		return 0, none
	}
	if err == nil {
		err = access.Check(c.caller, c.act, access.On{Tenant: run.Tenant, Run: run.Address, User: row.User, AsUser: c.asUser})
	}
	return after, err
}

// eventsOf is a run's journal, redacted, and its end. What an event tells of as sensitive
// is hidden in those before it, too, as far as they are in the journal together.
func (s *Server) eventsOf(ctx context.Context, run store.Chain, after int64, answered *atomic.Int64) sse.Source {
	return func(yield func(sse.Frame, error) bool) {
		var known agent.Follow
		for e, err := range s.runs.WatchRun(ctx, &run, after) {
			if err == nil && e.Seq > known.Seq() {
				err = store.Learn(ctx, s.reads, run, &known)
			}
			if err != nil {
				if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
					yield(sse.Frame{}, err)
				}
				return
			}
			if e.EndsCall() {
				answered.Store(int64(e.Turn))
			}
			if !yield(sse.Frame{ID: placeOf(e.Seq, run), Data: agent.Redacted(known.Redaction(), e)}, nil) {
				return
			}
		}
		yield(sse.Frame{Event: "end", Data: struct{}{}}, nil)
	}
}

// deltasOf are the pieces of a run's answers, but for those of an answer that has
// been shown whole.
func (s *Server) deltasOf(ctx context.Context, run store.Chain, answered *atomic.Int64) <-chan sse.Frame {
	live := &store.Live{Reader: s.reads, Chain: run}
	heard := s.reads.Hear(ctx, store.Scope{Tenant: run.Tenant, Address: run.Address})
	return sse.Map(ctx, heard, func(d store.Delta) sse.Frame {
		stale := func() bool { return int64(d.Turn) <= answered.Load() }
		return sse.Frame{Event: "delta", Data: LiveDelta{d.Turn, d.Attempt, d.N, live.Text(ctx, d)}, Stale: stale}
	})
}

func (s *Server) streamGates(ctx context.Context, c *call, in *gateStreamInput) (*huma.StreamResponse, error) {
	place, err := store.Place(ctx, s.reads, c.caller.Tenant, in.Last) // one that is none is told now, and not in the stream
	if err != nil {
		return nil, err
	}
	from := func(ctx context.Context) sse.Source { return s.gatesOf(ctx, c.caller.Tenant, *in, place) }
	return s.stream(ctx, c, from, func(context.Context) <-chan sse.Frame { return nil })
}

// gatesOf are the changes of a tenant's gates behind a place.
func (s *Server) gatesOf(ctx context.Context, tenant string, in gateStreamInput, place string) sse.Source {
	return func(yield func(sse.Frame, error) bool) {
		wake := s.reads.Follow(ctx, store.Scope{Tenant: tenant})
		if !yield(sse.Frame{ID: place, Event: "ready", Data: struct{}{}}, nil) {
			return
		}
		for {
			found, next, err := s.reads.Appended(ctx, store.FeedFilter{Tenant: tenant, After: place, Types: agent.GateEvents})
			for _, a := range found {
				var change *GateChange
				if change, err = s.gateChange(ctx, a, in); err != nil {
					break
				}
				if change != nil && !yield(sse.Frame{ID: a.Place, Data: change}, nil) {
					return
				}
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(sse.Frame{}, err)
				}
				return
			}
			place = next
			if len(found) > 0 {
				continue // there may be more
			}
			select {
			case <-ctx.Done():
				return
			case <-wake:
			}
		}
	}
}

// gateChange is what an inbox is told of an event; nil where it is none of it.
func (s *Server) gateChange(ctx context.Context, a store.Appended, in gateStreamInput) (*GateChange, error) {
	_, name, key, _ := signals.SplitAddress(a.Address)
	if a.Superseded || in.Agent != "" && in.Agent != name {
		return nil, nil
	}
	var d struct { // of whichever of the events it is
		Gate   json.RawMessage
		Status agent.GateStatus
		Roles  []string
	}
	if err := json.Unmarshal(a.Event.Data, &d); err != nil {
		return nil, err
	}
	out := &GateChange{Type: a.Event.Type, Address: a.Address, Agent: name, Key: key, Status: agent.GateOpen, Roles: d.Roles, Seq: a.Event.Seq}
	if d.Status != "" {
		out.Status = d.Status
	}
	var opened agent.Gate
	if a.Event.Type == agent.EventGateOpened {
		if err := json.Unmarshal(d.Gate, &opened); err != nil {
			return nil, err
		}
		out.Gate, out.Roles = opened.ID, opened.Roles
	} else if err := json.Unmarshal(d.Gate, &out.Gate); err != nil {
		return nil, err
	}
	if in.Role == "" || slices.Contains(out.Roles, in.Role) {
		return out, nil
	}
	if a.Event.Type == agent.EventGateOpened {
		return nil, nil
	}
	may, err := s.mayDecide(ctx, a, out.Gate, in.Role)
	if err != nil || !may {
		return nil, err
	}
	return out, nil
}

// mayDecide reports whether a role may decide a gate: what tells of its change does
// not name them.
func (s *Server) mayDecide(ctx context.Context, a store.Appended, gate, role string) (bool, error) {
	rows, err := s.reads.GateRows(ctx, a.Tenant, store.GateFilter{Address: a.Address, Role: role, Limit: 500})
	return slices.ContainsFunc(rows, func(r store.GateRow) bool { return r.FirstRunID == a.FirstRunID && r.Gate.ID == gate }), err
}
