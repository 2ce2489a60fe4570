// Package client is a client of Interlock's HTTP API, for product backends, tools of
// reviewers and operators. It needs Go's standard library and nothing else: neither
// Temporal nor a store is linked.
//
// What may be asked and what is answered is generated from api/openapi.json. Around
// it, a request that was not answered, or is to come again, is sent again within its
// context; what acts carries an Idempotency-Key, which stays the same over that, so
// that it takes effect once. [Client.Follow] and [Client.FollowGates] go on over
// broken connections without a gap or a repeat.
//
// Arguments, results and state are [encoding/json.RawMessage], as the server sent
// them: decode numbers in them into types that hold all their digits. Members may be
// added to answers, and words to those that a status or type can be.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Client asks one server, or what stands before several, on behalf of one caller. It
// may be used by many goroutines.
type Client struct {
	base     *url.URL
	token    func(context.Context) (string, error)
	http     *http.Client
	patience time.Duration
	answer   time.Duration // an attempt's
	silence  time.Duration // of a stream that is taken for dead
	pause    pauses
}

// Option changes a client.
type Option func(*Client)

// WithHTTPClient asks by another http.Client, such as one with certificates of its
// own. Its Timeout counts for single requests, not for streams.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithTokens asks for the access token before each attempt, in the place of a
// constant one: those of an identity provider expire.
func WithTokens(token func(context.Context) (string, error)) Option {
	return func(c *Client) { c.token = token }
}

// WithPatience bounds for how long a request is sent again, where its context does
// not end sooner; a minute without it. 0: it is sent once. A stream comes again for
// as long as its context lasts.
func WithPatience(d time.Duration) Option { return func(c *Client) { c.patience = d } }

// New makes a client of the server at a URL such as https://interlock.example.com,
// with an access token (interlock access new, or an identity provider's). It does not
// ask anything yet.
func New(baseURL, token string, options ...Option) (*Client, error) {
	base, err := url.Parse(baseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("client: %q is no URL of a server: give one such as https://interlock.example.com", baseURL)
	}
	c := &Client{base: base, patience: time.Minute, answer: 35 * time.Second, silence: 45 * time.Second, pause: pauses{200 * time.Millisecond, 10 * time.Second}}
	if token != "" {
		c.token = func(context.Context) (string, error) { return token, nil }
	}
	for _, o := range options {
		o(c)
	}
	if c.token == nil {
		return nil, errors.New("client: give an access token, or where one comes from (WithTokens)")
	}
	if c.http == nil {
		c.http = &http.Client{}
	}
	c.http = direct(c.http)
	return c, nil
}

// direct is an http.Client that goes nowhere else: what was sent must not be sent to
// another place, nor become a GET on the way.
func direct(h *http.Client) *http.Client {
	d := *h
	d.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &d
}

// CallOption changes one call.
type CallOption func(*request)

// Key gives a call that acts its Idempotency-Key: 1 to 200 printable ASCII
// characters. Without it one is made for the call, and kept while the call is sent
// again. Give your own where another process may have to say the same again.
func Key(key string) CallOption { return func(r *request) { r.key = key } }
