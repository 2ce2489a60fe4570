package agent

import (
	"bytes"
	"fmt"
	"math/big"
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

// maxExponent bounds a number's exponent: 1e999999999 is nine bytes of input
// and would be a gigabyte of digits.
const maxExponent = 400

// A parsed value is nil, bool, string, number, []any or map[string]any.
type number string

// parser reads one JSON text. at is a path for error messages.
type parser struct {
	data []byte
	pos  int
	own  bool // see Encode
}

func parseValue(data []byte) (any, error) { return (&parser{data: data}).all() }

func parseOwn(data []byte) (any, error) { return (&parser{data: data, own: true}).all() }

func (p *parser) all() (any, error) {
	v, err := p.value("", 0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos != len(p.data) {
		return nil, p.fail("", "text after the value")
	}
	return v, nil
}

func (p *parser) fail(path, format string, args ...any) error {
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

func (p *parser) value(path string, depth int) (any, error) {
	if limit := p.depth(); depth > limit {
		return nil, p.fail(path, "more than %d levels", limit)
	}
	p.space()
	if p.pos >= len(p.data) {
		return nil, p.fail(path, "the text ends where a value should be")
	}
	switch c := p.data[p.pos]; {
	case c == '{':
		return p.object(path, depth)
	case c == '[':
		return p.array(path, depth)
	case c == '"':
		return p.text(path)
	case c == '-' || c >= '0' && c <= '9':
		return p.number(path)
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
	return nil, p.fail(path, "no JSON value starts with %q", rune(p.data[p.pos]))
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

func (p *parser) object(path string, depth int) (any, error) {
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
			return nil, p.fail(path, "a key in quotes should be here")
		}
		key, err := p.text(path)
		if err != nil {
			return nil, err
		}
		fold := p.fold(key)
		if other, dup := folded[fold]; dup {
			if other == key {
				return nil, p.fail(path, "duplicate key %q", key)
			}
			return nil, p.fail(path, "keys %q and %q differ only in case", other, key)
		}
		folded[fold] = key
		p.space()
		if p.pos >= len(p.data) || p.data[p.pos] != ':' {
			return nil, p.fail(path, "a colon should follow key %q", key)
		}
		p.pos++
		if out[key], err = p.value(path+"/"+key, depth+1); err != nil {
			return nil, err
		}
		more, err := p.next(path, '}')
		if err != nil || !more {
			return out, err
		}
	}
}

func (p *parser) array(path string, depth int) (any, error) {
	p.pos++
	out := []any{}
	p.space()
	if p.pos < len(p.data) && p.data[p.pos] == ']' {
		p.pos++
		return out, nil
	}
	for {
		v, err := p.value(path+"/"+strconv.Itoa(len(out)), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		more, err := p.next(path, ']')
		if err != nil || !more {
			return out, err
		}
	}
}

// next reads a comma (more follows) or the closing byte.
func (p *parser) next(path string, closing byte) (bool, error) {
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
	return false, p.fail(path, "a comma or %q should be here", string(closing))
}

func (p *parser) text(path string) (string, error) {
	p.pos++
	start := p.pos
	for p.pos < len(p.data) && p.data[p.pos] >= 0x20 && p.data[p.pos] != '"' && p.data[p.pos] != '\\' {
		p.pos++
	}
	if p.pos < len(p.data) && p.data[p.pos] == '"' {
		s := string(p.data[start:p.pos])
		if !utf8.ValidString(s) {
			return "", p.fail(path, "invalid UTF-8")
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
				return "", p.fail(path, "invalid UTF-8")
			}
			return string(out), nil
		case c < 0x20:
			return "", p.fail(path, "control character %#02x in a string must be escaped", c)
		case c == '\\':
			r, err := p.escape(path)
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
			p.pos++
		}
	}
	return "", p.fail(path, "the text ends inside a string")
}

func (p *parser) escape(path string) (rune, error) {
	if p.pos+1 >= len(p.data) {
		return 0, p.fail(path, "the text ends inside an escape")
	}
	c := p.data[p.pos+1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		p.pos += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		return 0, p.fail(path, "unknown escape %q", p.data[p.pos:p.pos+2])
	}
	r, err := p.hex4(path)
	if err != nil {
		return 0, err
	}
	if r == 0 {
		return 0, p.fail(path, "the character U+0000 is not allowed")
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if p.pos+1 < len(p.data) && p.data[p.pos] == '\\' && p.data[p.pos+1] == 'u' {
		low, err := p.hex4(path)
		if err != nil {
			return 0, err
		}
		if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
			return full, nil
		}
	}
	return 0, p.fail(path, "lone surrogate")
}

func (p *parser) hex4(path string) (rune, error) {
	if p.pos+6 > len(p.data) {
		return 0, p.fail(path, "the text ends inside an escape")
	}
	n, err := strconv.ParseUint(string(p.data[p.pos+2:p.pos+6]), 16, 16)
	if err != nil {
		return 0, p.fail(path, "an escape needs four hexadecimal digits")
	}
	p.pos += 6
	return rune(n), nil
}

func (p *parser) number(path string) (any, error) {
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
		return nil, p.fail(path, "a digit should follow the minus sign")
	} else if n > 1 && p.data[from] == '0' {
		return nil, p.fail(path, "a number has no leading zero")
	}
	plain := true
	if p.pos < len(p.data) && p.data[p.pos] == '.' {
		plain = false
		p.pos++
		if digits() == 0 {
			return nil, p.fail(path, "a digit should follow the point")
		}
	}
	if p.pos < len(p.data) && (p.data[p.pos] == 'e' || p.data[p.pos] == 'E') {
		plain = false
		p.pos++
		if p.pos < len(p.data) && (p.data[p.pos] == '+' || p.data[p.pos] == '-') {
			p.pos++
		}
		if digits() == 0 {
			return nil, p.fail(path, "a digit should follow the exponent's sign")
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
		return nil, p.fail(path, "the number's exponent is beyond %d", maxExponent)
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
		i, _ := new(big.Int).SetString(digits+strings.Repeat("0", point-n), 10)
		return number(sign + i.String()), true
	case point > 0 && point <= 21:
		return number(sign + digits[:point] + "." + digits[point:]), true
	case point > -6 && point <= 0:
		return number(sign + "0." + strings.Repeat("0", -point) + digits), true
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
