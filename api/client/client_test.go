package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/api/client"
)

// heard is one request that a server got.
type heard struct {
	method, path, query, key, token, last, body string
}

// server answers the n-th request by the n-th function, and all further ones by the
// last.
type server struct {
	*httptest.Server
	heard []heard // read them when nothing is asked any more
}

func serve(t *testing.T, answers ...http.HandlerFunc) *server {
	t.Helper()
	s, turn := &server{}, make(chan int, 1)
	turn <- 0
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n := <-turn
		s.heard = append(s.heard, heard{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Idempotency-Key"),
			r.Header.Get("Authorization"), r.Header.Get("Last-Event-ID"), string(body)})
		turn <- n + 1
		answers[min(n, len(answers)-1)](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) client(t *testing.T, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(s.URL, "ilk_x", append([]client.Option{client.Hurry(time.Minute)}, options...)...)
	require.NoError(t, err)
	return c
}

func says(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// breaks closes the connection in the middle of an answer.
func breaks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = w.Write([]byte(`{"address":`))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

const started = `{"address":"acme/refund/k","new":true}`

// What is said again is the same request, key and all: whatever it was not answered
// with.
func TestClient_SaysItAgain(t *testing.T) {
	s := serve(t, says(429, `{"code":"rate_limited"}`, "Retry-After", "0"), says(502, "<html>"), says(503, `{"code":"unavailable"}`), says(504, ""), breaks,
		says(201, started))
	out, err := s.client(t).StartRun(t.Context(), client.StartBody{Agent: "refund", Body: json.RawMessage(`{"n":9007199254740993,"s":"<&>"}`)})
	require.NoError(t, err)
	require.Equal(t, "acme/refund/k", out.Address)
	require.Len(t, s.heard, 6)
	for _, h := range s.heard {
		require.Equal(t, s.heard[0], h)
	}
	require.Regexp(t, `^"[A-Z2-7]{26}"$`, s.heard[0].key)
	require.Equal(t, "Bearer ilk_x", s.heard[0].token)
	require.Equal(t, `{"agent":"refund","body":{"n":9007199254740993,"s":"<&>"}}`+"\n", s.heard[0].body)

	_, err = s.client(t).StartRun(t.Context(), client.StartBody{Agent: "refund"})
	require.NoError(t, err)
	require.NotEqual(t, s.heard[0].key, s.heard[6].key, "another call is another key")
	_, err = s.client(t).MessageRun(t.Context(), "refund", "a/b c", client.MessageBody{Text: "hi"}, client.Key(`my "own"`))
	require.NoError(t, err)
	require.Equal(t, `"my \"own\""`, s.heard[7].key)
	require.Equal(t, "/v1/runs/refund/a%2Fb%20c/messages", s.heard[7].path)
}

// What saying again cannot change is said once, and is an error with all that the
// server said.
func TestClient_Error(t *testing.T) {
	s := serve(t, says(409, `{"type":"urn:interlock:problem:gate_closed","title":"x","status":409,"code":"gate_closed","detail":"Bob has approved it.","instance":"r-1",
		"gate":{"id":"3.1","status":"approved","by":"bob","at":"2026-11-30T10:00:00Z","later":1}}`, "X-Request-Id", "r-1"), says(500, "oh"), says(418, "tea"), says(302, "", "Location", "/v1/runs"))
	c := s.client(t)
	_, err := c.DecideGate(t.Context(), "refund", "k", "3.1", client.VerdictBody{Digest: "d", Verdict: client.VerdictValueApprove})
	e, ok := errors.AsType[*client.Error](err)
	require.True(t, ok)
	require.Equal(t, client.CodeGateClosed, client.CodeOf(err))
	require.Equal(t, []any{int64(409), "Bob has approved it.", "r-1", "bob"}, []any{e.Status, e.Detail, e.RequestID, e.Gate.By})
	require.Equal(t, time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC), e.Gate.At)
	require.EqualError(t, err, "gate_closed (409): Bob has approved it. (request r-1)")
	for range 3 {
		_, err = c.GetRun(t.Context(), "refund", "k")
		require.Equal(t, client.CodeInternal, client.CodeOf(err))
	}
	require.Len(t, s.heard, 4, "a token goes to no other place")
}

// A request comes again within its time, and no longer.
func TestClient_Patience(t *testing.T) {
	late := says(503, `{"code":"unavailable","detail":"Not now."}`, "Retry-After", "3600")
	s := serve(t, late)
	_, err := s.client(t).GetRun(t.Context(), "refund", "k")
	e, ok := errors.AsType[*client.Error](err)
	require.True(t, ok)
	require.Equal(t, time.Hour, e.RetryAfter)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = s.client(t, client.WithPatience(24*time.Hour)).GetRun(ctx, "refund", "k")
	require.Equal(t, client.CodeUnavailable, client.CodeOf(err), "there is no time for another one")
	_, err = serve(t, breaks).client(t, client.WithPatience(0)).MessageRun(t.Context(), "refund", "k", client.MessageBody{Text: "hi"}, client.Key("m-1"))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, `sent again with Key("m-1") it takes effect once`)
	require.Len(t, s.heard, 2)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.client(t).GetRun(gone, "refund", "k")
	require.ErrorIs(t, err, context.Canceled)
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	_, err = serve(t, func(w http.ResponseWriter, r *http.Request) {
		says(503, `{"code":"unavailable"}`, "Retry-After", "60")(w, r)
		time.AfterFunc(20*time.Millisecond, cancel)
	}).client(t, client.WithPatience(time.Hour)).GetRun(ctx, "refund", "k")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, client.CodeUnavailable, client.CodeOf(err))

	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{"": 0, "2": 2 * time.Second, "-1": 0, "soon": 0, "Mon, 30 Nov 2026 10:01:00 GMT": time.Minute, "Mon, 30 Nov 2026 09:00:00 GMT": 0} {
		require.Equal(t, want, client.RetryAfter(text, now), text)
	}
}

// Pauses grow, with chance in them, and are never shorter than the server asks for.
func TestClient_Pauses(t *testing.T) {
	c, err := client.New("https://example.com/", "x")
	require.NoError(t, err)
	busy := &client.Error{Problem: client.Problem{Status: 503}}
	seen := map[time.Duration]bool{}
	for tries, most := range []time.Duration{200, 400, 800, 1600, 3200, 6400, 10000, 10000} {
		for range 50 {
			d, again := c.Pause(busy, tries)
			require.True(t, again)
			require.GreaterOrEqual(t, d, most*time.Millisecond/2)
			require.LessOrEqual(t, d, most*time.Millisecond)
			seen[d] = true
		}
	}
	require.Greater(t, len(seen), 50)
	busy.RetryAfter = 3 * time.Second
	d, _ := c.Pause(busy, 0)
	require.GreaterOrEqual(t, d, 3*time.Second)
	_, again := c.Pause(errors.New("other"), 0)
	require.False(t, again)
}

// JSON that belongs to the agent comes as it was sent; what is new in an answer is
// no mistake.
func TestClient_KeepsEveryByte(t *testing.T) {
	const data = `{"b": 9007199254740993.10,  "a":"<é>", "big":123456789012345678901234567890}`
	s := serve(t, says(200, `{"events":[{"seq":1,"at":"2026-11-30T10:00:00.123456789Z","type":"a_new_one","v":1,"tenant":"acme","data":`+data+`,"new":{}}],"after":1,"more":false,"other":[]}`))
	page, err := s.client(t).ListEvents(t.Context(), "refund", "k", client.ListEventsParams{PageSize: 5})
	require.NoError(t, err)
	require.Equal(t, data, string(page.Events[0].Data))
	require.Equal(t, 123456789, page.Events[0].At.Nanosecond())
	require.Equal(t, "page_size=5", s.heard[0].query)
	_, err = s.client(t).GetState(t.Context(), "refund", "k", client.GetStateParams{})
	require.NoError(t, err)
	require.Equal(t, "seq=0", s.heard[1].query)
	no := false
	_, err = s.client(t).DecideGate(t.Context(), "refund", "k", "2.1", client.VerdictBody{Digest: "d", Verdict: client.VerdictValueAnswer, Answer: &client.AnswerBody{Confirm: &no}})
	require.NoError(t, err)
	require.Equal(t, `{"answer":{"confirm":false},"digest":"d","verdict":"answer"}`+"\n", s.heard[2].body, "no is an answer")
}

func TestNew(t *testing.T) {
	for _, wrong := range []string{"", "example.com", "/v1", "ftp://example.com", "http://"} {
		_, err := client.New(wrong, "x")
		require.ErrorContains(t, err, "no URL of a server", wrong)
	}
	_, err := client.New("https://example.com", "")
	require.ErrorContains(t, err, "give an access token")

	s := serve(t, says(401, ""), says(200, `{}`))
	tokens := make(chan string, 1)
	tokens <- "one"
	c, err := client.New(s.URL+"/below/", "", client.WithTokens(func(context.Context) (string, error) { return <-tokens, nil }))
	require.NoError(t, err)
	_, err = c.GetRun(t.Context(), "refund", "k")
	require.Equal(t, client.CodeUnauthenticated, client.CodeOf(err))
	tokens <- "two"
	_, err = c.GetRun(t.Context(), "refund", "k")
	require.NoError(t, err)
	require.Equal(t, []heard{{"GET", "/below/v1/runs/refund/k", "", "", "Bearer one", "", ""}, {"GET", "/below/v1/runs/refund/k", "", "", "Bearer two", "", ""}}, s.heard)
}
