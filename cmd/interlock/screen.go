package main

import (
	"io"
	"strings"
	"unicode/utf8"

	"interlock/api/visible"
)

// inline is a text in one line with everything that could mislead as \uXXXX.
func inline(s string) string { return visible.Inline(s) }

// screen is a terminal that shows what it gets and obeys none of it: whatever a
// model, a tool or a user has written goes through it. Lines stay lines.
type screen struct{ to io.Writer }

func (s screen) Write(p []byte) (int, error) {
	var b strings.Builder
	for _, r := range string(p) {
		if what := visible.Misleads(r); r != '\n' && (what != "" || r == utf8.RuneError) {
			b.WriteString(visible.Escaped(r))
			continue
		}
		b.WriteRune(r)
	}
	if _, err := io.WriteString(s.to, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}
