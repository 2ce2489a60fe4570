package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/sse"
)

// EndStreams lets all streams end, so that the process can stop: their clients come
// again, to another one.
func (s *Server) EndStreams() { s.streams.End() }

// stream answers with frames from a source, and pieces of answers from beside where
// there are any.
func (s *Server) stream(ctx context.Context, c *call, from func(ctx context.Context) sse.Source, beside func(ctx context.Context) <-chan sse.Frame) (*huma.StreamResponse, error) {
	leave, ok := s.streams.Enter(c.caller.Tenant + "\x00" + c.caller.Subject)
	if !ok {
		p := problem(codeRateLimited, "Too many streams are open: close one, or come again later.")
		p.wait = sse.RetryAfter
		return nil, p
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		defer leave()
		r, w := humago.Unwrap(h)
		if r.Method == http.MethodHead {
			sse.Head(w)
			return
		}
		// The deadline of a request does not hold here; the end of its connection does.
		s.streams.Send(context.WithValue(c.connection, callKey{}, c), w, sse.Sending{From: from, Beside: beside,
			Still:   func(ctx context.Context) error { return s.still(ctx, c, r) },
			Problem: func(ctx context.Context, err error) any { return s.problemOf(ctx, err) },
			Panicked: func(ctx context.Context, what any, stack []byte) {
				s.log.ErrorContext(ctx, "stream panicked", "request_id", c.id, "panic", what, "stack", string(stack))
			}})
	}}, nil
}

// still reports whether the caller is still let in.
func (s *Server) still(ctx context.Context, c *call, r *http.Request) error {
	now, err := s.auth.Authenticate(ctx, access.BearerOf(r))
	if agent.ErrorCode(err) == agent.CodeUnavailable {
		return nil // nobody knows just now
	}
	if err == nil && (now.Subject != c.caller.Subject || now.Tenant != c.caller.Tenant) {
		err = access.ErrUnauthenticated
	}
	if err == nil {
		err = access.Check(now, c.act, access.On{})
	}
	return err
}
