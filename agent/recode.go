package agent

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// recoder writes a JSON text canonically in one pass, without building its
// values: every payload, event and view of a run goes through it several times
// a turn. It decides nothing by itself: whatever it is not sure about, an error
// above all, is left to the parser.
type recoder struct {
	data []byte
	pos  int
	own  bool // see [Encode]; else as strict as [Canonical]
	out  JSON
}

// maxPlain bounds the nesting and, in a strict text, the keys of an object that
// a recoder takes on: beyond, the parser's way is cheaper or safer.
const maxPlain = 32

// recode is data in canonical form; ok is false where the parser must look.
func recode(data []byte, own bool) (j JSON, ok bool) {
	r := recoder{data: data, own: own, out: make(JSON, 0, len(data))}
	if !r.value(0) {
		return nil, false
	}
	r.space()
	return r.out, r.pos == len(r.data)
}

func (r *recoder) space() {
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// eat takes the next byte if it is c.
func (r *recoder) eat(c byte) bool {
	r.space()
	if r.pos >= len(r.data) || r.data[r.pos] != c {
		return false
	}
	r.pos++
	return true
}

func (r *recoder) value(depth int) bool {
	r.space()
	if r.pos >= len(r.data) || depth > maxPlain {
		return false
	}
	switch c := r.data[r.pos]; {
	case c == '{':
		return r.object(depth)
	case c == '[':
		return r.array(depth)
	case c == '"':
		return r.text()
	case c == '-' || c >= '0' && c <= '9':
		return r.integer()
	}
	for _, w := range []string{"null", "true", "false"} {
		if bytes.HasPrefix(r.data[r.pos:], []byte(w)) {
			r.pos += len(w)
			r.out = append(r.out, w...)
			return true
		}
	}
	return false
}

// integer takes numbers that are canonical as they stand.
func (r *recoder) integer() bool {
	start := r.pos
	if r.data[r.pos] == '-' {
		r.pos++
	}
	first := r.pos
	for r.pos < len(r.data) && r.data[r.pos] >= '0' && r.data[r.pos] <= '9' {
		r.pos++
	}
	n := r.pos - first
	if n == 0 || r.data[first] == '0' && (n > 1 || first > start) {
		return false
	}
	if r.pos < len(r.data) && (r.data[r.pos] == '.' || r.data[r.pos] == 'e' || r.data[r.pos] == 'E') {
		return false
	}
	r.out = append(r.out, r.data[start:r.pos]...)
	return true
}

func (r *recoder) array(depth int) bool {
	r.pos++
	r.out = append(r.out, '[')
	if r.eat(']') {
		r.out = append(r.out, ']')
		return true
	}
	for {
		if !r.value(depth + 1) {
			return false
		}
		if r.eat(',') {
			r.out = append(r.out, ',')
			continue
		}
		r.out = append(r.out, ']')
		return r.eat(']')
	}
}

// text takes a string. Runs without escapes are copied; what encoding/json
// escapes more than a canonical text does comes out plain.
func (r *recoder) text() bool {
	r.pos++
	r.out = append(r.out, '"')
	start := len(r.out)
	for {
		from := r.pos
		for r.pos < len(r.data) && r.data[r.pos] >= 0x20 && r.data[r.pos] != '"' && r.data[r.pos] != '\\' {
			r.pos++
		}
		r.out = append(r.out, r.data[from:r.pos]...)
		switch {
		case r.pos >= len(r.data) || r.data[r.pos] < 0x20:
			return false
		case r.data[r.pos] == '"':
			if !utf8.Valid(r.out[start:]) {
				return false
			}
			r.pos++
			r.out = append(r.out, '"')
			return true
		case !r.escape():
			return false
		}
	}
}

func (r *recoder) escape() bool {
	if r.pos+1 >= len(r.data) {
		return false
	}
	switch c := r.data[r.pos+1]; c {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		r.out = append(r.out, '\\', c)
		r.pos += 2
		return true
	case 'u':
		if r.pos+6 > len(r.data) {
			return false
		}
		plain := ""
		switch strings.ToLower(string(r.data[r.pos+2 : r.pos+6])) {
		case "003c":
			plain = "<"
		case "003e":
			plain = ">"
		case "0026":
			plain = "&"
		case "2028":
			plain = "\u2028"
		case "2029":
			plain = "\u2029"
		default:
			return false
		}
		r.out = append(r.out, plain...)
		r.pos += 6
		return true
	}
	return false
}

// member is one member of an object as it was written: key is within the
// quotes, the whole is "key":value.
type member struct{ start, key, end int }

func (r *recoder) object(depth int) bool {
	r.pos++
	r.out = append(r.out, '{')
	if r.eat('}') {
		r.out = append(r.out, '}')
		return true
	}
	var buffer [16]member
	members := buffer[:0]
	sorted := true
	for {
		m := member{start: len(r.out)}
		if r.space(); r.pos >= len(r.data) || r.data[r.pos] != '"' || !r.text() {
			return false
		}
		m.key = len(r.out) - 1
		if !plainKey(r.out[m.start+1 : m.key]) {
			return false
		}
		if !r.eat(':') {
			return false
		}
		r.out = append(r.out, ':')
		if !r.value(depth + 1) {
			return false
		}
		m.end = len(r.out)
		if n := len(members); n > 0 {
			order := bytes.Compare(r.key(members[n-1]), r.key(m))
			if order == 0 {
				return false
			}
			sorted = sorted && order < 0
		}
		members = append(members, m)
		if r.eat(',') {
			r.out = append(r.out, ',')
			continue
		}
		r.out = append(r.out, '}')
		return r.eat('}') && (sorted || r.sort(members)) && (r.own || r.distinct(members))
	}
}

func (r *recoder) key(m member) []byte { return r.out[m.start+1 : m.key] }

// plainKey reports whether a key is ordered by its bytes and has no letter
// that a reader might fold beyond ASCII.
func plainKey(key []byte) bool {
	for _, c := range key {
		if c >= utf8.RuneSelf || c == '\\' {
			return false
		}
	}
	return true
}

// sort puts the members in order; it reports false where two have one key.
func (r *recoder) sort(members []member) bool {
	first := members[0].start
	old := slices.Clone(r.out[first:])
	key := func(m member) []byte { return old[m.start+1-first : m.key-first] }
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(key(a), key(b)) })
	r.out = r.out[:first]
	for i, m := range members {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		moved := member{start: len(r.out)}
		r.out = append(r.out, old[m.start-first:m.end-first]...)
		moved.key, moved.end = moved.start+m.key-m.start, len(r.out)
		members[i] = moved
		if i > 0 && bytes.Equal(r.key(members[i-1]), r.key(moved)) {
			return false
		}
	}
	r.out = append(r.out, '}')
	return true
}

// distinct reports that no two keys are equal but for case; all are ASCII.
func (r *recoder) distinct(members []member) bool {
	if len(members) > maxPlain {
		return false
	}
	for i, m := range members {
		for _, other := range members[:i] {
			if bytes.EqualFold(r.key(m), r.key(other)) {
				return false
			}
		}
	}
	return true
}
