package prompt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"interlock/agent"
)

const situationEnd = "[end of the situation]"

// readState splits the shown state into its fields, byte for byte.
func readState(state agent.JSON) (map[string]agent.JSON, error) {
	out := map[string]agent.JSON{}
	if len(state) == 0 {
		return out, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(state, &fields); err != nil {
		return nil, fmt.Errorf("prompt: the shown state is not a JSON object: %w", err)
	}
	for name, raw := range fields {
		out[name] = agent.JSON(raw)
	}
	return out, nil
}

// situation is the last item: how the run stands, as code holds it.
func situation(in Input, c content, state map[string]agent.JSON) string {
	v := in.View
	var s sheet
	s.line("[situation in turn %d]", v.Turn)
	if !v.At.IsZero() {
		s.line("Time: %s, UTC", v.At.UTC().Format("Monday, 2006-01-02 15:04"))
	}
	s.line("Phase: %s", withDoc(in.Phase.Name, in.Phase.Doc))
	if in.Phase.Final {
		s.line("This phase is final.")
	}
	if !v.LastWord {
		s.list("Moves", moveLines(in.Phase))
		s.list("Tools", toolLines(in.Phase))
	}
	s.list("State", stateLines(in.Fields, state, v.Provenance))
	s.list("Facts, in the user's words", factLines(c.facts))
	s.list("Refusals by a person", rulingLines(v.Rulings))
	s.list("Waiting for a person", gateLines(v.Waiting))
	if len(v.Running) > 0 {
		s.line("Running, the outcome is told later: %s", steps(v.Running))
	}
	if len(v.InDoubt) > 0 {
		s.line("In doubt: %s. Nobody knows whether it happened. A person must find out; do not make the call again.", steps(v.InDoubt))
	}
	if left := leftWords(v.Left); left != "" {
		s.line("Budget left: %s", left)
	}
	if gone := goneWords(v, c); gone != "" {
		s.line("No longer shown: %s", gone)
	}
	s.line("Now: %s", now(v, c))
	s.line(situationEnd)
	return strings.Join(s, "\n")
}

func steps(ids []string) string { return inline("step " + strings.Join(ids, ", step ")) }

// sheet is lines of text.
type sheet []string

func (s *sheet) line(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

func (s *sheet) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	s.line("%s:", title)
	for _, l := range lines {
		s.line("- %s", l)
	}
}

func withDoc(name, doc string) string {
	if doc == "" {
		return inline(name)
	}
	return inline(name) + ": " + inline(doc)
}

func moveLines(p Phase) []string {
	var out []string
	for _, m := range p.Moves {
		l := withDoc(m.To, m.Doc)
		if m.Auto {
			l += " (the program makes this move itself)"
		}
		if m.Gated {
			l += " (may wait for a person)"
		}
		out = append(out, l)
	}
	return out
}

func toolLines(p Phase) []string {
	var out []string
	for _, t := range p.Tools {
		l := inline(t.Name)
		if t.Effect != "" {
			l += " (" + inline(t.Effect) + ")"
		}
		if t.Gated {
			l += " (may wait for a person)"
		}
		out = append(out, l)
	}
	return out
}

// stateLines shows each field with where its value comes from: the agent's
// fields in their order, then whatever else the state has, by name.
func stateLines(fields []Field, state map[string]agent.JSON, from map[string]agent.ViewField) []string {
	var names, rest []string
	for _, f := range fields {
		if _, shown := state[f.Name]; shown && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	for name := range state {
		if !slices.Contains(names, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	var out []string
	for _, name := range append(names, rest...) {
		out = append(out, inline(name)+" = "+valid(state[name].String())+provenance(from, name))
	}
	return out
}

func provenance(from map[string]agent.ViewField, name string) string {
	p, ok := from[name]
	if !ok {
		return " | never set"
	}
	text := " | " + source(p.Source)
	if p.Turn > 0 {
		text += fmt.Sprintf(", turn %d", p.Turn)
	}
	if p.VerifiedAt != nil {
		text += " | verified " + stamp(*p.VerifiedAt)
	}
	if p.Shown {
		text += " | shown to the user"
	}
	if p.Confirmed != "" {
		text += " | confirmed: " + quote(p.Confirmed)
	}
	return text
}

// sourceWords says where a value comes from.
var sourceWords = map[string]string{
	"start":    "set at the start",
	"user":     "set by the user",
	"model":    "set by you",
	"tool":     "set by a tool",
	"reviewer": "set by a reviewer",
	"system":   "set by the program's surroundings",
	"amend":    "set from outside the conversation",
	"follows":  "cleared, since the field that it follows changed",
}

func source(name string) string {
	if words, known := sourceWords[name]; known {
		return words
	}
	return "set by " + inline(name)
}

func factLines(facts []agent.Fact) []string {
	var out []string
	for _, f := range facts {
		out = append(out, fmt.Sprintf("turn %d: %s", f.Turn, quote(f.Quote)))
	}
	return out
}

func rulingLines(rulings []agent.ViewRuling) []string {
	var out []string
	for _, r := range rulings {
		l := inline(r.Tool) + ", " + quote(r.Title) + ", because " + quote(r.Reason)
		reads := inline(strings.Join(r.Reads, ", "))
		switch {
		case r.Draft && r.Lifted:
			l += " | your draft: a person has dropped it"
		case r.Draft:
			l += " | your draft: it binds nothing until a person confirms it"
		case r.Lifted:
			l += " | lifted by a person: a new call goes to a person, who sees this refusal"
		case r.Binds && reads == "":
			l += " | binds: the same call is refused"
		case r.Binds:
			l += " | binds: the same call is refused while " + reads + " stay as they are"
		default:
			l += " | binds no more: what it rested on has changed; a new call goes to a person, who sees this refusal"
		}
		out = append(out, l)
	}
	return out
}

func gateLines(gates []agent.ViewGate) []string {
	var out []string
	for _, g := range gates {
		out = append(out, "step "+inline(g.ID)+", "+inline(g.Tool)+", "+quote(g.Title)+" | waits "+waitsFor(g)+soFar(g))
	}
	return out
}

// soFar says how far a gate's decision has come.
func soFar(g agent.ViewGate) string {
	text := ""
	if g.Approved > 0 {
		text += fmt.Sprintf(", approved by %d so far", g.Approved)
	}
	if g.Replaces != "" {
		text += " | in the place of " + stepName(g.Replaces)
	}
	return text
}

func leftWords(l agent.Left) string {
	var parts []string
	if l.Turns != nil {
		parts = append(parts, plural(int64(*l.Turns), "turn"))
	}
	if l.ModelCalls != nil {
		parts = append(parts, plural(int64(*l.ModelCalls), "model call"))
	}
	if l.Tokens != nil {
		parts = append(parts, plural(*l.Tokens, "token"))
	}
	return strings.Join(parts, ", ")
}

// goneWords says what the run no longer shows, and what did not fit.
func goneWords(v agent.View, c content) string {
	var parts []string
	add := func(n int, word string) {
		if n > 0 {
			parts = append(parts, plural(int64(n), word))
		}
	}
	add(v.Earlier.Turns+c.dropped, "earlier turn")
	add(v.Earlier.Results, "earlier result")
	add(v.Earlier.Steps, "earlier step")
	add(len(v.Facts)-len(c.facts), "earlier fact")
	return strings.Join(parts, ", ")
}

// now says what is new, so that code and not a message says what is to be done.
func now(v agent.View, c content) string {
	if v.LastWord {
		return "this is your last word, and the run ends after it. Call finish. Say only what the items above and the state say."
	}
	messages, outcomes := 0, 0
	if n := len(c.turns); n > 0 && c.turns[n-1].open {
		for _, it := range c.turns[n-1].Opening {
			if it.Kind == agent.ItemMessage {
				messages++
			} else {
				outcomes++
			}
		}
	}
	asked := ""
	if step := lastAsk(c); step != "" {
		asked = " It came after your question, " + stepName(step) + "."
	}
	switch {
	case messages > 1:
		return fmt.Sprintf("the last %d user messages above are new and not answered yet.", messages) + strings.Replace(asked, "It", "They", 1)
	case messages == 1:
		return "the last user message above is new and not answered yet." + asked
	case outcomes > 0:
		return "the last outcomes above are new; go on."
	}
	return "the answers to your last calls are new; go on."
}

// lastAsk is the step of a question that the turn before the open one asked, ""
// where it asked none.
func lastAsk(c content) string {
	if len(c.turns) < 2 {
		return ""
	}
	step := ""
	for _, vc := range c.turns[len(c.turns)-2].Calls {
		if asked(vc) {
			step = vc.Answer.Step
		}
	}
	return step
}
