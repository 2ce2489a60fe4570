package words

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// What a text can hold that a person does not see as what it is. A reviewer
// must see it, and a terminal must not obey it.
const (
	HasControl   = "control characters"
	HasDirection = "characters that turn the direction of text"
	HasInvisible = "invisible characters"
	HasSpace     = "unusual spaces"
	HasMixed     = "letters of several alphabets in one word"
	HasPadding   = "long runs of spaces"
)

// Visible is a text in one line with everything that could mislead as \uXXXX,
// and what it holds of that. JSON stays JSON of the same value.
func Visible(s string) (text string, held []string) {
	var b strings.Builder
	note := func(what string) {
		if !slices.Contains(held, what) {
			held = append(held, what)
		}
	}
	foreign := mixedWords(s)
	for at, r := range s {
		what := misleads(r)
		if foreign[at] {
			what = HasMixed
		}
		switch {
		case r == utf8.RuneError:
			what = HasControl
			fallthrough
		case what != "":
			note(what)
			b.WriteString(escaped(r))
		default:
			b.WriteRune(r)
		}
	}
	if strings.Contains(s, strings.Repeat(" ", 16)) {
		note(HasPadding)
	}
	return b.String(), held
}

// Inline is Visible for where there is no room for a warning.
func Inline(s string) string {
	text, _ := Visible(s)
	return text
}

func escaped(r rune) string {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

func misleads(r rune) string {
	switch {
	case r == ' ' || r > ' ' && r < 0x7f:
		return ""
	case unicode.IsControl(r):
		return HasControl
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return HasDirection
	case unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp), r == 0x2800:
		return HasSpace
	case unicode.In(r, unicode.Cf, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point), !unicode.IsPrint(r):
		return HasInvisible
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
		case !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) && misleads(r) == "":
			end()
		}
	}
	end()
	return found
}

// Lines is a text with what a terminal would obey or not show as \uXXXX. Lines
// stay lines, and letters letters.
func Lines(s string) string {
	var b strings.Builder
	for _, r := range s {
		if what := misleads(r); r != '\n' && (what != "" || r == utf8.RuneError) {
			b.WriteString(escaped(r))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
