package agent

import "slices"

// masked stands for a value of a field that is tagged sensitive.
const masked = "(masked)"

// sensitive are the fields tagged so.
func (d *Definition) sensitive() (names []string) {
	for _, f := range d.fields {
		if f.Sensitive {
			names = append(names, f.Name)
		}
	}
	return names
}

// hidden are the fields tagged view:"-", which no model is shown.
func (d *Definition) hidden() (names []string) {
	for _, f := range d.fields {
		if f.Hidden {
			names = append(names, f.Name)
		}
	}
	return names
}

// Masked is the run with the values of its sensitive fields masked in the state,
// for people to look at. What tools and people wrote elsewhere stays as it is:
// arguments, results, texts, and what a gate shows to those who decide it.
func (r *Run) Masked() *Run {
	out := *r
	out.State = maskFields(r.State, r.Sensitive)
	if b := r.Before; b != nil {
		shown := *b
		shown.Fields = map[string]Was{}
		for f, was := range b.Fields {
			if slices.Contains(r.Sensitive, f) && was.Value != nil {
				was.Value = JSON(`"` + masked + `"`)
			}
			shown.Fields[f] = was
		}
		out.Before = &shown
	}
	return &out
}

// Masked does the same for what an event sets in the state; fields are those of
// the run ([Run.Sensitive]).
func (e Event) Masked(fields []string) Event {
	if e.Type != EventStateSet {
		return e
	}
	if d, err := decodeData[StateSetData](e); err == nil {
		d.Patch = maskFields(d.Patch, fields)
		e.Data = mustEncode(d)
	}
	return e
}

func maskFields(o JSON, fields []string) JSON {
	if len(fields) == 0 || len(o) == 0 {
		return o
	}
	all := object(o)
	for _, name := range sortedKeys(all) {
		if v := all[name]; slices.Contains(fields, name) && v != nil && v != "" {
			all[name] = masked
		}
	}
	return encodeValue(all)
}
