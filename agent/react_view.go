package agent

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// view is what the model is shown now.
func (m *Machine) view() View { return m.run.view(m.at) }

// view is what the model is shown of a run. It holds what must be shown, then as
// many recent turns as there is room for, whole or not at all.
func (r *Run) view(at time.Time) View {
	x := r.FromModel()
	v := View{Agent: r.Agent, Version: r.Version, Turn: r.Turn, At: at, Phase: r.Phase, LastWord: r.LastWord, Limit: r.Limits.View,
		State: r.shown(r.State), Provenance: r.shownProvenance(), Facts: r.Facts, Rulings: Redacted(x, r.shownRulings()),
		Earlier: r.Trimmed, Left: r.left()}
	for _, g := range r.Gates {
		if g.Status == GateOpen && g.Kind != KindDoubt {
			v.Waiting = append(v.Waiting, ViewGate{ID: g.ID, Tool: g.Tool, Title: x.Text(g.Title), Roles: g.Roles, ExpiresAt: g.ExpiresAt,
				Quorum: g.Quorum, Approved: len(g.Approvals), Replaces: g.Replaces})
		}
	}
	for _, s := range r.Steps {
		switch s.Status {
		case StepRunning:
			v.Running = append(v.Running, s.ID)
		case StepInDoubt:
			v.InDoubt = append(v.InDoubt, s.ID)
		}
	}
	for _, t := range r.Turns {
		v.Turns = append(v.Turns, r.viewTurn(t, x))
	}
	if v.roughly() < r.Limits.View/2 || len(mustEncode(v)) <= r.Limits.View {
		return v // as it is nearly always
	}
	v.Turns = nil
	room := r.Limits.View - len(mustEncode(v))
	for i := len(r.Turns) - 1; i >= 0; i-- {
		t := r.viewTurn(r.Turns[i], x)
		size := len(mustEncode(t))
		if size > room && i >= len(r.Turns)-2 {
			// The turn that is answered now, and the one whose answers are new:
			// the model must see them, if only in part.
			t.shorten(room, i < len(r.Turns)-1)
			size = len(mustEncode(t))
		}
		if room -= size; room < 0 && i < len(r.Turns)-2 {
			v.Earlier.Turns += i + 1
			break
		}
		v.Turns = append(v.Turns, t)
	}
	slices.Reverse(v.Turns)
	return v
}

// shown is the state without hidden fields, sensitive ones masked where they
// hold something.
func (r *Run) shown(state JSON) JSON {
	if len(r.Hidden)+len(r.Sensitive) == 0 {
		return state
	}
	return encodeValue(shown(valueOf(state), nil, pathsOf(r.Hidden), pathsOf(r.Sensitive)))
}

func shown(v any, place []string, hidden, sensitive [][]string) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			switch at := append(place, k); {
			case is(at, hidden):
				delete(v, k)
			case is(at, sensitive):
				if !isZero(v[k]) {
					v[k] = masked
				}
			default:
				v[k] = shown(v[k], at, hidden, sensitive)
			}
		}
	case []any:
		for i := range v {
			v[i] = shown(v[i], place, hidden, sensitive)
		}
	}
	return v
}

// is reports a place in the state that is one of the fields.
func is(place []string, paths [][]string) bool {
	return slices.ContainsFunc(paths, func(p []string) bool { return len(p) == len(place) && named(place, [][]string{p}) })
}

func (r *Run) shownProvenance() map[string]ViewField {
	out := map[string]ViewField{}
	for _, f := range sortedKeys(r.Provenance) {
		if slices.Contains(r.Hidden, f) {
			continue
		}
		p, c := r.Provenance[f], r.Confirmed[f]
		_, shown := r.Shown[f]
		out[f] = ViewField{Source: p.Source, Turn: p.Turn, VerifiedAt: p.VerifiedAt, Shown: shown, Confirmed: clip(c.Quote, 200)}
	}
	return out
}

// shownRulings are the binding ones first, then the newest, within the cap.
func (r *Run) shownRulings() []ViewRuling {
	var binding, rest []ViewRuling
	for i := len(r.Rulings) - 1; i >= 0; i-- {
		u := r.Rulings[i]
		e := ViewRuling{Tool: u.Tool, Title: clip(u.Title, 200), Reason: clip(u.Reason, 400), Reads: u.Reads,
			Binds: r.RulingStatus(u) == RulingBinds, Draft: u.Draft, Lifted: u.Lifted != nil}
		if e.Binds {
			binding = append(binding, e)
		} else {
			rest = append(rest, e)
		}
	}
	var out []ViewRuling
	size := 0
	for _, e := range slices.Concat(binding, rest) {
		if size += len(mustEncode(e)); size > r.Limits.Rulings && len(out) > 0 {
			break
		}
		out = append(out, e)
	}
	return out
}

func (r *Run) viewTurn(t Turn, x *Redaction) ViewTurn {
	out := ViewTurn{N: t.N, Opening: x.told(t.Opening), Cut: t.Cut}
	for _, it := range t.Opening {
		if it.Step == "" {
			continue
		}
		if s := r.step(it.Step); s != nil {
			out.Results = append(out.Results, Redacted(x, r.viewItem(s)))
		}
	}
	if t.Proposal == nil {
		return out
	}
	out.Text, out.Model, out.Opaque = t.Proposal.Text, t.Proposal.Model, t.Proposal.Opaque
	for _, c := range t.Proposal.Calls {
		vc := ViewCall{ID: c.ID, ProviderID: c.ProviderID, Tool: c.Tool, Args: c.Args, Read: c.Read}
		if c.Raw != "" {
			vc.Args = JSON("{}") // a later request must hold valid JSON
		}
		vc.Answer = Redacted(x, r.viewAnswer(c))
		out.Calls = append(out.Calls, vc)
	}
	return out
}

func (r *Run) viewAnswer(c ProposedCall) ViewItem {
	text := c.Text
	if c.Raw != "" {
		text += "; you wrote: " + c.Raw
	}
	s := r.step(c.Step)
	if s != nil && (c.Status == "" || c.Status == string(StepDone)) {
		item := r.viewItem(s)
		if text != "" {
			item.Text = text
		}
		return item
	}
	done := c.Status == string(StepDone)
	return ViewItem{Step: c.Step, Tool: c.Tool, Status: c.Status, Text: text, Omitted: done && c.Step != "" && c.Tool != CallAsk && c.Tool != CallMove}
}

// viewItem is a step's end with its result: whole, or its marked beginning, or
// a note that it was archived.
func (r *Run) viewItem(s *Step) ViewItem {
	item := ViewItem{Step: s.ID, Tool: s.Tool, Status: string(s.Status), Text: s.Reason, Omitted: s.Archived > 0, Bytes: s.Archived}
	switch s.Status {
	case StepWaiting:
		item.Text = r.waitingText(s.ID)
	case StepUndone: // told as it was then; an item of its own tells of the undo
		item.Status = string(StepDone)
	}
	switch active := r.Limits.Active; {
	case s.shown() == 0:
	case len(s.Result) <= active:
		item.Result = s.Result
	case s.Whole != nil:
		item.Omitted = true // a part of what Keep made would be read on in another text
	default:
		item.Part, item.Bytes = head(s.Result.String(), active*3/4), len(s.Result)
	}
	if s.Whole != nil {
		item.Bytes = s.Whole.Bytes
	}
	return item
}

// head is the beginning of a text, cut at a character boundary.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !runeStart(s[n]) {
		n--
	}
	letters := 0
	for i := n; i >= 4 && flagLetter(s[i-4:]); i -= 4 {
		letters++
	}
	if letters%2 == 1 && flagLetter(s[n:]) {
		n -= 4
	}
	return s[:n]
}

// flagLetter reports whether a text begins with half of a flag, which is two
// regional letters of four bytes each.
func flagLetter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r >= 0x1F1E6 && r <= 0x1F1FF
}

func (r *Run) left() Left {
	b, u, g := r.Limits.Budget, r.Used, r.Granted
	var l Left
	if b.Turns >= 0 {
		n := max(b.Turns-(u.Turns-g.Turns), 0)
		l.Turns = &n
	}
	if b.ModelCalls >= 0 {
		n := max(b.ModelCalls-(u.ModelCalls-g.ModelCalls), 0)
		l.ModelCalls = &n
	}
	if b.Tokens >= 0 {
		n := max(b.Tokens-(u.Usage.Total()-g.Tokens), 0)
		l.Tokens = &n
	}
	return l
}

// shorten makes a turn that is too large for the view fit as far as it can:
// long arguments are left out and results are marked parts. What a turn opened
// with stays whole while it is to be answered.
func (t *ViewTurn) shorten(room int, answered bool) {
	if answered {
		t.Opening = slices.Clone(t.Opening)
		for i := range t.Opening {
			t.Opening[i].Text = clip(t.Opening[i].Text, 1000)
		}
	}
	t.Opaque, t.Text = nil, clip(t.Text, 2000)
	var results []*ViewItem
	for i := range t.Calls {
		c := &t.Calls[i]
		if n := len(c.Args); n > 500 {
			c.Args, c.Answer.Text = JSON("{}"), c.Answer.Text+fmt.Sprintf(" (the arguments of %d bytes are not shown)", n)
		}
		results = append(results, &c.Answer)
	}
	for i := range t.Results {
		results = append(results, &t.Results[i])
	}
	left := room
	for _, it := range results {
		left += len(it.Result) + len(it.Part)
	}
	left -= len(mustEncode(t))
	for i, it := range results {
		share := max(left/(len(results)-i), 200)
		if len(it.Result) > share {
			it.Bytes, it.Part, it.Result = len(it.Result), head(it.Result.String(), share), nil
		}
		it.Part = head(it.Part, share)
		left -= len(it.Result) + len(it.Part)
	}
}

// roughly is at least half of the view's size, without encoding it: most views
// are far from the limit.
func (v View) roughly() int {
	n := 1000 + len(v.State) + 200*(len(v.Provenance)+len(v.Rulings)+len(v.Waiting))
	for _, f := range v.Facts {
		n += len(f.Quote) + 60
	}
	for _, r := range v.Rulings {
		n += len(r.Title) + len(r.Reason)
	}
	for _, g := range v.Waiting {
		n += len(g.Title)
	}
	for _, f := range sortedKeys(v.Provenance) {
		n += len(v.Provenance[f].Confirmed)
	}
	for _, t := range v.Turns {
		n += t.roughly()
	}
	return n
}

func (t ViewTurn) roughly() int {
	n := 100 + len(t.Text) + len(t.Cut) + len(t.Opaque)
	for _, it := range t.Opening {
		n += len(it.Text) + 120
	}
	for _, c := range t.Calls {
		n += len(c.Args) + 120 + c.Answer.roughly()
	}
	for _, it := range t.Results {
		n += it.roughly()
	}
	return n
}

func (i ViewItem) roughly() int { return 120 + len(i.Text) + len(i.Result) + len(i.Part) }

// FromModel hides from the model's view of results and of what code tells it the values
// that the state does not show it either. What users and the model itself wrote stays.
func (r *Run) FromModel() *Redaction {
	secret := slices.Concat(r.Sensitive, r.onlyHidden())
	if len(secret) == 0 {
		return &Redaction{}
	}
	return &Redaction{paths: [][]string{}, known: knownOf(slices.Concat(r.heldBy(secret), r.Known, r.Unseen)), values: true}
}

// told are items as the model is shown them.
func (x *Redaction) told(items []Item) []Item {
	if !x.Hides() {
		return items
	}
	out := slices.Clone(items)
	for i := range out {
		if out[i].Kind != ItemMessage {
			out[i].Text = x.Text(out[i].Text)
		}
	}
	return out
}
