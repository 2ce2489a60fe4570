package client

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"time"
)

// frame is one event of a stream of server-sent events.
type frame struct {
	id, event string
	data      []byte
}

// reader reads frames. What ends within a frame has none of it.
type reader struct {
	lines *bufio.Reader
	retry time.Duration // the server's word on when to come again
	heard func()        // is told of every line, comments too
}

// next is the next frame that has data.
func (r *reader) next() (f frame, err error) {
	var data []string
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF // only the word end ends a stream
			}
			return frame{}, err
		}
		r.heard()
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if line == "" {
			if data != nil {
				f.data = []byte(strings.Join(data, "\n"))
				return f, nil
			}
			f = frame{}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			f.id = value
		case "event":
			f.event = value
		case "data":
			data = append(data, value)
		case "retry":
			if ms, err := strconv.ParseInt(value, 10, 32); err == nil && ms >= 0 {
				r.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}
