package agent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Field is a top-level member of the state, and its policy.
type Field struct {
	Name      string   `json:"name"`
	Doc       string   `json:"doc,omitempty"`
	Set       []string `json:"set"`               // who may set it
	Follows   string   `json:"follows,omitempty"` // cleared when that field changes
	Hidden    bool     `json:"hidden,omitempty"`  // view:"-": never shown to the model
	Sensitive bool     `json:"sensitive,omitempty"`
	// Places within it that have these tags of their own, such as guests.passport: lists
	// count for nothing, * is any member of a map.
	HiddenIn    []string `json:"hidden_in,omitempty"`
	SensitiveIn []string `json:"sensitive_in,omitempty"`
	Schema      JSON     `json:"schema"`
}

// Settable reports whether a source may set the field.
func (f Field) Settable(source string) bool { return slices.Contains(f.Set, source) }

var setters = []string{"start", "tool", "model", "user", "reviewer", "system"}

// stateFields reads the policy tags of a state type. Mistakes go to report.
func stateFields(t reflect.Type, report func(where, format string, args ...any)) []Field {
	if t.Kind() != reflect.Struct {
		report("state", "the state must be a struct, not %s", t)
		return nil
	}
	var out []Field
	for _, sf := range reflect.VisibleFields(t) {
		if sf.Anonymous || len(sf.Index) > 1 {
			report("state."+sf.Name, "embedded structs are not supported in a state: name the field")
			continue
		}
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		where := "state." + sf.Name
		switch {
		case !sf.IsExported():
			report(where, "unexported: it would be lost at the first event")
			continue
		case name == "-":
			report(where, "json:\"-\": it would be lost at the first event")
			continue
		case name == "":
			report(where, "needs a json tag: the name is persisted and must survive a Go rename")
			continue
		case !validName(name):
			report(where, "name %q is not [a-z][a-z0-9_]*", name)
		}
		f := readTags(name, where, sf.Tag, report)
		schema, err := schemaOf(sf.Type)
		if err != nil {
			report(where, "%v", err)
		} else {
			f.Schema = schema.text
		}
		sound := err == nil
		checkStateType(where, sf.Type, map[reflect.Type]bool{}, func(where, format string, args ...any) {
			sound = false
			report(where, format, args...)
		})
		if sound {
			if err := roundTrip(sf.Type); err != nil {
				report(where, "does not survive JSON: %v", err)
			}
		}
		nestedTags(&f, where, sf.Type, nil, nil, report)
		out = append(out, f)
	}
	checkFollows(out, report)
	return out
}

// nestedTags finds what is hidden or sensitive within a field. A tag that could not be
// kept is a mistake.
func nestedTags(f *Field, where string, t reflect.Type, path []string, within []reflect.Type, report func(where, format string, args ...any)) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		nestedTags(f, where, t.Elem(), path, within, report)
		return
	case reflect.Map:
		nestedTags(f, where, t.Elem(), append(slices.Clone(path), "*"), within, report)
		return
	case reflect.Struct:
	default:
		return
	}
	if slices.Contains(within, t) {
		return // what it holds was looked at; see below for what it must not
	}
	again := containsType(t, t, map[reflect.Type]bool{})
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		place := append(slices.Clone(path), name)
		if name == "" {
			place[len(place)-1] = sf.Name
			if sf.Anonymous {
				place = path
			}
		}
		at := where + "." + sf.Name
		hidden, sensitive := readHiding(at, sf.Tag, report)
		if hidden || sensitive {
			switch {
			case implementsMarshaler(t):
				report(at, "its tag would be ignored, as %s writes its own JSON: tag the field %s", t, f.Name)
			case again:
				report(at, "its tag would be ignored in what %s holds of itself: tag the field %s", t, f.Name)
			case sf.Anonymous && name == "":
				report(at, "its tag would be ignored, as it is embedded: tag its fields, or the field %s", f.Name)
			case f.Settable("model"):
				report(at, "the model sets the field %s as a whole and cannot set what it is not shown: tag that field, or name no model in its set", f.Name)
			}
		}
		if hidden {
			f.HiddenIn = append(f.HiddenIn, strings.Join(place, "."))
		}
		if sensitive {
			f.SensitiveIn = append(f.SensitiveIn, strings.Join(place, "."))
		}
		nestedTags(f, at, sf.Type, place, append(slices.Clone(within), t), report)
	}
}

// containsType reports whether values of type t can hold others of the type wanted.
func containsType(t, wanted reflect.Type, seen map[reflect.Type]bool) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return t.Elem() == wanted || containsType(t.Elem(), wanted, seen)
	case reflect.Struct:
		if seen[t] {
			return false
		}
		seen[t] = true
		for i := range t.NumField() {
			if ft := t.Field(i).Type; ft == wanted || containsType(ft, wanted, seen) {
				return true
			}
		}
	}
	return false
}

// noTags reports tags of a state that stand in another type, where nothing would read
// them. A type that the state has too may have them.
func (c *checker) noTags(what string, t reflect.Type) {
	walkFields(what, t, map[reflect.Type]bool{}, func(at string, owner reflect.Type, sf reflect.StructField) {
		for _, tag := range []string{"view", "sensitive"} {
			if v, given := sf.Tag.Lookup(tag); given && owner != c.state && !containsType(c.state, owner, map[reflect.Type]bool{}) {
				c.report(at, "tag %s:%q means nothing here: it is for a field of the state, whose values are then hidden wherever they stand", tag, v)
			}
		}
	})
}

func walkFields(at string, t reflect.Type, seen map[reflect.Type]bool, tell func(at string, owner reflect.Type, sf reflect.StructField)) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		walkFields(at, t.Elem(), seen, tell)
	case reflect.Struct:
		if seen[t] {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			sf := t.Field(i)
			tell(at+"."+sf.Name, t, sf)
			walkFields(at+"."+sf.Name, sf.Type, seen, tell)
		}
	}
}

// readHiding reads the tags view and sensitive. A misspelt one would show what must not
// be shown.
func readHiding(where string, tags reflect.StructTag, report func(where, format string, args ...any)) (hidden, sensitive bool) {
	for _, tag := range [][2]string{{"view", "-"}, {"sensitive", "true"}} {
		if v, given := tags.Lookup(tag[0]); given && v != tag[1] {
			report(where, "tag %s:%q means nothing: it is %s:%q or absent", tag[0], v, tag[0], tag[1])
		}
	}
	return tags.Get("view") == "-", tags.Get("sensitive") == "true"
}

// readTags reads a field's policy.
func readTags(name, where string, tags reflect.StructTag, report func(where, format string, args ...any)) Field {
	f := Field{Name: name, Doc: tags.Get("doc"), Follows: tags.Get("follows")}
	f.Hidden, f.Sensitive = readHiding(where, tags, report)
	for _, s := range strings.Split(tags.Get("set"), ",") {
		if s = strings.TrimSpace(s); slices.Contains(setters, s) {
			f.Set = append(f.Set, s)
		} else {
			report(where, "tag set:%q must name who may set the field: %s", s, strings.Join(setters, ", "))
		}
	}
	return f
}

func checkFollows(fields []Field, report func(where, format string, args ...any)) {
	byName := map[string]Field{}
	for _, f := range fields {
		if _, dup := byName[f.Name]; dup {
			report("state."+f.Name, "two fields have this name")
		}
		byName[f.Name] = f
	}
	for _, f := range fields {
		if f.Follows == "" {
			continue
		}
		if _, ok := byName[f.Follows]; !ok {
			report("state."+f.Name, "follows %q, which is no field", f.Follows)
			continue
		}
		for at, n := f.Follows, 0; at != ""; at, n = byName[at].Follows, n+1 {
			if at == f.Name || n > len(fields) {
				report("state."+f.Name, "follows itself")
				break
			}
		}
	}
}

// checkStateType refuses types whose values do not survive JSON unchanged.
func checkStateType(where string, t reflect.Type, seen map[reflect.Type]bool, report func(where, format string, args ...any)) {
	if seen[t] || t == reflect.TypeFor[JSON]() || implementsMarshaler(t) {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		report(where, "a float: two machines may round it differently; use an integer or agent.Money")
	case reflect.Interface:
		report(where, "an interface: numbers in it would become floats; name the type")
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		report(where, "%s is no JSON value", t)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		checkStateType(where, t.Elem(), seen, report)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			report(where, "map keys must be strings")
		}
		if t.Elem().Kind() == reflect.Pointer {
			report(where, "a map of pointers: its null members would be lost")
		}
		checkStateType(where, t.Elem(), seen, report)
	case reflect.Struct:
		for _, sf := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
			if !sf.IsExported() || name == "-" {
				report(where+"."+sf.Name, "is not in the JSON: it would be lost at the first event")
				continue
			}
			checkStateType(where+"."+sf.Name, sf.Type, seen, report)
		}
	}
}

func implementsMarshaler(t reflect.Type) bool {
	type marshaler interface{ MarshalJSON() ([]byte, error) }
	type texter interface{ MarshalText() ([]byte, error) }
	for _, m := range []reflect.Type{reflect.TypeFor[marshaler](), reflect.TypeFor[texter]()} {
		if t.Implements(m) || reflect.PointerTo(t).Implements(m) {
			return true
		}
	}
	return false
}

func validName(s string) bool {
	if len(s) == 0 || len(s) > 64 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_') {
			return false
		}
	}
	return true
}

// sample fills a value of type t with something in every field, so that a
// round trip through JSON shows what would be lost.
func sample(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case depth > 6:
		return v
	case t == reflect.TypeFor[JSON]() || t == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`"a"`))
		return v
	case t == reflect.TypeFor[Money]():
		return reflect.ValueOf(Money{7, "EUR"})
	case implementsMarshaler(t):
		// Its zero, unless it takes what we make up.
		if t.Kind() != reflect.Struct {
			return v
		}
		full := sampleFields(t, depth)
		if j, err := Encode(full.Interface()); err != nil || decodeStrict(j, reflect.New(t).Interface()) != nil {
			return v
		}
		return full
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString("a")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(sample(t.Elem(), depth+1))
	case reflect.Slice:
		v.Set(reflect.Append(v, sample(t.Elem(), depth+1)))
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).Set(sample(t.Elem(), depth+1))
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			v.Set(reflect.MakeMap(t))
			v.SetMapIndex(reflect.ValueOf("a").Convert(t.Key()), sample(t.Elem(), depth+1))
		}
	case reflect.Struct:
		return sampleFields(t, depth)
	}
	return v
}

func sampleFields(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			v.Field(i).Set(sample(t.Field(i).Type, depth+1))
		}
	}
	return v
}

// lost is the place of the first exported value in which a and b differ, ""
// where they do not.
func lost(a, b reflect.Value, at string) string {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if f := a.Type().Field(i); f.IsExported() {
				if l := lost(a.Field(i), b.Field(i), at+"."+f.Name); l != "" {
					return l
				}
			}
		}
		return ""
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			break
		}
		return lost(a.Elem(), b.Elem(), at)
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return at
		}
		for i := range a.Len() {
			if l := lost(a.Index(i), b.Index(i), at); l != "" {
				return l
			}
		}
		return ""
	case reflect.Map:
		for _, k := range a.MapKeys() { // at most one, see sample
			if e := b.MapIndex(k); !e.IsValid() || lost(a.MapIndex(k), e, at) != "" {
				return at
			}
		}
		return ""
	}
	if !a.Equal(b) {
		return at
	}
	return ""
}

// roundTrip is an error where JSON changes a value of the type.
func roundTrip(t reflect.Type) error {
	for i, v := range []reflect.Value{reflect.New(t).Elem(), sample(t, 0)} {
		first, err := Encode(v.Interface())
		if err != nil {
			return err
		}
		back := reflect.New(t)
		if err := decodeStrict(first, back.Interface()); err != nil {
			return err
		}
		second, err := Encode(back.Elem().Interface())
		if err != nil {
			return err
		}
		if !first.Equal(second) {
			return fmt.Errorf("%s became %s", first, second)
		}
		if at := lost(v, back.Elem(), ""); i == 1 && at != "" {
			return fmt.Errorf("%s is not in the JSON as a value that can be read back", strings.TrimPrefix(at, "."))
		}
	}
	return nil
}
