package agent

import (
	"fmt"
	"strings"
)

// StateShape is what a state type looks like in JSON: each member's place, such as
// offer/price/minor, with its type. A member that may be left out ends in "?".
// It is recorded where a run begins, and goes on with it.
type StateShape map[string]string

// StateShape is that of the definition's state.
func (d *Definition) StateShape() StateShape {
	out := StateShape{}
	zero := object(d.zero)
	for _, f := range d.fields {
		s := &schema{}
		if v, err := parseOwn(f.Schema); err == nil {
			if compiled, err := compile(v, ""); err == nil {
				s = compiled
			}
		}
		_, always := zero[f.Name]
		s.shape(f.Name, always, out)
	}
	return out
}

func (s *schema) shape(at string, always bool, out StateShape) {
	kind := strings.Join(s.types, " or ")
	if kind == "" {
		kind = "any"
	}
	if !always {
		kind += "?"
	}
	out[at] = kind
	for _, name := range sortedKeys(s.properties) {
		required := false
		for _, r := range s.required {
			required = required || r == name
		}
		s.properties[name].shape(at+"/"+name, required, out)
	}
	if s.items != nil {
		s.items.shape(at+"/[]", true, out)
	}
	if s.additional != nil {
		s.additional.shape(at+"/*", true, out)
	}
}

// Changed says which member of a recorded shape is another now: it is gone (or has
// another name), or has another type, or is new and is always there. "" where the
// recorded state is read as it was; a new member that may be left out changes nothing.
func (was StateShape) Changed(now StateShape) string {
	for _, at := range sortedKeys(was) {
		old, is := strings.TrimSuffix(was[at], "?"), strings.TrimSuffix(now[at], "?")
		switch {
		case is == "":
			return fmt.Sprintf("state field %s (%s) is gone, or has another name", at, old)
		case is != old:
			return fmt.Sprintf("state field %s was %s and is %s", at, old, is)
		}
	}
	for _, at := range sortedKeys(now) {
		if _, known := was[at]; !known && !strings.HasSuffix(now[at], "?") && was.has(parentOf(at)) {
			return fmt.Sprintf("state field %s (%s) is new and not optional: tag it omitempty", at, now[at])
		}
	}
	return ""
}

// has reports whether a recorded shape has a member; the state itself is "".
func (was StateShape) has(at string) bool {
	_, known := was[at]
	return known || at == ""
}

func parentOf(at string) string {
	if i := strings.LastIndex(at, "/"); i >= 0 {
		return at[:i]
	}
	return ""
}
