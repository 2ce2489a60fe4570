package agent_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/require"

	"interlock/agent"
)

func TestCanonical_Values(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{` { "b" : 1 , "a" : [ ] } `, `{"a":[],"b":1}`},
		{"\t\r\nnull\n", `null`},
		{`[true,false,null,"",{}]`, `[true,false,null,"",{}]`},
		// Integers are exact at any size, however they are written.
		{`9007199254740993`, `9007199254740993`},
		{`-9223372036854775808`, `-9223372036854775808`},
		{`18446744073709551617`, `18446744073709551617`},
		{`123456789012345678901234567890.0`, `123456789012345678901234567890`},
		{`1e3`, `1000`},
		{`1.5E+1`, `15`},
		{`12300e-2`, `123`},
		{`5.0`, `5`},
		{`1e22`, `10000000000000000000000`},
		{`-0`, `0`},
		{`-0.0`, `0`},
		{`0e7`, `0`},
		// Other numbers are as ECMAScript writes them, but with every digit.
		{`0.10`, `0.1`},
		{`-12.50`, `-12.5`},
		{`1e-6`, `0.000001`},
		{`0.0000001`, `1e-7`},
		{`123e-9`, `1.23e-7`},
		{`0.1234567890123456789012`, `0.1234567890123456789012`},
		{`123456789012345678901.5`, `123456789012345678901.5`},
		{`1234567890123456789012.5`, `1.2345678901234567890125e+21`},
		// The shortest escapes, and none where none is needed.
		{`"\u0041\/\u00e9"`, `"A/é"`},
		{`"\u000A\u0009\u001f\u007f"`, `"\n\t\u001f` + "\x7f\""},
		{`"\"\\\b\f\n\r\t"`, `"\"\\\b\f\n\r\t"`},
		{`"\ud83d\ude00"`, `"😀"`},
		{`"\u2028<>&"`, "\"\u2028<>&\""},
		{`"\u0130"`, `"İ"`},
		// Keys by UTF-16 code unit: an astral character is before U+FF00.
		{`{"` + "\uff00" + `":1,"😀":2,"é":3,"z":4}`, `{"z":4,"é":3,"😀":2,"` + "\uff00" + `":1}`},
		{`{"b":0,"a":0,"aa":0,"":0,"B2":0}`, `{"":0,"B2":0,"a":0,"aa":0,"b":0}`},
		{`{"\n":1,"\"":2,"!":3,"\\":4,"[":5}`, `{"\n":1,"!":3,"\"":2,"[":5,"\\":4}`},
		{`{"b":{"d":[{"f":1,"e":2}],"c":{}},"a":{"z":0,"y":{"x":1,"w":[]}}}`, `{"a":{"y":{"w":[],"x":1},"z":0},"b":{"c":{},"d":[{"e":2,"f":1}]}}`},
		// Not one letter, so no two readers take them for one key.
		{`{"İ":1,"i":2}`, `{"i":2,"İ":1}`},
	} {
		got, err := agent.Canonical([]byte(c.in))
		require.NoError(t, err, c.in)
		require.Equal(t, c.want, got.String(), c.in)
	}
}

func TestCanonical_Refusals(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + "1" + strings.Repeat("]", n) }
	_, err := agent.Canonical([]byte(deep(64)))
	require.NoError(t, err)
	for _, c := range []struct{ in, want string }{
		{``, `the text ends where a value should be at / (byte 0)`},
		{`  `, `the text ends where a value should be at / (byte 2)`},
		{`{"a":`, `the text ends where a value should be at /a (byte 5)`},
		{`{"a":1} {`, `text after the value at / (byte 8)`},
		{`nullx`, `text after the value at / (byte 4)`},
		{`{"a":[1,{"b":tru}]}`, `no JSON value starts with 't' at /a/1/b (byte 13)`},
		{"\xef\xbb\xbf1", `no JSON value starts with 'ï' at / (byte 0)`},
		{`{a:1}`, `a key in quotes should be here at / (byte 1)`},
		{`{"a":1,}`, `a key in quotes should be here at / (byte 7)`},
		{`{`, `a key in quotes should be here at / (byte 1)`},
		{`{"a" 1}`, `a colon should follow key "a" at / (byte 5)`},
		{`{"a":1;"b":2}`, `a comma or "}" should be here at / (byte 6)`},
		{`{"a":[1 2]}`, `a comma or "]" should be here at /a (byte 8)`},
		{`[1,]`, `no JSON value starts with ']' at /1 (byte 3)`},
		{`{"o":{"a":1,"a":2}}`, `duplicate key "a" at /o (byte 15)`},
		{`{"a":1,"\u0061":2}`, `duplicate key "a" at / (byte 15)`},
		{`[{"id":1,"ID":2}]`, `keys "id" and "ID" differ only in case at /0 (byte 13)`},
		{`{"É":1,"é":2}`, `keys "É" and "é" differ only in case at / (byte 12)`},
		// encoding/json takes the long s and the Kelvin sign for s and k.
		{`{"status":1,"ſtatus":2}`, `keys "status" and "ſtatus" differ only in case at / (byte 21)`},
		{`{"k":1,"` + "\u212a" + `":2}`, `differ only in case at /`},
		{`{"a":"x\u0000"}`, `the character U+0000 is not allowed at /a (byte 13)`},
		{`{"\u0000":1}`, `the character U+0000 is not allowed at / (byte 8)`},
		{"\"\x00\"", `control character 0x00 in a string must be escaped at / (byte 1)`},
		{"[\"a\nb\"]", `control character 0x0a in a string must be escaped at /0 (byte 3)`},
		{`"\ud83d"`, `lone surrogate at / (byte 7)`},
		{`"\ude00\ud83d"`, `lone surrogate at / (byte 13)`},
		{`"\ud83dx"`, `lone surrogate at / (byte 7)`},
		{"\"\xff\"", `invalid UTF-8 at /`},
		{"\"\\n\xed\xa0\x80\"", `invalid UTF-8 at /`},
		{`"\x41"`, `unknown escape "\\x" at / (byte 1)`},
		{"\"\\\x00\"", `unknown escape "\\\x00" at / (byte 1)`},
		{`"\u12g4"`, `an escape needs four hexadecimal digits at / (byte 1)`},
		{`"\u12`, `the text ends inside an escape at / (byte 1)`},
		{`"\`, `the text ends inside an escape at / (byte 1)`},
		{`"abc`, `the text ends inside a string at / (byte 4)`},
		{`-`, `a digit should follow the minus sign at / (byte 1)`},
		{`{"n":-x}`, `a digit should follow the minus sign at /n (byte 6)`},
		{`007`, `a number has no leading zero at / (byte 3)`},
		{`-01`, `a number has no leading zero at / (byte 3)`},
		{`1.`, `a digit should follow the point at / (byte 2)`},
		{`1e+`, `a digit should follow the exponent's sign at / (byte 3)`},
		{`+1`, `no JSON value starts with '+' at / (byte 0)`},
		{`.5`, `no JSON value starts with '.' at / (byte 0)`},
		{`NaN`, `no JSON value starts with 'N' at / (byte 0)`},
		{`1e401`, `the number's exponent is beyond 400 at / (byte 5)`},
		{`1e-99999999999999999999`, `the number's exponent is beyond 400 at /`},
		{`{"a/b":{"~":[tru]}}`, `starts with 't' at /a~1b/~0/0 (byte 13)`},
		{`{"` + strings.Repeat("k", 200) + `":x}`, `starts with 'x' at /` + strings.Repeat("k", 51) + ` …(cut) (byte`},
		{`{"a\"\n":[x]}`, "at /a\"\n/0 (byte"},
		{`{"b":1,"a\u000a":2,"a":0,"a\n":3}`, `duplicate key "a\n" at / (byte 30)`},
		{`[` + strings.Repeat("1e400,", 1000) + `0]`, `the numbers are too long when they are written out at /1`},
		{deep(65), `more than 64 levels at ` + strings.Repeat("/0", 65) + ` (byte 65)`},
	} {
		got, err := agent.Canonical([]byte(c.in))
		require.Error(t, err, "%q gave %s", c.in, got)
		require.Contains(t, err.Error(), c.want, "%q", c.in)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err))
		// A refusal is shown to the model and becomes part of an event.
		require.True(t, utf8.ValidString(err.Error()) && !strings.Contains(err.Error(), "\x00"), "%q", err.Error())
	}
}

// encoding/json escapes <, > and & whenever it writes, and rewrites U+2028; a
// value keeps its bytes all the same.
func TestJSON_MarshalRoundTrip(t *testing.T) {
	type box struct {
		A agent.JSON  `json:"a"`
		B *agent.JSON `json:"b,omitempty"`
	}
	for _, text := range []string{`{"q":"<b>&amp;</b>"}`, "\"\u2028\u2029\"", `9007199254740993`, `[1e-7,"😀"]`, `null`} {
		j, err := agent.Canonical([]byte(text))
		require.NoError(t, err)
		data, err := json.Marshal(box{A: j, B: &j})
		require.NoError(t, err)
		var back box
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, string(j), string(back.A))
		if text != "null" {
			require.Equal(t, string(j), string(*back.B))
		}
		whole, err := agent.Encode(box{A: j})
		require.NoError(t, err)
		require.Equal(t, `{"a":`+text+`}`, whole.String(), "Encode undoes the escapes")
	}
}

func TestJSON_Zero(t *testing.T) {
	var zero agent.JSON
	require.Equal(t, "null", zero.String())
	require.True(t, zero.Equal(agent.JSON("null")))
	require.False(t, zero.Equal(agent.JSON("0")))
	data, err := json.Marshal(zero)
	require.NoError(t, err)
	require.Equal(t, "null", string(data))
	j, err := agent.Encode(zero)
	require.NoError(t, err)
	require.Equal(t, "null", j.String())
}

// What Canonical accepted must be storable inside a value of ours: an event
// holds a proposal, which holds arguments. And a Go map, or a patch that
// replaces one key by another, may hold keys that differ in case only.
func TestEncode_OwnValues(t *testing.T) {
	deep, err := agent.Canonical([]byte(strings.Repeat("[", 64) + "1" + strings.Repeat("]", 64)))
	require.NoError(t, err)
	event := agent.Event{Data: deep}
	for range 3 {
		event.Data, err = agent.Encode(event)
		require.NoError(t, err)
	}
	data, err := json.Marshal(event)
	require.NoError(t, err)
	var back agent.Event
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, event.Data, back.Data)

	both, err := agent.Encode(map[string]int{"k": 1, "K": 2})
	require.NoError(t, err)
	require.Equal(t, `{"K":2,"k":1}`, both.String())
	require.Equal(t, `{"K":2}`, agent.ApplyPatch(agent.JSON(`{"k":1}`), agent.JSON(`{"K":2,"k":null}`)).String())

	// The rest is refused of everybody.
	_, err = agent.Encode("a\x00")
	require.ErrorContains(t, err, "U+0000")
	_, err = agent.Encode(json.RawMessage(`{"a":1,"a":2}`))
	require.ErrorContains(t, err, "duplicate key")
	_, err = agent.Encode(func() {})
	require.Error(t, err)
}

// ours are the refusals of texts that are JSON by the standard.
var ours = []string{"duplicate key", "differ only in case", "U+0000", "lone surrogate", "invalid UTF-8", "levels", "exponent is beyond", "too long when they are written"}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `null`, `true`, `0`, `-0`, `-1.5e-7`, `1e21`, `1e-6`, `123456789012345678901234567890`, `0.1e1`, `10e-1`,
		`{"b":{"a":[{},[]]},"a":" "}`, `{"id":1,"ID":2}`, `{"a":1,"a":2}`, `"\u0000"`, `"\ud83d\ude00"`, `"\ud83d"`, "\"caf\xc3\xa9\"",
		`{"😀":1,"` + "\uff00" + `":2}`, `"\u003cb\u003e&\u2028"`, "\"\xff\"", `[1,2`, `{"a":"\`, "\"\\\x00\"", `1e400`, `1e-400`, `1e401`, `0.000001`,
		`{"ſ":1,"s":2}`, `"\b\f\n\r\t\u001f\u007f"`, strings.Repeat("[", 65) + strings.Repeat("]", 65), ` { "x" : [ 1 , 2.50 ] } `, `5.00e2`, `999999999999999.9`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := agent.Canonical(data)
		if err != nil {
			require.True(t, utf8.ValidString(err.Error()) && !strings.Contains(err.Error(), "\x00"), "%q", err.Error())
			if json.Valid(data) {
				known := false
				for _, o := range ours {
					known = known || strings.Contains(err.Error(), o)
				}
				require.True(t, known, "%q is JSON, but: %v", data, err)
			}
			return
		}
		require.True(t, utf8.Valid(got) && json.Valid(got), "%q gave %q", data, got)
		again, err := agent.Canonical(got)
		require.NoError(t, err, "%q gave %q", data, got)
		require.Equal(t, string(got), string(again), "not idempotent")

		own, err := agent.Encode(json.RawMessage(data))
		require.NoError(t, err, "%q", data)
		require.Equal(t, string(got), string(own), "what comes from outside and what is ours have one form")

		want, have := decodeNumbers(t, data), decodeNumbers(t, got)
		require.True(t, sameDecoded(want, have), "%q became %q", data, got)

		type box struct{ V agent.JSON }
		text, err := json.Marshal(box{got})
		require.NoError(t, err)
		var back box
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, string(got), string(back.V))

		if es6Agrees(want) {
			oracle, err := jcs.Transform(data)
			require.NoError(t, err, "%q", data)
			require.Equal(t, string(oracle), string(got), "%q", data)
		}
	})
}

func decodeNumbers(t *testing.T, data []byte) any {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%q", data)
	return v
}

// sameDecoded compares values, numbers by what they are and not how they look.
func sameDecoded(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		n, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, _ := new(big.Rat).SetString(a.String())
		y, _ := new(big.Rat).SetString(n.String())
		return x != nil && y != nil && x.Cmp(y) == 0
	case []any:
		o, ok := b.([]any)
		if !ok || len(a) != len(o) {
			return false
		}
		for i := range a {
			if !sameDecoded(a[i], o[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		o, ok := b.(map[string]any)
		if !ok || len(a) != len(o) {
			return false
		}
		for k := range a {
			if e, ok := o[k]; !ok || !sameDecoded(a[k], e) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

var es6Least, es6Most = new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(300), nil)),
	new(big.Rat).SetInt64(1 << 53)

// es6Agrees reports whether a double holds every number of v so well that
// RFC 8785 writes it with the digits that it was given.
func es6Agrees(v any) bool {
	switch v := v.(type) {
	case json.Number:
		x, ok := new(big.Rat).SetString(v.String())
		if !ok {
			return false
		}
		x.Abs(x)
		if x.Sign() == 0 {
			return true
		}
		if x.Cmp(es6Most) >= 0 || x.Cmp(es6Least) <= 0 {
			return false
		}
		mantissa, _, _ := strings.Cut(strings.ToLower(v.String()), "e")
		digits := strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0")
		return x.IsInt() || len(digits) <= 15
	case []any:
		for _, e := range v {
			if !es6Agrees(e) {
				return false
			}
		}
	case map[string]any:
		for _, e := range v {
			if !es6Agrees(e) {
				return false
			}
		}
	}
	return true
}
