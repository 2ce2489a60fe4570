package agent

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The examples of RFC 7386, appendix A.
func TestPatch_RFC7386(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		target, err := parseValue([]byte(c[0]))
		require.NoError(t, err)
		patch, err := parseValue([]byte(c[1]))
		require.NoError(t, err)
		require.Equal(t, c[2], encodeValue(mergePatch(target, patch)).String(), "%s + %s", c[0], c[1])
		require.Equal(t, c[0], encodeValue(target).String(), "the target is unchanged")
		require.Equal(t, c[1], encodeValue(patch).String(), "the patch is unchanged")
	}
}

// smallObject draws a null-free object; few keys, so that two of them share
// some, and keys that differ only in case, as a Go map's may.
func smallObject(t *rapid.T, depth int) map[string]any {
	out := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		key := rapid.SampledFrom([]string{"a", "A", "b", "c/d", "é", "😀"}).Draw(t, "key")
		out[key] = smallValue(t, depth)
	}
	return out
}

func smallValue(t *rapid.T, depth int) any {
	most := 5
	if depth == 0 {
		most = 3
	}
	switch rapid.IntRange(0, most).Draw(t, "kind") {
	case 0:
		return rapid.Bool().Draw(t, "bool")
	case 1:
		return number(fmt.Sprint(rapid.IntRange(-2, 2).Draw(t, "number")))
	case 2, 3:
		return rapid.SampledFrom([]string{"", "x", "null", "<&>"}).Draw(t, "text")
	case 4:
		out := []any{}
		for range rapid.IntRange(0, 2).Draw(t, "elements") {
			out = append(out, smallValue(t, depth-1))
		}
		return out
	}
	return smallObject(t, depth-1)
}

func TestPatch_DiffApplies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := smallObject(t, 3), smallObject(t, 3)
		before := encodeValue(a).String()
		patch := encodeValue(mergeDiff(a, b))
		got := ApplyPatch(encodeValue(a), patch)
		require.Equal(t, encodeValue(b).String(), got.String(), "%s + %s", before, patch)
		require.Equal(t, before, encodeValue(a).String(), "the old state is unchanged")
		require.Equal(t, `{}`, encodeValue(mergeDiff(a, a)).String(), "no change is an empty patch")
		// An event's data holds the patch, and is read back from the journal.
		data, err := decodeData[StateSetData](Event{Data: mustEncode(StateSetData{Patch: patch})})
		require.NoError(t, err)
		require.Equal(t, patch.String(), data.Patch.String())
	})
}

func TestPatch_NormalState(t *testing.T) {
	v, err := parseValue([]byte(`{"a":null,"b":[null,{"c":null,"d":1}],"e":{"f":null}}`))
	require.NoError(t, err)
	require.Equal(t, `{"b":[null,{"d":1}],"e":{}}`, encodeValue(normalState(v)).String())
}
