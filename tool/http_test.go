package tool_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

type order struct {
	ID     string      `json:"id"`
	Amount agent.Money `json:"amount,omitzero"`
	N      int64       `json:"n,omitempty"`
	Any    any         `json:"any,omitempty"`
}

// knownOf says what an error of a tool's function says.
func knownOf(err error) string {
	switch {
	case err == nil:
		return "happened"
	case tool.IsRefused(err):
		return "refused"
	case tool.IsNotApplied(err):
		return "not applied"
	}
	return "unknown"
}

func answering(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// raw serves each connection by hand, after its request was read.
func raw(t *testing.T, serve func(net.Conn)) (address string, requests *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	requests = new(atomic.Int64)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.Copy(io.Discard, req.Body)
					requests.Add(1)
					serve(c)
				}
			}()
		}
	}()
	return "http://" + ln.Addr().String(), requests
}

func TestSend_WhatIsSent(t *testing.T) {
	var got *http.Request
	var body []byte
	at := answering(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"o-1"}`)
	})
	h := tool.HTTP{URL: at + "/orders/{id}?of={amount.minor}&n={n}&in={any}", AllowPrivate: loopback,
		Header: func(ctx context.Context) (http.Header, error) {
			c := tool.CallerOf(ctx)
			return http.Header{"authorization": {"Bearer secret"}, "X-Caller": {c.Tenant + "/" + c.User + "/" + c.Step}, "User-Agent": {"shop"}}, nil
		}}
	// In other order, with a member's zero value, and an integer beyond 2^53: what
	// was validated is sent, not what encoding the arguments again would give.
	validated := agent.JSON(`{"amount":{"currency":"EUR","minor":9007199254740993},"id":"a/b c?","n":0}`)
	tk := task
	tk.Args, tk.User = validated, "c-017"
	send := tool.Keyed("t", tool.Send[order, order](h), func(*state, order, order) error { return nil })
	_, err := send.Attempt(t.Context(), tk, tool.Ports{Ledger: newMemory()})
	require.NoError(t, err)
	require.Equal(t, string(validated), string(body))
	require.Equal(t, "POST", got.Method)
	require.Equal(t, "/orders/a%2Fb%20c%3F?of=9007199254740993&n=0", got.URL.RequestURI(), "a parameter without a value is left out")
	require.Equal(t, "key-1", got.Header.Get("Idempotency-Key"))
	require.Equal(t, "Bearer secret", got.Header.Get("Authorization"))
	require.Equal(t, "acme/c-017/1.1", got.Header.Get("X-Caller"))
	require.Equal(t, "shop", got.Header.Get("User-Agent"))
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	require.True(t, got.Close, "a connection is used once")

	// Arguments that the function made are sent as they are.
	changed := tool.Keyed("t", func(ctx context.Context, k tool.Key, a order) (order, error) {
		a.ID = "changed"
		return tool.Send[order, order](h)(ctx, k, a)
	}, func(*state, order, order) error { return nil })
	_, err = changed.Attempt(t.Context(), tk, tool.Ports{Ledger: newMemory()})
	require.NoError(t, err)
	require.Equal(t, `{"amount":{"currency":"EUR","minor":9007199254740993},"id":"changed"}`, string(body))

	h.Method, h.URL, h.KeyHeader = "DELETE", at+"/orders/{$key}/{id}", "X-Request-Key"
	_, err = tool.Send[order, order](h)(t.Context(), "k-1", order{ID: "7"})
	require.NoError(t, err)
	require.Equal(t, "DELETE /orders/k-1/7 k-1", got.Method+" "+got.URL.Path+" "+got.Header.Get("X-Request-Key"))
	require.Empty(t, body)
	require.Zero(t, got.ContentLength)

	h.Method, h.URL = "", at+"/orders?id={id}"
	_, err = tool.Fetch[order, order](h)(t.Context(), order{ID: "ä&=1"})
	require.NoError(t, err)
	require.Equal(t, "GET ä&=1", got.Method+" "+got.URL.Query().Get("id"))
	require.Empty(t, got.Header.Get("X-Request-Key"))
	require.Empty(t, body)
}

func TestSend_NothingIsSent(t *testing.T) {
	var asked atomic.Int64
	at := answering(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	base := tool.HTTP{URL: at + "/{id}", AllowPrivate: loopback, MaxRequest: 200}
	broken := base
	broken.Header = func(context.Context) (http.Header, error) { return nil, errors.New("the vault is sealed") }
	bad := base
	bad.Header = func(context.Context) (http.Header, error) { return http.Header{"X": {"a\r\nsecret: b"}}, nil }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		http  tool.HTTP
		ctx   context.Context
		key   tool.Key
		id    string
		known string
		says  string
	}{
		"no value for the path":   {http: base, known: "refused", says: "cannot be a part of a path"},
		"a way up":                {http: base, id: "..", known: "refused", says: "cannot be a part of a path"},
		"a way up, inside":        {http: base, id: "a/../../b", known: "refused", says: "cannot be"},
		"a way up, with a suffix": {http: base, id: `a\..;x`, known: "refused", says: "cannot be"},
		"too large":               {http: base, id: strings.Repeat("x", 200), known: "refused", says: "the limit is 200"},
		"no credentials":          {http: broken, id: "1", known: "not applied", says: "the vault is sealed"},
		"a header in two lines":   {http: bad, id: "1", known: "not applied", says: "invalid header"},
		"its time is up":          {http: base, ctx: ended, id: "1", known: "not applied", says: "canceled"},
		"no key":                  {http: base, key: "-", id: "1", known: "refused", says: "has no key"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, key := tc.ctx, tool.Key("k")
			if ctx == nil {
				ctx = t.Context()
			}
			if tc.key != "" {
				key = ""
			}
			_, err := tool.Send[order, order](tc.http)(ctx, key, order{ID: tc.id})
			require.Equal(t, tc.known, knownOf(err), "%v", err)
			require.ErrorContains(t, err, tc.says)
			require.NotContains(t, err.Error(), "secret")
		})
	}
	require.Zero(t, asked.Load())
}

func TestSend_WhatAnAnswerMeans(t *testing.T) {
	big := `{"id":"` + strings.Repeat("x", 2000) + `"}`
	for _, tc := range []struct {
		status      int
		kind, body  string
		known, says string
	}{
		{200, "application/json", `{"id":"o","n":9007199254740993,"any":9007199254740993,"more":[1]}`, "happened", ""},
		{201, "application/hal+json; charset=utf-8", `{"id":"o"}`, "happened", ""},
		{202, "", `{"id":"o"}`, "unknown", "text/plain"}, // what net/http makes of it
		{204, "", ``, "unknown", "/id is missing"},
		{200, "application/json", `{"id":"o","id":"p"}`, "unknown", "duplicate"},
		{200, "application/json", `{"id":"o","ID":"p"}`, "unknown", ""},
		{200, "application/json", `{"error":"no such order"}`, "unknown", "/id is missing"},
		{200, "application/json", `{"id":null}`, "unknown", "/id is null"},
		{200, "application/json", `{"id":"o","amount":{"minor":1}}`, "unknown", "/amount/currency is missing"},
		{200, "application/json", `{"id":"o","n":9223372036854775808}`, "unknown", "int64"},
		{200, "application/json", `{"id":"o"} {}`, "unknown", ""},
		{200, "application/json", `{"id":`, "unknown", ""},
		{200, "text/html", `{"id":"o"}`, "unknown", "text/html"},
		{200, "application/json", big, "unknown", "larger than 1000 bytes"},
		{302, "", "", "unknown", "redirects are not followed"},
		{303, "", "", "unknown", "redirects are not followed"},
		{307, "", "", "not applied", "redirects are not followed"},
		{308, "", "", "not applied", "redirects are not followed"},
		{400, "application/problem+json", `{"title":"Bad","detail":"no such\u0007 currency\n"}`, "refused", "400 Bad Request: no such currency"},
		{422, "application/json", `{"error":{"message":"card declined"}}`, "refused", "422 Unprocessable Entity: card declined"},
		{404, "text/plain", "no such order", "refused", "404 Not Found: no such order"},
		{404, "application/json", big, "refused", "larger than 1000 bytes"},
		{402, "", "", "refused", "402"},
		{401, "application/json", `{"message":"token s3cr3t-value is wrong: Bearer s3cr3t-value"}`, "not applied", "token … is wrong: …"},
		{403, "", "", "not applied", "403"},
		{429, "", "", "not applied", "429"},
		{408, "", "", "unknown", "408"},
		{409, "application/json", `{"error":"in progress"}`, "unknown", "in progress"},
		{418, "", "", "unknown", "418"},
		{500, "text/html", "<h1>\u202eoops\x00</h1>", "unknown", "500 Internal Server Error: <h1>oops </h1>"},
		{501, "", "", "refused", "501"},
		{502, "", "", "unknown", "502"},
		{503, "", "", "unknown", "503"},
		{504, "", "", "unknown", "504"},
	} {
		t.Run(fmt.Sprint(tc.status, " ", tc.body[:min(len(tc.body), 20)]), func(t *testing.T) {
			var asked atomic.Int64
			at := answering(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				w.Header().Set("Location", "/elsewhere")
				if tc.kind != "" {
					w.Header().Set("Content-Type", tc.kind)
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			h := tool.HTTP{URL: at, AllowPrivate: loopback, MaxResponse: 1000, Header: func(context.Context) (http.Header, error) {
				return http.Header{"Authorization": {"Bearer s3cr3t-value"}}, nil
			}}
			got, err := tool.Send[order, order](h)(t.Context(), "k", order{ID: "o"})
			require.Equal(t, tc.known, knownOf(err), "%v", err)
			require.EqualValues(t, 1, asked.Load())
			if err != nil {
				require.ErrorContains(t, err, tc.says)
				require.NotContains(t, err.Error(), "s3cr3t")
				require.Less(t, len(err.Error()), 500)
				return
			}
			require.Equal(t, "o", got.ID)
			if got.N != 0 {
				j, err := agent.Encode(got)
				require.NoError(t, err)
				require.Equal(t, `{"amount":{"currency":"","minor":0},"any":9007199254740993,"id":"o","n":9007199254740993}`,
					strings.Replace(j.String(), `{"any"`, `{"amount":{"currency":"","minor":0},"any"`, 1))
			}
		})
	}
}

func TestSend_NoBodyIsAResultWhereNoneIsNeeded(t *testing.T) {
	at := answering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	_, err := tool.Send[order, struct{}](tool.HTTP{Method: "DELETE", URL: at, AllowPrivate: loopback})(t.Context(), "k", order{})
	require.NoError(t, err)
	_, err = tool.Send[order, agent.JSON](tool.HTTP{URL: at, AllowPrivate: loopback})(t.Context(), "k", order{})
	require.NoError(t, err)
	_, err = tool.Send[order, []order](tool.HTTP{URL: at, AllowPrivate: loopback})(t.Context(), "k", order{})
	require.Equal(t, "unknown", knownOf(err))
}

// A refusal without the service's own words may be a proxy's, in front of a
// service that has done it.
func TestSend_RefusedAfterAnOpenAttempt(t *testing.T) {
	var kind string
	status := 502
	at := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"detail":"no route"}`)
	})
	send := tool.Keyed("t", tool.Send[args, result](tool.HTTP{URL: at, AllowPrivate: loopback}), func(*state, args, result) error { return nil })
	p := tool.Ports{Ledger: newMemory()}
	for _, tc := range []struct {
		status int
		kind   string
		want   tool.FailureKind
	}{{502, "text/html", tool.FailedUnknown}, {404, "text/html", tool.FailedUnknown}, {404, "application/json", tool.FailedRefused}} {
		status, kind = tc.status, tc.kind
		_, err := send.Attempt(t.Context(), task, p)
		got, _ := kindOf(t, err)
		require.Equal(t, tc.want, got, "%v", err)
	}
}

func TestSend_NoWholeAnswer(t *testing.T) {
	say := func(s string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, s) }
	}
	for name, serve := range map[string]func(net.Conn){
		"closed after the request": func(net.Conn) {},
		"half a status line":       say("HTTP/1.1 20"),
		"half the headers":         say("HTTP/1.1 200 OK\r\nContent-Ty"),
		"half a body":              say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{\"id\":\"o\"}"),
		"half a chunk":             say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\na\r\n{\"id\":\"o\"}\r\n"),
		"no HTTP":                  say("hello\r\n\r\n"),
		"endless headers":          say("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n"),
		"silence":                  func(net.Conn) { time.Sleep(time.Second) },
		"a slow body": func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{\"id\":")
			time.Sleep(time.Second)
		},
		"reset": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) },
	} {
		t.Run(name, func(t *testing.T) {
			at, requests := raw(t, serve)
			h := tool.HTTP{URL: at, AllowPrivate: loopback, Timeout: 200 * time.Millisecond}
			for n := range 3 { // as often as it is sent, and no more
				_, err := tool.Send[order, order](h)(t.Context(), "k", order{ID: "o"})
				require.Equal(t, "unknown", knownOf(err), "%v", err)
				h.Method = "DELETE" // has no body, and a key: net/http would send it again
				require.EqualValues(t, n+1, requests.Load())
			}
		})
	}
}

func TestSend_NotConnected(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := "http://" + ln.Addr().String()
	require.NoError(t, ln.Close())
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	plain := answering(t, func(w http.ResponseWriter, _ *http.Request) {})
	proxy, err := url.Parse(nobody)
	require.NoError(t, err)
	for name, h := range map[string]tool.HTTP{
		"nobody listens":      {URL: nobody},
		"no such name":        {URL: "http://nowhere.invalid"},
		"unknown certificate": {URL: secure.URL},
		"no TLS":              {URL: strings.Replace(plain, "http:", "https:", 1)},
		"no proxy":            {URL: plain, Proxy: proxy},
	} {
		t.Run(name, func(t *testing.T) {
			h.AllowPrivate = loopback
			_, err := tool.Send[order, order](h)(t.Context(), "k", order{ID: "o"})
			require.Equal(t, "not applied", knownOf(err), "%v", err)
		})
	}
}
