package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/api"
	"interlock/api/access"
	"interlock/api/sse/ssetest"
	"interlock/llm/scripted"
	"interlock/store"
	"interlock/store/storetest"
)

// patience bounds the wait for what must come.
const patience = 20 * time.Second

// sent is one event of a stream.
type sent struct{ id, event, data string }

// live is a stream that is open.
type live struct {
	t      *testing.T
	res    *http.Response
	cancel context.CancelFunc
	events chan sent // closed at its end
}

// follow opens a stream as somebody.
func (l *lab) follow(as, path string, header ...string) *live {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.http.URL+path, nil)
	require.NoError(l.t, err)
	r.Header.Set("Authorization", "Bearer "+l.tokens[as])
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(l.t, err)
	s := &live{l.t, res, cancel, make(chan sent)}
	if res.StatusCode == http.StatusOK {
		require.Equal(l.t, "text/event-stream", res.Header.Get("Content-Type"))
		require.Equal(l.t, "no-store", res.Header.Get("Cache-Control"))
		go s.read(ctx)
	}
	return s
}

func (s *live) read(ctx context.Context) {
	defer close(s.events)
	for e := range ssetest.Read(s.res.Body) {
		select {
		case s.events <- sent{e.ID, e.Event, e.Data}:
		case <-ctx.Done():
			return
		}
	}
}

func (s *live) next() sent {
	s.t.Helper()
	select {
	case e, open := <-s.events:
		require.True(s.t, open, "the stream has ended")
		return e
	case <-time.After(patience):
		require.FailNow(s.t, "nothing came")
		return sent{}
	}
}

// ends waits for the end, and returns what came before it.
func (s *live) ends() (rest []sent) {
	s.t.Helper()
	for {
		select {
		case e, open := <-s.events:
			if !open {
				return rest
			}
			rest = append(rest, e)
		case <-time.After(patience):
			require.FailNow(s.t, "it does not end")
		}
	}
}

// seqOf is the number in an event's id.
func seqOf(e sent) string { seq, _, _ := strings.Cut(e.id, "."); return seq }

// A run's stream has every event once, in order, masked, with its number; who comes
// again goes on behind what they have seen; it ends with the run.
func TestStream_Run(t *testing.T) {
	l := newLab(t)
	path, gate := l.atGate("k")
	s := l.follow("cust", path+"/stream")
	var seen []string
	var opened sent
	for opened.id == "" {
		e := s.next()
		require.Empty(t, e.event)
		seen = append(seen, e.id)
		if strings.Contains(e.data, `"gate_opened"`) {
			opened = e
		}
		require.NotContains(t, e.data, "S3CRET")
	}
	require.Contains(t, opened.data, `"amount":9007199254740993`)
	var want []string
	row, err := l.store.RunRow(t.Context(), store.Chain{Tenant: "acme", Address: "acme/desk/k"})
	require.NoError(t, err)
	for i := range seen {
		want = append(want, fmt.Sprintf("%d.%s", i+1, row.FirstRunID))
	}
	require.Equal(t, want, seen)
	s.cancel()

	again := l.follow("cust", path+"/stream", "Last-Event-ID", seen[len(seen)-2])
	require.Equal(t, opened, again.next())
	late := l.follow("ann", path+"/stream?after="+seqOf(opened))
	l.post("ann", path+"/gates/1.1/verdict", "v-1", map[string]string{"digest": gate.Digest, "verdict": "reject", "reason": "no"}).ok(http.StatusOK)
	require.Contains(t, again.next().data, `"type":"verdict"`)
	require.Contains(t, late.next().data, `"type":"verdict"`)
	l.post("op", path+"/cancel", "c-1", map[string]string{"reason": "enough"}).ok(http.StatusOK)
	rest := again.ends()
	require.Equal(t, "end", rest[len(rest)-1].event)
	require.Empty(t, rest[len(rest)-1].id)
	require.Contains(t, rest[len(rest)-2].data, `"type":"cancelled"`)
	require.Equal(t, late.ends(), rest)
	require.Equal(t, []sent{{event: "end", data: "{}"}}, l.follow("cust", path+"/stream?after="+seqOf(rest[len(rest)-2])).ends(), "there is nothing more")
}

// Pieces of an answer come without an id, and not any more once the answer is there.
func TestStream_Deltas(t *testing.T) {
	l := newLab(t)
	path := l.run("k")
	l.post("cust", path+"/messages", "m-1", map[string]string{"text": "hi"}).ok(http.StatusOK)
	s := l.follow("cust", path+"/stream")
	for !strings.Contains(s.next().data, `"turn_started"`) {
	}
	tell := func(address string, turn, n int, text string) {
		l.store.Tell(store.Delta{Tenant: "acme", Address: address, Turn: turn, Attempt: 1, N: n, Text: text})
	}
	tell("acme/desk/other", 1, 1, "not for you")
	tell("acme/desk/k", 1, 1, "Good ")
	require.Equal(t, sent{event: "delta", data: `{"turn":1,"attempt":1,"n":1,"text":"Good "}`}, s.next())
	l.fake.propose("acme/desk/k", func(r *agenttest.Run) { r.Propose(scripted.Say("Good day.")) })
	require.Contains(t, s.next().data, `"type":"proposal"`)
	tell("acme/desk/k", 1, 2, "day.")
	tell("acme/desk/k", 2, 1, "And ")
	for {
		e := s.next()
		if e.event == "delta" {
			require.Equal(t, `{"turn":2,"attempt":1,"n":1,"text":"And "}`, e.data)
			break
		}
	}
}

// An inbox misses nothing: what it lists after ready and what then comes is all.
func TestStream_Gates(t *testing.T) {
	l := newLab(t)
	l.atGate("before")
	s := l.follow("ann", "/v1/gates/stream?role=refunds")
	ready := s.next()
	require.Equal(t, "ready", ready.event)
	require.NotEmpty(t, ready.id)
	nurses, other := l.follow("nurse", "/v1/gates/stream?role=nurses"), l.follow("evil", "/v1/gates/stream")
	require.Equal(t, "ready", nurses.next().event)
	require.Equal(t, "ready", other.next().event)
	path, gate := l.atGate("k")
	l.post("ann", path+"/gates/1.1/verdict", "v-1", map[string]string{"digest": gate.Digest, "verdict": "reject", "reason": "no"}).ok(http.StatusOK)
	change := func(e sent) (c api.GateChange) {
		require.NotEmpty(t, e.id)
		require.NoError(t, json.Unmarshal([]byte(e.data), &c))
		return c
	}
	first := s.next()
	opened, closed := change(first), change(s.next())
	require.Equal(t, api.GateChange{Type: agent.EventGateOpened, Address: "acme/desk/k", Agent: "desk", Key: "k", Gate: "1.1", Status: agent.GateOpen,
		Roles: []string{"refunds"}, Seq: opened.Seq}, opened)
	require.Equal(t, api.GateChange{Type: agent.EventGateClosed, Address: "acme/desk/k", Agent: "desk", Key: "k", Gate: "1.1", Status: agent.GateRejected, Seq: closed.Seq}, closed)
	again := l.follow("ann", "/v1/gates/stream", "Last-Event-ID", first.id)
	require.Equal(t, sent{id: first.id, event: "ready", data: "{}"}, again.next())
	require.Equal(t, closed, change(again.next()))
	whole := l.follow("ann", "/v1/gates/stream", "Last-Event-ID", ready.id)
	require.Equal(t, "ready", whole.next().event)
	require.Equal(t, opened, change(whole.next()))
	for _, none := range []*live{nurses, other} {
		require.Empty(t, none.events, "none of theirs")
	}
	bad := l.follow("ann", "/v1/gates/stream", "Last-Event-ID", "x")
	require.Equal(t, http.StatusUnprocessableEntity, bad.res.StatusCode)
	bad = l.follow("ann", path+"/stream", "Last-Event-ID", "-1")
	require.Equal(t, http.StatusUnprocessableEntity, bad.res.StatusCode)
}

// A subject opens so many streams and no more; one that is closed makes room.
func TestStream_Bounded(t *testing.T) {
	l := newLab(t, func(c *api.Config) { c.Limits.StreamsEach = 2 })
	path := l.run("k")
	one := l.follow("cust", path+"/stream")
	two := l.follow("cust", path+"/stream")
	one.next()
	two.next()
	full := l.follow("cust", path+"/stream")
	require.Equal(t, http.StatusTooManyRequests, full.res.StatusCode)
	require.Equal(t, "2", full.res.Header.Get("Retry-After"))
	l.follow("backend", path+"/stream").next()
	one.cancel()
	require.Eventually(t, func() bool {
		s := l.follow("cust", path+"/stream")
		defer s.cancel()
		return s.res.StatusCode == http.StatusOK
	}, patience, 20*time.Millisecond)
}

// A HEAD is answered at once, and opens no stream: the connection takes the next
// request.
func TestStream_Head(t *testing.T) {
	l := newLab(t)
	t.Cleanup(l.server.EndStreams) // one that was opened all the same would hold the server up
	path := l.run("k")
	for _, stream := range []string{"/v1/gates/stream", path + "/stream"} {
		client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: patience / 4}
		for _, ask := range [][2]string{{http.MethodHead, stream}, {http.MethodGet, path}} {
			r, err := http.NewRequest(ask[0], l.http.URL+ask[1], nil)
			require.NoError(t, err)
			r.Header.Set("Authorization", "Bearer "+l.tokens["ann"])
			res, err := client.Do(r)
			require.NoError(t, err, "%v", ask)
			require.Equal(t, http.StatusOK, res.StatusCode)
			if ask[0] == http.MethodHead {
				require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
			}
			_, err = io.Copy(io.Discard, res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
		}
		require.Eventually(t, func() bool { return l.server.OpenStreams() == 0 }, patience, 20*time.Millisecond)
	}
}

// Access that is revoked ends the stream.
func TestStream_Revoked(t *testing.T) {
	l := newLab(t)
	l.server.StreamTimes(50*time.Millisecond, time.Second)
	path := l.run("k")
	s, stays := l.follow("cust", path+"/stream"), l.follow("ann", path+"/stream")
	for range 3 {
		s.next()
		stays.next()
	}
	require.NoError(t, access.Remove(l.access, "cust"))
	s.ends()
	l.post("backend", path+"/messages", "m-1", map[string]string{"text": "hi", "as_user": "cust"}).ok(http.StatusOK)
	require.Contains(t, stays.next().data, `"type":"message"`)
}

// Who does not read is let go of, with nothing gathered for them; and a server that
// stops ends what is open.
func TestStream_Ends(t *testing.T) {
	l := newLab(t)
	l.server.StreamTimes(time.Hour, 200*time.Millisecond)
	path := l.run("k")
	for n := range 300 { // more than the buffers of the connections hold
		l.post("cust", path+"/messages", fmt.Sprint("m-", n), map[string]string{"text": strings.Repeat("x", 6000)}).ok(http.StatusOK)
		l.fake.propose("acme/desk/k", func(r *agenttest.Run) { r.Propose(scripted.Say(strings.Repeat("y", 6000))) })
	}
	r, err := http.NewRequest(http.MethodGet, l.http.URL+path+"/stream", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+l.tokens["cust"])
	var deaf []*http.Response
	for range 5 {
		res, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		deaf = append(deaf, res)
	}
	require.Eventually(t, func() bool { return l.server.OpenStreams() == 0 }, patience, 20*time.Millisecond, "nobody reads")
	for _, res := range deaf {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	s := l.follow("ann", "/v1/gates/stream")
	require.Equal(t, "ready", s.next().event)
	l.server.EndStreams()
	require.Empty(t, s.ends())
}

// Runs that follow one another under a key have events of the same numbers. Whoever
// comes again after the next has begun has the rest of the one that they followed, and
// its end, and not the next without its beginning; and only where it served them.
func TestStream_OfARunThatAnotherFollows(t *testing.T) {
	l := newLab(t)
	first := storetest.NewHistory(t, "acme", "1", "r1").Say(2, "a").End()
	next := storetest.NewHistoryOf(t, "acme", "r2", storetest.Epoch.Add(time.Hour), agent.StartedData{Agent: "refund", Version: 1, Key: "1", User: "cust",
		BodyDigest: "body-2", FirstRunID: "r2", After: "r1", Body: agent.JSON(`{}`)}).End()
	for _, h := range []*storetest.History{first, next} {
		require.NoError(t, l.store.Append(t.Context(), h.Ref, h.Batch(1, h.Last())))
	}
	const path = "/v1/runs/refund/1/stream"
	ids := func(s *live) (ids []string) {
		for _, e := range s.ends() {
			ids = append(ids, e.id+e.event)
		}
		return ids
	}
	last := fmt.Sprintf("%d.r1", first.Last())
	require.Equal(t, []string{fmt.Sprintf("%d.r1", first.Last()-1), last, "end"}, ids(l.follow("op", path, "Last-Event-ID", fmt.Sprintf("%d.r1", first.Last()-2))))
	require.Equal(t, []string{"end"}, ids(l.follow("op", path, "Last-Event-ID", last)))
	whole := ids(l.follow("cust", path))
	require.Len(t, whole, int(next.Last())+1)
	require.Equal(t, "1.r2", whole[0])
	require.Equal(t, whole[1:], ids(l.follow("cust", path, "Last-Event-ID", "1")), "a number alone is of the run that stands there")
	require.Equal(t, whole[1:], ids(l.follow("cust", path, "Last-Event-ID", "1.r2")))
	require.Equal(t, http.StatusNotFound, l.follow("cust", path, "Last-Event-ID", "1.r1").res.StatusCode, "it served somebody else")
	for _, none := range []string{"1.", "1.r3", "x.r1", ".r1", "1.r1.", "-1.r1", "1.r1\u00ff"} {
		require.Equal(t, http.StatusUnprocessableEntity, l.follow("op", path, "Last-Event-ID", none).res.StatusCode, none)
	}
}
