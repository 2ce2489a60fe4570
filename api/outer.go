package api

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"interlock/agent"
)

// outer is around every request: ids, headers, a deadline, metrics, and the last
// resort where code of ours panics.
func (s *Server) outer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		c := s.newCall(r)
		ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), callKey{}, c), s.limits.Deadline)
		defer cancel()
		h := w.Header()
		h.Set("X-Request-Id", c.id)
		h.Set("traceparent", r.Header.Get("traceparent"))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		seen := &recorder{ResponseWriter: w}
		defer func() {
			if what := recover(); what != nil {
				s.panicked(ctx, seen, what)
			}
			s.metrics.saw(c.route, r.Method, seen.code(), time.Since(began))
		}()
		next.ServeHTTP(seen, r.WithContext(ctx))
	})
}

func (s *Server) panicked(ctx context.Context, w *recorder, what any) {
	c := callOf(ctx)
	if what == http.ErrAbortHandler || context.Cause(ctx) == context.Canceled { // the client has gone
		return
	}
	s.log.ErrorContext(ctx, "request panicked", "request_id", c.id, "act", string(c.act), "target", c.target, "panic", what, "stack", string(debug.Stack()))
	if w.status == 0 {
		p := problem(agent.CodeInternal, saysInternal)
		p.Instance = c.id
		writeProblem(w, p)
	}
}

// dispatch finds the route. Where there is none the answer is a problem as any.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) {
	c := callOf(r.Context())
	handler, pattern := s.mux.Handler(r)
	if pattern != "" {
		c.route = pattern
		s.mux.ServeHTTP(w, r)
		return
	}
	told := &discarded{header: http.Header{}}
	handler.ServeHTTP(told, r)
	p := problem(agent.CodeNotFound, "There is nothing under this path: /openapi.json lists what there is.")
	if told.status == http.StatusMethodNotAllowed {
		w.Header()["Allow"] = told.header["Allow"]
		p = problem(codeMethod, "Ask this path by "+told.header.Get("Allow")+".")
	}
	p.Instance = c.id
	writeProblem(w, p)
}

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// discarded is an answer that is made anew.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d *discarded) WriteHeader(status int)      { d.status = status }
