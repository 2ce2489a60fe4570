package agent

import (
	"slices"
	"strconv"
	"strings"
)

// Mask is a place in a value that holds what a sensitive field holds.
type Mask struct {
	At string `json:"at"` // RFC 6901 pointer, such as /result/card
	// From and To are the bytes of a text; none: all that stands there.
	From int `json:"from,omitempty"`
	To   int `json:"to,omitempty"`
}

// marks is the part of any event's data that says what of it is masked.
type marks struct {
	Masks []Mask `json:"masks,omitempty"`
}

// mark says in an event's data where the values of sensitive fields stand: those of
// the state as it is, and as it is about to be. Where a model or a person names such
// a field, what stands there is one.
func (m *Machine) mark(t EventType, data JSON) JSON {
	r := m.run
	if len(r.Sensitive) == 0 || t == EventStateSet || t == EventStarted {
		return data
	}
	all := object(data)
	w := walk{sensitive: r.Sensitive}
	for _, state := range []JSON{r.State, m.upcoming} {
		fields := object(state)
		for _, f := range r.Sensitive {
			w.keep(fields[f])
		}
	}
	w.named("", all)
	w.at("", all)
	if len(w.found) == 0 {
		return data
	}
	all["masks"] = valueOf(mustEncode(w.found))
	return encodeValue(all)
}

// walk looks for the places of values.
type walk struct {
	sensitive []string
	values    []any
	texts     []string // those of values that are looked for inside texts, too
	found     []Mask
}

// keep adds a value, and the values in it, to what is looked for. What many others
// equal by accident is not.
func (w *walk) keep(v any) {
	switch v := v.(type) {
	case string:
		if len(v) >= 4 {
			w.values = append(w.values, v)
		}
		if len(v) >= 6 {
			w.texts = append(w.texts, v)
		}
	case number:
		if len(v) >= 4 {
			w.values = append(w.values, v)
		}
	case []any:
		if !isZero(v) {
			w.values = append(w.values, v)
		}
		for _, e := range v {
			w.keep(e)
		}
	case map[string]any:
		if !isZero(v) {
			w.values = append(w.values, v)
		}
		for _, k := range sortedKeys(v) {
			w.keep(v[k])
		}
	}
}

// named adds what stands where a sensitive field is named, as in set_fields.
func (w *walk) named(within string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			if within == "fields" && slices.Contains(w.sensitive, k) {
				w.keep(v[k])
			}
			w.named(k, v[k])
		}
	case []any:
		for _, e := range v {
			w.named("", e)
		}
	}
}

func (w *walk) at(place string, v any) {
	if slices.ContainsFunc(w.values, func(s any) bool { return sameValue(s, v) }) {
		w.found = append(w.found, Mask{At: place})
		return
	}
	switch v := v.(type) {
	case string:
		w.inside(place, v)
	case map[string]any:
		for _, k := range sortedKeys(v) {
			w.at(place+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(k), v[k])
		}
	case []any:
		for i := range v {
			w.at(place+"/"+strconv.Itoa(i), v[i])
		}
	}
}

// inside looks for values in a text, at each place for the longest.
func (w *walk) inside(place, text string) {
	for at := 0; at < len(text); at++ {
		longest := 0
		for _, s := range w.texts {
			if len(s) > longest && strings.HasPrefix(text[at:], s) {
				longest = len(s)
			}
		}
		if longest > 0 {
			w.found = append(w.found, Mask{At: place, From: at, To: at + longest})
			at += longest - 1
		}
	}
}

var maskedJSON = JSON(`"` + masked + `"`)

// maskAt masks a value that stands itself at a place, or places in it.
func maskAt(j JSON, masks []Mask, itself string) JSON {
	if len(j) == 0 {
		return j
	}
	box := map[string]any{"": nil}
	for i := len(masks) - 1; i >= 0; i-- { // the last part of a text first: the others stay where they are
		rest, ok := strings.CutPrefix(masks[i].At, itself)
		if !ok || rest != "" && rest[0] != '/' {
			continue
		}
		if box[""] == nil {
			box[""] = valueOf(j)
		}
		maskPlace(box, strings.Split(rest, "/"), masks[i])
	}
	if box[""] == nil {
		return j
	}
	return encodeValue(box[""])
}

func maskPlace(v any, path []string, m Mask) {
	key := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
	switch v := v.(type) {
	case map[string]any:
		if old, there := v[key]; there && len(path) == 1 {
			v[key] = m.of(old)
		} else if there {
			maskPlace(old, path[1:], m)
		}
	case []any:
		if i, err := strconv.Atoi(key); err != nil || i < 0 || i >= len(v) {
			return
		} else if len(path) == 1 {
			v[i] = m.of(v[i])
		} else {
			maskPlace(v[i], path[1:], m)
		}
	}
}

// of is a value masked.
func (m Mask) of(v any) any {
	text, ok := v.(string)
	if !ok || m.To == 0 {
		return masked
	}
	to := min(m.To, len(text))
	return text[:min(m.From, to)] + masked + text[to:]
}

// valueOf is a canonical value, nil where it is none.
func valueOf(j JSON) any {
	v, err := parseOwn([]byte(j.String()))
	if err != nil {
		return nil
	}
	return v
}
