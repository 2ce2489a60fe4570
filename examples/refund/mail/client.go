package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"
)

// maxAnswer bounds what the client reads of an answer, in bytes.
const maxAnswer = 16 << 10

// Client sends messages to a mail service.
type Client struct {
	BaseURL string       // such as http://127.0.0.1:8025
	HTTP    *http.Client // nil: one with timeouts. Redirects are never followed
}

// defaultHTTP gives up in seconds: whoever calls retries with the same key.
var defaultHTTP = &http.Client{
	Timeout: 10 * time.Second,
	Transport: &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
		TLSHandshakeTimeout:    3 * time.Second,
		ResponseHeaderTimeout:  8 * time.Second,
		MaxResponseHeaderBytes: maxAnswer,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        30 * time.Second,
	},
}

// SendReceipt sends a receipt under a key. See [Client.Send].
func (c Client) SendReceipt(ctx context.Context, key string, r Receipt) (Sent, error) {
	return c.Send(ctx, key, r.Message())
}

// Send hands a message to the service, in one attempt. Sent again under the
// same key it is the same message, with the same id. Every error is an [*Error].
func (c Client) Send(ctx context.Context, key string, m Message) (Sent, error) {
	if err := checkKey(key); err != nil {
		return Sent{}, &Error{Kind: Refused, Reason: err.Error()}
	}
	body, err := json.Marshal(m)
	if err != nil || len(body) > maxBody {
		return Sent{}, &Error{Kind: Refused, Reason: fmt.Sprintf("the message is larger than %d bytes", maxBody), Err: err}
	}
	seen := new(connection)
	req, err := c.request(httptrace.WithClientTrace(ctx, seen.trace()), key, body)
	if err != nil {
		return Sent{}, &Error{Kind: NotSent, Reason: "the request cannot be made", Err: err}
	}
	resp, err := c.http().Do(req)
	if err != nil {
		return Sent{}, &Error{Kind: seen.kind(), Reason: "no answer from the mail service", Err: err}
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(got) > maxAnswer {
		err = fmt.Errorf("it is longer than %d bytes", maxAnswer)
	}
	return answer(resp.StatusCode, got, err)
}

func (c Client) request(ctx context.Context, key string, body []byte) (*http.Request, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	base, err := url.Parse(c.BaseURL)
	if err != nil {
		return nil, err
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("BaseURL %q is not the address of a service", c.BaseURL)
	}
	to := base.JoinPath("messages").String()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// Without a way to read the body again the transport does not resend the
	// request by itself, which it would for a request with an Idempotency-Key:
	// attempts are the caller's, who counts them.
	req.GetBody = nil
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	return req, nil
}

// http is the client's own or the default, in any case without redirects: a
// message goes to the service that was configured and to no other.
func (c Client) http() *http.Client {
	h := defaultHTTP
	if c.HTTP != nil {
		h = c.HTTP
	}
	strict := *h
	strict.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &strict
}

// answer judges an answer. What it does not understand is [Unknown], never
// "not sent"; readErr is why the body is not whole.
func answer(status int, body []byte, readErr error) (Sent, error) {
	fail := func(k Kind, reason string, err error) (Sent, error) {
		return Sent{}, &Error{Kind: k, Status: status, Reason: reason, Err: err}
	}
	switch {
	case status == http.StatusOK || status == http.StatusCreated:
		var sent Sent
		if readErr == nil {
			readErr = json.Unmarshal(body, &sent)
		}
		if readErr != nil || sent.ID == "" {
			return fail(Unknown, "the answer has no id that can be read", readErr)
		}
		return sent, nil
	case status == http.StatusConflict:
		// An earlier attempt under this key, with other words, did arrive: a
		// plain refusal would invite a second mail under a new key.
		return fail(Unknown, "an earlier attempt sent another text under this key: "+problem(status, body), nil)
	case status == http.StatusRequestTimeout:
		return fail(Unknown, problem(status, body), nil)
	case status == http.StatusTooManyRequests:
		return fail(NotSent, problem(status, body), nil)
	case status >= 400 && status < 500:
		return fail(Refused, problem(status, body), nil)
	}
	return fail(Unknown, problem(status, body), nil)
}

// problem is what the service says went wrong, in a line.
func problem(status int, body []byte) string {
	text := fmt.Sprintf("%d %s", status, http.StatusText(status))
	var p struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &p) != nil || p.Error == "" {
		return text
	}
	said := []rune(p.Error)
	return text + ": " + string(said[:min(len(said), 300)])
}

// connection records how far a request came. The hooks run in the goroutine
// that sends, before it writes: where got is false, not a byte was written.
type connection struct{ asked, got atomic.Bool }

func (c *connection) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { c.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { c.got.Store(true) },
	}
}

// kind is what is known when there was no answer. A transport that does not
// call the hooks proves nothing.
func (c *connection) kind() Kind {
	if c.asked.Load() && !c.got.Load() {
		return NotSent
	}
	return Unknown
}
