package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
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
func Canonical(data []byte) (JSON, error) {
	if j, ok := recode(data, false); ok {
		return j, nil
	}
	v, err := parseValue(data)
	if err != nil {
		return nil, err
	}
	return appendValue(make(JSON, 0, len(data)), v), nil
}

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
func own(data []byte) (JSON, error) {
	if j, ok := recode(data, true); ok {
		return j, nil
	}
	v, err := parseOwn(data)
	if err != nil {
		return nil, err
	}
	return appendValue(make(JSON, 0, len(data)), v), nil
}

// mustEncode is for values of this package's own types, which always encode.
func mustEncode(v any) JSON {
	j, err := Encode(v)
	if err != nil {
		panic(fmt.Sprintf("agent: encode %T: %v", v, err))
	}
	return j
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
	slices.SortFunc(keys, compareUTF16)
	return keys
}

func compareUTF16(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] >= 0xEE || b[i] >= 0xEE {
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		}
	}
	return strings.Compare(a, b)
}

func appendText(out JSON, s string) JSON {
	out = append(out, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\b':
			out = append(out, `\b`...)
		case '\f':
			out = append(out, `\f`...)
		case '\n':
			out = append(out, `\n`...)
		case '\r':
			out = append(out, `\r`...)
		case '\t':
			out = append(out, `\t`...)
		default:
			if c < 0x20 {
				out = append(out, fmt.Sprintf(`\u%04x`, c)...)
			} else {
				out = append(out, c)
			}
		}
	}
	return append(out, '"')
}

// DigestOf is the hex digest of a canonical value, as events and gates use it.
func DigestOf(j JSON) string { return digest(j) }
