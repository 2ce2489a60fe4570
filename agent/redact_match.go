package agent

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// matcher finds many texts in one, each place in time that does not depend on how many
// they are (Aho and Corasick). Letters are compared without regard to ASCII case.
type matcher struct {
	nodes []matchNode
	root  [256]int32
}

type matchNode struct {
	child, sibling int32 // 0: none
	fail           int32
	depth          int32
	longest        int32 // of the texts that end here, in bytes; 0: none does
	b              byte
}

func newMatcher(texts []string) *matcher {
	m := &matcher{nodes: make([]matchNode, 1)}
	for _, t := range texts {
		m.add(t)
	}
	m.link()
	return m
}

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

func (m *matcher) next(at int32, b byte) int32 {
	if at == 0 {
		return m.root[b]
	}
	for c := m.nodes[at].child; c != 0; c = m.nodes[c].sibling {
		if m.nodes[c].b == b {
			return c
		}
	}
	return 0
}

func (m *matcher) add(text string) {
	at := int32(0)
	for i := range len(text) {
		b := lower(text[i])
		next := m.next(at, b)
		if next == 0 {
			next = int32(len(m.nodes))
			m.nodes = append(m.nodes, matchNode{b: b, depth: int32(i + 1), sibling: m.nodes[at].child})
			m.nodes[at].child = next
			if at == 0 {
				m.root[b] = next
			}
		}
		at = next
	}
	if at != 0 {
		m.nodes[at].longest = int32(len(text))
	}
}

// link makes of each node where to go on when the next byte does not fit.
func (m *matcher) link() {
	queue := make([]int32, 1, len(m.nodes))
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for c := m.nodes[at].child; c != 0; c = m.nodes[c].sibling {
			queue = append(queue, c)
			if at == 0 {
				continue
			}
			m.nodes[c].fail = m.step(m.nodes[at].fail, m.nodes[c].b)
			if m.nodes[c].longest == 0 {
				m.nodes[c].longest = m.nodes[m.nodes[c].fail].longest
			}
		}
	}
}

func (m *matcher) step(at int32, b byte) int32 {
	for {
		if next := m.next(at, b); next != 0 || at == 0 {
			return next
		}
		at = m.nodes[at].fail
	}
}

// span is a part of a text, in bytes.
type span struct{ from, to int }

// find is where texts stand, and how many of the last bytes may be the beginning of one.
func (m *matcher) find(text string) (found []span, begun int) {
	at := int32(0)
	for i := range len(text) {
		at = m.step(at, lower(text[i]))
		if n := int(m.nodes[at].longest); n > 0 {
			found = append(found, span{i + 1 - n, i + 1})
		}
	}
	return found, int(m.nodes[at].depth)
}

// known are the values that are looked for in texts.
type known struct {
	texts  *matcher
	digits *matcher // of numbers, whatever stands between their digits
}

// A shorter value stands in many texts by accident: to redact it there would tell it.
const shortest = 4

// knownOf are values that redaction looks for: leaves of JSON values.
func knownOf(leaves []JSON) *known {
	var texts, digits []string
	for _, leaf := range leaves {
		switch v := valueOf(leaf).(type) {
		case number:
			digits = append(digits, numberForms(string(v))...)
		case string:
			texts = append(texts, textForms(v)...)
			if d, ok := asDigits(v); ok && len(d) >= shortest {
				digits = append(digits, d)
			}
		}
	}
	if len(texts)+len(digits) == 0 {
		return nil
	}
	return &known{newMatcher(texts), newMatcher(digits)}
}

// textForms are a text as it is, and as it stands in JSON, in Go's quotes, and in a line.
func textForms(v string) []string {
	out := []string{v, strings.Join(strings.Fields(v), " "), inner(strconv.Quote(v)), inner(strconv.QuoteToASCII(v)), inner(encodeValue(v).String())}
	if j, err := json.Marshal(v); err == nil {
		out = append(out, inner(string(j)))
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(s string) bool { return len(s) < shortest })
}

func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

// numberForms are the digits by which a number is found: as it is, with two decimals,
// and, as it may be an amount in hundredths, without them.
func numberForms(n string) (out []string) {
	whole, part, fraction := strings.Cut(strings.TrimLeft(n, "-"), ".")
	if d, ok := asDigits(whole + part); ok {
		out = append(out, d)
		if fraction && len(part) == 1 {
			out = append(out, d+"0")
		}
		if whole, hundredths := strings.CutSuffix(d, "00"); hundredths && !fraction {
			out = append(out, whole)
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return len(s) < shortest })
}

// asDigits is a text that is a number, such as that of a card or a telephone, without
// what stands between its digits.
func asDigits(s string) (string, bool) {
	var out []byte
	for _, r := range s {
		switch {
		case r >= '0' && r <= '9':
			out = append(out, byte(r))
		case !between(r) && !strings.ContainsRune("+()", r):
			return "", false
		}
	}
	return string(out), len(out) > 0
}

// between reports what may stand between two digits of a number.
func between(r rune) bool { return strings.ContainsRune(" .,'-/_’\u00a0\u2009\u202f", r) }

// find is where known values stand in a text, in order and apart from one another, and
// from where on its end may be the beginning of one.
func (k *known) find(text string) (found []span, begun int) {
	found, n := k.texts.find(text)
	begun = len(text) - n
	digits, places := projection(text)
	numbers, n := k.digits.find(digits)
	for _, f := range numbers {
		found = append(found, span{places[f.from], places[f.to-1] + 1})
	}
	if n > 0 {
		begun = min(begun, places[len(digits)-n])
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	out := found[:0]
	for _, f := range found {
		if last := len(out) - 1; last >= 0 && f.from <= out[last].to {
			out[last].to = max(out[last].to, f.to)
		} else {
			out = append(out, f)
		}
	}
	return out, begun
}

// projection is a text's digits with their places; a byte between them stands for what
// ends a number.
func projection(text string) (string, []int) {
	digits, places := make([]byte, 0, 64), make([]int, 0, 64)
	gap := 2
	for i, r := range text {
		switch {
		case r >= '0' && r <= '9':
			if gap > 1 {
				digits, places = append(digits, '|'), append(places, i)
			}
			digits, places, gap = append(digits, byte(r)), append(places, i), 0
		case between(r):
			gap++
		default:
			gap = 2
		}
	}
	if gap > 1 && len(digits) > 0 {
		digits, places = append(digits, '|'), append(places, len(text))
	}
	return string(digits), places
}

// cutMark ends a text that was cut: what stands before it may be half a value.
var cutMarks = []string{" …(cut)", "…", "..."}

// redact puts the mark in the place of known values. Where the text was cut, half a value
// at its end is one.
func (k *known) redact(text string, cut bool) string {
	if k == nil || len(text) < shortest {
		return text
	}
	end := ""
	for _, mark := range cutMarks {
		if rest, ok := strings.CutSuffix(text, mark); ok && !cut {
			text, end, cut = rest, mark, true
		}
	}
	found, begun := k.find(text)
	if last := len(found) - 1; cut && len(text)-begun >= shortest && (last < 0 || found[last].to <= begun) {
		found = append(found, span{begun, len(text)})
	}
	if len(found) == 0 {
		return text + end
	}
	var out strings.Builder
	at := 0
	for _, f := range found {
		out.WriteString(text[at:f.from])
		out.WriteString(masked)
		at = f.to
	}
	out.WriteString(text[at:])
	out.WriteString(end)
	return out.String()
}

// settled is how much of a text that goes on can be shown: what follows may make its end
// a known value.
func (k *known) settled(text string) int {
	if k == nil {
		return len(text)
	}
	_, begun := k.find(text)
	for begun > 0 && begun < len(text) && !utf8.RuneStart(text[begun]) {
		begun--
	}
	return begun
}
