package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"time"
)

// frames follows a stream over its connections. Where one breaks it comes again, with
// the id of the last frame that had one. It ends with an error that coming again does
// not change, with that of the context, or when nobody listens any more.
func (c *Client) frames(ctx context.Context, r request, last string) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		for tries := 0; ; tries++ {
			more := true
			retry, err := c.connection(ctx, r, last, func(f frame) bool {
				if tries = -1; f.id != "" {
					last = f.id
				}
				more = yield(f, nil)
				return more
			})
			if !more {
				return
			}
			pauses := pauses{max(c.pause.least, retry), max(c.pause.most, retry)}
			pause, again := pauses.after(err, max(tries, 0))
			if ctx.Err() == nil && again && sleep(ctx, pause) {
				continue
			}
			if ctx.Err() != nil { // what it broke with is no news then
				err = ctx.Err()
			}
			yield(frame{}, err)
			return
		}
	}
}

// connection hands out the frames of one connection, until it breaks or one is not
// taken. It tells when the server wants to be asked again.
func (c *Client) connection(ctx context.Context, r request, last string, take func(frame) bool) (retry time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.header = http.Header{"Accept": {"text/event-stream"}}
	if last != "" {
		r.header.Set("Last-Event-Id", last)
	}
	// A server says something every 15 seconds, if only that it is there.
	silent := time.AfterFunc(c.silence, cancel)
	defer silent.Stop()
	endless := *c.http
	endless.Timeout = 0
	res, err := c.send(ctx, &endless, r, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	frames := &reader{lines: bufio.NewReader(res.Body), heard: func() { silent.Reset(c.silence) }}
	for {
		f, err := frames.next()
		if err != nil {
			return frames.retry, broken(r, err)
		}
		silent.Stop() // it is not silent while a frame is being worked on
		if f.event == "problem" {
			return frames.retry, problemOf(f, res)
		}
		if !take(f) {
			return frames.retry, nil
		}
		silent.Reset(c.silence)
	}
}

// problemOf is what a stream ends with that was under way.
func problemOf(f frame, res *http.Response) error {
	e := &Error{RequestID: res.Header.Get("X-Request-Id")}
	if err := json.Unmarshal(f.data, &e.Problem); err != nil {
		return fmt.Errorf("client: a stream's problem is none: %w", err)
	}
	return e
}
