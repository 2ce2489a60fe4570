package notice

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"interlock/agent"
)

const otherSecret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

func some() Notice {
	return Notice{ID: "n1", Kind: GateOpened, At: at, Tenant: "acme", Agent: "refund", Key: "k", Address: "acme/refund/k", FirstRunID: "r1", Seq: 7,
		Gate: "3.1", Roles: []string{"refunds"}, Title: "Refund to Ann"}
}

func hook(url string, secrets ...secret) Target {
	if secrets == nil {
		secrets = []secret{webhookSecret}
	}
	return Target{Name: "ops", Kind: Webhook, url: secret(url), secrets: secrets, AllowPrivate: true}
}

// received is what a server got.
type received struct {
	header http.Header
	body   []byte
}

func receiver(t *testing.T) (url string, got chan received) {
	t.Helper()
	got = make(chan received, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- received{r.Header, body}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, got
}

func TestSend_SignedWebhook(t *testing.T) {
	url, got := receiver(t)
	s := NewSender(Options{Page: "https://x.example"})
	answer, err := s.Send(t.Context(), hook(url, webhookSecret, otherSecret), some())
	require.NoError(t, err)
	require.Equal(t, "200 OK", answer)
	r := <-got
	require.Equal(t, "n1", r.header.Get("webhook-id"))
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	require.NotContains(t, string(r.body)+r.header.Get("webhook-signature"), hiddenWord)
	// Whoever knows the old or the new secret believes it; nobody else does.
	for _, secret := range []string{webhookSecret, otherSecret} {
		w, err := standardwebhooks.NewWebhook(secret)
		require.NoError(t, err)
		require.NoError(t, w.Verify(r.body, r.header))
		require.Error(t, w.Verify(append(r.body, ' '), r.header))
	}
	w, err := standardwebhooks.NewWebhook("whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB")
	require.NoError(t, err)
	require.Error(t, w.Verify(r.body, r.header))

	var p struct {
		Type      string
		Timestamp time.Time
		Data      map[string]any
	}
	d := json.NewDecoder(strings.NewReader(string(r.body)))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&p))
	require.Equal(t, []any{"gate.opened", at}, []any{p.Type, p.Timestamp})
	require.Equal(t, map[string]any{"id": "n1", "at": "2026-11-29T10:00:00Z", "tenant": "acme", "agent": "refund", "key": "k", "address": "acme/refund/k",
		"first_run_id": "r1", "seq": 7.0, "gate": "3.1", "roles": []any{"refunds"}, "link": "https://x.example/runs/refund/k/gates/3.1"}, p.Data, "and no title")

	titled := hook(url)
	titled.Titles = true
	_, err = s.Send(t.Context(), titled, some())
	require.NoError(t, err)
	require.Contains(t, string((<-got).body), "Refund to Ann")
}

func TestSend_Slack(t *testing.T) {
	url, got := receiver(t)
	target := Target{Name: "chat", Kind: Slack, url: secret(url + "/services/T0/S3CR3T"), AllowPrivate: true}
	_, err := NewSender(Options{}).Send(t.Context(), target, some())
	require.NoError(t, err)
	r := <-got
	require.Empty(t, r.header.Get("webhook-signature"))
	require.Contains(t, string(r.body), `"text":"acme/refund/k waits at gate 3.1 for role refunds"`)
}

// What an answer means.
func TestSend_Answers(t *testing.T) {
	soon := at.Add(90 * time.Second).Format(http.TimeFormat)
	for name, c := range map[string]struct {
		code  int
		after string
		gone  bool
		wait  time.Duration
		says  string
	}{
		"created":        {code: 201},
		"no content":     {code: 204},
		"gone":           {code: 410, after: "5", gone: true, says: "410 Gone: it wants no notices any more"},
		"too many":       {code: 429, after: "7", wait: 7 * time.Second, says: "429 Too Many Requests"},
		"unavailable":    {code: 503, after: soon, wait: 90 * time.Second, says: "503"},
		"for ever":       {code: 503, after: "999999999999", wait: time.Hour, says: "503"},
		"beyond numbers": {code: 503, after: "99999999999999999999999", says: "503"},
		"in the past":    {code: 503, after: "Sun, 06 Nov 1994 08:49:37 GMT", says: "503"},
		"negative":       {code: 429, after: "-5", says: "429"},
		"garbage":        {code: 429, after: "soon", says: "429"},
		"an error":       {code: 500, after: "5", says: "500 Internal Server Error (went wrong)"},
		"not found":      {code: 404, says: "404"},
		"unknown":        {code: 599, says: "599 (went wrong)"},
		"a redirect":     {code: 302, says: "302 Found: it redirects, which is not followed"},
		"another":        {code: 308, says: "308 Permanent Redirect: it redirects"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				require.Equal(t, "/", r.URL.Path, "nothing is followed")
				w.Header().Set("Retry-After", c.after)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, "went\n\twrong")
			}))
			defer srv.Close()
			_, err := NewSender(Options{Now: func() time.Time { return at }}).Send(t.Context(), hook(srv.URL), some())
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			f := failure(t, err)
			require.Equal(t, []any{c.gone, c.wait}, []any{f.Gone, f.RetryAfter})
			require.ErrorContains(t, f, c.says)
		})
	}
}

func failure(t *testing.T, err error) *Failure {
	t.Helper()
	f, ok := errors.AsType[*Failure](err)
	require.True(t, ok, "%v", err)
	require.NotContains(t, f.Text, hiddenWord)
	return f
}

// However a server answers, an attempt ends soon, keeps little, and tells no secret.
func TestSend_BadServers(t *testing.T) {
	sent := atomic.Int64{}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		says  string // "": it is taken
	}{
		"says nothing":     {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within"},
		"drips its answer": {func(w http.ResponseWriter, r *http.Request) { drip(w, r, 500) }, "500"},
		"drips a yes":      {func(w http.ResponseWriter, r *http.Request) { drip(w, r, 200) }, ""},
		"answers at length": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			for range 1000 {
				n, err := io.WriteString(w, strings.Repeat("x", 64<<10))
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		}, "500"},
		"has endless headers": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, "server response headers exceeded"},
		"answers garbage": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			_, _ = w.Write([]byte("\x1b[2J\xff\x00\u202e"))
		}, "500"},
		"is none": {raw("\x00\x01garbage\r\n\r\n"), "malformed HTTP"},
		"closes":  {raw(""), "EOF"},
		"tells all it was told": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, r.URL.Path+" "+r.URL.RawQuery+" "+webhookSecret+strings.Repeat(" ", 150)+webhookSecret)
		}, "500"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // only then is it known that the caller has gone
				c.serve(w, r)
			}))
			defer srv.Close()
			began := time.Now()
			_, err := NewSender(Options{Timeout: time.Second}).Send(t.Context(), hook(srv.URL+"/in?key=S3CR3T&b=1"), some())
			require.Less(t, time.Since(began), 10*time.Second)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			f := failure(t, err)
			require.ErrorContains(t, f, c.says)
			require.LessOrEqual(t, len(f.Text), 300)
			require.Equal(t, plain(f.Text, 1000), f.Text)
		})
	}
	require.Less(t, sent.Load(), int64(20<<20), "the rest is not read")
}

func drip(w http.ResponseWriter, r *http.Request, code int) {
	w.WriteHeader(code)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, "x"); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		<-tick.C
	}
}

// raw answers with bytes, and closes.
func raw(bytes string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, bytes)
			_ = conn.Close()
		}
	}
}

func TestSend_TLS(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	srv.Config.ErrorLog = nil
	_, err := NewSender(Options{}).Send(t.Context(), hook(srv.URL+"/S3CR3T?S3CR3T"), some())
	require.ErrorContains(t, failure(t, err), "certificate")
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	_, err = NewSender(Options{Roots: roots}).Send(t.Context(), hook(srv.URL), some())
	require.NoError(t, err)
}

// A proxy would connect in our place, wherever to.
func TestSend_AsksNoProxy(t *testing.T) {
	url, got := receiver(t)
	t.Setenv("HTTP_PROXY", url)
	t.Setenv("HTTPS_PROXY", url)
	_, err := NewSender(Options{Timeout: time.Second}).Send(t.Context(), hook("http://nowhere.invalid/S3CR3T"), some())
	failure(t, err)
	require.Empty(t, got)
}

func TestSend_IsToldToStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	url, got := receiver(t)
	_, err := NewSender(Options{}).Send(ctx, hook(url), some())
	failure(t, err)
	require.Empty(t, got)
	require.Equal(t, agent.CodeInternal, agent.ErrorCode(err))
}
