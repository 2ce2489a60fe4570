package agent

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// prose is a user's text as quotes are looked for in it: in normal form C, with one
// kind of space, quotation mark and dash, ASCII digits, and the words and numbers that
// nothing may be a part of.
//
// A word is what stands between spaces, brackets and the marks of a sentence, so that
// what Unicode's segmentation would split stays whole: 1042-7, A-1042, ann@x.co. In
// scripts without spaces nothing says where a word ends but the end of its script:
// there it is all letters between two marks, digits or other letters.
type prose struct {
	text   string
	inside []bool  // by byte: a word or number goes on across the place before it
	tokens []token // in order
	stops  []int   // where sentences end
}

type token struct{ from, to int }

// fold is a text in the form in which quotes are compared.
func fold(s string) string { return folded(s).text() }

type letters struct {
	raw, fold []rune
}

func (l letters) text() string { return string(l.fold) }

func folded(s string) letters {
	var l letters
	for _, r := range norm.NFC.String(s) {
		if unicode.IsSpace(r) && len(l.fold) > 0 && l.fold[len(l.fold)-1] == ' ' {
			if r == '\n' {
				l.raw[len(l.raw)-1] = r
			}
			continue
		}
		l.raw, l.fold = append(l.raw, r), append(l.fold, foldRune(r))
	}
	return l
}

func foldRune(r rune) rune {
	switch {
	case r < utf8.RuneSelf && !unicode.IsSpace(r) && r != '`':
		return r
	case unicode.IsSpace(r):
		return ' '
	case strings.ContainsRune("`´‘’‚‛′ʼ‹›＇", r):
		return '\''
	case strings.ContainsRune("“”„‟″«»＂", r):
		return '"'
	case unicode.Is(unicode.Pd, r) || r == '−':
		return '-'
	case r == '٫':
		return '.'
	case r == '٬':
		return ','
	case unicode.Is(unicode.Nd, r):
		n := rune(0) // digits stand in rows of ten
		for unicode.Is(unicode.Nd, r-1-n) {
			n++
		}
		return '0' + n%10
	case r >= '！' && r <= '～':
		return r - '！' + '!'
	}
	return r
}

// invisible is the first character of a text that nobody sees, -1 where there is none.
func invisible(s string) rune {
	for _, r := range s {
		if unseen(r) {
			return r
		}
	}
	return -1
}

func unseen(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r) ||
		unicode.IsControl(r) && !unicode.IsSpace(r)
}

func hasWord(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}

// wordsOf finds the words of a text, in linear time.
func wordsOf(s string) *prose {
	l := folded(s)
	w := &prose{text: l.text()}
	var parts [][2]int // of runes
	for from := 0; from < len(l.raw); {
		to := from
		for to < len(l.raw) && !l.splits(to) {
			to++
		}
		if a, b := l.trimmed(from, to); a < b {
			parts = append(parts, l.scripts(a, b)...)
		}
		from = to + 1
	}
	off := make([]int, 0, len(l.fold)+1)
	for i, n := 0, 0; i <= len(l.fold); i++ {
		off = append(off, n)
		if i < len(l.fold) {
			n += utf8.RuneLen(l.fold[i])
		}
	}
	for i, r := range l.raw {
		last := i+1 == len(l.raw) || l.fold[i+1] == ' '
		if r == '\n' || strings.ContainsRune("。！？", r) || strings.ContainsRune(".!?", r) && last {
			w.stops = append(w.stops, off[i])
		}
	}
	for _, p := range parts {
		t := token{off[p[0]], off[p[1]]}
		if n := len(w.tokens); n > 0 && w.oneNumber(w.tokens[n-1], t) {
			w.tokens[n-1].to = t.to
			continue
		}
		w.tokens = append(w.tokens, t)
	}
	w.inside = make([]bool, len(w.text)+1)
	for _, t := range w.tokens {
		for i := t.from + 1; i < t.to; i++ {
			w.inside[i] = true
		}
	}
	return w
}

// splits reports whether the text falls apart at a character.
func (l letters) splits(i int) bool {
	r := l.raw[i]
	if i+1 < len(l.raw) && (unicode.IsMark(l.raw[i+1]) || unseen(l.raw[i+1])) || i > 0 && unseen(l.raw[i-1]) {
		return false
	}
	switch digit := func(i int) bool { return i >= 0 && i < len(l.fold) && l.fold[i] >= '0' && l.fold[i] <= '9' }; r {
	case ',', '،', '，':
		return !digit(i-1) || !digit(i+1)
	case ':', '：':
		return i > 0 && unicode.IsLetter(l.raw[i-1])
	}
	return l.fold[i] == ' ' || strings.ContainsRune("()[]{};!?|…\"“”„«»—―。、！？；（）「」『』【】《》؟؛", r)
}

// trimmed drops the marks around a word.
func (l letters) trimmed(from, to int) (int, int) {
	digit := func(i int) bool { return i < to && l.fold[i] >= '0' && l.fold[i] <= '9' }
	for from < to && strings.ContainsRune("'#№*¿¡.,:", l.fold[from]) && !(l.fold[from] == '.' && digit(from+1)) {
		from++
	}
	for from < to && strings.ContainsRune("'*.,:", l.fold[to-1]) {
		to--
	}
	return from, to
}

// scripts splits a word where a script without spaces begins or ends.
func (l letters) scripts(from, to int) (out [][2]int) {
	numeral := func(r rune) bool {
		return strings.ContainsRune("〇一二三四五六七八九十百千万萬億亿兆半角分", r)
	}
	for i := from + 1; i < to; i++ {
		a, b := l.raw[i-1], l.raw[i]
		if spaceless(a) == spaceless(b) || unicode.IsMark(b) || unseen(a) || unseen(b) || unicode.IsNumber(a) && numeral(b) || numeral(a) && unicode.IsNumber(b) {
			continue
		}
		out, from = append(out, [2]int{from, i}), i
	}
	return append(out, [2]int{from, to})
}

func spaceless(r rune) bool {
	return r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

// oneNumber reports whether two neighbours are one number: 1 500.00, 5 ½, 5 thousand.
func (w *prose) oneNumber(a, b token) bool {
	left, right := w.text[a.from:a.to], w.text[b.from:b.to]
	if w.text[a.to:b.from] != " " {
		return false
	}
	if left == "-" {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(left)
	if last < '0' || last > '9' {
		return false
	}
	if slices.Contains(scales, strings.ToLower(right)) || right == "½" || right == "¼" || right == "¾" {
		return true
	}
	return grouped.MatchString(left) && group.MatchString(right)
}

// find lists where a folded text stands between two places, in whole words.
func (w *prose) find(needle string, from, to int) (out []int) {
	for at := from; at < to; {
		i := strings.Index(w.text[at:to], needle)
		if i < 0 {
			break
		}
		i += at
		if !w.inside[i] && !w.inside[i+len(needle)] && !w.marked(i+len(needle)) {
			out = append(out, i)
		}
		_, n := utf8.DecodeRuneInString(w.text[i:])
		at = i + n
	}
	return out
}

// marked reports whether a mark or a character that nobody sees belongs to what ends here.
func (w *prose) marked(at int) bool {
	r, _ := utf8.DecodeRuneInString(w.text[at:])
	return at < len(w.text) && (unicode.IsMark(r) || unseen(r))
}

// sentence is the first and the last but one token of the sentence of a token.
func (w *prose) sentence(i int) (from, to int) {
	start, end := 0, len(w.text)
	for _, s := range w.stops {
		if s < w.tokens[i].from {
			start = s
		} else if s >= w.tokens[i].to {
			end = s
			break
		}
	}
	for from = i; from > 0 && w.tokens[from-1].from >= start; from-- {
	}
	for to = i + 1; to < len(w.tokens) && w.tokens[to].from < end; to++ {
	}
	return from, to
}
