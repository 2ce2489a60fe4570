package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// maxDepth bounds the nesting of what comes from outside. Our own values hold
// such values within themselves, so they may be deeper: ownDepth.
const maxDepth, ownDepth = 64, 256

// maxExponent bounds a number's exponent, the one that is read and the one that
// is written: 1e999999999 is nine bytes of input and would be a gigabyte of
// digits. maxSpelled bounds what all numbers of a text may grow by.
const maxExponent, maxSpelled = 400, 64 << 10

// scanner reads one JSON text and writes it canonically, in one pass and in time
// linear in the text (but for the sorting of keys). It is the only reader of JSON
// here, and so the definition of what is accepted. Where it is, path, is a stack
// that becomes a text only in an error.
type scanner struct {
	data    []byte
	pos     int
	own     bool // see [Encode]; else as strict as [Canonical]
	clean   bool // U+0000 is dropped, not refused
	out     JSON
	path    []spot
	scratch []byte
}

// spot is a step of a path: a key as it stands in out, in its quotes, or (to is
// 0) an index.
type spot struct{ from, to, index int }

// member is one member of an object as it was written: out[start:end] is
// "key":value, name is the key itself, pos is where it ended in the text.
type member struct {
	start, end, pos int
	name            []byte
}

func scan(data []byte, own bool) (JSON, error) {
	s := scanner{data: data, own: own, out: make(JSON, 0, len(data))}
	if err := s.value(); err != nil {
		return nil, err
	}
	if s.space(); s.pos != len(s.data) {
		return nil, s.fail("text after the value")
	}
	return s.out, nil
}

func (s *scanner) fail(format string, args ...any) error {
	keys := make([]string, len(s.path))
	for i, p := range s.path {
		if keys[i] = strconv.Itoa(p.index); p.to > 0 {
			keys[i] = string(unquoted(s.out[p.from:p.to]))
		}
	}
	return Errorf(CodeInvalid, "%s at %s (byte %d)", fmt.Sprintf(format, args...), cmp.Or(pointer(keys), "/"), s.pos)
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// sees reports whether the next byte, after white space, is c.
func (s *scanner) sees(c byte) bool {
	s.space()
	return s.pos < len(s.data) && s.data[s.pos] == c
}

func (s *scanner) value() error {
	limit := maxDepth
	if s.own {
		limit = ownDepth
	}
	if len(s.path) > limit {
		return s.fail("more than %d levels", limit)
	}
	if s.space(); s.pos >= len(s.data) {
		return s.fail("the text ends where a value should be")
	}
	switch c := s.data[s.pos]; {
	case c == '{':
		return s.object()
	case c == '[':
		return s.array()
	case c == '"':
		return s.text()
	case c == '-' || isDigit(c):
		return s.number()
	}
	for _, w := range [...]string{"null", "true", "false"} {
		if bytes.HasPrefix(s.data[s.pos:], []byte(w)) {
			s.pos += len(w)
			s.out = append(s.out, w...)
			return nil
		}
	}
	return s.fail("no JSON value starts with %q", rune(s.data[s.pos]))
}

// open takes an opening byte; it reports whether the closing one follows at once.
func (s *scanner) open(closing byte) bool {
	s.out = append(s.out, s.data[s.pos])
	s.pos++
	if !s.sees(closing) {
		return false
	}
	s.out = append(s.out, closing)
	s.pos++
	return true
}

// next takes a comma (more follows) or the closing byte.
func (s *scanner) next(closing byte) (more bool, err error) {
	if more = s.sees(','); !more && !s.sees(closing) {
		return false, s.fail("a comma or %q should be here", string(closing))
	}
	s.out = append(s.out, s.data[s.pos])
	s.pos++
	return more, nil
}

// within reads a value one step deeper.
func (s *scanner) within(p spot) error {
	s.path = append(s.path, p)
	err := s.value()
	if err == nil {
		s.path = s.path[:len(s.path)-1]
	}
	return err
}

func (s *scanner) array() error {
	if s.open(']') {
		return nil
	}
	for i := 0; ; i++ {
		if err := s.within(spot{index: i}); err != nil {
			return err
		}
		if more, err := s.next(']'); !more {
			return err
		}
	}
}

func (s *scanner) object() error {
	if s.open('}') {
		return nil
	}
	var members []member
	sorted, folds := true, false
	for {
		if !s.sees('"') {
			return s.fail("a key in quotes should be here")
		}
		m := member{start: len(s.out)}
		if err := s.text(); err != nil {
			return err
		}
		quoted := s.out[m.start:]
		m.pos, m.name = s.pos, unquoted(quoted)
		folds = folds || !s.own && slices.ContainsFunc(m.name, func(c byte) bool { return c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' })
		if !s.sees(':') {
			return s.fail("a colon should follow key %q", clip(string(m.name), maxKeyShown))
		}
		s.pos++
		s.out = append(s.out, ':')
		if err := s.within(spot{from: m.start, to: m.start + len(quoted)}); err != nil {
			return err
		}
		m.end = len(s.out)
		sorted = sorted && (len(members) == 0 || compareKeys(members[len(members)-1].name, m.name) < 0)
		members = append(members, m)
		more, err := s.next('}')
		switch {
		case err != nil:
			return err
		case !more:
			return s.close(members, sorted, folds)
		}
	}
}

// close ends an object: its keys are unlike, and in order.
func (s *scanner) close(members []member, sorted, folds bool) error {
	first := members[0].start
	if !sorted {
		slices.SortStableFunc(members, func(a, b member) int { return compareKeys(a.name, b.name) })
		for i, m := range members[1:] {
			if bytes.Equal(members[i].name, m.name) {
				s.pos = m.pos
				return s.fail("duplicate key %q", clip(string(m.name), maxKeyShown))
			}
		}
	}
	if folds {
		if err := s.distinct(members); err != nil {
			return err
		}
	}
	if sorted {
		return nil
	}
	s.scratch = append(s.scratch[:0], s.out[first:]...)
	s.out = s.out[:first]
	for i, m := range members {
		if i > 0 {
			s.out = append(s.out, ',')
		}
		s.out = append(s.out, s.scratch[m.start-first:m.end-first]...)
	}
	s.out = append(s.out, '}')
	return nil
}

// distinct refuses keys that a reader may take for one, as encoding/json does:
// K, k and the Kelvin sign are one letter.
func (s *scanner) distinct(members []member) error {
	folded := make(map[string]member, len(members))
	for _, m := range members {
		fold := string(bytes.Map(lastCase, m.name))
		other, same := folded[fold]
		if !same {
			folded[fold] = m
			continue
		}
		if other.pos > m.pos {
			other, m = m, other
		}
		s.pos = m.pos
		return s.fail("keys %q and %q differ only in case", clip(string(other.name), maxKeyShown), clip(string(m.name), maxKeyShown))
	}
	return nil
}

// lastCase is the last of the letters that differ from r only in case.
func lastCase(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return r
		}
		r = next
	}
}

// compareKeys orders by UTF-16 code unit, which is plain byte order but for
// astral characters: they are before U+E000 to U+FFFF.
func compareKeys[T string | []byte](a, b T) int {
	for i := range min(len(a), len(b)) {
		if x, y := a[i], b[i]; x != y {
			if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
				x, y = y, x
			}
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// unquoted is what a canonical text in quotes says.
func unquoted(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // it is ours
	return []byte(text)
}
