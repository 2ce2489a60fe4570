package activities

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/store"
)

// The first word is told at once, what follows it in pieces of a tenth of a second,
// long text in parts that are whole characters; together they are the text.
func TestPieces(t *testing.T) {
	now := time.Unix(1000, 0)
	var told []store.Delta
	p := &pieces{tell: func(d store.Delta) { told = append(told, d) }, now: func() time.Time { return now }, next: store.Delta{Address: "a", Turn: 3, Attempt: 2}}
	p.add("One")
	require.Equal(t, []store.Delta{{Address: "a", Turn: 3, Attempt: 2, N: 1, Text: "One"}}, told)
	for _, w := range []string{" two", " three"} {
		now = now.Add(40 * time.Millisecond)
		p.add(w)
	}
	require.Len(t, told, 1)
	now = now.Add(40 * time.Millisecond)
	p.add(" four")
	require.Equal(t, " two three four", told[1].Text)
	long := strings.Repeat("ä世", 1000)
	p.add(long)
	p.flush()
	text := ""
	for i, d := range told {
		require.Equal(t, i+1, d.N)
		require.LessOrEqual(t, len(d.Text), pieceSize)
		require.True(t, strings.ToValidUTF8(d.Text, "?") == d.Text)
		text += d.Text
	}
	require.Equal(t, "One two three four"+long, text)
	p.flush()
	require.Equal(t, text, text+p.next.Text)
}
