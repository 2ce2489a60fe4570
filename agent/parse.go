package agent

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of what comes from outside. Our own values hold
// such values within themselves, so they may be deeper: ownDepth, which is
// where encoding/json stops.
const maxDepth, ownDepth = 64, 10_000

// maxExponent bounds a number's exponent, as it is read and as it would be written:
// 1e999999999 is nine bytes of input and would be a gigabyte of digits.
const maxExponent = 400

// A parsed value is nil, bool, string, number, []any or map[string]any.
type number string

// parser reads one JSON text, in a time that grows with its length alone.
type parser struct {
	data []byte
	pos  int
	own  bool // see Encode
	at   *at  // the place of the value that is read
}

// at is a place in a JSON text; nil is the whole.
type at struct {
	up    *at
	key   string
	index int // of an element; -1 of a member
}

func (a *at) member(key string) *at { return &at{a, key, -1} }
func (a *at) element(i int) *at     { return &at{a, "", i} }

// String is the place as a JSON Pointer.
func (a *at) String() string {
	var parts []string
	for ; a != nil; a = a.up {
		if a.index >= 0 {
			parts = append(parts, strconv.Itoa(a.index))
		} else {
			parts = append(parts, pointerEscapes.Replace(a.key))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Reverse(parts)
	return "/" + strings.Join(parts, "/")
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func parseValue(data []byte) (any, error) { return (&parser{data: data}).all() }

func parseOwn(data []byte) (any, error) { return (&parser{data: data, own: true}).all() }

func (p *parser) all() (any, error) {
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos != len(p.data) {
		return nil, p.fail("text after the value")
	}
	return v, nil
}

// fail is the only one that renders the place: a text of a megabyte may have as many
// places as bytes.
func (p *parser) fail(format string, args ...any) error {
	path := p.at.String()
	if path == "" {
		path = "/"
	}
	return Errorf(CodeInvalid, "%s at %s (byte %d)", fmt.Sprintf(format, args...), path, p.pos)
}

func (p *parser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) value(depth int) (any, error) {
	if limit := p.depth(); depth > limit {
		return nil, p.fail("more than %d levels", limit)
	}
	p.space()
	if p.pos >= len(p.data) {
		return nil, p.fail("the text ends where a value should be")
	}
	switch c := p.data[p.pos]; {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.text()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for _, w := range []struct {
		text  string
		value any
	}{{"null", nil}, {"true", true}, {"false", false}} {
		if bytes.HasPrefix(p.data[p.pos:], []byte(w.text)) {
			p.pos += len(w.text)
			return w.value, nil
		}
	}
	return nil, p.fail("no JSON value starts with %q", rune(p.data[p.pos]))
}

func (p *parser) depth() int {
	if p.own {
		return ownDepth
	}
	return maxDepth
}

// fold is what two keys have in common that a reader may take for one, as
// encoding/json does: K, k and the Kelvin sign are one letter.
func (p *parser) fold(key string) string {
	if p.own {
		return key
	}
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, key)
}

func (p *parser) object(depth int) (any, error) {
	p.pos++
	out := map[string]any{}
	folded := map[string]string{}
	p.space()
	if p.pos < len(p.data) && p.data[p.pos] == '}' {
		p.pos++
		return out, nil
	}
	for {
		p.space()
		if p.pos >= len(p.data) || p.data[p.pos] != '"' {
			return nil, p.fail("a key in quotes should be here")
		}
		key, err := p.text()
		if err != nil {
			return nil, err
		}
		fold := p.fold(key)
		if other, dup := folded[fold]; dup {
			if other == key {
				return nil, p.fail("duplicate key %q", key)
			}
			return nil, p.fail("keys %q and %q differ only in case", other, key)
		}
		folded[fold] = key
		p.space()
		if p.pos >= len(p.data) || p.data[p.pos] != ':' {
			return nil, p.fail("a colon should follow key %q", key)
		}
		p.pos++
		p.at = p.at.member(key)
		if out[key], err = p.value(depth + 1); err != nil {
			return nil, err
		}
		p.at = p.at.up
		more, err := p.next('}')
		if err != nil || !more {
			return out, err
		}
	}
}

func (p *parser) array(depth int) (any, error) {
	p.pos++
	out := []any{}
	p.space()
	if p.pos < len(p.data) && p.data[p.pos] == ']' {
		p.pos++
		return out, nil
	}
	for {
		p.at = p.at.element(len(out))
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		p.at = p.at.up
		out = append(out, v)
		more, err := p.next(']')
		if err != nil || !more {
			return out, err
		}
	}
}

// next reads a comma (more follows) or the closing byte.
func (p *parser) next(closing byte) (bool, error) {
	p.space()
	if p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ',':
			p.pos++
			return true, nil
		case closing:
			p.pos++
			return false, nil
		}
	}
	return false, p.fail("a comma or %q should be here", string(closing))
}

func (p *parser) text() (string, error) {
	p.pos++
	start := p.pos
	for p.pos < len(p.data) && p.data[p.pos] >= 0x20 && p.data[p.pos] != '"' && p.data[p.pos] != '\\' {
		p.pos++
	}
	if p.pos < len(p.data) && p.data[p.pos] == '"' {
		s := string(p.data[start:p.pos])
		if !utf8.ValidString(s) {
			return "", p.fail("invalid UTF-8")
		}
		p.pos++
		return s, nil
	}
	out := append([]byte(nil), p.data[start:p.pos]...)
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			p.pos++
			if !utf8.Valid(out) {
				return "", p.fail("invalid UTF-8")
			}
			return string(out), nil
		case c < 0x20:
			return "", p.fail("control character %#02x in a string must be escaped", c)
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
			p.pos++
		}
	}
	return "", p.fail("the text ends inside a string")
}

func (p *parser) escape() (rune, error) {
	if p.pos+1 >= len(p.data) {
		return 0, p.fail("the text ends inside an escape")
	}
	c := p.data[p.pos+1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		p.pos += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		return 0, p.fail("unknown escape %q", p.data[p.pos:p.pos+2])
	}
	r, err := p.hex4()
	if err != nil {
		return 0, err
	}
	if r == 0 {
		return 0, p.fail("the character U+0000 is not allowed")
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if p.pos+1 < len(p.data) && p.data[p.pos] == '\\' && p.data[p.pos+1] == 'u' {
		low, err := p.hex4()
		if err != nil {
			return 0, err
		}
		if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
			return full, nil
		}
	}
	return 0, p.fail("lone surrogate")
}

func (p *parser) hex4() (rune, error) {
	if p.pos+6 > len(p.data) {
		return 0, p.fail("the text ends inside an escape")
	}
	n, err := strconv.ParseUint(string(p.data[p.pos+2:p.pos+6]), 16, 16)
	if err != nil {
		return 0, p.fail("an escape needs four hexadecimal digits")
	}
	p.pos += 6
	return rune(n), nil
}

func (p *parser) number() (any, error) {
	start := p.pos
	digits := func() int {
		from := p.pos
		for p.pos < len(p.data) && p.data[p.pos] >= '0' && p.data[p.pos] <= '9' {
			p.pos++
		}
		return p.pos - from
	}
	if p.data[p.pos] == '-' {
		p.pos++
	}
	from := p.pos
	if n := digits(); n == 0 {
		return nil, p.fail("a digit should follow the minus sign")
	} else if n > 1 && p.data[from] == '0' {
		return nil, p.fail("a number has no leading zero")
	}
	plain := true
	if p.pos < len(p.data) && p.data[p.pos] == '.' {
		plain = false
		p.pos++
		if digits() == 0 {
			return nil, p.fail("a digit should follow the point")
		}
	}
	if p.pos < len(p.data) && (p.data[p.pos] == 'e' || p.data[p.pos] == 'E') {
		plain = false
		p.pos++
		if p.pos < len(p.data) && (p.data[p.pos] == '+' || p.data[p.pos] == '-') {
			p.pos++
		}
		if digits() == 0 {
			return nil, p.fail("a digit should follow the exponent's sign")
		}
	}
	text := string(p.data[start:p.pos])
	if plain {
		if text == "-0" {
			text = "0"
		}
		return number(text), nil
	}
	n, ok := canonicalNumber(text)
	if !ok {
		return nil, p.fail("the number's exponent is beyond %d", maxExponent)
	}
	return n, nil
}

// canonicalNumber writes a number with a point or an exponent without loss:
// an integer as one, else as ECMAScript writes it (plain between 1e-6 and
// 1e21, scientific beyond), but with every digit.
func canonicalNumber(text string) (number, bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	exp := 0
	if exponent != "" {
		n, err := strconv.Atoi(exponent)
		if err != nil || n > maxExponent || n < -maxExponent {
			return "", false
		}
		exp = n
	}
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+frac, "0")
	point := len(digits) - len(frac) + exp // digits before the decimal point
	if cut := strings.TrimRight(digits, "0"); cut == "" {
		return "0", true
	} else {
		digits = cut
	}
	n := len(digits)
	switch {
	case point >= n: // an integer: exact, at any size
		return number(sign + digits + strings.Repeat("0", point-n)), true
	case point > 0 && point <= 21:
		return number(sign + digits[:point] + "." + digits[point:]), true
	case point > -6 && point <= 0:
		return number(sign + "0." + strings.Repeat("0", -point) + digits), true
	}
	if point-1 > maxExponent || point-1 < -maxExponent {
		return "", false // what is written must be read again
	}
	e := strconv.Itoa(point - 1)
	if point-1 > 0 {
		e = "+" + e
	}
	if n == 1 {
		return number(sign + digits + "e" + e), true
	}
	return number(sign + digits[:1] + "." + digits[1:] + "e" + e), true
}
