package agent

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quoted checks that a quote stands verbatim in a user's message and holds the
// value as a word of its own.
func (m *Machine) quoted(quote string, v any) error {
	if _, err := m.said(quote, 0); err != nil {
		return err
	}
	var want []string
	switch v := v.(type) {
	case string:
		want = []string{v}
	case number:
		want = []string{string(v)}
	case map[string]any:
		if n, ok := v["minor"].(number); ok {
			minor, err := strconv.ParseInt(string(n), 10, 64)
			currency, _ := v["currency"].(string)
			if err == nil {
				want = []string{Money{minor, currency}.Decimal()}
				want = append(want, strings.TrimSuffix(want[0], ".00"))
			}
		}
	}
	if len(want) == 0 || want[0] == "" {
		return Errorf(CodeInvalid, "only a text, a whole number or an amount can be taken from a quote; use ask")
	}
	for _, w := range want {
		if standsIn(quote, w) {
			return nil
		}
	}
	return Errorf(CodeInvalid, "the quote %q does not hold the value %s", quote, want[0])
}

// standsIn reports whether a value stands in a text as a word: 104 does not
// stand in 1042.
func standsIn(text, value string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], value)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(value)
		if !joined(text[:i], value) && !joined(value, text[end:]) {
			return true
		}
		from = i + 1
	}
}

// joined reports whether two neighbouring texts are parts of one word or one
// number: 10|42, 104|.20. Scripts without spaces between words join nothing.
func joined(left, right string) bool {
	l, n := utf8.DecodeLastRuneInString(left)
	r, m := utf8.DecodeRuneInString(right)
	if wordRune(l) && wordRune(r) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(left[:len(left)-n])
	after, _ := utf8.DecodeRuneInString(right[m:])
	return unicode.IsDigit(l) && separator(r) && unicode.IsDigit(after) ||
		unicode.IsDigit(before) && separator(l) && unicode.IsDigit(r)
}

func wordRune(r rune) bool {
	return r == '_' || unicode.IsDigit(r) || unicode.IsLetter(r) && !unicode.Is(unicode.Lo, r)
}

func separator(r rune) bool { return r == '.' || r == ',' }

// said finds the latest user message after seq in which a quote stands
// verbatim, in whole words ("no" does not stand in "know"): among the messages that the run still holds, and the facts.
func (m *Machine) said(quote string, after int64) (int64, error) {
	if strings.TrimSpace(quote) == "" {
		return 0, Errorf(CodeInvalid, "a quote from a user's message is needed")
	}
	found := int64(0)
	look := func(items []Item) {
		for _, it := range items {
			if it.Kind == ItemMessage && m.ofUser(it) && it.Seq > after && standsIn(it.Text, quote) {
				found = max(found, it.Seq)
			}
		}
	}
	for _, t := range m.run.Turns {
		look(t.Opening)
	}
	for _, f := range m.run.Facts {
		if f.Seq > after && standsIn(f.Quote, quote) {
			found = max(found, f.Seq)
		}
	}
	if found == 0 && after > 0 {
		return 0, Errorf(CodeInvalid, "no user message after the values were shown holds %q word for word", quote)
	}
	if found == 0 {
		return 0, Errorf(CodeInvalid, "no user message holds %q word for word", quote)
	}
	return found, nil
}

// ofUser reports whether a message is of the user whom the run serves: nobody else's
// words set the user's fields or say yes for them.
func (m *Machine) ofUser(it Item) bool { return it.By == m.run.User }
