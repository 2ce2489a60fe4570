package api

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"interlock/agent"
	"interlock/api/access"
)

// Streams are server-sent events, as browsers and curl read them. Whatever counts
// has an id, and comes from the store: who reconnects with the Last-Event-ID goes on
// behind it, on whichever server, without a gap and without a repeat. What has no id
// (pieces of an answer) is lost when nobody listens.
const (
	pingEvery  = 15 * time.Second // a comment, so that nobody takes the connection for dead
	frameFor   = 10 * time.Second // a reader that does not take a frame for so long is let go of
	retryAfter = 2 * time.Second  // before a client comes again
)

// streams bounds how many are open: all of this process's, and one subject's.
type streams struct {
	most, each  int
	ping, frame time.Duration

	mu     sync.Mutex
	open   int
	of     map[string]int
	ending chan struct{} // closed: the process is about to stop
	ended  sync.Once
}

func newStreams(most, each int) *streams {
	return &streams{most: most, each: each, ping: pingEvery, frame: frameFor, of: map[string]int{}, ending: make(chan struct{})}
}

// enter takes a place; leave gives it back.
func (s *streams) enter(subject string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= s.most || s.of[subject] >= s.each {
		return nil, false
	}
	s.open, s.of[subject] = s.open+1, s.of[subject]+1
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open, s.of[subject] = s.open-1, s.of[subject]-1; s.of[subject] == 0 {
			delete(s.of, subject)
		}
	}, true
}

// EndStreams lets all streams end, so that the process can stop: their clients come
// again, to another one.
func (s *Server) EndStreams() { s.streams.ended.Do(func() { close(s.streams.ending) }) }

// frame is one event of a stream. Without an id it counts for nothing when a client
// comes again.
type frame struct {
	id, event string
	data      any
	stale     func() bool // nil, or whether it is worth nothing any more
}

// source yields frames until it has no more; what it yields beside an error is not
// sent.
type source iter.Seq2[frame, error]

// stream answers with frames from a source, and pieces of answers from beside where
// there are any. The source is only asked for the next frame when the last one was
// taken: a slow reader holds no more than that.
func (s *Server) stream(ctx context.Context, c *call, from func(ctx context.Context) source, beside func(ctx context.Context) <-chan frame) (*huma.StreamResponse, error) {
	leave, ok := s.streams.enter(c.caller.Tenant + "\x00" + c.caller.Subject)
	if !ok {
		p := problem(codeRateLimited, "Too many streams are open: close one, or come again later.")
		p.wait = retryAfter
		return nil, p
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		defer leave()
		r, w := humago.Unwrap(h)
		// The deadline of a request does not hold here; the end of its connection does.
		ctx, cancel := context.WithCancel(context.WithValue(c.connection, callKey{}, c))
		defer cancel()
		s.send(ctx, &writer{w, http.NewResponseController(w), s.streams.frame}, c, r, from, beside(ctx))
	}}, nil
}

// send writes until the source, the connection, the caller's access or the process
// ends.
func (s *Server) send(ctx context.Context, w *writer, c *call, r *http.Request, from func(ctx context.Context) source, beside <-chan frame) {
	if w.begin() != nil {
		return
	}
	next, stop := s.pulled(ctx, from)
	defer stop()
	ping := time.NewTicker(s.streams.ping)
	defer ping.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-s.streams.ending:
			return
		case f := <-beside:
			if f.stale != nil && f.stale() {
				continue
			}
			err = w.frame(f)
		case got, more := <-next:
			switch {
			case !more:
				return
			case got.err != nil:
				p := s.problemOf(ctx, got.err)
				_ = w.frame(frame{event: "problem", data: p})
				return
			}
			err = w.frame(got.frame)
		case <-ping.C:
			if s.still(ctx, c, r) != nil {
				return // a client that comes again is told why
			}
			err = w.comment()
		}
		if err != nil {
			return
		}
	}
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

type pulledFrame struct {
	frame
	err error
}

// pulled runs a source beside the writer, no more than one frame ahead of it. Where
// code of ours panics in it, that ends the stream and nothing else.
func (s *Server) pulled(ctx context.Context, from func(ctx context.Context) source) (<-chan pulledFrame, func()) {
	ctx, cancel := context.WithCancel(ctx)
	out, done := make(chan pulledFrame), make(chan struct{})
	go func() {
		defer close(done)
		defer close(out)
		defer func() {
			if what := recover(); what != nil {
				s.log.ErrorContext(ctx, "stream panicked", "request_id", callOf(ctx).id, "panic", what, "stack", string(debug.Stack()))
			}
		}()
		for f, err := range from(ctx) {
			select {
			case out <- pulledFrame{f, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, func() { cancel(); <-done }
}

// writer writes frames, each within a time.
type writer struct {
	http.ResponseWriter
	conn   *http.ResponseController
	within time.Duration
}

func (w *writer) begin() error {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy that gathers would hold everything back
	_ = w.conn.SetReadDeadline(time.Time{})
	return w.write(fmt.Sprintf("retry: %d\n\n", retryAfter.Milliseconds()))
}

func (w *writer) frame(f frame) error {
	data, err := json.Marshal(f.data)
	if err != nil {
		return err
	}
	text := ""
	if f.id != "" {
		text = "id: " + f.id + "\n"
	}
	if f.event != "" {
		text += "event: " + f.event + "\n"
	}
	return w.write(text + "data: " + string(data) + "\n\n") // JSON has no line breaks
}

func (w *writer) comment() error { return w.write(":\n\n") }

func (w *writer) write(text string) error {
	if err := w.conn.SetWriteDeadline(time.Now().Add(w.within)); err != nil {
		return err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}
	return w.conn.Flush()
}
