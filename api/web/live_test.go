package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api/sse/ssetest"
	"interlock/api/web"
	"interlock/llm/scripted"
	"interlock/store"
)

// told is one event of a stream.
type told struct{ id, event, data string }

func (e told) says(t *testing.T) string {
	t.Helper()
	var h struct{ Says string }
	require.NoError(t, json.Unmarshal([]byte(e.data), &h))
	return h.Says
}

// listener is an open stream.
type listener struct {
	t      *testing.T
	status int
	cancel context.CancelFunc
	events chan told // closed at its end
}

// listen opens a stream, as a browser with its cookie does.
func (b *browser) listen(base, path string, header ...string) *listener {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	require.NoError(b.t, err)
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	require.NoError(b.t, err)
	l := &listener{t: b.t, status: res.StatusCode, cancel: cancel, events: make(chan told)}
	if res.StatusCode != http.StatusOK {
		require.NoError(b.t, res.Body.Close())
		return l
	}
	require.Equal(b.t, "text/event-stream", res.Header.Get("Content-Type"))
	require.Equal(b.t, "no-store", res.Header.Get("Cache-Control"))
	go func() {
		defer close(l.events)
		defer func() { _ = res.Body.Close() }()
		for e := range ssetest.Read(res.Body) {
			select {
			case l.events <- told{e.ID, e.Event, e.Data}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return l
}

// next is the next event of a kind.
func (l *listener) next(kind string) told {
	l.t.Helper()
	late := time.After(patience)
	for {
		select {
		case e, more := <-l.events:
			require.True(l.t, more, "the stream has ended")
			if e.event == kind {
				return e
			}
		case <-late:
			require.Fail(l.t, "no event "+kind)
		}
	}
}

// ends waits for the stream's end.
func (l *listener) ends() {
	l.t.Helper()
	late := time.After(patience)
	for {
		select {
		case _, more := <-l.events:
			if !more {
				return
			}
		case <-late:
			require.Fail(l.t, "the stream does not end")
		}
	}
}

// An inbox is told that something has changed, and misses nothing between two streams.
func TestLive_Inbox(t *testing.T) {
	w := newWorld(t)
	base := serve(t, w.pages)
	ann := w.as("ann")
	page := ann.get("/")
	at := attribute(page.body[strings.Index(page.body, `<div id="list"`):], "data-live")
	require.True(t, strings.HasPrefix(at, "/live/inbox?after="), at)
	w.atGate("1", payOptions{title: "after the list\u202e"}, smallArgs)
	live := ann.listen(base, at)
	first := live.next("hint")
	require.Equal(t, `A gate was opened: after the list\u202e`, first.says(t))
	live.cancel()

	w.atGate("2", payOptions{title: "for others", roles: []string{"lead"}}, smallArgs)
	run := w.atGate("3", payOptions{title: "while nobody listened"}, smallArgs)
	live = ann.listen(base, at, "Last-Event-ID", first.id)
	require.Equal(t, "A gate was opened: while nobody listened", live.next("hint").says(t))
	run.Approve("2.1", "bob", "refunds")
	w.keep(run)
	require.Equal(t, "A gate has changed.", live.next("hint").says(t))

	require.Equal(t, http.StatusUnauthorized, (&browser{w: w, t: t}).listen(base, "/live/inbox").status)
	require.Equal(t, http.StatusUnprocessableEntity, ann.listen(base, "/live/inbox?after=no+place").status)
}

// A user is told of their own questions, and nobody of another tenant's.
func TestLive_WhoIsTold(t *testing.T) {
	w := newWorld(t)
	base := serve(t, w.pages)
	other, own := w.as("c-018").listen(base, "/live/inbox"), w.as("c-017").listen(base, "/live/inbox")
	require.NotEmpty(t, other.next("ready").id)
	own.next("ready")
	w.asked("1", "order_id")
	require.Contains(t, own.next("hint").says(t), "A gate was opened: ")
	w.web.EndStreams()
	for e := range other.events {
		require.NotEqual(t, "hint", e.event)
	}
	for _, who := range []string{"eve", "c-018"} {
		require.Equal(t, http.StatusNotFound, w.as(who).listen(base, "/live/runs/pay/1").status, who)
	}
	require.Equal(t, http.StatusNotFound, w.as("ann").listen(base, "/live/runs/pay/none").status)
}

// A run's page is told of its events, and has the text of an answer as it comes.
func TestLive_Run(t *testing.T) {
	w := newWorld(t)
	base := serve(t, w.pages)
	run := w.start(payAgent(payOptions{}), "1", payStart{Customer: "c-017"})
	run.Says("hello order 1042")
	w.keep(run)
	user := w.as("c-017")
	page := user.get("/runs/pay/1")
	at := attribute(page.body[strings.Index(page.body, `<div id="page"`):], "data-live")
	live := user.listen(base, at)
	chain := store.Delta{Tenant: "acme", Address: "acme/pay/1", FirstRunID: run.Run().FirstRunID, Turn: 1, Attempt: 1}
	say := func(n int, text string) {
		d := chain
		d.N, d.Text = n, text
		w.store.Tell(d)
	}
	require.Eventually(t, func() bool {
		say(1, "I look\u202e ")
		select {
		case e := <-live.events:
			require.Equal(t, "delta", e.event)
			require.JSONEq(t, `{"of":"1.1","turn":"1","text":"I look\\u202e "}`, e.data)
			return true
		default:
			return false
		}
	}, patience, 20*time.Millisecond)
	say(7, "at it")
	for e := live.next("delta"); ; e = live.next("delta") {
		if strings.Contains(e.data, "at it") {
			require.JSONEq(t, `{"of":"1.1","turn":"1","text":"at it","lost":true}`, e.data)
			break
		}
	}
	run.Propose(scripted.Say("I look at it."))
	w.keep(run)
	e := live.next("hint")
	require.Contains(t, e.data, `"answered":"1"`)
	require.Contains(t, e.says(t), "I look at it.")
	require.Equal(t, strconv.FormatInt(run.Run().Seq, 10), e.id)
	require.Contains(t, user.get("/runs/pay/1").body, "I look at it.")

	_, err := w.runs.send("acme/pay/1", agent.CancelRun{ID: "c", Principal: agent.Principal{Subject: "oda"}, Reason: "a test"})
	require.NoError(t, err)
	live.next("end")
	live.ends()
	require.NotContains(t, user.get("/runs/pay/1").body, "data-live", "nothing can come any more")
}

// Sensitive values are in no hint.
func TestLive_Masked(t *testing.T) {
	w := newWorld(t)
	base := serve(t, w.pages)
	run := w.start(payAgent(payOptions{}), "1", payStart{Customer: "c-017"})
	w.keep(run)
	live := w.as("ann").listen(base, "/live/runs/pay/1?after=1")
	run.Says("order 1042")
	run.Propose(scripted.Call("find_order", order{"1042"}))
	run.Done("1.1", found{agent.Money{Minor: 8990, Currency: "EUR"}, "4111 1111"})
	w.keep(run)
	require.NotContains(t, live.next("hint").data, "4111")
	w.web.EndStreams()
	for e := range live.events {
		require.NotContains(t, e.data, "4111")
	}
}

// A stream ends where its person may not see any more what it tells of.
func TestLive_Revoked(t *testing.T) {
	w := newWorld(t)
	w.web.StreamTimes(20 * time.Millisecond)
	base := serve(t, w.pages)
	ann := w.as("ann")
	live := ann.listen(base, "/live/inbox")
	live.next("ready")
	w.revoke("ann")
	live.ends()
	require.Equal(t, http.StatusUnauthorized, ann.listen(base, "/live/inbox").status)
}

func TestLive_Bounded(t *testing.T) {
	w := newWorld(t)
	base := serve(t, w.pages)
	ann := w.as("ann")
	var open []*listener
	for range web.LiveEach {
		l := ann.listen(base, "/live/inbox")
		require.Equal(t, http.StatusOK, l.status)
		open = append(open, l)
	}
	require.Equal(t, http.StatusTooManyRequests, ann.listen(base, "/live/inbox").status)
	require.Equal(t, http.StatusOK, w.as("bob").listen(base, "/live/inbox").status)
	open[0].cancel()
	require.Eventually(t, func() bool { return ann.listen(base, "/live/inbox").status == http.StatusOK }, patience, 20*time.Millisecond)
	w.web.EndStreams()
	for _, l := range open[1:] {
		l.ends()
	}
	require.Eventually(t, func() bool { return w.web.OpenStreams() == 0 }, patience, 10*time.Millisecond)
}

// A HEAD opens no stream.
func TestLive_Head(t *testing.T) {
	w := newWorld(t)
	ann := w.as("ann")
	r := httptest.NewRequest(http.MethodHead, "/live/inbox", nil)
	for _, c := range ann.cookies {
		r.AddCookie(c)
	}
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		rec := httptest.NewRecorder()
		w.pages.ServeHTTP(rec, r)
		answered <- rec
	}()
	select {
	case rec := <-answered:
		require.Equal(t, http.StatusOK, rec.Code)
		require.Equal(t, "text/event-stream", rec.Header().Get("Content-Type"))
	case <-time.After(patience):
		w.web.EndStreams()
		require.FailNow(t, "it is not answered")
	}
}

// What a gate shows is not replaced by something else under the eyes of who decides.
func TestLive_GateFragment(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{quorum: 2}, smallArgs)
	ann, at := w.as("ann"), path("1", "2.1")
	part := func(path string) answer {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("HX-Request", "true")
		return ann.do(r)
	}
	page := ann.get(at)
	same := attribute(page.body[strings.Index(page.body, `<div id="page"`):], "hx-get")
	run.Approve("2.1", "bob", "refunds")
	w.keep(run)
	require.Contains(t, part(same).body, "1 of 2")
	require.NotContains(t, part(same).body, "<html")
	require.Equal(t, http.StatusNoContent, part(at+"?shown=another").status)
	run.Reject("2.1", "no", "bob", "refunds")
	w.keep(run)
	closed := part(same)
	require.Contains(t, closed.body, "decided by bob")
	require.NotContains(t, closed.body, "hx-get")
}

// Who asks too often is told so, by a page.
func TestRate(t *testing.T) {
	w := newWorld(t)
	ann := w.as("ann")
	w.slow(1)
	status := 0
	for range 100 {
		a := ann.get("/")
		if status = a.status; status == http.StatusTooManyRequests {
			require.Contains(t, a.body, "Too often")
			require.Equal(t, "1", a.header.Get("Retry-After"))
			break
		}
	}
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, http.StatusOK, w.as("bob").get("/").status)
	w.now = w.now.Add(time.Minute)
	require.Equal(t, http.StatusOK, ann.get("/").status)
}
