package main

import (
	"fmt"
	"io"
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

func short(digest string) string { return digest[:min(len(digest), 12)] }
