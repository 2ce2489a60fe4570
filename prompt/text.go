package prompt

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"interlock/agent"
)

// valid is s with what is not UTF-8 replaced, so that a request's body is valid
// whatever a tool returned.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// quote is s as a JSON string: one line, and its end cannot be forged.
func quote(s string) string {
	j, err := agent.Encode(valid(s))
	if err != nil { // U+0000: it has no canonical form
		data, _ := json.Marshal(valid(s))
		return string(data)
	}
	return j.String()
}

// inline is a text of code's own items: line breaks stay, and no line but the
// first begins in column one.
func inline(s string) string {
	s = strings.ReplaceAll(strings.TrimSpace(valid(s)), "\r\n", "\n")
	return strings.NewReplacer("\n", "\n  ", "\r", "\n  ", "\u2028", "\n  ", "\u2029", "\n  ", "\u0085", "\n  ").Replace(s)
}

// fenced is s between fences that do not occur in it. The text is not changed,
// so that it can be quoted verbatim.
func fenced(s string) string {
	s = valid(s)
	n := 3
	for strings.Contains(s, strings.Repeat(">", n)) {
		n++
	}
	return strings.Repeat("<", n) + "\n" + s + "\n" + strings.Repeat(">", n)
}

// stamp is a time as it is shown everywhere: UTC, to the second.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// whole drops what is left of a character at either end of a part, and says how
// many bytes went at its beginning.
func whole(s string) (text string, skipped int) {
	for skipped < len(s) && skipped < utf8.UTFMax-1 && !utf8.RuneStart(s[skipped]) {
		skipped++
	}
	s = s[skipped:]
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if c := s[len(s)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(s[len(s)-i:]) {
				s = s[:len(s)-i]
			}
			break
		}
	}
	return s, skipped
}

// maxCluster bounds how far cut goes back for the sake of a whole cluster.
const maxCluster = 64

// cut is the longest beginning of s of at most n bytes that splits no character,
// no cluster of them (flags, joined emoji, accents), and no JSON escape.
func cut(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	end := n
	for end > 0 && n-end < maxCluster && (inCluster(s, end) || inEscape(s[:end])) {
		_, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
	}
	if end == 0 || n-end >= maxCluster {
		end = n // a cluster without end: split it, so that reading on advances
	}
	return s[:end]
}

const joiner = '\u200d'

// inCluster reports whether the characters before and after i are shown as one.
func inCluster(s string, i int) bool {
	after, _ := utf8.DecodeRuneInString(s[i:])
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	if unicode.In(after, unicode.Mn, unicode.Me, unicode.Mc) || after == joiner || before == joiner {
		return true
	}
	if after >= 0x1f3fb && after <= 0x1f3ff { // skin tones
		return true
	}
	if !flag(after) {
		return false
	}
	odd := false
	for i > 0 {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		if !flag(r) {
			break
		}
		odd, i = !odd, i-size
	}
	return odd
}

func flag(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// inEscape reports whether s ends inside a JSON escape.
func inEscape(s string) bool {
	tail := s[max(0, len(s)-5):]
	i := strings.LastIndexByte(tail, '\\')
	if i < 0 {
		return false
	}
	at, slashes := len(s)-len(tail)+i, 0
	for at-slashes >= 0 && s[at-slashes] == '\\' {
		slashes++
	}
	if slashes%2 == 0 {
		return false
	}
	return i == len(tail)-1 || tail[i+1] == 'u'
}

// plural is "1 turn", "2 turns".
func plural(n int64, word string) string {
	text := formatInt(n) + " " + word
	if n != 1 {
		text += "s"
	}
	return text
}
