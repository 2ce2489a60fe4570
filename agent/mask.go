package agent

import (
	"encoding/json"
	"maps"
	"slices"
)

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

// Masked is the run with the values of its sensitive fields masked, for people to
// look at: in the state, and wherever else one stands (arguments, results, proposals,
// texts, what gates show) once the run knows it to be one. What a person wrote before
// that stays.
// Who decides about a gate is shown the gate itself.
func (r *Run) Masked() *Run {
	out := *r
	out.State = maskFields(r.State, r.Sensitive)
	if len(r.Sensitive) == 0 {
		return &out
	}
	text := r.maskText()
	out.Before = r.Before.masked(r.Sensitive)
	out.Steps, out.Gates, out.Turns = slices.Clone(r.Steps), slices.Clone(r.Gates), slices.Clone(r.Turns)
	for i := range out.Steps {
		s := &out.Steps[i]
		s.Args, s.Result, s.Reason = maskAt(s.Args, s.Masks, "/args"), maskAt(s.Result, s.Masks, "/result"), text(s.Reason)
	}
	for i := range out.Gates {
		out.Gates[i].mask(r, text)
	}
	out.Opening = maskItems(r.Opening, text)
	for i := range out.Turns {
		t := &out.Turns[i]
		if t.Opening = maskItems(t.Opening, text); t.Proposal != nil {
			t.Proposal = t.Proposal.masked(text)
		}
	}
	if r.Reply != nil {
		out.Reply = &Reply{Seq: r.Reply.Seq, Text: text(r.Reply.Text), Last: r.Reply.Last}
	}
	out.Facts, out.Rulings = slices.Clone(r.Facts), slices.Clone(r.Rulings)
	for i := range out.Facts {
		out.Facts[i].Quote = text(out.Facts[i].Quote)
	}
	for i := range out.Rulings {
		out.Rulings[i].Title, out.Rulings[i].Reason = text(out.Rulings[i].Title), text(out.Rulings[i].Reason)
	}
	out.Confirmed = maps.Clone(r.Confirmed)
	for f, c := range out.Confirmed {
		c.Quote = text(c.Quote)
		out.Confirmed[f] = c
	}
	out.Kept, out.Pending = maskVerdicts(r.Kept), maskVerdicts(r.Pending)
	return &out
}

// maskText masks in a text what sensitive fields hold now.
func (r *Run) maskText() func(string) string {
	w := walk{sensitive: r.Sensitive}
	state := object(r.State)
	for _, f := range r.Sensitive {
		w.keep(state[f])
	}
	return func(s string) string {
		w.found = nil
		w.inside("", s)
		for i := len(w.found) - 1; i >= 0; i-- {
			s, _ = w.found[i].of(s).(string)
		}
		return s
	}
}

func maskItems(items []Item, text func(string) string) []Item {
	out := slices.Clone(items)
	for i := range out {
		out[i].Text = text(out[i].Text)
	}
	return out
}

func (g *Gate) mask(r *Run, text func(string) string) {
	if s := r.step(g.StepID()); s != nil {
		g.Args = maskAt(g.Args, s.Masks, "/args")
	}
	g.Title, g.Risk, g.Reason = text(g.Title), text(g.Risk), text(g.Reason)
	g.Shown = maps.Clone(g.Shown)
	for f, v := range g.Shown {
		if slices.Contains(r.Sensitive, f) && !isZero(valueOf(v)) {
			g.Shown[f] = maskedJSON
		}
	}
}

func (p *Proposal) masked(text func(string) string) *Proposal {
	out := new(Proposal)
	if json.Unmarshal(maskAt(mustEncode(p), p.Masks, ""), out) != nil {
		return nil
	}
	out.Text, out.Calls = text(out.Text), slices.Clone(out.Calls)
	for i := range out.Calls {
		out.Calls[i].Raw, out.Calls[i].Text = text(out.Calls[i].Raw), text(out.Calls[i].Text)
	}
	return out
}

// maskVerdicts are verdicts that wait, without what they would have run or set.
func maskVerdicts(all []Verdict) (out []Verdict) {
	for _, v := range all {
		if v.Args != nil {
			v.Args = maskedJSON
		}
		if v.Result != nil {
			v.Result = maskedJSON
		}
		if v.Answer != nil && v.Answer.Fields != nil {
			v.Answer = &Answer{Confirm: v.Answer.Confirm, Fields: maskedJSON}
		}
		out = append(out, v)
	}
	return out
}

func (b *Before) masked(sensitive []string) *Before {
	if b == nil {
		return nil
	}
	out := *b
	out.Fields = maps.Clone(b.Fields)
	for f, was := range out.Fields {
		if slices.Contains(sensitive, f) && was.Value != nil {
			was.Value = maskedJSON
			out.Fields[f] = was
		}
	}
	return &out
}

// Masked does the same for an event; fields are those of the run ([Run.Sensitive]).
func (e Event) Masked(fields []string) Event {
	if len(fields) == 0 {
		return e
	}
	if e.Type == EventStateSet {
		if d, err := decodeData[StateSetData](e); err == nil {
			d.Patch = maskFields(d.Patch, fields)
			e.Data = mustEncode(d)
		}
		return e
	}
	if d, err := decodeData[marks](e); err == nil {
		e.Data = maskAt(e.Data, d.Masks, "")
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
