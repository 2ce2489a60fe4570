package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// schema is the subset of JSON Schema that Go types need. The library infers
// it; checking is ours, because a refusal's text is part of an event and must
// be the same on every machine, whatever the order in which a map is walked.
type schema struct {
	text       JSON
	types      []string // none: any
	properties map[string]*schema
	required   []string
	items      *schema
	additional *schema // of a map
	closed     bool    // additionalProperties: false
	enum       []any
	length     int // of an array: minItems and maxItems of Go's are one; 0: any
}

var typeSchemas = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[JSON]():            {},
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[[]byte]():          {Types: []string{"null", "string"}, ContentEncoding: "base64"}, // as encoding/json writes it
	reflect.TypeFor[Money](): {
		Type: "object", Required: []string{"minor", "currency"},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		Properties: map[string]*jsonschema.Schema{
			"minor":    {Type: "integer", Description: "amount in the currency's smallest unit: 4990 is 49.90 EUR"},
			"currency": {Type: "string", Description: "ISO 4217 code"},
		},
	},
}

// schemaOf infers the schema of a Go type.
func schemaOf(t reflect.Type) (*schema, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: typeSchemas})
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	text, err := Canonical(data)
	if err != nil {
		return nil, err
	}
	v, err := parseValue(text)
	if err != nil {
		return nil, err
	}
	out, err := compile(v, "")
	if err != nil {
		return nil, err
	}
	out.text = text
	return out, nil
}

// annotations are keywords that no check needs.
var annotations = []string{"description", "title", "format", "contentEncoding", "default", "examples", "deprecated"}

func compile(v any, path string) (*schema, error) {
	if v == true {
		return &schema{}, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("schema at %s is %s", path, encodeValue(v))
	}
	s := &schema{}
	for _, k := range sortedKeys(m) {
		var err error
		switch k {
		case "type", "types":
			s.types = texts(m[k])
		case "required":
			s.required = texts(m[k])
		case "enum":
			s.enum, _ = m[k].([]any)
		case "properties":
			s.properties = map[string]*schema{}
			props, _ := m[k].(map[string]any)
			for _, name := range sortedKeys(props) {
				if s.properties[name], err = compile(props[name], path+"/"+name); err != nil {
					return nil, err
				}
			}
		case "items":
			s.items, err = compile(m[k], path+"/items")
		case "minItems":
			// A Go array: decoding would drop or add elements.
			n, _ := m[k].(number)
			s.length, err = strconv.Atoi(string(n))
		case "maxItems", "minimum", "maximum":
			// Bounds of Go's own types: minItems, or decoding, checks them.
		case "additionalProperties":
			if s.closed = m[k] == false || string(encodeValue(m[k])) == `{"not":{}}`; !s.closed {
				s.additional, err = compile(m[k], path+"/*")
			}
		default:
			if !slices.Contains(annotations, k) {
				err = fmt.Errorf("schema at /%s uses %q, which providers refuse or read differently", strings.TrimPrefix(path, "/"), k)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// check validates a parsed value and returns it without the nulls that stand
// for "not given" (some models write null for every optional member).
func (s *schema) check(v any, path *at) (any, error) {
	if len(s.types) > 0 && !slices.ContainsFunc(s.types, func(t string) bool { return hasType(v, t) }) {
		return nil, Errorf(CodeInvalid, "%s must be %s, not %s", place(path), strings.Join(s.types, " or "), typeName(v))
	}
	if len(s.enum) > 0 && !slices.ContainsFunc(s.enum, func(e any) bool { return sameValue(e, v) }) {
		return nil, Errorf(CodeInvalid, "%s must be one of %s", place(path), encodeValue(s.enum))
	}
	switch v := v.(type) {
	case []any:
		if s.length > 0 && len(v) != s.length {
			return nil, Errorf(CodeInvalid, "%s must have %d elements, not %d", place(path), s.length, len(v))
		}
		if s.items == nil {
			return v, nil
		}
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = s.items.check(e, path.element(i)); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		return s.checkObject(v, path)
	}
	return v, nil
}

func (s *schema) checkObject(v map[string]any, path *at) (any, error) {
	out := map[string]any{}
	for _, k := range sortedKeys(v) {
		member, known := s.properties[k]
		switch {
		case !known && s.closed:
			return nil, Errorf(CodeInvalid, "%s does not exist; allowed: %s", place(path.member(k)), strings.Join(sortedKeys(s.properties), ", "))
		case !known:
			member = s.additional
		}
		if v[k] == nil && known && !slices.Contains(s.required, k) {
			continue
		}
		if member == nil {
			out[k] = v[k]
			continue
		}
		var err error
		if out[k], err = member.check(v[k], path.member(k)); err != nil {
			return nil, err
		}
	}
	for _, k := range s.required {
		if _, given := v[k]; !given {
			return nil, Errorf(CodeInvalid, "%s is missing", place(path.member(k)))
		}
	}
	return out, nil
}

func place(path *at) string {
	if path == nil {
		return "the value"
	}
	return path.String()
}

func hasType(v any, t string) bool {
	n := typeName(v)
	return n == t || n == "integer" && t == "number"
}

func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case number:
		if strings.ContainsAny(string(v), ".e") {
			return "number"
		}
		return "integer"
	case []any:
		return "array"
	}
	return "object"
}

// arguments parses what a model or a caller wrote for a Go type: strict, and
// canonical. Nothing at all stands for an empty object.
func (s *schema) arguments(text string, t reflect.Type) (JSON, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	v, err := parseValue([]byte(text))
	if err != nil {
		return nil, err
	}
	if v, err = s.check(v, nil); err != nil {
		return nil, err
	}
	out := encodeValue(v)
	if err := decodeStrict(out, reflect.New(t).Interface()); err != nil {
		return nil, err
	}
	return out, nil
}

// decodeStrict refuses members that the type does not have. Its text for a
// value that does not fit is ours: encoding/json's differs between Go versions,
// and it becomes part of an event.
func decodeStrict(j JSON, into any) error {
	d := json.NewDecoder(bytes.NewReader(j))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	if t := (*json.UnmarshalTypeError)(nil); !errors.As(err, &t) {
		return Errorf(CodeInvalid, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	v, err := parseOwn(j)
	if err != nil {
		return err
	}
	v, t, where := misfit(v, reflect.TypeOf(into), nil)
	what := typeName(v)
	if n, ok := v.(number); ok {
		what = "number " + clip(string(n), maxKeyShown)
	}
	return Errorf(CodeInvalid, "%s: %s does not fit %s", place(where), what, t.Kind())
}

// misfit finds the first value within v that does not fit its type, in v's order. It
// looks into an amount, whose own decoder names no place, and into no other such type.
func misfit(v any, t reflect.Type, where *at) (any, reflect.Type, *at) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t != reflect.TypeFor[Money]() && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return v, t, where
	}
	fits := func(v any, t reflect.Type) bool {
		return json.Unmarshal(encodeValue(v), reflect.New(t).Interface()) == nil
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			if m := memberType(t, k); m != nil && !fits(v[k], m) {
				return misfit(v[k], m, where.member(k))
			}
		}
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			break
		}
		for i, e := range v {
			if !fits(e, t.Elem()) {
				return misfit(e, t.Elem(), where.element(i))
			}
		}
	}
	return v, t, where
}

// memberType is the type of a member of a JSON object that is decoded into t.
func memberType(t reflect.Type, key string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() && (name == key || name == "" && f.Name == key) {
				return f.Type
			}
		}
	}
	return nil
}
