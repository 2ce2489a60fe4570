package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"interlock/agent"
)

// showGate shows an open gate to the demo's reviewer.
func showGate(w io.Writer, g agent.Gate, run *agent.Run) {
	p := &printer{w: w}
	p.line("\nThe run has stopped at a gate. Nothing is refunded until a person decides.\n")
	printGate(p, g, run)
	p.line("  verdict on  digest %s: if a value changes, the gate is void\n", short(g.Digest))
}

// printGate shows what a verdict rests on: what will run, on which grounds, and
// who may decide until when. Nothing is clipped.
func printGate(p *printer, g agent.Gate, run *agent.Run) {
	line := func(label, text string) { p.line("  %-11s %s", label, text) }
	line("Gate "+g.ID, inline(g.Title))
	switch g.Kind {
	case agent.KindAsk:
	case agent.KindDoubt:
		line("may have run", g.Tool+" "+inline(g.Args.String()))
	default:
		line("runs", g.Tool+" "+inline(g.Args.String()))
	}
	if g.Replaces != "" {
		line("instead of", "step "+g.Replaces)
	}
	if g.Policy != "" {
		line("because", inline(g.Policy))
	}
	if g.Risk != "" {
		line("risk", inline(g.Risk))
	}
	if len(g.Askers) > 0 {
		line("asked by", inline(strings.Join(g.Askers, ", ")))
	}
	label := "based on"
	for _, field := range g.Reads {
		line(label, inline(fmt.Sprintf("%s = %s, %s", field, value(g.Shown[field]), origin(run, field))))
		label = ""
	}
	for _, r := range g.Rulings {
		line("earlier", inline(r))
	}
	line("may decide", inline(deciders(g)+rules(g)))
	for _, a := range g.Approvals {
		line("approved", inline(fmt.Sprintf("by %s at %s%s", principal(&a.By, a.Verified), stamp(a.At), because(a.Reason))))
	}
	if e := g.Escalation; e != nil && !e.Done {
		line("from", e.At.Format("2006-01-02 15:04:05 MST")+" also role "+strings.Join(e.Roles, " or "))
	}
	if names, _ := members(asked(g)); len(names) > 0 {
		line("answer", "gate answer, which may set "+strings.Join(names, ", "))
	}
	if g.Kind == agent.KindDoubt {
		line("answer", "gate happened, with the result, or gate did-not-happen, once you have found out")
	}
	if g.ExpiresAt != nil {
		line("until", g.ExpiresAt.Format("2006-01-02 15:04:05 MST")+"; then it expires, which never approves")
	}
}

// rules are what a verdict must fulfil beside the role.
func rules(g agent.Gate) string {
	text := ""
	if g.Quorum > 1 {
		text += fmt.Sprintf(", %d different persons", g.Quorum)
	}
	if g.Distinct {
		text += ", none of those who asked"
	}
	return text
}

// approvals say how many have approved, of how many.
func approvals(g agent.Gate) string {
	if g.Quorum <= 1 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", len(g.Approvals), g.Quorum)
}

// askedBy is who asked first: who edited it, or whom the run serves.
func askedBy(g agent.Gate) string {
	if len(g.Askers) == 0 {
		return "-"
	}
	return g.Askers[0]
}

// asked are the fields that an answer may set, with the schema of each.
func asked(g agent.Gate) agent.JSON {
	var schema struct {
		Properties agent.JSON `json:"properties"`
	}
	if json.Unmarshal(g.Schema, &schema) != nil {
		return nil
	}
	return schema.Properties
}

// origin says where a field's value comes from, and whether the customer has
// confirmed it.
func origin(run *agent.Run, field string) string {
	p, ok := run.Provenance[field]
	if !ok {
		return "never set"
	}
	from := map[string]string{
		"start": "given at the start", "user": "in the user's own words", "model": "set by the model",
		"reviewer": "set by a reviewer", "system": "set by a backend", "follows": "cleared with the field that it follows",
		agent.SourceRepair: "as the repaired run ended",
	}[p.Source]
	if p.Source == agent.SourceAmend {
		from = "set from outside by " + p.By
	}
	if p.Source == "tool" {
		from = "a result of step " + p.Step
		if s := slices.IndexFunc(run.Steps, func(s agent.Step) bool { return s.ID == p.Step }); s >= 0 {
			from = run.Steps[s].Tool + "'s result (step " + p.Step + ")"
		}
	}
	if p.Source == agent.SourceAmend {
		from = "set from outside by " + p.By
	}
	if p.Source == "user" && p.Turn > 0 {
		from += fmt.Sprintf(" (turn %d)", p.Turn)
	}
	if c, ok := run.Confirmed[field]; ok {
		from += fmt.Sprintf(", confirmed by %q", c.Quote)
	}
	return from
}

// value is a JSON value as a person writes it: money as an amount, a text
// without quotes.
func value(j agent.JSON) string {
	var text string
	if json.Unmarshal(j, &text) == nil && text != "" {
		return text
	}
	var m agent.Money
	if json.Unmarshal(j, &m) == nil && m.Currency != "" {
		return m.String()
	}
	return j.String()
}

// assigned is an object as "a = 1, b = 2", without the members that hold
// nothing. What is no object is left as it is.
func assigned(j agent.JSON) string {
	names, values := members(j)
	var out []string
	for _, n := range names {
		switch v := values[n]; {
		case v.String() == "null":
			out = append(out, n+" cleared")
		case !empty(v):
			out = append(out, n+" = "+inline(value(v)))
		}
	}
	if values == nil {
		return j.String()
	}
	return strings.Join(out, ", ")
}

// with is a call as a person reads it.
func with(tool string, args agent.JSON) string { return tool + " (" + assigned(args) + ")" }

// empty reports a value that was never set.
func empty(j agent.JSON) bool {
	switch j.String() {
	case "", "null", `""`, "0", "false", "{}", "[]", `{"currency":"","minor":0}`:
		return true
	}
	return false
}

func short(digest string) string { return digest[:min(len(digest), 12)] }
