package agent

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// masked stands for a value of a field that is tagged sensitive.
const masked = "(masked)"

var maskedJSON = JSON(`"` + masked + `"`)

// Redaction hides the values of a run's sensitive fields from whoever may not see them.
// It is made of the run alone, by what its first event says is sensitive, and it is the
// only one: all that shows a run to people goes through it ([Redacted], [Redaction.Text]).
//
// Hidden are: what stands under the name of a sensitive field in the state, in arguments,
// results and answers, whatever it is; and the values that such fields hold or have held,
// wherever else they stand, in texts too: as they are, in other letter case, escaped, with
// other marks between the digits of a number, and, where a text was cut, half of one.
// A value of under four characters is hidden under its name only: in a text it would be
// told by what is hidden. Ids, addresses, keys of runs, subjects and names of tools stay.
//
// The zero value hides nothing. It may be used by several goroutines.
type Redaction struct {
	paths  [][]string
	known  *known
	closed bool // there were more values than the run remembers
	values bool // known values only, wherever they stand
}

// knownLimit bounds the values that a run remembers beside those of its state, in bytes.
const knownLimit = 16 << 10

// Redaction is what hides the run's sensitive values from whoever decides nothing.
func (r *Run) Redaction() *Redaction { return r.redactionBut(nil) }

// RedactionAt is what hides them from who decides about a gate, and is shown that whole:
// the values that stand in the gate are not hidden in texts beside it.
func (r *Run) RedactionAt(g Gate) *Redaction {
	if len(r.Sensitive) == 0 {
		return &Redaction{}
	}
	shown := map[string]bool{}
	collect := func(v any) { eachLeaf(v, func(leaf any) { shown[encodeValue(leaf).String()] = true }) }
	collect(valueOf(g.Args))
	for _, v := range g.Shown {
		collect(valueOf(v))
	}
	return r.redactionBut(shown)
}

func (r *Run) redactionBut(shown map[string]bool) *Redaction {
	if len(r.Sensitive) == 0 {
		return &Redaction{}
	}
	values := slices.DeleteFunc(append(r.heldBy(r.Sensitive), r.Known...), func(j JSON) bool { return shown[j.String()] })
	return &Redaction{paths: pathsOf(r.Sensitive), known: knownOf(values), closed: r.KnownCut}
}

// HideAll hides all texts and values: for where it cannot be found out what is sensitive.
func HideAll() *Redaction { return &Redaction{values: true, closed: true} }

// heldBy are the leaves of what the fields hold now.
func (r *Run) heldBy(fields []string) (out []JSON) {
	paths := pathsOf(fields)
	under(valueOf(r.State), nil, paths, func(v any) { eachLeaf(v, func(leaf any) { out = append(out, encodeValue(leaf)) }) })
	return out
}

// pathsOf are names of fields: members of objects, one within the other; lists count for
// nothing, and * is any member.
func pathsOf(fields []string) (out [][]string) {
	for _, f := range fields {
		out = append(out, strings.Split(f, "."))
	}
	return out
}

// named reports a place that one of the fields names: the last members of the place are its.
func named(place []string, paths [][]string) bool {
	return slices.ContainsFunc(paths, func(p []string) bool {
		if len(p) > len(place) {
			return false
		}
		tail := place[len(place)-len(p):]
		for i := range p {
			if p[i] != "*" && p[i] != tail[i] {
				return false
			}
		}
		return true
	})
}

// under tells of each value that stands where a field is named.
func under(v any, place []string, paths [][]string, tell func(any)) {
	if len(place) > 0 && named(place, paths) {
		tell(v)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			under(v[k], append(place, k), paths, tell)
		}
	case []any:
		for _, e := range v {
			under(e, place, paths, tell)
		}
	}
}

// eachLeaf tells of the texts and numbers in a value.
func eachLeaf(v any, tell func(any)) {
	switch v := v.(type) {
	case string, number:
		if !isZero(v) {
			tell(v)
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			eachLeaf(v[k], tell)
		}
	case []any:
		for _, e := range v {
			eachLeaf(e, tell)
		}
	}
}

// learn remembers the values that stand, or stood, where a sensitive or hidden field is
// named: what shows the run later must know them when the state has others. It is told of
// an event before it is applied, but of the first, which names the fields.
func (r *Run) learn(e Event) bool {
	if len(r.Sensitive)+len(r.Hidden) == 0 {
		return false
	}
	all := r.learnt(e, r.Sensitive, &r.Known)
	return r.learnt(e, r.onlyHidden(), &r.Unseen) || all
}

// onlyHidden are fields that the model is not shown, and people are.
func (r *Run) onlyHidden() []string {
	return slices.DeleteFunc(slices.Clone(r.Hidden), func(f string) bool { return slices.Contains(r.Sensitive, f) })
}

func (r *Run) learnt(e Event, fields []string, into *[]JSON) bool {
	if len(fields) == 0 {
		return false
	}
	var found []JSON
	paths := pathsOf(fields)
	if e.Type == EventStateSet {
		found = r.heldBy(fields)
	}
	w := walker{json: func(place []string, j JSON) JSON {
		under(valueOf(j), place, paths, func(v any) { eachLeaf(v, func(leaf any) { found = append(found, encodeValue(leaf)) }) })
		return j
	}}
	if d := dataOf(e); d.IsValid() {
		w.value(d, "", nil)
	}
	if len(found) == 0 {
		return false
	}
	have := map[string]bool{}
	for _, k := range *into {
		have[k.String()] = true
	}
	for _, f := range found {
		if len(f) < shortest || have[f.String()] {
			continue
		}
		have[f.String()] = true
		*into = append(*into, f)
	}
	return true
}

// forget lets go of what the state holds, which is known of itself; and, where there is
// too much, of what is beyond the limit, and says so.
func (r *Run) forget() {
	for _, k := range []struct {
		fields []string
		known  *[]JSON
	}{{r.Sensitive, &r.Known}, {r.onlyHidden(), &r.Unseen}} {
		held, size := map[string]bool{}, 0
		for _, j := range r.heldBy(k.fields) {
			held[j.String()] = true
		}
		var kept []JSON
		for _, j := range *k.known {
			if held[j.String()] {
				continue
			}
			if size += len(j); size > knownLimit {
				r.KnownCut = true
				break
			}
			kept = append(kept, j)
		}
		*k.known = kept
	}
}

// Hides reports whether there is anything to hide.
func (x *Redaction) Hides() bool { return x != nil && (len(x.paths) > 0 || x.values) }

// HidesTexts reports whether there is anything to hide in a text: as long as no sensitive
// field has held a value, there is not.
func (x *Redaction) HidesTexts() bool { return x.Hides() && (x.closed || x.known != nil) }

// Text is a text for people.
func (x *Redaction) Text(s string) string { return x.text(s, false) }

func (x *Redaction) text(s string, cut bool) string {
	switch {
	case !x.Hides() || s == "":
		return s
	case x.closed:
		return masked
	}
	return x.known.redact(s, cut)
}

// Settled is the part of a text that people can be shown while more of it is to come.
func (x *Redaction) Settled(s string) string {
	switch {
	case !x.Hides():
		return s
	case x.closed:
		return ""
	}
	return x.Text(s[:x.known.settled(s)])
}

// JSON is a value for people.
func (x *Redaction) JSON(j JSON) JSON { return x.json(nil, j) }

func (x *Redaction) json(place []string, j JSON) JSON {
	switch {
	case !x.Hides() || len(j) == 0:
		return j
	case x.closed:
		return maskedJSON
	}
	return encodeValue(x.inside(valueOf(j), place))
}

func (x *Redaction) inside(v any, place []string) any {
	if len(place) > 0 && named(place, x.paths) {
		if v == nil || v == "" {
			return v
		}
		return masked
	}
	switch v := v.(type) {
	case string:
		return x.Text(v)
	case number:
		if s := x.Text(string(v)); s != string(v) {
			return masked
		}
	case []any:
		for i := range v {
			v[i] = x.inside(v[i], place)
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			e := x.inside(v[k], append(place, k))
			if name := x.Text(k); name != k {
				delete(v, k)
				k = name
			}
			v[k] = e
		}
	}
	return v
}

// Redacted is a copy of anything that is made of a run, for people: what its types say is
// JSON or a text is redacted, and the data of events.
func Redacted[T any](x *Redaction, v T) T {
	if !x.Hides() {
		return v
	}
	w := walker{json: x.json, text: x.field}
	out, _ := w.value(reflect.ValueOf(&v).Elem(), "", nil).Interface().(T)
	return out
}

// field redacts the text of a struct's field, by its Go name.
func (x *Redaction) field(name string, place []string, s string) string {
	if name == "Salt" {
		return "" // with it a hash of the chain tells a value that can be one of few
	}
	if plainNames[name] {
		return s
	}
	if (name == "Quote" || name == "Confirmed") && s != "" && len(place) > 0 && named(place, x.paths) {
		return masked // the user's words for a value, by which it may be told
	}
	return x.text(s, name == "Part")
}

// plainNames are the fields of ours that name something, and hold no value.
var plainNames = func() map[string]bool {
	out := map[string]bool{}
	for _, n := range strings.Fields(`ID Address FirstRunID RunID Key Digest Body BodyDigest Fingerprint Tenant Agent Tool Tools Step Steps Gate Subject
		User By Who Roles Askers Auth Phase TraceID Ref ProviderID Call LastCall Effect Source Scope ScopeOf After Replaces Undoes UndoneBy Undo
		Compensation EditedBy Fields Reads Verified Verifies Reset Sensitive Hidden How Reserves Cursor Place Hash Path Branch`) {
		out[n] = true
	}
	return out
}()

// walker copies values, and changes the JSON and the texts in them.
type walker struct {
	json func(place []string, j JSON) JSON
	text func(name string, place []string, s string) string // nil: texts stay
}

var (
	jsonType  = reflect.TypeFor[JSON]()
	rawType   = reflect.TypeFor[json.RawMessage]()
	eventType = reflect.TypeFor[Event]()
	runType   = reflect.TypeFor[Run]()
	plainText = reflect.TypeFor[string]()
)

// value is a copy; name is that of the struct's field that it stands in, place the keys of
// the maps.
func (w walker) value(v reflect.Value, name string, place []string) reflect.Value {
	switch v.Type() {
	case jsonType, rawType:
		if v.Len() == 0 || name == "Schema" {
			return v
		}
		return reflect.ValueOf(w.json(place, JSON(v.Bytes()))).Convert(v.Type())
	case eventType:
		return reflect.ValueOf(w.event(v.Interface().(Event)))
	case plainText:
		if w.text == nil {
			return v
		}
		return reflect.ValueOf(w.text(name, place, v.String()))
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v
		}
		inner := w.value(v.Elem(), name, place)
		if v.Kind() == reflect.Interface {
			return inner
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(inner)
		return out
	case reflect.Slice:
		if v.IsNil() || !holds(v.Type().Elem()) {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(w.value(v.Index(i), name, place))
		}
		return out
	case reflect.Map:
		return w.mapped(v, name, place)
	case reflect.Struct:
		return w.fields(v, place)
	}
	return v
}

// holds reports a type whose values may hold a text.
func holds(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Array, reflect.Map, reflect.Struct, reflect.String:
		return true
	}
	return false
}

func (w walker) mapped(v reflect.Value, name string, place []string) reflect.Value {
	if v.IsNil() || v.Type().Key().Kind() != reflect.String {
		return v
	}
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for it := v.MapRange(); it.Next(); {
		out.SetMapIndex(it.Key(), w.value(it.Value(), name, append(slices.Clone(place), it.Key().String())))
	}
	return out
}

func (w walker) fields(v reflect.Value, place []string) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	w.into(out, v, place)
	return out
}

// into redacts a copy of a struct in its place: one that is embedded without being exported
// cannot be set as a whole.
func (w walker) into(out, v reflect.Value, place []string) {
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case f.Anonymous && !f.IsExported() && f.Type.Kind() == reflect.Struct:
			w.into(out.Field(i), v.Field(i), place)
		case !f.IsExported():
		case v.Type() == runType && (f.Name == "Known" || f.Name == "Unseen") && w.text != nil:
			out.Field(i).SetZero()
		default:
			out.Field(i).Set(w.value(v.Field(i), f.Name, place))
		}
	}
}

// event is a copy with other data. Data of a type that is not known is JSON like any other.
func (w walker) event(e Event) Event {
	d := dataOf(e)
	if !d.IsValid() {
		e.Data = w.json(nil, e.Data)
		return e
	}
	if j, err := Encode(w.value(d, "", nil).Interface()); err == nil {
		e.Data = j
	}
	return e
}

// dataOf is an event's data in its type; none where it has another shape.
func dataOf(e Event) reflect.Value {
	t, ok := dataTypes[e.Type]
	if !ok || len(e.Data) == 0 {
		return reflect.Value{}
	}
	d := reflect.New(t)
	if json.Unmarshal(e.Data, d.Interface()) != nil {
		return reflect.Value{}
	}
	return d.Elem()
}

// Masked is the run for people who decide nothing.
func (r *Run) Masked() *Run {
	x := r.Redaction()
	return Redacted(x, r)
}

// Follow is what redacts a journal as it is read: it learns from every event that it is
// told of, and knows at each what all of them have said.
type Follow struct {
	run Run
	x   *Redaction
}

// Learn takes in events of the journal, in order from the first on. Those that it knows
// count for nothing.
func (f *Follow) Learn(events ...Event) {
	for _, e := range events {
		if e.Seq == f.run.Seq+1 {
			apply(&f.run, e)
			f.x = nil
		}
	}
}

// Seq is the last event that it knows.
func (f *Follow) Seq() int64 { return f.run.Seq }

// Redaction hides what the events known so far have said.
func (f *Follow) Redaction() *Redaction {
	if f.x == nil {
		f.x = f.run.Redaction()
	}
	return f.x
}

// sensitive are the fields tagged so, and hidden those tagged view:"-", which no model is
// shown; inside of others, by their place.
func (d *Definition) sensitive() (names []string) {
	return d.tagged(func(f Field) (bool, []string) { return f.Sensitive, f.SensitiveIn })
}

func (d *Definition) hidden() (names []string) {
	return d.tagged(func(f Field) (bool, []string) { return f.Hidden, f.HiddenIn })
}

func (d *Definition) tagged(of func(Field) (bool, []string)) (names []string) {
	for _, f := range d.fields {
		whole, in := of(f)
		if whole {
			names = append(names, f.Name)
			continue
		}
		for _, p := range in {
			names = append(names, f.Name+"."+p)
		}
	}
	return names
}

// dataTypes are the types of events' data.
var dataTypes = map[EventType]reflect.Type{}

func init() {
	for t, a := range appliers {
		if a.data != nil {
			dataTypes[t] = a.data
		}
	}
}

// valueOf is a canonical value, nil where it is none.
func valueOf(j JSON) any {
	v, err := parseOwn([]byte(j.String()))
	if err != nil {
		return nil
	}
	return v
}
