package agent

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

func (s *scanner) text() error {
	s.pos++
	s.out = append(s.out, '"')
	start := s.pos
	for {
		from := s.pos
		for s.pos < len(s.data) && s.data[s.pos] >= 0x20 && s.data[s.pos] != '"' && s.data[s.pos] != '\\' {
			s.pos++
		}
		s.out = append(s.out, s.data[from:s.pos]...)
		switch {
		case s.pos >= len(s.data):
			return s.fail("the text ends inside a string")
		case s.data[s.pos] < 0x20:
			return s.fail("control character %#02x in a string must be escaped", s.data[s.pos])
		case s.data[s.pos] == '"':
			if !utf8.Valid(s.data[start:s.pos]) {
				return s.fail("invalid UTF-8")
			}
			s.pos++
			s.out = append(s.out, '"')
			return nil
		}
		r, err := s.escape()
		if err != nil {
			return err
		}
		if r != 0 {
			s.out = appendRune(s.out, r)
		}
	}
}

func (s *scanner) escape() (rune, error) {
	if s.pos+1 >= len(s.data) {
		return 0, s.fail("the text ends inside an escape")
	}
	c := s.data[s.pos+1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		s.pos += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		return 0, s.fail("unknown escape %q", s.data[s.pos:s.pos+2])
	}
	r, err := s.hex4()
	if err != nil {
		return 0, err
	}
	if r == 0 && !s.clean {
		return 0, s.fail("the character U+0000 is not allowed")
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if bytes.HasPrefix(s.data[s.pos:], []byte(`\u`)) {
		low, err := s.hex4()
		if err != nil {
			return 0, err
		}
		if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
			return full, nil
		}
	}
	return 0, s.fail("lone surrogate")
}

func (s *scanner) hex4() (rune, error) {
	if s.pos+6 > len(s.data) {
		return 0, s.fail("the text ends inside an escape")
	}
	n, err := strconv.ParseUint(string(s.data[s.pos+2:s.pos+6]), 16, 16)
	if err != nil {
		return 0, s.fail("an escape needs four hexadecimal digits")
	}
	s.pos += 6
	return rune(n), nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digits takes digits and returns them.
func (s *scanner) digits() []byte {
	from := s.pos
	for s.pos < len(s.data) && isDigit(s.data[s.pos]) {
		s.pos++
	}
	return s.data[from:s.pos]
}

// follows takes the next byte if it is one of these.
func (s *scanner) follows(bytes string) bool {
	if s.pos >= len(s.data) || strings.IndexByte(bytes, s.data[s.pos]) < 0 {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) number() error {
	start := s.pos
	negative := s.follows("-")
	whole := s.digits()
	switch {
	case len(whole) == 0:
		return s.fail("a digit should follow the minus sign")
	case len(whole) > 1 && whole[0] == '0':
		return s.fail("a number has no leading zero")
	}
	var frac, exponent []byte
	if s.follows(".") {
		if frac = s.digits(); len(frac) == 0 {
			return s.fail("a digit should follow the point")
		}
	}
	if s.follows("eE") {
		from := s.pos
		s.follows("+-")
		if len(s.digits()) == 0 {
			return s.fail("a digit should follow the exponent's sign")
		}
		exponent = s.data[from:s.pos]
	}
	if frac == nil && exponent == nil {
		if whole[0] == '0' { // -0 too
			start = s.pos - 1
		}
		s.out = append(s.out, s.data[start:s.pos]...)
		return nil
	}
	return s.spell(negative, whole, frac, exponent)
}

// spell writes a number without loss: an integer as one, else as ECMAScript
// writes it (plain between 1e-6 and 1e21, scientific beyond), but with every
// digit.
func (s *scanner) spell(negative bool, whole, frac, exponent []byte) error {
	exp, err := 0, error(nil)
	if exponent != nil {
		exp, err = strconv.Atoi(string(exponent))
	}
	if err != nil || exp > maxExponent || exp < -maxExponent {
		return s.fail("the number's exponent is beyond %d", maxExponent)
	}
	digits := bytes.TrimLeft(slices.Concat(whole, frac), "0")
	point := len(digits) - len(frac) + exp // digits before the decimal point
	if digits = bytes.TrimRight(digits, "0"); len(digits) == 0 {
		s.out = append(s.out, '0')
		return nil
	}
	if negative {
		s.out = append(s.out, '-')
	}
	zeros := func(n int) { s.out = append(s.out, strings.Repeat("0", n)...) }
	switch n := len(digits); {
	case point >= n: // an integer: exact, at any size
		s.out = append(s.out, digits...)
		zeros(point - n)
	case point > 0 && point <= 21:
		s.out = append(append(append(s.out, digits[:point]...), '.'), digits[point:]...)
	case point > -6 && point <= 0:
		s.out = append(s.out, "0."...)
		zeros(-point)
		s.out = append(s.out, digits...)
	case point-1 > maxExponent || point-1 < -maxExponent:
		return s.fail("the number's exponent is beyond %d", maxExponent)
	default:
		s.out = append(s.out, digits[0])
		if n > 1 {
			s.out = append(append(s.out, '.'), digits[1:]...)
		}
		s.out = fmt.Appendf(s.out, "e%+d", point-1)
	}
	if len(s.out) > 2*len(s.data)+maxSpelled {
		return s.fail("the numbers are too long when they are written out")
	}
	return nil
}
