package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var recoded = []string{
	`{"b":{"y":[1,-2,0,{}],"x":[]},"a":"\u003ca\u003e \u0026 \u2028\u2029 \"\\\b\f\n\r\t é😀"}`,
	` { "b" : 1 , "a" : [ true , false , null , "" ] } `,
	`{"c":1,"a":{"z":1,"b":2},"b":3}`, `{"a":1,"A":2}`, `{"b":0,"a":1,"b":2}`, `{"a":1,"a":1}`, `{"K":1,"k":2}`, `{"K":1,"k":2}`, `{"é":1,"z":2}`,
	`{"\u003c":1,"<":2}`, `{"\"":1,"a":2}`, `{"ſ":1,"s":2}`,
	`-0`, `0`, `00`, `01`, `-`, `-1`, `1.0`, `1e3`, `12345678901234567890123`, `1x`, `{}`, `[]`, `[`, `{`, `[1,]`, `{"a":1,}`, `{"a"}`, `[1 2]`,
	`"\u0041"`, `"\/"`, `"\u001f"`, `"\u0000"`, `"\ud800"`, `"\u00"`, `"\x"`, "\"\x01\"", "\"\xff\"", "\"\\u003c\xff\"", `"a`, `"\`, ``, ` `, `nul`, `nullx`, `{"a":1}1`,
	strings.Repeat("[", 40) + strings.Repeat("]", 40), strings.Repeat("[", 70) + strings.Repeat("]", 70),
	manyKeys(20), manyKeys(40),
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":%d`, (i*7)%n, i)
	}
	return "{" + b.String()[1:] + "}"
}

// requireAsParsed checks that the short way never says anything else than the
// parser, which is the definition of what is canonical.
func requireAsParsed(t *testing.T, data []byte) {
	t.Helper()
	for _, own := range []bool{false, true} {
		j, ok := recode(data, own)
		if !ok {
			continue
		}
		v, err := (&parser{data: data, own: own}).all()
		require.NoError(t, err, "own %v: %q", own, data)
		require.Equal(t, string(appendValue(nil, v)), string(j), "own %v: %q", own, data)
	}
}

func TestRecode_AsParsed(t *testing.T) {
	for _, text := range recoded {
		requireAsParsed(t, []byte(text))
	}
}

// What we write ourselves all goes the short way.
func TestRecode_TakesOurOwn(t *testing.T) {
	data, err := json.Marshal(map[string]any{"view": View{Agent: "a", State: JSON(`{"a":"<&>","n":-5}`), Turns: []ViewTurn{{N: 1, Text: "é \u2028 \"x\"\n"}}}})
	require.NoError(t, err)
	j, ok := recode(data, true)
	require.True(t, ok)
	again, ok := recode(j, false)
	require.True(t, ok)
	require.Equal(t, string(j), string(again))
	require.Contains(t, string(j), `{"a":"<&>","n":-5}`)
}

func FuzzRecode(f *testing.F) {
	for _, text := range recoded {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) { requireAsParsed(t, data) })
}
