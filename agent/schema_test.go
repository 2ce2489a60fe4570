package agent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Types whose check the library's own can judge. Those that only decoding can
// refuse (64-bit overflow, base64, times) have tests of their own.
var leaves = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[uint16](),
	reflect.TypeFor[int64](), reflect.TypeFor[float64](), reflect.TypeFor[Money](), reflect.TypeFor[JSON](),
}

func anyType(t *rapid.T, depth int) reflect.Type {
	kind := "leaf"
	if depth > 0 {
		kind = rapid.SampledFrom([]string{"leaf", "leaf", "pointer", "slice", "array", "map", "struct", "struct"}).Draw(t, "kind")
	}
	switch kind {
	case "pointer":
		return reflect.PointerTo(anyType(t, 0))
	case "slice":
		return reflect.SliceOf(anyType(t, depth-1))
	case "array":
		return reflect.ArrayOf(rapid.IntRange(1, 3).Draw(t, "length"), anyType(t, depth-1))
	case "map":
		return reflect.MapOf(reflect.TypeFor[string](), anyType(t, depth-1))
	case "struct":
		return anyStruct(t, depth)
	}
	return rapid.SampledFrom(leaves).Draw(t, "leaf")
}

func anyStruct(t *rapid.T, depth int) reflect.Type {
	var fields []reflect.StructField
	for i := range rapid.IntRange(0, 4).Draw(t, "fields") {
		option := rapid.SampledFrom([]string{"", ",omitempty", ",omitzero"}).Draw(t, "option")
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: anyType(t, depth-1),
			Tag: reflect.StructTag(fmt.Sprintf(`json:"f%d%s"`, i, option))})
	}
	return reflect.StructOf(fields)
}

// nearly draws a value of a type that is right more often than not, so that
// both answers are met at every depth.
func nearly(t *rapid.T, typ reflect.Type) any {
	if rapid.IntRange(0, 24).Draw(t, "wrong") == 0 {
		return rapid.SampledFrom([]any{nil, "x", true, 1, -1, 1.5, 300, 70000, []any{}, []any{nil}, map[string]any{}, map[string]any{"f0": nil}}).Draw(t, "junk")
	}
	if typ == reflect.TypeFor[JSON]() {
		return rapid.SampledFrom([]any{nil, "x", 1, []any{true}}).Draw(t, "any")
	}
	switch typ.Kind() {
	case reflect.String:
		return rapid.SampledFrom([]string{"", "x", "null"}).Draw(t, "text")
	case reflect.Bool:
		return rapid.Bool().Draw(t, "bool")
	case reflect.Float64:
		return rapid.SampledFrom([]float64{0, -1.5, 2, 1e-9}).Draw(t, "float")
	case reflect.Int, reflect.Int8, reflect.Int64, reflect.Uint16:
		return rapid.SampledFrom([]any{0, 1, 7, json.RawMessage("2.0"), json.RawMessage("1e2")}).Draw(t, "integer")
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "nil") {
			return nil
		}
		return nearly(t, typ.Elem())
	case reflect.Slice:
		if rapid.IntRange(0, 4).Draw(t, "nil") == 0 {
			return nil
		}
		return elements(t, typ.Elem(), rapid.IntRange(0, 2).Draw(t, "length"))
	case reflect.Array:
		return elements(t, typ.Elem(), typ.Len())
	case reflect.Map:
		out := map[string]any{}
		for _, k := range []string{"k", "l"} {
			if rapid.Bool().Draw(t, k) {
				out[k] = nearly(t, typ.Elem())
			}
		}
		return out
	}
	out := map[string]any{}
	for i := range typ.NumField() {
		name, options, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		switch n := rapid.IntRange(0, 19).Draw(t, "member"); {
		case n == 0 || options != "" && n < 6: // absent
		case options != "" && n < 10:
			out[name] = nil
		default:
			out[name] = nearly(t, typ.Field(i).Type)
		}
	}
	if rapid.IntRange(0, 24).Draw(t, "extra") == 0 {
		out["other"] = 1
	}
	return out
}

func elements(t *rapid.T, typ reflect.Type, n int) any {
	out := []any{}
	for range n {
		out = append(out, nearly(t, typ))
	}
	return out
}

// The library that infers the schemas also validates: the two must agree,
// except that a null for an optional member stands for its absence here.
func TestSchema_AgreesWithLibrary(t *testing.T) {
	yes, no, stripped := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		typ := anyStruct(t, 3)
		ours, err := schemaOf(typ)
		require.NoError(t, err)
		inferred, err := jsonschema.ForType(typ, &jsonschema.ForOptions{TypeSchemas: typeSchemas})
		require.NoError(t, err)
		resolved, err := inferred.Resolve(nil)
		require.NoError(t, err)
		valid := func(j []byte) error {
			var v any
			require.NoError(t, json.Unmarshal(j, &v))
			return resolved.Validate(v)
		}
		text, err := json.Marshal(nearly(t, typ))
		require.NoError(t, err)
		input, err := Canonical(text)
		require.NoError(t, err)

		got, err := ours.arguments(string(text), typ)
		theirs := valid(input)
		switch {
		case err != nil:
			no++
			if strings.Contains(err.Error(), "ISO 4217") || strings.Contains(err.Error(), "in capitals") {
				return // a currency is more than its schema says
			}
			require.Error(t, theirs, "%s is refused (%v), the library accepts it: %s", input, err, ours.text)
			require.Equal(t, CodeInvalid, ErrorCode(err))
		case got.Equal(input):
			yes++
			require.NoError(t, theirs, "%s is accepted: %s", input, ours.text)
		default:
			stripped++
			require.NoError(t, valid(got), "%s became %s: %s", input, got, ours.text)
			require.Less(t, len(got), len(input))
		}
		if err == nil {
			again, err := ours.arguments(got.String(), typ)
			require.NoError(t, err)
			require.Equal(t, got.String(), again.String(), "checking what was checked changes nothing")
		}
	})
	require.True(t, yes > 0 && no > 0 && stripped > 0, "accepted %d, refused %d, without nulls %d: the values are one-sided", yes, no, stripped)
}

type lookup struct {
	Query  string   `json:"q"`
	Cursor *string  `json:"cursor,omitempty"`
	Kind   *string  `json:"kind"` // nullable, and to be given
	Filter filter   `json:"filter,omitzero"`
	More   []filter `json:"more,omitempty"`
	Free   JSON     `json:"free,omitempty"`
}

type filter struct {
	Tag string           `json:"tag,omitempty"`
	Max map[string]*int8 `json:"max,omitempty"`
	IDs [2]int64         `json:"ids,omitzero"`
}

// With strict schemas a model writes null for every optional member.
func TestSchema_Nulls(t *testing.T) {
	s, err := schemaOf(reflect.TypeFor[lookup]())
	require.NoError(t, err)
	for _, c := range []struct{ in, want string }{
		{`{"q":"x","cursor":null,"kind":"k","filter":{"tag":null}}`, `{"filter":{},"kind":"k","q":"x"}`},
		{`{"q":"x","kind":null}`, `{"kind":null,"q":"x"}`},
		{`{"q":"x","kind":null,"filter":null,"more":null,"free":null}`, `{"kind":null,"q":"x"}`},
		{`{"q":"x","kind":"","more":[{"tag":null},{"tag":"a"}]}`, `{"kind":"","more":[{},{"tag":"a"}],"q":"x"}`},
		// A null that means something stays: a map's value, inside a free value.
		{`{"q":"x","kind":"","filter":{"max":{"a":null}}}`, `{"filter":{"max":{"a":null}},"kind":"","q":"x"}`},
		{`{"q":"x","kind":"","free":{"a":null}}`, `{"free":{"a":null},"kind":"","q":"x"}`},
	} {
		got, err := s.arguments(c.in, reflect.TypeFor[lookup]())
		require.NoError(t, err, c.in)
		require.Equal(t, c.want, got.String())
	}
}

func TestSchema_Messages(t *testing.T) {
	s, err := schemaOf(reflect.TypeFor[lookup]())
	require.NoError(t, err)
	for _, c := range []struct{ in, want string }{
		{`{"kind":"k"}`, `/q is missing`},
		{`{"q":null,"kind":"k"}`, `/q must be string, not null`},
		{`{"q":"x"}`, `/kind is missing`},
		{`{"q":1,"kind":"k","zz":1,"yy":2}`, `/q must be string, not integer`},
		{`{"q":"x","kind":"k","zz":1,"yy":2}`, `/yy does not exist; allowed: cursor, filter, free, kind, more, q`},
		{`{"q":"x","kind":"k","filter":{"Tag":"a"}}`, `/filter/Tag does not exist; allowed: ids, max, tag`},
		{`{"q":"x","kind":"k","more":[{},{"tag":[]}]}`, `/more/1/tag must be string, not array`},
		{`{"q":"x","kind":1.5}`, `/kind must be null or string, not number`},
		{`[]`, `the value must be object, not array`},
		{`null`, `the value must be object, not null`},
		{`{"q":"x","kind":"k","filter":{"max":{"a":200}}}`, `/filter/max/a: number 200 does not fit int8`},
		{`{"q":"x","kind":"k","filter":{"ids":[1,2,3]}}`, `/filter/ids must have 2 elements, not 3`},
		{`{"q":"x","kind":"k","filter":{"ids":[1]}}`, `/filter/ids must have 2 elements, not 1`},
		{`{"q":"x","kind":"k",}`, `a key in quotes should be here at / (byte 20)`},
	} {
		// A refusal becomes part of an event: it must be the same on any worker,
		// in whatever order a map is walked.
		for range 50 {
			_, err := s.arguments(c.in, reflect.TypeFor[lookup]())
			require.EqualError(t, err, c.want, c.in)
		}
	}
}

// A tool without arguments may be called with no text at all.
func TestSchema_EmptyArguments(t *testing.T) {
	s, err := schemaOf(reflect.TypeFor[struct{}]())
	require.NoError(t, err)
	for _, in := range []string{"", "  \n", "{}"} {
		got, err := s.arguments(in, reflect.TypeFor[struct{}]())
		require.NoError(t, err)
		require.Equal(t, "{}", got.String())
	}
	s, err = schemaOf(reflect.TypeFor[lookup]())
	require.NoError(t, err)
	_, err = s.arguments("", reflect.TypeFor[lookup]())
	require.EqualError(t, err, "/q is missing", "an empty text is an empty object, checked like any other")
}

func TestSchema_Int64(t *testing.T) {
	type ids struct {
		ID   int64            `json:"id"`
		Size uint64           `json:"size,omitempty"`
		Map  map[string]int64 `json:"map,omitempty"`
	}
	s, err := schemaOf(reflect.TypeFor[ids]())
	require.NoError(t, err)
	for _, in := range []string{
		`{"id":9007199254740993}`, `{"id":9223372036854775807}`, `{"id":-9223372036854775808}`,
		`{"id":1,"size":18446744073709551615}`, `{"id":1,"map":{"a":9007199254740993}}`,
	} {
		got, err := s.arguments(in, reflect.TypeFor[ids]())
		require.NoError(t, err)
		require.Equal(t, in, got.String(), "byte for byte")
		var back ids
		require.NoError(t, json.Unmarshal(got, &back))
		again, err := Encode(back)
		require.NoError(t, err)
		require.Equal(t, in, again.String(), "and through the Go value")
	}
	for _, c := range []struct{ in, want string }{
		{`{"id":9223372036854775808}`, `/id: number 9223372036854775808 does not fit int64`},
		{`{"id":-9223372036854775809}`, `/id: number -9223372036854775809 does not fit int64`},
		{`{"id":1,"size":-1}`, `/size: number -1 does not fit uint64`},
		{`{"id":1e30}`, `/id: number 1000000000000000000000000000000 does not fit int64`},
		{`{"id":0.5}`, `/id must be integer, not number`},
		{`{"id":"9007199254740993"}`, `/id must be integer, not string`},
	} {
		_, err := s.arguments(c.in, reflect.TypeFor[ids]())
		require.EqualError(t, err, c.want)
	}
	// Written as a decimal or with an exponent it is the same integer.
	got, err := s.arguments(`{"id":9007199254740993.0}`, reflect.TypeFor[ids]())
	require.NoError(t, err)
	require.Equal(t, `{"id":9007199254740993}`, got.String())
}

// A byte slice is base64 text in JSON, so its schema says text.
func TestSchema_Bytes(t *testing.T) {
	type file struct {
		Data []byte `json:"data"`
	}
	s, err := schemaOf(reflect.TypeFor[file]())
	require.NoError(t, err)
	in, err := Encode(file{Data: []byte("hi")})
	require.NoError(t, err)
	got, err := s.arguments(in.String(), reflect.TypeFor[file]())
	require.NoError(t, err)
	require.Equal(t, `{"data":"aGk="}`, got.String())
	_, err = s.arguments(`{"data":[104,105]}`, reflect.TypeFor[file]())
	require.EqualError(t, err, "/data must be null or string, not array")
	_, err = s.arguments(`{"data":"%"}`, reflect.TypeFor[file]())
	require.Error(t, err)
}

// The schema of the control calls is checked as any tool's is.
func TestSchema_ControlCalls(t *testing.T) {
	require.Len(t, controls, len(ControlCalls))
	for _, name := range ControlCalls {
		require.Contains(t, controls, name)
		require.True(t, validName(name))
	}
	for typ, s := range controlSchemas {
		require.Equal(t, []string{"object"}, s.types, typ.Name())
		require.True(t, s.closed, typ.Name())
		require.True(t, slices.IsSorted(sortedKeys(s.properties)), typ.Name())
	}
}

// Types that vet would not let stand in a source file, and others that no
// state can have.
func TestStateFields_Mistakes(t *testing.T) {
	field := func(name string, typ reflect.Type, tag string) reflect.StructField {
		return reflect.StructField{Name: name, Type: typ, Tag: reflect.StructTag(tag)}
	}
	text := reflect.TypeFor[string]()
	twins := reflect.StructOf([]reflect.StructField{field("A", text, `json:"x"`), field("B", text, `json:"x"`)})
	cased := reflect.StructOf([]reflect.StructField{field("A", text, `json:"x"`), field("B", text, `json:"X"`)})
	type base struct {
		Inner string `json:"inner" set:"tool"`
	}
	var got []string
	stateFields(reflect.StructOf([]reflect.StructField{
		field("One", text, `json:"same" set:"tool"`), field("Two", text, `json:"same" set:"tool"`),
		field("Twins", twins, `json:"twins" set:"tool"`),
		field("Cased", cased, `json:"cased" set:"tool"`),
		field("Chan", reflect.TypeFor[chan int](), `json:"chan" set:"tool"`),
		field("Func", reflect.TypeFor[func()](), `json:"func" set:"tool"`),
	}), func(where, format string, args ...any) { got = append(got, where+": "+fmt.Sprintf(format, args...)) })
	type embeds struct{ base }
	stateFields(reflect.TypeFor[embeds](), func(where, format string, args ...any) { got = append(got, where+": "+fmt.Sprintf(format, args...)) })
	all := strings.Join(got, "\n")
	for _, want := range []string{
		"state.same: two fields have this name",
		"state.Twins: does not survive JSON: A is not in the JSON",
		`state.Cased: keys "x" and "X" differ only in case`,
		"state.Chan: chan int is no JSON value",
		"state.Func: func() is no JSON value",
		"state.base: embedded structs are not supported in a state: name the field",
	} {
		require.Contains(t, all, want)
	}
	_ = embeds{base{""}}
}
