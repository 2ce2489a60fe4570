package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

const (
	connectTimeout = 5 * time.Second // of a connection, and again of its TLS
	maxHeader      = 64 << 10        // of an answer, in bytes
)

// newTransport makes connections that are used once. A connection that is kept
// would be taken for a lost answer when the service has closed it meanwhile,
// and net/http would send a request with an Idempotency-Key again by itself:
// attempts are counted, and are not its to make.
func newTransport(h HTTP) *http.Transport {
	dialer := &net.Dialer{Timeout: connectTimeout, Control: guard(h.AllowPrivate)}
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    connectTimeout,
		TLSClientConfig:        h.TLS.Clone(),
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true,
		DisableCompression:     true, // sizes are those that are read
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true) // one connection, one request
	if h.Proxy != nil {
		t.Proxy = http.ProxyURL(h.Proxy)
	}
	return t
}

// exchange sends one request and reads its answer. Its error says what is known
// where there is none.
func (c *call[A, R]) exchange(ctx context.Context, key Key, args A) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.http.Timeout)
	defer cancel()
	// The hook runs before the first byte is written: without it none was.
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, secrets, err := c.request(ctx, key, args)
	if err != nil {
		return answer{}, err
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		err = fmt.Errorf("no answer from %s: %w", req.URL.Hostname(), err)
		if !connected.Load() {
			return answer{}, NotApplied(err)
		}
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	a := answer{status: resp.StatusCode, kind: resp.Header.Get("Content-Type"), encoding: resp.Header.Get("Content-Encoding"),
		wait: waitOf(resp.Header, time.Now()), secrets: secrets}
	a.body, a.cut = io.ReadAll(io.LimitReader(resp.Body, int64(c.http.MaxResponse)+1))
	if len(a.body) > c.http.MaxResponse {
		a.body, a.cut = a.body[:c.http.MaxResponse], fmt.Errorf("it is larger than %d bytes", c.http.MaxResponse)
	}
	return a, nil
}

// request makes the request, and tells the values that no error may show.
func (c *call[A, R]) request(ctx context.Context, key Key, args A) (*http.Request, []string, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, NotApplied(err)
	}
	if c.http.KeyHeader != "" && key == "" {
		return nil, nil, Refused(errors.New("the tool's effect has no key: it must be Keyed or Reconcilable"))
	}
	data, err := bytesOf(ctx, args)
	if err != nil {
		return nil, nil, Refused(fmt.Errorf("arguments: %w", err))
	}
	to, err := c.url.render(key, data)
	if err != nil {
		return nil, nil, Refused(fmt.Errorf("arguments: %w", err))
	}
	req := (&http.Request{Method: c.http.Method, URL: to, Host: to.Host, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	req.Header.Set("Accept", "application/json, application/problem+json")
	req.Header.Set("User-Agent", "interlock")
	switch c.http.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
	default:
		if len(data) > c.http.MaxRequest {
			return nil, nil, Refused(fmt.Errorf("arguments: %d bytes, the limit is %d", len(data), c.http.MaxRequest))
		}
		// Without GetBody nobody can send it twice.
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		req.Header.Set("Content-Type", "application/json")
	}
	secrets, err := c.header(ctx, req.Header)
	if err != nil {
		return nil, nil, err
	}
	if c.http.KeyHeader != "" {
		req.Header.Set(c.http.KeyHeader, string(key))
	}
	return req, secrets, nil
}

// header adds what Header gives, which replaces the defaults.
func (c *call[A, R]) header(ctx context.Context, to http.Header) (secrets []string, err error) {
	if c.http.Header == nil {
		return nil, nil
	}
	given, err := c.http.Header(ctx)
	if err != nil {
		return nil, NotApplied(fmt.Errorf("headers: %w", err))
	}
	for name, values := range given {
		if len(values) == 0 {
			continue
		}
		to[http.CanonicalHeaderKey(name)] = values
		secrets = append(secrets, values...)
	}
	return secrets, nil
}
