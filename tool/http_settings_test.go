package tool_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/tool"
)

func TestHTTP_PrivateAddressesAreRefused(t *testing.T) {
	var asked atomic.Int64
	at := answering(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	port := at[strings.LastIndex(at, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0", "127.1", "2130706433", "169.254.169.254"} {
		_, err := tool.Send[order, order](tool.HTTP{URL: "http://" + host + port, Timeout: time.Second})(t.Context(), "k", order{ID: "o"})
		require.Equal(t, "not applied", knownOf(err), "%s: %v", host, err)
		if host == "localhost" { // a name of DNS, as any other
			require.ErrorContains(t, err, "is not public and not in AllowPrivate")
		}
	}
	require.Zero(t, asked.Load())
}

func TestHTTP_Proxies(t *testing.T) {
	var through atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"`+r.Host+`"}`)
	}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	// net/http reads the environment once a process, so that this test shows it
	// only where no other has: the assertion that counts is the name, which only a
	// proxy would take.
	_, err := tool.Fetch[order, order](tool.HTTP{URL: "http://shop.invalid/1"})(t.Context(), order{})
	require.Equal(t, "not applied", knownOf(err))
	require.Zero(t, through.Load(), "the environment's proxy is not used")

	u, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	_, err = tool.Fetch[order, order](tool.HTTP{URL: "http://shop.invalid/1", Proxy: u})(t.Context(), order{})
	require.ErrorContains(t, err, "not public", "a proxy's own address is judged too")
	got, err := tool.Fetch[order, order](tool.HTTP{URL: "http://shop.invalid/1", Proxy: u, AllowPrivate: loopback})(t.Context(), order{})
	require.NoError(t, err)
	require.Equal(t, "shop.invalid", got.ID)
	require.EqualValues(t, 1, through.Load())
}

func TestHTTP_Judge(t *testing.T) {
	at := answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/exists" {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = io.WriteString(w, `{"id":"o","any":"`+strings.TrimPrefix(r.URL.Path, "/")+`"}`)
	})
	h := tool.HTTP{URL: at + "/{id}", AllowPrivate: loopback, Judge: func(status int, body []byte) (bool, error) {
		switch {
		case status == http.StatusConflict:
			return true, nil
		case strings.Contains(string(body), "declined"):
			return true, tool.Refused(errors.New("card declined"))
		case strings.Contains(string(body), "busy"):
			return true, tool.NotApplied(errors.New("busy"))
		case strings.Contains(string(body), "odd"):
			return true, errors.New("odd")
		}
		return false, nil
	}}
	for id, want := range map[string][2]string{"exists": {"happened", "happened"}, "declined": {"refused", "unknown"},
		"busy": {"not applied", "did not happen"}, "odd": {"unknown", "unknown"}, "plain": {"happened", "happened"}} {
		_, err := tool.Send[order, order](h)(t.Context(), "k", order{ID: id})
		require.Equal(t, want[0], knownOf(err), id)
		require.Equal(t, want[1], found(tool.LookUp[order, order](h)(t.Context(), "k", order{ID: id})), id)
	}
	// What came back in part is not judged.
	h.MaxResponse = 5
	_, err := tool.Send[order, order](h)(t.Context(), "k", order{ID: "declined"})
	require.Equal(t, "unknown", knownOf(err))
	require.ErrorContains(t, err, "larger than 5 bytes")
}

func found(_ order, happened bool, err error) string {
	switch {
	case err != nil:
		return "unknown"
	case happened:
		return "happened"
	}
	return "did not happen"
}

func TestLookUp(t *testing.T) {
	var status int
	var kind, body string
	at := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" || r.URL.Path != "/orders/k-1" || r.Header.Get("Idempotency-Key") != "" {
			status = 599
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	look := tool.LookUp[order, order](tool.HTTP{URL: at + "/orders/{$key}", AllowPrivate: loopback, KeyHeader: "Idempotency-Key"})
	for _, tc := range []struct {
		status           int
		kind, body, want string
	}{
		{200, "application/json", `{"id":"o"}`, "happened"},
		{200, "application/json", `{"error":"no"}`, "unknown"},
		{200, "text/html", `{"id":"o"}`, "unknown"},
		{404, "application/json", `{"error":"no such key"}`, "did not happen"},
		{404, "application/problem+json", `{}`, "did not happen"},
		{404, "text/plain", "default backend - 404", "unknown"},
		{404, "", "", "unknown"},
		{410, "application/json", `{}`, "unknown"},
		{401, "application/json", `{}`, "unknown"},
		{400, "application/json", `{}`, "unknown"},
		{301, "", "", "unknown"},
		{429, "application/json", `{}`, "unknown"},
		{500, "application/json", `{}`, "unknown"},
	} {
		status, kind, body = tc.status, tc.kind, tc.body
		require.Equal(t, tc.want, found(look(t.Context(), "k-1", order{ID: "o"})), "%d %s", tc.status, tc.body)
	}
	gone := tool.LookUp[order, order](tool.HTTP{URL: "http://nowhere.invalid/{$key}"})
	require.Equal(t, "unknown", found(gone(t.Context(), "k-1", order{})))
}

func TestFetch(t *testing.T) {
	status := 404
	at := answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"n":9007199254740993,"message":"no such order"}`)
	})
	find := tool.ReadOnly("t", tool.Fetch[args, result](tool.HTTP{URL: at + "/{n}", AllowPrivate: loopback}), func(*state, args, result) error { return nil })
	for want, statuses := range map[tool.FailureKind][]int{tool.FailedRefused: {404, 422}, tool.FailedNotApplied: {301, 401, 409, 500, 503}} {
		for _, status = range statuses {
			_, err := find.Attempt(t.Context(), task, tool.Ports{})
			kind, _ := kindOf(t, err)
			require.Equal(t, want, kind, "%d", status)
			require.ErrorContains(t, err, "no such order")
		}
	}
	status = 200
	r, err := find.Attempt(t.Context(), task, tool.Ports{})
	require.NoError(t, err)
	require.Equal(t, `{"n":9007199254740993}`, r.JSON.String())
}

func TestHTTP_RetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	var header http.Header
	status := 429
	at := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		for name := range header {
			w.Header().Set(name, header.Get(name))
		}
		w.WriteHeader(status)
	})
	send := tool.Keyed("t", tool.Send[args, result](tool.HTTP{URL: at, AllowPrivate: loopback}), func(*state, args, result) error { return nil })
	wait := func() time.Duration {
		_, err := send.Attempt(t.Context(), task, tool.Ports{Ledger: newMemory()})
		var f *tool.Failure
		require.ErrorAs(t, err, &f)
		return f.Wait
	}
	for text, want := range map[string]time.Duration{"13": 13 * time.Second, "": 0, "-5": 0, "soon": 0, "0": 0, "99999999999999": 24 * time.Hour,
		now.Add(20 * time.Second).Format(http.TimeFormat): 20 * time.Second, now.Add(-time.Hour).Format(http.TimeFormat): 0} {
		header = http.Header{"Retry-After": {text}, "Date": {now.Format(http.TimeFormat)}}
		require.Equal(t, want, wait(), text)
	}
	status, header = 503, http.Header{"Retry-After": {"7"}}
	require.Equal(t, 7*time.Second, wait(), "also where nobody knows")
}

func TestHTTP_Settings(t *testing.T) {
	for says, h := range map[string]tool.HTTP{
		"must begin with http":       {URL: "ftp://x/{id}"},
		"and a host":                 {URL: "https:///x"},
		"the host is fixed":          {URL: "https://{id}.example/"},
		"it cannot be parsed":        {URL: "https://a b/"},
		"credentials belong":         {URL: "https://user:pass@x/"},
		"a fragment":                 {URL: "https://x/#{id}"},
		"a } without":                {URL: "https://x/id}"},
		"} ends it":                  {URL: "https://x/{id"},
		"{other} is no field":        {URL: "https://x/{other}"},
		"{amount.other} is no field": {URL: "https://x/?q={amount.other}"},
		"method":                     {URL: "https://x/", Method: "GET /"},
		"negative":                   {URL: "https://x/", MaxResponse: -1},
		"no name of a header":        {URL: "https://x/", KeyHeader: "Key:"},
		"the proxy":                  {URL: "https://x/", Proxy: &url.URL{Scheme: "socks5", Host: "x"}},
	} {
		func() {
			defer func() {
				p, _ := recover().(string)
				require.Contains(t, p, says)
				require.NotContains(t, p, "pass@")
			}()
			tool.Send[order, order](h)
		}()
	}
	require.Panics(t, func() { tool.Send[order, order](tool.HTTP{URL: "https://x/", Method: "GET"}) })
	require.Panics(t, func() { tool.Fetch[order, order](tool.HTTP{URL: "https://x/{$key}"}) })
	require.NoError(t, tool.HTTP{URL: "https://x:8443/a/{b}/{$key}?c={d}&e=f"}.Err())
	require.Error(t, tool.HTTP{}.Err())
}

// A result type that contains itself has no schema, and is decoded all the same.
func TestFetch_Trees(t *testing.T) {
	type tree struct {
		Name string `json:"name"`
		Of   []tree `json:"of,omitempty"`
	}
	at := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"name":"a","of":[{"name":"b"}]}`)
	})
	got, err := tool.Fetch[order, tree](tool.HTTP{URL: at, AllowPrivate: loopback})(context.Background(), order{})
	require.NoError(t, err)
	require.Equal(t, "b", got.Of[0].Name)
}
