package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// The canonical form of a canonical form is itself: what was accepted once is never
// refused afterwards, since the journal holds it.
func TestCanonical_IsReadAgain(t *testing.T) {
	for _, number := range []string{"0.1e-400", "-0.1e-400", "0." + strings.Repeat("0", 400) + "1", strings.Repeat("7", 500) + ".5", "1e400", "1.5e400", "15e399",
		"1e-400", "0.00001", "1e-6", "1e-7", "123456789012345678901234.5", "1" + strings.Repeat("0", 1000), "0e-400", "-0.0", "1.0", "100.0e-2", strings.Repeat("9", 2000) + ".0"} {
		once, err := agent.Canonical([]byte(number))
		if err != nil {
			require.ErrorContains(t, err, "exponent is beyond 400", number)
			continue
		}
		twice, err := agent.Canonical(once)
		require.NoError(t, err, number)
		require.Equal(t, once, twice, number)
	}
}

// A number of the model's that cannot be written refuses its call, and the run goes on.
func TestProposal_NumberThatCannotBeWritten(t *testing.T) {
	for _, n := range []string{"0.1e-400", "0." + strings.Repeat("0", 400) + "1", strings.Repeat("7", 500) + ".5"} {
		tr := begin(t, bankAgent(tellers), `{"customer_id":"c"}`)
		tr.message("go")
		tr.model(`deep {"n":1,"map":{"x":` + n + `}}`)
		require.Contains(t, tr.answer("c1_1").Text, "exponent is beyond 400 at /map/x")
		tr.model()
		require.Equal(t, agent.RunWaiting, tr.m.Run().Status)
		tr.reduces()
	}
}

// worst are texts of about n bytes that are dear to read.
func worst(n int) map[string]string {
	return map[string]string{
		"a long key over many elements": `{"` + strings.Repeat("k", n/2) + `":[` + strings.Repeat("0,", n/4) + `0.5]}`,
		"deep, and a long key":          strings.Repeat(`{"`+strings.Repeat("k", n/120)+`":`, 60) + `[` + strings.Repeat("0,", n/4) + `0.5]` + strings.Repeat("}", 60),
		"many keys":                     `{` + manyKeys(n) + `"z":0.5}`,
		"one number":                    strings.Repeat("7", n) + ".0",
		"fractions":                     `[` + strings.Repeat("0.25,", n/5) + `0]`,
		"escapes":                       `"` + strings.Repeat(`\u00e9`, n/6) + `"`,
		"nothing but arrays":            `[` + strings.Repeat("[],", n/3) + `0.5]`,
		"keys in no order, deep":        disorder(n),
		"keys beyond ASCII":             `{` + strings.ReplaceAll(manyKeys(n*3/4), "k", "É") + `"z":0.5}`,
		"keys alike for long":           `{` + strings.ReplaceAll(manyKeys(n/40), "k", strings.Repeat("\uff00", 100)) + `"z":0.5}`,
		"digits to be written":          `[` + strings.Repeat("1e400,", n/6) + `0]`,
		"keys with escapes":             `{` + strings.ReplaceAll(manyKeys(n/2), "k", `\n`) + `"z":0.5}`,
		"an error at the end":           `{"` + strings.Repeat("k", n/2) + `":[` + strings.Repeat("0,", n/4) + `x]}`,
	}
}

// disorder has its keys in the wrong order on each level.
func disorder(n int) string {
	return strings.Repeat(`{"b":`, 60) + `"` + strings.Repeat("x", n) + `"` + strings.Repeat(`,"a":0}`, 60)
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `"k%d":0,`, i)
	}
	return b.String()
}

// The time that a text takes grows with its length: sixteen times as much takes far
// less than the square of that. Before, places were written for each element, and 240
// kB took seconds.
func TestCanonical_TimeGrowsWithLength(t *testing.T) {
	best := func(text string) time.Duration {
		best := time.Hour
		for range 3 {
			began := time.Now()
			_, _ = agent.Canonical([]byte(text))
			best = min(best, time.Since(began))
		}
		return best
	}
	small, large := worst(16<<10), worst(256<<10)
	for name, text := range large {
		require.Less(t, best(text), 80*max(best(small[name]), time.Millisecond), name)
	}
}

func BenchmarkCanonical_Worst(b *testing.B) {
	for _, size := range []int{256 << 10, 1 << 20} {
		for name, text := range worst(size) {
			b.Run(fmt.Sprintf("%d KiB, %s", size>>10, name), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					_, _ = agent.Canonical([]byte(text))
				}
			})
		}
	}
}

func FuzzCanonical_IsReadAgain(f *testing.F) {
	for _, s := range []string{"0.1e-400", `{"a":[1.50,"\u00e9"]}`, "1e21", "-0", "12e-7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once, err := agent.Canonical([]byte(text))
		if err != nil {
			return
		}
		twice, err := agent.Canonical(once)
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}
