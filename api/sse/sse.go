// Package sse sends server-sent events, as browsers and curl read them, for the HTTP
// API and the pages. Whatever counts has an id, and comes from the store: who
// reconnects goes on behind it, on whichever server, without a gap and without a
// repeat. What has no id (pieces of an answer) is lost when nobody listens.
package sse

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

// RetryAfter is how long a client waits before it comes again.
const RetryAfter = 2 * time.Second

const (
	pingEvery = 15 * time.Second // a comment, so that nobody takes the connection for dead
	frameFor  = 10 * time.Second // a reader that does not take a frame for so long is let go of
)

// Streams bounds how many are open: all of a server's, and one subject's.
type Streams struct {
	// Ping is how often a stream says that it lives, and whether its caller is still
	// let in is looked up; Within is how long a reader may take for a frame.
	Ping, Within time.Duration

	most, each int
	mu         sync.Mutex
	open       int
	of         map[string]int
	ending     chan struct{} // closed: the process is about to stop
	ended      sync.Once
}

// New makes room for so many streams, and for so many of one subject.
func New(most, each int) *Streams {
	return &Streams{most: most, each: each, Ping: pingEvery, Within: frameFor, of: map[string]int{}, ending: make(chan struct{})}
}

// Enter takes a place; leave gives it back. Not ok: there is none.
func (s *Streams) Enter(subject string) (leave func(), ok bool) {
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

// Open is how many streams there are.
func (s *Streams) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// End lets all streams end, so that the process can stop: their clients come again,
// to another one.
func (s *Streams) End() { s.ended.Do(func() { close(s.ending) }) }

// Frame is one event of a stream. Without an id it counts for nothing when a client
// comes again.
type Frame struct {
	ID, Event string
	Data      any
	Stale     func() bool // nil, or whether it is worth nothing any more
}

// Source yields frames until it has no more; what it yields beside an error is not
// sent.
type Source iter.Seq2[Frame, error]

// Map has a frame made of each value that is heard, until ctx ends. It holds one, and
// what nobody takes waits where it comes from.
func Map[T any](ctx context.Context, heard <-chan T, frame func(T) Frame) <-chan Frame {
	out := make(chan Frame)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case v := <-heard:
				select {
				case out <- frame(v):
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

// Sending is what is sent to one client.
type Sending struct {
	From   func(ctx context.Context) Source
	Beside func(ctx context.Context) <-chan Frame // nil, or frames that may be lost
	// Still is an error where the caller is not let in any more.
	Still func(ctx context.Context) error
	// Problem is what a client is told of an error of the source.
	Problem func(ctx context.Context, err error) any
	// Panicked is told where code of ours panics in the source: that ends the stream
	// and nothing else.
	Panicked func(ctx context.Context, what any, stack []byte)
}

// Send writes until the source, the connection, the caller's access or the process
// ends. The source is only asked for the next frame when the last one was taken: a
// slow reader holds no more than that.
func (s *Streams) Send(ctx context.Context, w http.ResponseWriter, in Sending) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &writer{w, http.NewResponseController(w), s.Within}
	if out.begin() != nil {
		return
	}
	next, stop := pulled(ctx, in)
	defer stop()
	var beside <-chan Frame
	if in.Beside != nil {
		beside = in.Beside(ctx)
	}
	ping := time.NewTicker(s.Ping)
	defer ping.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-s.ending:
			return
		case f := <-beside:
			if f.Stale != nil && f.Stale() {
				continue
			}
			err = out.frame(f)
		case got, more := <-next:
			switch {
			case !more:
				return
			case got.err != nil:
				_ = out.frame(Frame{Event: "problem", Data: in.Problem(ctx, got.err)})
				return
			}
			err = out.frame(got.Frame)
		case <-ping.C:
			if in.Still(ctx) != nil {
				return // a client that comes again is told why
			}
			err = out.comment()
		}
		if err != nil {
			return
		}
	}
}

type pulledFrame struct {
	Frame
	err error
}

// pulled runs a source beside the writer, no more than one frame ahead of it.
func pulled(ctx context.Context, in Sending) (<-chan pulledFrame, func()) {
	ctx, cancel := context.WithCancel(ctx)
	out, done := make(chan pulledFrame), make(chan struct{})
	go func() {
		defer close(done)
		defer close(out)
		defer func() {
			if what := recover(); what != nil {
				in.Panicked(ctx, what, debug.Stack())
			}
		}()
		for f, err := range in.From(ctx) {
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

// Head answers a HEAD: what a stream's answer begins with, and no stream. Whoever asks
// so takes the answer for whole, and sends the next request on the same connection.
func Head(w http.ResponseWriter) {
	headers(w.Header())
	w.WriteHeader(http.StatusOK)
}

func headers(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy that gathers would hold everything back
}

func (w *writer) begin() error {
	headers(w.Header())
	_ = w.conn.SetReadDeadline(time.Time{})
	return w.write(fmt.Sprintf("retry: %d\n\n", RetryAfter.Milliseconds()))
}

func (w *writer) frame(f Frame) error {
	data, err := json.Marshal(f.Data)
	if err != nil {
		return err
	}
	text := ""
	if f.ID != "" {
		text = "id: " + f.ID + "\n"
	}
	if f.Event != "" {
		text += "event: " + f.Event + "\n"
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
