package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// Delta is a piece of a model's answer on its way. It counts for nothing: the answer
// itself follows as an event, and pieces are lost where nobody listens.
type Delta struct {
	Turn    int64  `json:"turn"`
	Attempt int64  `json:"attempt"` // where it rises, what came before counts for nothing
	N       int64  `json:"n"`       // counts the pieces of an attempt from 1; a gap tells that some were lost
	Text    string `json:"text"`
}

// GatesReady is the type of the first change: nothing has changed. Gates that are
// listed after it, and the changes that follow, are all there are.
const GatesReady = "ready"

// GateChange says that something has become of a gate; GetGate has the gate itself.
type GateChange struct {
	Place   string   `json:"-"` // FollowGates goes on behind it
	Type    string   `json:"type"`
	Address string   `json:"address"`
	Agent   string   `json:"agent"`
	Key     string   `json:"key"`
	Gate    string   `json:"gate"`
	Status  string   `json:"status"`
	Roles   []string `json:"roles"`
	Seq     int64    `json:"seq"`
}

// FollowOption changes what is followed.
type FollowOption func(*following)

type following struct {
	query url.Values
	delta func(Delta)
}

// OnDelta has the pieces of the model's answers handed to f, between the events, by
// the goroutine that ranges over them.
func OnDelta(f func(Delta)) FollowOption { return func(o *following) { o.delta = f } }

// OfRole leaves out gates that this role may not decide.
func OfRole(role string) FollowOption { return func(o *following) { o.query.Set("role", role) } }

// OfAgent leaves out gates of other agents' runs.
func OfAgent(agent string) FollowOption { return func(o *following) { o.query.Set("agent", agent) } }

func followingBy(options []FollowOption) following {
	o := following{query: url.Values{}, delta: func(Delta) {}}
	for _, f := range options {
		f(&o)
	}
	return o
}

// Follow ranges over the journal of a run from behind event after (0: from the
// first) to its end, as its events come: each once, in order, whatever becomes of
// connections and servers meanwhile. It ends with the run, or with one error: what
// coming again does not change, or that of the context. A run that was reset to an
// event before the last is such an error (conflict): it says where to go on.
func (c *Client) Follow(ctx context.Context, agent, key string, after int64, options ...FollowOption) iter.Seq2[Event, error] {
	o := followingBy(options)
	r := request{method: http.MethodGet, path: pathOf("/v1/runs/%s/%s/stream", agent, key)}
	return func(yield func(Event, error) bool) {
		last := after
		for f, err := range c.frames(ctx, r, strconv.FormatInt(after, 10)) {
			var e Event
			var d Delta
			switch {
			case err != nil:
			case f.event == "end":
				return
			case f.event == "delta":
				if err = json.Unmarshal(f.data, &d); err == nil {
					o.delta(d)
					continue
				}
			case f.event != "":
				continue // of a later server
			default:
				if err = json.Unmarshal(f.data, &e); err == nil && e.Seq <= last {
					continue
				}
				if err == nil && e.Seq != last+1 {
					err = fmt.Errorf("event %d comes after event %d", e.Seq, last)
				}
			}
			if err != nil {
				yield(Event{}, fmt.Errorf("client: follow %s/%s behind event %d: %w", agent, key, last, err))
				return
			}
			if last = e.Seq; !yield(e, nil) {
				return
			}
		}
	}
}

// FollowGates ranges over the changes of the tenant's gates from behind a place (of
// an earlier change; none: from now on), as they come: each once, whatever becomes of
// connections and servers meanwhile. The first is of type [GatesReady]. It ends with
// one error: what coming again does not change, or that of the context.
func (c *Client) FollowGates(ctx context.Context, place string, options ...FollowOption) iter.Seq2[GateChange, error] {
	r := request{method: http.MethodGet, path: "/v1/gates/stream", query: followingBy(options).query}
	return func(yield func(GateChange, error) bool) {
		ready := false
		for f, err := range c.frames(ctx, r, place) {
			change := GateChange{Place: f.id, Type: f.event}
			switch {
			case err != nil:
			case f.event == GatesReady && !ready:
				ready = true
			case f.event != "":
				continue // ready again, or of a later server
			default:
				err = json.Unmarshal(f.data, &change)
			}
			if err != nil {
				yield(GateChange{}, fmt.Errorf("client: follow gates: %w", err))
				return
			}
			if !yield(change, nil) {
				return
			}
		}
	}
}
