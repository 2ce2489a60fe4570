package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/sse"
	"interlock/api/visible"
	"interlock/api/words"
	"interlock/signals"
	"interlock/store"
)

// A page that is open is told that something has changed, and asks for its part
// again: what it may show is decided there, and nowhere else. A hint has the place in
// the feed, or the run's event, as its id, so that nothing is missed in between.
const (
	liveMost = 2000             // streams of this process
	liveEach = 30               // of one person: a stream ends while its tab is hidden
	deskLook = 10 * time.Second // who looks at which gate is no event: it is looked up
)

// hint says that something has changed.
type hint struct {
	Says string `json:"says"` // in a sentence, for whoever does not see the page
	// Answered is the turn whose answer is in the journal now.
	Answered string `json:"answered,omitempty"`
}

// piece is of an answer that is on its way. Of says of which: where it is another
// one, what came before counts for nothing. The page compares it as a text.
type piece struct {
	Of   string `json:"of"`
	Turn string `json:"turn"`
	Text string `json:"text"`
	Lost bool   `json:"lost,omitempty"` // something is missing before it
}

// EndStreams lets all live pages' streams end, so that the process can stop: the
// pages come again by themselves.
func (p *Pages) EndStreams() { p.streams.End() }

// follow answers with hints from a source, as long as the caller may do the act.
func (v *visit) follow(act access.Act, from func(ctx context.Context) sse.Source, beside func(ctx context.Context) <-chan sse.Frame) error {
	if v.r.Method == http.MethodHead {
		sse.Head(v.w)
		return nil
	}
	leave, ok := v.streams.Enter(v.caller.Tenant + "\x00" + v.caller.Subject)
	if !ok {
		v.w.Header().Set("Retry-After", "10")
		return agent.Errorf(access.CodeRateLimited, "too many pages of yours are open")
	}
	defer leave()
	v.streams.Send(v.connection, v.w, sse.Sending{From: from, Beside: beside,
		Still: func(ctx context.Context) error { return v.still(ctx, act) },
		Problem: func(ctx context.Context, err error) any {
			v.Log.WarnContext(ctx, "a live page's stream failed", "path", v.r.URL.Path, "request_id", v.id, "error", err)
			return struct{}{}
		},
		Panicked: func(ctx context.Context, what any, stack []byte) {
			v.Log.ErrorContext(ctx, "stream panicked", "path", v.r.URL.Path, "request_id", v.id, "panic", what, "stack", string(stack))
		}})
	return nil
}

// still reports whether the caller is let in as when the stream began.
func (v *visit) still(ctx context.Context, act access.Act) error {
	c, err := v.recognise(ctx)
	if agent.ErrorCode(err) == agent.CodeUnavailable {
		return nil // nobody knows just now
	}
	if err == nil && (c.Subject != v.caller.Subject || c.Tenant != v.caller.Tenant || !slices.Equal(c.Roles, v.caller.Roles) || !slices.Equal(c.May, v.caller.May)) {
		err = access.ErrUnauthenticated
	}
	if err == nil {
		err = access.Check(c, act, access.On{})
	}
	return err
}

// since is where a stream goes on: behind the last that a browser has received, or
// what its page shows.
func (v *visit) since() string {
	if last := v.r.Header.Get("Last-Event-ID"); last != "" {
		return last
	}
	return v.query("after")
}

// liveInbox is the address of the inbox's hints from now on, "" where there are none.
func (v *visit) liveInbox() string {
	place, err := v.Reader.FeedEnd(v.ctx)
	if err != nil {
		return ""
	}
	return "/live/inbox?after=" + place
}

// followInbox tells of changes in the caller's inbox.
func followInbox(v *visit) error {
	act := access.GateList
	if access.Check(v.caller, act, access.On{}) != nil {
		act = access.GateGet // a user: questions of their own runs
	}
	if err := v.audited(act, "", access.Check(v.caller, act, access.On{})); err != nil {
		return err
	}
	place, err := store.Place(v.ctx, v.Reader, v.caller.Tenant, v.since()) // one that is none is told now, and not in the stream
	if err != nil {
		return err
	}
	return v.follow(act, func(ctx context.Context) sse.Source { return v.inboxHints(ctx, act, place) }, nil)
}

func (v *visit) inboxHints(ctx context.Context, act access.Act, place string) sse.Source {
	return func(yield func(sse.Frame, error) bool) {
		wake := v.Reader.Follow(ctx, store.Scope{Tenant: v.caller.Tenant})
		look := time.NewTicker(deskLook)
		defer look.Stop()
		desk := v.deskNow(ctx)
		if !yield(sse.Frame{ID: place, Event: "ready", Data: struct{}{}}, nil) {
			return
		}
		for {
			found, next, err := v.Reader.Appended(ctx, store.FeedFilter{Tenant: v.caller.Tenant, After: place, Types: agent.GateEvents})
			if err != nil {
				if ctx.Err() == nil {
					yield(sse.Frame{}, err)
				}
				return
			}
			place = next
			if says := v.saysOf(ctx, act, found); says != "" && !yield(sse.Frame{ID: place, Event: "hint", Data: hint{Says: says}}, nil) {
				return
			}
			if len(found) > 0 {
				continue // there may be more
			}
			select {
			case <-ctx.Done():
				return
			case <-wake:
			case <-look.C:
				if now := v.deskNow(ctx); now != desk {
					desk = now
					if !yield(sse.Frame{ID: place, Event: "hint", Data: hint{Says: "Who looks at which gate has changed."}}, nil) {
						return
					}
				}
			}
		}
	}
}

// saysOf says what events mean for the caller's inbox; "" where nothing.
func (v *visit) saysOf(ctx context.Context, act access.Act, found []store.Appended) string {
	says, n := "", 0
	for _, a := range found {
		if one := v.gateHint(ctx, act, a); one != "" {
			says, n = one, n+1
		}
	}
	if n > 1 {
		return "Several gates have changed."
	}
	return says
}

func (v *visit) gateHint(ctx context.Context, act access.Act, a store.Appended) string {
	if a.Superseded {
		return ""
	}
	if act == access.GateGet {
		row, err := v.Reader.RunRow(ctx, a.Chain)
		if err != nil || row.User != v.caller.Subject {
			return ""
		}
	}
	if a.Event.Type != agent.EventGateOpened {
		return "A gate has changed."
	}
	g := dataOf[agent.GateOpenedData](a.Event).Gate
	if act != access.GateGet && !concerns(v.caller, g) || act == access.GateGet && g.Kind != agent.KindAsk {
		return ""
	}
	if on := (access.On{Tenant: a.Tenant, Run: a.Address}); !access.Decides(v.caller, g, on) {
		g.Title = (&store.Redactions{Reader: v.Reader}).Of(ctx, a.Chain).Text(g.Title)
	}
	return "A gate was opened: " + visible.Inline(g.Title)
}

// deskNow is who looks at which gate, to be compared; as it was where it cannot be
// read.
func (v *visit) deskNow(ctx context.Context) string {
	within := *v
	within.ctx, within.now = ctx, v.Now()
	d := within.desk()
	text := ""
	for _, a := range d.Assigned {
		text += a.Address + " " + a.Gate + " " + a.Subject + " " + d.Covering(a.Subject) + " " + a.Until.String() + "\n"
	}
	return text
}

// liveRun is the address of a run's hints behind what a page shows of it.
func liveRun(f found) string {
	if f.run.Status.Ended() || f.fresh && len(f.events) == 0 {
		return ""
	}
	_, agentName, key, _ := signals.SplitAddress(f.chain.Address)
	return "/live" + runPath(agentName, key) + "?after=" + strconv.FormatInt(f.run.Seq, 10)
}

// followRun tells of changes of a run, with the text of an answer that is on its way.
func followRun(v *visit) error {
	f, err := v.find(access.RunEvents)
	if err != nil {
		return err
	}
	after, err := strconv.ParseInt(v.since(), 10, 64)
	if err != nil || after < 0 {
		after = f.run.Seq
	}
	h := &runHints{v: v, run: f, last: after}
	for _, e := range f.events {
		h.saw(e)
	}
	h.known.Learn(f.events...)
	return v.follow(access.RunEvents, h.source, h.pieces)
}

// runHints follows one run.
type runHints struct {
	v        *visit
	run      found
	last     int64
	answered atomic.Int64 // the latest turn whose answer is known
	known    agent.Follow // what is sensitive in it
}

func (h *runHints) saw(e agent.Event) {
	if e.EndsCall() {
		h.answered.Store(int64(e.Turn))
	}
}

func (h *runHints) source(ctx context.Context) sse.Source {
	return func(yield func(sse.Frame, error) bool) {
		wake := h.v.Reader.Follow(ctx, store.Scope{Tenant: h.run.chain.Tenant, Address: h.run.chain.Address})
		for {
			told, ended, err := h.next(ctx)
			if err != nil {
				if ctx.Err() == nil {
					yield(sse.Frame{}, err)
				}
				return
			}
			if told != nil && !yield(sse.Frame{ID: strconv.FormatInt(h.last, 10), Event: "hint", Data: told}, nil) {
				return
			}
			if ended {
				yield(sse.Frame{Event: "end", Data: struct{}{}}, nil)
				return
			}
			if told != nil {
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

// hintPage bounds the events that are read for one hint.
const hintPage = 200

// next is what has changed since the last hint, nil where nothing; ended says that
// nothing can change any more.
func (h *runHints) next(ctx context.Context) (*hint, bool, error) {
	row, err := h.v.Reader.RunRow(ctx, h.run.chain)
	switch {
	case agent.ErrorCode(err) == agent.CodeNotFound:
		return nil, false, nil // it has recorded nothing yet
	case err != nil:
		return nil, false, err
	case row.FirstRunID != h.run.run.FirstRunID: // another one stands at the address: its page is another one
		return &hint{Says: "Another run has begun here."}, true, nil
	case row.Seq < h.last: // it was reset
		h.last = row.Seq
		return &hint{Says: "The run was reset."}, false, nil
	case row.Seq == h.last:
		return nil, row.Head.Status.Ended(), nil
	}
	events, err := h.v.Reader.Events(ctx, h.run.chain, h.last+1, hintPage)
	if err != nil || len(events) == 0 {
		return nil, false, err
	}
	if err := store.Learn(ctx, h.v.Reader, h.run.chain, &h.known); err != nil {
		return nil, false, err
	}
	out := &hint{Says: "The run has gone on."}
	for _, e := range agent.Redacted(h.known.Redaction(), events) {
		h.saw(e)
		if e.EndsCall() {
			out.Answered = strconv.Itoa(e.Turn)
		}
		if who, what := words.Event(e); what != "" {
			out.Says = visible.Inline(who + ": " + shortened(what))
		}
	}
	h.last = events[len(events)-1].Seq
	return out, false, nil
}

// pieces are those of an answer that is on its way, but for what is shown whole.
func (h *runHints) pieces(ctx context.Context) <-chan sse.Frame {
	heard := h.v.Reader.Hear(ctx, store.Scope{Tenant: h.run.chain.Tenant, Address: h.run.chain.Address})
	of, n := "", 0
	live := &store.Live{Reader: h.v.Reader, Chain: h.run.chain}
	return sse.Map(ctx, heard, func(d store.Delta) sse.Frame {
		p := piece{Of: strconv.Itoa(d.Turn) + "." + strconv.Itoa(d.Attempt), Turn: strconv.Itoa(d.Turn), Text: visibleLines(live.Text(ctx, d))}
		if p.Of != of {
			of, n = p.Of, 0
		}
		p.Lost, n = d.N != n+1, d.N
		stale := func() bool { return int64(d.Turn) <= h.answered.Load() }
		return sse.Frame{Event: "delta", Data: p, Stale: stale}
	})
}

// unchanged answers a part of a page that must not take the place of what is shown:
// the page offers to show it.
func (v *visit) unchanged() error {
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}
