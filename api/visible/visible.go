// Package visible shows texts of models, tools and users to a person who decides by
// them: with everything that could mislead as \uXXXX, and a word about it.
package visible

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"interlock/agent"
)

// What a text can hold that a person does not see as what it is. A reviewer
// must see it, and a terminal must not obey it.
const (
	Control   = "control characters"
	Direction = "characters that turn the direction of text"
	Invisible = "invisible characters"
	Space     = "unusual spaces"
	Mixed     = "letters of several alphabets in one word"
	Padding   = "long runs of spaces"
)

// Text is a text in one line with everything that could mislead as \uXXXX,
// and what it holds of that. JSON stays JSON of the same value.
func Text(s string) (text string, held []string) {
	var b strings.Builder
	note := func(what string) {
		if !slices.Contains(held, what) {
			held = append(held, what)
		}
	}
	foreign := mixedWords(s)
	for at, r := range s {
		what := Misleads(r)
		if foreign[at] {
			what = Mixed
		}
		switch {
		case r == utf8.RuneError:
			what = Control
			fallthrough
		case what != "":
			note(what)
			b.WriteString(Escaped(r))
		default:
			b.WriteRune(r)
		}
	}
	if strings.Contains(s, strings.Repeat(" ", 16)) {
		note(Padding)
	}
	return b.String(), held
}

// Inline is Text for where there is no room for a warning.
func Inline(s string) string {
	text, _ := Text(s)
	return text
}

// Gate is what a gate's texts hold that does not show as what it is.
func Gate(g agent.Gate) []string {
	texts := []string{g.Title, g.Policy, g.Risk, g.Args.String()}
	for _, f := range g.Reads {
		texts = append(texts, g.Shown[f].String())
	}
	_, held := Text(strings.Join(append(texts, g.Rulings...), " "))
	return held
}

// Escaped is a character as JSON escapes it.
func Escaped(r rune) string {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Misleads says what is wrong with a character by itself, "" where nothing is.
func Misleads(r rune) string {
	switch {
	case r == ' ' || r > ' ' && r < 0x7f:
		return ""
	case unicode.IsControl(r):
		return Control
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return Direction
	case unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp), r == 0x2800:
		return Space
	case unicode.In(r, unicode.Cf, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point), !unicode.IsPrint(r):
		return Invisible
	}
	return ""
}

// lookalikes are the alphabets whose letters look like Latin ones.
var lookalikes = []*unicode.RangeTable{unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee}

// mixedWords finds the letters of such an alphabet in words that have Latin
// letters too, by their place in s.
func mixedWords(s string) map[int]bool {
	found := map[int]bool{}
	var foreign []int
	latin := false
	end := func() {
		if latin {
			for _, at := range foreign {
				found[at] = true
			}
		}
		foreign, latin = foreign[:0], false
	}
	for at, r := range s {
		switch {
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.In(r, lookalikes...):
			foreign = append(foreign, at)
		case !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) && Misleads(r) == "":
			end()
		}
	}
	end()
	return found
}
