package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/api"
	"interlock/llm/scripted"
)

func TestHeaders(t *testing.T) {
	l := newLab(t)
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	a := l.ask("cust", http.MethodGet, "/v1/runs", nil, "X-Request-Id", "r-1", "traceparent", trace).ok(200)
	for k, want := range map[string]string{"X-Request-Id": "r-1", "Traceparent": trace, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Content-Type": "application/json", "Referrer-Policy": "no-referrer"} {
		require.Equal(t, want, a.header.Get(k), k)
	}
	for _, wrong := range []string{"a b", "<x>", strings.Repeat("a", 101), `"`} {
		a := l.ask("cust", http.MethodGet, "/v1/runs", nil, "X-Request-Id", wrong, "traceparent", "00-00000000000000000000000000000000-b7ad6b7169203331-01").ok(200)
		require.Regexp(t, `^[a-z0-9]{20,}$`, a.header.Get("X-Request-Id"))
		require.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-00$`, a.header.Get("Traceparent"))
		require.NotContains(t, a.header.Get("Traceparent"), "000000000000")
	}
	path := l.run("k")
	l.ask("cust", http.MethodPost, path+"/messages", `{"text":"hi"}`, "Idempotency-Key", "m", "traceparent", trace).ok(200)
	// The lab's machine has a trace of its own; that the API passes it on is in the end-to-end test.
}

func TestPaths(t *testing.T) {
	l := newLab(t)
	l.get("ann", "/v1/nothing").problem(http.StatusNotFound, agent.CodeNotFound)
	l.get("", "/").problem(http.StatusNotFound, agent.CodeNotFound)
	l.get("", "/docs").problem(http.StatusNotFound, agent.CodeNotFound)
	a := l.ask("ann", http.MethodDelete, "/v1/runs", nil)
	a.problem(http.StatusMethodNotAllowed, "method_not_allowed")
	require.Equal(t, "GET, HEAD, POST", a.header.Get("Allow"))
	for _, path := range []string{"/v1/runs/Desk/k", "/v1/runs/desk/a%2Fb", "/v1/runs/desk/%00", "/v1/runs/desk/" + strings.Repeat("k", 200), "/v1/runs/desk/-"} {
		l.get("ann", path).problem(http.StatusNotFound, agent.CodeNotFound)
	}
	l.get("ann", "/v1/runs/desk/"+strings.Repeat("k", 201)).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
}

// What failed on our side is in the log, and not in the answer.
func TestFailures(t *testing.T) {
	l := newLab(t)
	path := l.run("k")
	say := func() answer { return l.post("backend", path+"/messages", "m", map[string]string{"text": "hi"}) }
	l.fake.down = agent.Errorf(agent.CodeUnavailable, "Temporal cannot be reached (dial tcp 10.0.0.7:7233): try again")
	a := say()
	a.problem(http.StatusServiceUnavailable, agent.CodeUnavailable)
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.NotContains(t, a.body, "10.0.0.7")
	require.Contains(t, l.log.String(), "10.0.0.7")
	l.fake.down = errors.New("sql: secret")
	a = say()
	a.problem(http.StatusInternalServerError, agent.CodeInternal)
	require.NotContains(t, a.body, "secret")
	require.Contains(t, l.log.String(), "sql: secret")
	require.Contains(t, l.log.String(), a.header.Get("X-Request-Id"))
	l.fake.down = fmt.Errorf("late: %w", context.DeadlineExceeded)
	say().problem(http.StatusServiceUnavailable, agent.CodeUnavailable)
}

// panics is a store that panics.
type panics struct{ api.Reads }

func TestPanic(t *testing.T) {
	l := newLab(t, func(c *api.Config) { c.Reads = panics{} })
	p := l.get("ann", "/v1/runs").problem(http.StatusInternalServerError, agent.CodeInternal)
	require.NotContains(t, p.Detail, "nil pointer")
	require.Contains(t, l.log.String(), "request panicked")
}

func TestRate(t *testing.T) {
	l := newLab(t, func(c *api.Config) { c.Limits = api.Limits{Rate: 0.5, Burst: 3} })
	for range 3 {
		l.get("ann", "/v1/runs").ok(200)
	}
	a := l.get("ann", "/v1/runs")
	a.problem(http.StatusTooManyRequests, "rate_limited")
	wait, err := strconv.Atoi(a.header.Get("Retry-After"))
	require.NoError(t, err)
	require.True(t, wait >= 1 && wait <= 2, "%d", wait)
	l.get("bob", "/v1/runs").ok(200)
}

// A journal is read in parts, up to an event, and whole; nothing of it tells what
// is sensitive.
func TestJournal(t *testing.T) {
	l := newLab(t)
	path, _ := l.atGate("k")
	var all []agent.Event
	for after, more := int64(0), true; more; {
		page := into[api.EventPage](l.get("cust", fmt.Sprintf("%s/events?page_size=3&after=%d", path, after)).ok(200))
		all, after, more = append(all, page.Events...), page.After, page.More
	}
	run := into[api.ShownRun](l.get("ann", path).ok(200))
	require.Equal(t, run.Seq, int64(len(all)))
	none := into[api.EventPage](l.get("cust", fmt.Sprintf("%s/events?after=%d", path, run.Seq)).ok(200))
	require.Equal(t, api.EventPage{Events: []agent.Event{}, After: run.Seq}, none)
	at := into[api.ShownRun](l.get("ann", path+"/state?seq=3").ok(200))
	require.Equal(t, int64(3), at.Seq)
	require.Equal(t, "work", at.Phase)
	l.get("ann", fmt.Sprintf("%s/state?seq=%d", path, run.Seq+1)).problem(http.StatusNotFound, agent.CodeNotFound)
	l.get("ann", path+"/state").problem(http.StatusUnprocessableEntity, agent.CodeInvalid)

	view := into[agent.View](l.get("ann", path+"/context?turn=1").ok(200))
	require.Equal(t, "pay", view.Turns[0].Opening[0].Text)
	require.NotContains(t, view.State.String(), "H1DDEN")
	l.get("ann", path+"/context?turn=7").problem(http.StatusNotFound, agent.CodeNotFound)

	a := l.get("ann", path+"/export").ok(200)
	require.Equal(t, `attachment; filename="desk-k.json"`, a.header.Get("Content-Disposition"))
	whole := into[api.Exported](a)
	require.Equal(t, all, whole.Events)
	reduced, err := agent.Reduce(whole.Events)
	require.NoError(t, err)
	require.Equal(t, whole.Run, *reduced)
	for _, p := range []string{"", "/events", "/export", "/context?turn=1", "/state?seq=3"} {
		require.NotContains(t, l.get("ann", path+p).ok(200).body, "S3CRET", p)
	}
}

func TestNews(t *testing.T) {
	l := newLab(t)
	path := l.run("k")
	news := func(after int64) map[string]any {
		return into[map[string]any](l.get("cust", fmt.Sprintf("%s/news?after=%d", path, after)).ok(200))
	}
	l.post("cust", path+"/messages", "m", map[string]string{"text": "hi"}).ok(200)
	require.Equal(t, true, news(0)["again"])
	l.fake.propose("acme/desk/k", func(r *agenttest.Run) { r.Propose(scripted.Say("hello")) })
	require.Equal(t, "hello", news(0)["reply"].(map[string]any)["text"])
}

func TestAdmin(t *testing.T) {
	hangs := make(chan struct{})
	defer close(hangs)
	var bad error
	l := newLab(t, func(c *api.Config) {
		c.Checks = map[string]func(context.Context) error{"store": func(context.Context) error { return bad }, "temporal": func(context.Context) error { return nil }}
	})
	l.get("ann", "/v1/runs/desk/nobody").problem(404, agent.CodeNotFound)
	l.run("k")
	admin := httptest.NewServer(l.server.Admin())
	defer admin.Close()
	l.http.Config.Handler, l.tokens = l.server.Admin(), nil
	require.Equal(t, "ok\n", l.get("", "/livez").ok(200).body)
	require.Equal(t, "ok\n", l.get("", "/readyz").ok(200).body)
	bad = errors.New("the disk is full")
	require.NotContains(t, l.get("", "/readyz").ok(503).body, "disk")
	require.JSONEq(t, `{"ready":false,"checks":{"store":{"ok":false,"error":"the disk is full"},"temporal":{"ok":true}}}`, l.get("", "/readyz?verbose").ok(503).body)
	text := l.get("", "/metrics").ok(200).body
	require.Contains(t, text, `interlock_http_requests_total{method="GET",route="/v1/runs/{agent}/{key}",status="404"} 1`)
	require.NotContains(t, text, "acme")
	require.NotContains(t, text, "nobody")
}

// A check that never answers does not hold readiness up.
func TestReady_Hangs(t *testing.T) {
	hangs := make(chan struct{})
	defer close(hangs)
	l := newLab(t, func(c *api.Config) {
		c.Checks = map[string]func(context.Context) error{"store": func(context.Context) error { <-hangs; return nil }}
	})
	w := httptest.NewRecorder()
	began := time.Now()
	l.server.Admin().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz?verbose", nil))
	require.Equal(t, 503, w.Code)
	require.Less(t, time.Since(began), 5*time.Second)
	var out map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &out))
	require.Contains(t, w.Body.String(), "no answer within 1s")
}

func TestCodes(t *testing.T) {
	for _, c := range []agent.Code{agent.CodeInvalid, agent.CodeNotFound, agent.CodeConflict, agent.CodeDenied, agent.CodeEnded, agent.CodeUnavailable, agent.CodeInternal,
		agent.CodeGateClosed, agent.CodeStale} {
		require.Contains(t, api.Codes(), c, "what the run says has a status")
	}
}
