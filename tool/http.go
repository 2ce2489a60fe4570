package tool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Defaults of an [HTTP] request.
const (
	HTTPTimeout = 20 * time.Second // from connecting to the last byte of the answer
	HTTPBytes   = 1 << 20          // of a request's body, and of an answer's
)

// HTTP is a request to a service in any language. [Fetch], [Send] and [LookUp]
// make a tool's function of it; the effect stays the tool's constructor.
//
// One attempt is one HTTP/1.1 request on a connection of its own: it is never
// repeated by itself, follows no redirect, and uses no proxy of the environment.
// What was sent and what came back decides what is known:
//
//	not connected (name, address, TLS)     not applied
//	connected, but no whole answer         unknown
//	2xx whose JSON decodes into R          it happened
//	2xx otherwise                          unknown
//	307, 308                               not applied: mend the URL
//	400 402 404 405 406 410 411 412 413    refused for good, in the service's words
//	414 415 416 417 422 428 431 451
//	501 505                                refused for good
//	401 403 407 421 423 425 429            not applied: can be mended, or passes
//	any other                              unknown: 409 and 503 can mean that an
//	                                       earlier request is under way
//
// After an attempt that may have had the effect, a refusal counts only with a
// JSON body: without one it may be a proxy's, while the service has done it.
//
// A Retry-After is the wait before the next attempt. The body of a request is
// the canonical JSON of the arguments, byte for byte as it was validated; GET,
// HEAD and DELETE have none. An answer is JSON, with integers exact at any size:
// duplicate keys, a missing member that R does not mark omitempty and another
// content type do not decode; members that R lacks are ignored. No body at all
// is the zero R, where R needs no member.
type HTTP struct {
	Method string // default: POST of Send, GET of the others
	// URL is http or https. In its path and query, {field} or {field.member} is a
	// value of the arguments, escaped for its place, and {$key} the effect's key
	// (Send, LookUp). A query parameter whose value is absent or null is left out.
	URL string
	// Header is what each request carries besides: credentials, the caller (see
	// [CallerOf]). Its values are in no error and no log. An error of it means that
	// nothing was sent.
	Header func(ctx context.Context) (http.Header, error)
	// KeyHeader carries the key of a Send. Default: Idempotency-Key.
	KeyHeader string
	Timeout   time.Duration // default: HTTPTimeout; never longer than the attempt
	// MaxRequest and MaxResponse are in bytes of the body. Default: HTTPBytes. A
	// larger request is refused for good; a larger answer does not decode.
	MaxRequest, MaxResponse int
	// AllowPrivate names networks that may be connected to although they are not
	// public. All others are refused when connecting, whatever name led there:
	// loopback, private, link-local (with cloud metadata), shared, reserved.
	AllowPrivate []netip.Prefix
	// Proxy is asked to connect, and so decides alone which addresses are reached.
	// Its own address must be public or in AllowPrivate.
	Proxy *url.URL
	TLS   *tls.Config
	// Judge reads an answer before the table does: judged false leaves it to the
	// table; else a nil error means that it happened and the body is the result,
	// and an error says what is known, as that of a tool's function does.
	Judge func(status int, body []byte) (judged bool, err error)
}

// Fetch is the function of a ReadOnly tool. It panics on a request that can
// never work: see [HTTP.Err].
func Fetch[A, R any](h HTTP) func(context.Context, A) (R, error) {
	c := newCall[A, R](h, http.MethodGet)
	if c.url.uses(keyField) {
		panic("tool: HTTP: Fetch has no {$key}")
	}
	c.http.KeyHeader = ""
	return func(ctx context.Context, a A) (R, error) { return c.result(ctx, "", a) }
}

// Send is the function of a tool with an effect. Its request carries the key in
// KeyHeader. It panics as [Fetch] does, and on GET and HEAD, which promise to
// have no effect.
func Send[A, R any](h HTTP) func(context.Context, Key, A) (R, error) {
	c := newCall[A, R](h, http.MethodPost)
	if c.http.Method == http.MethodGet || c.http.Method == http.MethodHead {
		panic(fmt.Sprintf("tool: HTTP: Send by %s, which promises to have no effect", c.http.Method))
	}
	if c.http.KeyHeader == "" {
		c.http.KeyHeader = "Idempotency-Key"
	}
	return func(ctx context.Context, k Key, a A) (R, error) { return c.result(ctx, k, a) }
}

// LookUp is the second function of a Reconcilable tool. An answer that [Send]
// would take for a result is one: it happened. 404 with a JSON body means that
// it did not; without one it may be a proxy's, and proves nothing, as any other
// answer. A Judge says "it did not happen" by [NotApplied]. It panics as [Fetch]
// does.
func LookUp[A, R any](h HTTP) func(context.Context, Key, A) (R, bool, error) {
	c := newCall[A, R](h, http.MethodGet)
	c.http.KeyHeader = ""
	return func(ctx context.Context, k Key, a A) (r R, happened bool, err error) {
		answer, err := c.exchange(ctx, k, a)
		if err != nil {
			return r, false, err
		}
		judged, err := c.judge(answer)
		switch {
		case judged && IsNotApplied(err), !judged && answer.status == http.StatusNotFound && answer.isJSON():
			return r, false, nil
		case judged && err != nil:
			return r, false, err
		case judged || answer.status/100 == 2:
			r, err = c.decode(answer)
			return r, err == nil, err
		}
		return r, false, RetryAfter(answer.fault(), answer.wait)
	}
}

// Err is what is wrong with a request's settings, for those that come from
// configuration.
func (h HTTP) Err() error {
	var errs []error
	if _, err := parseTemplate(h.URL); err != nil {
		errs = append(errs, err)
	}
	if strings.ContainsFunc(h.Method, func(r rune) bool { return r < 'A' || r > 'Z' }) || h.Method == http.MethodConnect {
		errs = append(errs, fmt.Errorf("method %q is none", h.Method))
	}
	if strings.ContainsFunc(h.KeyHeader, func(r rune) bool { return r != '-' && (r > 'z' || !unicode.IsLetter(r) && !unicode.IsDigit(r)) }) {
		errs = append(errs, fmt.Errorf("KeyHeader %q is no name of a header", h.KeyHeader))
	}
	if h.Timeout < 0 || h.MaxRequest < 0 || h.MaxResponse < 0 {
		errs = append(errs, errors.New("timeout and sizes cannot be negative"))
	}
	if p := h.Proxy; p != nil && (p.Host == "" || p.Scheme != "http" && p.Scheme != "https") {
		errs = append(errs, errors.New("the proxy is no http or https URL"))
	}
	return errors.Join(errs...)
}

// call is an HTTP request with its defaults and all that is made of it once.
type call[A, R any] struct {
	http      HTTP
	url       template
	transport *http.Transport
	needs     *members // that an answer must have
}

func newCall[A, R any](h HTTP, method string) *call[A, R] {
	if err := h.Err(); err != nil {
		panic(fmt.Sprintf("tool: HTTP: %v", err))
	}
	if h.Method == "" {
		h.Method = method
	}
	if h.Timeout == 0 {
		h.Timeout = HTTPTimeout
	}
	if h.MaxRequest == 0 {
		h.MaxRequest = HTTPBytes
	}
	if h.MaxResponse == 0 {
		h.MaxResponse = HTTPBytes
	}
	h.AllowPrivate = slices.Clone(h.AllowPrivate)
	c := &call[A, R]{http: h, transport: newTransport(h), needs: membersOf[R]()}
	c.url, _ = parseTemplate(h.URL)
	if err := c.url.check(membersOf[A]()); err != nil {
		panic(fmt.Sprintf("tool: HTTP: %v", err))
	}
	return c
}

// result is one request read as a tool's function is.
func (c *call[A, R]) result(ctx context.Context, key Key, args A) (R, error) {
	var none R
	answer, err := c.exchange(ctx, key, args)
	if err != nil {
		return none, err
	}
	judged, err := c.judge(answer)
	if !judged {
		err = answer.known(earlier(ctx))
	}
	if err != nil {
		return none, err
	}
	return c.decode(answer)
}

// judge asks Judge about a whole answer: one that was cut could tell it
// anything, so that nobody knows.
func (c *call[A, R]) judge(a answer) (judged bool, err error) {
	switch {
	case c.http.Judge == nil:
		return false, nil
	case a.cut != nil:
		return true, a.fault()
	}
	return c.http.Judge(a.status, a.body)
}
