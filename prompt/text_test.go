package prompt

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 5, "abc"},
		{"abc", 2, "ab"},
		{"aé", 2, "a"},
		{"a😀b", 3, "a"},
		{"a😀b", 5, "a😀"},
		{"a🇩🇪🇫🇷", 5, "a"}, // inside a flag
		{"a🇩🇪🇫🇷", 9, "a🇩🇪"},
		{"a🇩🇪🇫🇷", 13, "a🇩🇪"},
		{"ae\u0301x", 2, "a"}, // before an accent
		{"x👩\u200d👧y", 5, "x"},
		{"x👍🏽y", 5, "x"},
		{`a\u001fb`, 4, "a"}, // inside an escape
		{`a\u001fb`, 7, `a\u001f`},
		{`a\nb`, 2, "a"},
		{`a\\b`, 3, `a\\`},
		{`a\\\nb`, 4, `a\\`},
	} {
		require.Equal(t, tc.want, cut(tc.in, tc.n), "%q at %d", tc.in, tc.n)
	}
	long := "e" + strings.Repeat("\u0301", 200)
	require.Equal(t, 101, len(cut(long, 102)), "a cluster without end does not stop the reading")
}

func TestCutProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		n := rapid.IntRange(0, len(s)+2).Draw(t, "n")
		got := cut(s, n)
		require.LessOrEqual(t, len(got), n)
		require.True(t, strings.HasPrefix(s, got))
		require.True(t, utf8.ValidString(got))
	})
}

func TestWhole(t *testing.T) {
	for _, tc := range []struct {
		in, want string
		skipped  int
	}{
		{"", "", 0},
		{"abc", "abc", 0},
		{"\xa9a", "a", 1},
		{"a\xc3", "a", 0},
		{"\x98\x80a😀\xf0\x9f\x98", "a😀", 2},
		{"a\xff", "a\xff", 0}, // no character begins so: it is not cut, it is invalid
	} {
		got, skipped := whole(tc.in)
		require.Equal(t, tc.want, got, "%q", tc.in)
		require.Equal(t, tc.skipped, skipped, "%q", tc.in)
	}
}

// A text cannot end its fence, and no line of code's item but the first begins
// in column one.
func TestNothingCanBeForged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("<>[]\n\r \u2028a"))).Draw(t, "s")
		lines := strings.Split(fenced(s), "\n")
		first, last := lines[0], lines[len(lines)-1]
		require.Equal(t, len(first), len(last))
		require.NotContains(t, s, last)
		require.Equal(t, s, strings.Join(lines[1:len(lines)-1], "\n"), "the text is verbatim")

		for _, l := range strings.FieldsFunc(inline("x"+s), func(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' })[1:] {
			require.True(t, strings.HasPrefix(l, "  "), "%q", l)
		}
		require.NotContains(t, quote(s), "\n")
	})
	require.Equal(t, `"a\u0000"`, quote("a\x00"))
}
