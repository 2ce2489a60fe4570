package main

import (
	"io"

	told "interlock/api/words"
)

// screen is a terminal that shows what it gets and obeys none of it: whatever a
// model, a tool or a user has written goes through it. Lines stay lines.
type screen struct{ to io.Writer }

func (s screen) Write(p []byte) (int, error) {
	if _, err := io.WriteString(s.to, told.Lines(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
