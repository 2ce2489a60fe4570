package effecttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"interlock/tool"
)

// Network is what lies between a tool and the fake of its other side. Put it where
// the tool's request goes through, once: [Network.Handler] around a fake service,
// [Network.RoundTripper] into a client, [Send] into a fake that is called directly,
// or [Network.Connector] under the database of a Transactional tool. Look-ups go
// through it too.
//
// A request may take long; it may be impossible to send, which [Send] and the
// RoundTripper say by [tool.NotApplied]; it may be lost; it may reach the other side, whole,
// when its attempt has long ended, but never later than the tool package waits for
// it ([tool.Overhead] and [tool.Grace] after the timeout); its answer may be lost;
// and the worker may crash before and after it. No request is delivered twice.
//
// The zero value is ready. Outside of a [Run] it carries everything. It serves one
// Run at a time.
type Network struct{ harness atomic.Pointer[harness] }

var (
	errNoAnswer = errors.New("no answer from the other side")
	errNotSent  = tool.NotApplied(errors.New("the request was not sent"))
)

func (n *Network) enter(h *harness) error {
	if n != nil && !n.harness.CompareAndSwap(nil, h) {
		return errors.New("the network serves another Run")
	}
	return nil
}

func (n *Network) leave() {
	if n != nil {
		n.harness.Store(nil)
	}
}

// running is the harness and the attempt that a request is of; nil where there is
// none: then nothing goes wrong.
func (n *Network) running() (*harness, *attempt) {
	h := n.harness.Load()
	if h == nil {
		return nil, nil
	}
	return h, h.running()
}

// Send carries one request to a fake that the tool calls directly. deliver is what
// the other side does with it: it is called once, now or later, or never. It may
// hold a lock of the fake; who calls Send must not.
func Send[R any](ctx context.Context, n *Network, deliver func(context.Context) (R, error)) (r R, err error) {
	h, a := n.running()
	if a == nil {
		return deliver(ctx)
	}
	lost := h.carry(a, func(late context.Context) {
		if late != nil { // nobody hears of it
			_, _ = deliver(late)
			return
		}
		r, err = deliver(ctx)
	})
	h.expire(a)
	if lost != nil {
		var none R
		return none, lost
	}
	return r, err
}

// carry has a request delivered: with nil as it is sent, with a context of its own
// when it is late. Its error means that there is no answer.
func (h *harness) carry(a *attempt, deliver func(late context.Context)) error {
	h.meanwhile(a, a.round.h.target.Tool.Timeout/2)
	h.crash(a, "before its request")
	switch {
	case h.over(a):
		return errNotSent
	case h.may("its request cannot be sent"):
		return errNotSent
	case h.may("its request is lost"):
		return errNoAnswer
	case h.may("its request is late"):
		at := h.clock().Add(h.upTo(tool.Overhead + tool.Grace))
		h.mu.Lock()
		h.late = append(h.late, arrival{at, deliver})
		h.mu.Unlock()
		h.crash(a, "after its request")
		return errNoAnswer
	}
	h.say("its request reaches the other side")
	deliver(nil)
	h.crash(a, "after its request")
	h.meanwhile(a, a.round.h.target.Tool.Timeout/2)
	if h.over(a) || h.may("its answer is lost") {
		return errNoAnswer
	}
	return nil
}

// RoundTripper is a transport for the client of a tool. base nil is
// [http.DefaultTransport].
func (n *Network) RoundTripper(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return transport{n, base}
}

type transport struct {
	network *Network
	base    http.RoundTripper
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	_, a := t.network.running()
	if a == nil {
		return t.base.RoundTrip(req)
	}
	body, err := whole(req.Body)
	if err != nil {
		return nil, err
	}
	got, err := Send(req.Context(), t.network, func(ctx context.Context) (*http.Response, error) {
		sent := req.Clone(ctx)
		if sent.Body != nil {
			sent.Body = io.NopCloser(bytes.NewReader(body))
		}
		resp, err := t.base.RoundTrip(sent)
		if err != nil {
			return nil, err
		}
		// Read whole, so that the other side has ended before anything else does.
		answer, err := whole(resp.Body)
		resp.Body = io.NopCloser(bytes.NewReader(answer))
		return resp, err
	})
	return got, err
}

func whole(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	defer func() { _ = body.Close() }()
	return io.ReadAll(body)
}

// Handler is the network before a fake service. Where there is no answer the
// connection is closed without one.
func (n *Network) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h, a := n.running()
		if a == nil {
			next.ServeHTTP(w, req)
			return
		}
		body, err := whole(req.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		answer := &recorded{header: http.Header{}, status: http.StatusOK}
		lost := h.carry(a, func(late context.Context) {
			ctx, to := context.WithoutCancel(req.Context()), answer
			if late != nil {
				ctx, to = late, &recorded{header: http.Header{}}
			}
			sent := req.Clone(ctx)
			sent.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(to, sent)
		})
		h.handOver()
		if lost != nil {
			panic(http.ErrAbortHandler)
		}
		for name, values := range answer.header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.status)
		_, _ = w.Write(answer.body.Bytes())
	})
}

// recorded keeps an answer until it is known whether it is lost.
type recorded struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
}

func (r *recorded) Header() http.Header { return r.header }

func (r *recorded) WriteHeader(status int) {
	if !r.wrote {
		r.status, r.wrote = status, true
	}
}

func (r *recorded) Write(b []byte) (int, error) {
	r.wrote = true
	return r.body.Write(b)
}
