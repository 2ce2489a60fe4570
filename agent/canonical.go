package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSON is one canonical JSON value: keys sorted by UTF-16 code unit, no white
// space, integers exact at any size, strings with the shortest escapes. Equal
// values have equal bytes, so digests and comparisons are on bytes.
//
// Unmarshalling into a JSON makes it canonical again: encoding/json escapes
// <, > and & whenever it writes, and a value must survive that byte for byte.
// The zero value stands for null.
type JSON []byte

// MarshalJSON writes the value as it is.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j) == 0 {
		return []byte("null"), nil
	}
	return j, nil
}

// UnmarshalJSON reads any JSON that [Encode] writes. It does not replace
// [Canonical] for what comes from outside.
func (j *JSON) UnmarshalJSON(data []byte) error {
	c, err := own(data)
	if err != nil {
		return err
	}
	*j = c
	return nil
}

// String is the value's text.
func (j JSON) String() string {
	if len(j) == 0 {
		return "null"
	}
	return string(j)
}

// Equal reports whether two canonical values are the same value.
func (j JSON) Equal(other JSON) bool { return j.String() == other.String() }

// Canonical parses one JSON text and writes it canonically. It refuses, saying
// where, what two readers could read differently: duplicate keys, keys that
// differ only in case, U+0000, lone surrogates, invalid UTF-8, text after the
// value, and nesting beyond 64 levels.
func Canonical(data []byte) (JSON, error) { return scan(data, false) }

// Encode is the canonical JSON of a Go value, by its encoding/json form. A Go
// map may have keys that differ only in case, as has a patch that replaces one
// by the other; and what [Canonical] accepted may lie deeper in a Go value.
func Encode(v any) (JSON, error) {
	if j, ok := v.(JSON); ok {
		return own([]byte(j.String()))
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return own(data)
}

// own makes a text of ours canonical.
func own(data []byte) (JSON, error) { return scan(data, true) }

// A parsed value is nil, bool, string, number, []any or map[string]any.
type number = json.Number

func parseValue(data []byte) (any, error) { return parsed(Canonical(data)) }

func parseOwn(data []byte) (any, error) { return parsed(own(data)) }

func parsed(j JSON, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(j))
	d.UseNumber()
	var v any
	err = d.Decode(&v)
	return v, err
}

// mustEncode is for values of this package's own types, which always encode: a
// U+0000 that a text from outside brought along is dropped.
func mustEncode(v any) JSON {
	data, err := json.Marshal(v)
	if err == nil {
		s := scanner{data: data, own: true, clean: true, out: make(JSON, 0, len(data))}
		if err = s.value(); err == nil {
			return s.out
		}
	}
	panic(fmt.Sprintf("agent: encode %T: %v", v, err))
}

func appendValue(out JSON, v any) JSON {
	switch v := v.(type) {
	case nil:
		return append(out, "null"...)
	case bool:
		return strconv.AppendBool(out, v)
	case number:
		return append(out, v...)
	case string:
		return appendText(out, v)
	case []any:
		out = append(out, '[')
		for i, e := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendValue(out, e)
		}
		return append(out, ']')
	case map[string]any:
		out = append(out, '{')
		for i, k := range sortedKeys(v) {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendText(out, k)
			out = append(out, ':')
			out = appendValue(out, v[k])
		}
		return append(out, '}')
	}
	panic(fmt.Sprintf("agent: no JSON value is a %T", v))
}

// sortedKeys is the only way this package walks a map, and the reason why it
// may. Keys are ordered by UTF-16 code unit, which is plain byte order but for
// astral characters.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareKeys[string])
	return keys
}

func appendText(out JSON, s string) JSON {
	out = append(out, '"')
	from := 0
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			out = appendRune(append(out, s[from:i]...), rune(c))
			from = i + 1
		}
	}
	return append(append(out, s[from:]...), '"')
}

// appendRune writes one character of a text, with the shortest escape where it
// needs one.
func appendRune(out JSON, r rune) JSON {
	if i := strings.IndexRune("\"\\\b\f\n\r\t", r); i >= 0 {
		return append(out, '\\', `"\bfnrt`[i])
	}
	if r < 0x20 {
		return fmt.Appendf(out, `\u%04x`, r)
	}
	return utf8.AppendRune(out, r)
}

// DigestOf is the hex digest of a canonical value, as events and gates use it.
func DigestOf(j JSON) string { return digest(j) }
