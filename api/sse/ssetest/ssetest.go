// Package ssetest reads server-sent events for tests and benchmarks of what sends them,
// as simply as can be. Package client, for users, has a reader of its own.
package ssetest

import (
	"bufio"
	"io"
	"iter"
	"strings"
)

// Event is one that has data.
type Event struct{ ID, Event, Data string }

// Read yields events until the stream ends or breaks.
func Read(stream io.Reader) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var e Event
		lines := bufio.NewScanner(stream)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
			case "id":
				e.ID = value
			case "event":
				e.Event = value
			case "data":
				e.Data = value
			case "":
				if e.Data != "" && !yield(e) {
					return
				}
				e = Event{}
			}
		}
	}
}
