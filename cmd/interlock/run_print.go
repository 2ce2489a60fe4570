package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"interlock/agent"
)

// printRun writes a run for whoever has to find out what it is at.
func printRun(w io.Writer, shown shownRun) error {
	p, r := &printer{w: w}, shown.Run
	p.line("%s is %s in phase %s", r.Address(), state(r.Status, r.Reason), r.Phase)
	p.line("  agent      %s version %d, for %s", r.Agent, r.Version, inline(r.User))
	p.line("  started    %s by %s", stamp(r.StartedAt), inline(principal(&r.Principal, r.Principal.Auth != "")))
	p.line("  last       event %d of turn %d, %s (%s ago)", r.Seq, r.Turn, stamp(r.At), age(r.At))
	p.line("  first run  %s", r.FirstRunID)
	if r.Repairs != nil {
		p.line("  repairs    %s (first run %s), which has ended", r.Repairs.Address, r.Repairs.FirstRunID)
	}
	for _, x := range shown.RepairedBy {
		p.line("  repaired   %s", x)
	}
	for _, u := range r.Undo {
		p.line("  to undo    step %s, asked for by %s: %s", u.Step, inline(u.By), inline(u.Reason))
	}
	for _, f := range r.FailedEnd {
		p.line("  left       %s", inline(f))
	}
	if r.Reply != nil {
		p.line("  said last  %s", indented(r.Reply.Text, 13))
	}
	if r.Cancel != nil {
		undo := ""
		if r.Cancel.Undo != "" {
			undo = ", and that what the " + string(r.Cancel.Undo) + " did be undone"
		}
		p.line("  cancel     asked for by %s%s: %s", inline(r.Cancel.Principal.Subject), undo, inline(r.Cancel.Reason))
	}
	printWaits(p, r.Waits())
	printFields(p, r)
	printOpenGates(p, r)
	printSteps(p, r)
	printMemory(p, r)
	printBudget(p, r)
	if b := shown.Bill; b != nil {
		text := fmt.Sprintf("%d calls, %d tokens", b.Calls, b.Usage.Total())
		if b.Twice > 0 {
			text += fmt.Sprintf("; %d of the calls were billed and not used: their answers came too late, or were lost", b.Twice)
		}
		p.line("  billed by the provider: %s", text)
	}
	return p.err
}

// printWaits shows what a run waits for, since when, until when and for whom.
func printWaits(p *printer, waits []agent.Waiting) {
	rows := [][]string{}
	for _, w := range waits {
		what := w.What
		if w.Gate != "" {
			what += " (gate " + w.Gate + ")"
		}
		who := ""
		if len(w.Who) > 0 {
			who = "for " + strings.Join(w.Who, " or ")
		}
		until := ""
		if w.Until != nil {
			until = "until " + stamp(*w.Until) + ", then " + w.Then
		}
		rows = append(rows, []string{"  waits for " + string(w.For), inline(what), inline(who), "since " + stamp(w.Since), until})
	}
	p.table(rows)
}

func printFields(p *printer, r *agent.Run) {
	p.title("State")
	rows := [][]string{}
	names, values := members(r.State)
	for _, n := range names {
		v := inline(value(values[n]))
		if empty(values[n]) {
			v = "-"
		}
		rows = append(rows, []string{"  " + n, v, inline(origin(r, n))})
	}
	p.table(rows)
}

// printOpenGates shows the open gates with the command that shows each whole.
func printOpenGates(p *printer, r *agent.Run) {
	p.title("Gates")
	rows := [][]string{}
	for _, g := range r.Gates {
		if g.Status != agent.GateOpen {
			rows = append(rows, []string{"  " + g.ID, string(g.Status), inline(g.Title), byWhom(g)})
			continue
		}
		rows = append(rows, []string{"  " + g.ID, "open for " + age(g.OpenedAt), inline(g.Title), "may decide: " + deciders(g)})
	}
	if len(rows) == 0 {
		p.line("  none")
	}
	p.table(rows)
	for _, g := range r.Gates {
		if g.Status == agent.GateOpen && len(g.Roles) > 0 {
			p.line("  see: interlock gate show %s %s", r.Address(), g.ID)
		}
	}
}

func printSteps(p *printer, r *agent.Run) {
	p.title("Steps")
	rows := [][]string{}
	for _, s := range r.Steps {
		text := with(s.Tool, s.Args)
		if s.Undoes != "" {
			text += ", undoes step " + s.Undoes
		}
		if s.UndoneBy != "" {
			text += ", undone by step " + s.UndoneBy
		}
		if s.Reason != "" {
			text += ": " + s.Reason
		}
		rows = append(rows, []string{"  " + s.ID, string(s.Status), inline(text)})
	}
	if len(rows) == 0 {
		p.line("  none")
	}
	p.table(rows)
	if n := r.Trimmed.Steps; n > 0 {
		p.line("  and %d older ones: interlock run watch %s", n, r.Address())
	}
}

func printMemory(p *printer, r *agent.Run) {
	if len(r.Facts) > 0 {
		p.title("Facts")
	}
	for _, f := range r.Facts {
		p.line("  turn %d  %q", f.Turn, f.Quote)
	}
	if len(r.Rulings) > 0 {
		p.title("Rulings (a person's refusals, which code enforces)")
	}
	for _, g := range r.Rulings {
		text := fmt.Sprintf("%s, rejected by %s: %s", g.Title, g.By.Subject, g.Reason)
		if status := r.RulingStatus(g); status != agent.RulingBinds {
			text += fmt.Sprintf(" (%s: it refuses nothing)", status)
		}
		p.line("  %-5s  %s", g.ID, inline(text))
	}
}

// printBudget shows what is used of what is allowed. A negative limit is none.
func printBudget(p *printer, r *agent.Run) {
	p.title("Budget")
	b, u := r.Limits.Budget, r.Used
	rows := [][]string{}
	add := func(name string, used, granted, limit int64, unit func(int64) string) {
		text := unit(used) + " without limit"
		if limit >= 0 {
			text = unit(used) + " of " + unit(granted+limit)
		}
		rows = append(rows, []string{"  " + name, text})
	}
	number := func(n int64) string { return fmt.Sprint(n) }
	add("turns", int64(u.Turns), int64(r.Granted.Turns), int64(b.Turns), number)
	add("model calls", int64(u.ModelCalls), int64(r.Granted.ModelCalls), int64(b.ModelCalls), number)
	add("tokens", u.Usage.Total(), r.Granted.Tokens, b.Tokens, number)
	add("active", u.ActiveMS, r.Granted.ActiveMS, b.Active.Milliseconds(), func(ms int64) string {
		return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
	})
	add("refusals in a row", int64(u.Refusals), 0, int64(b.Refusals), number)
	add("tool errors in a row", int64(u.ToolErrors), 0, int64(b.ToolErrors), number)
	p.table(rows)
}
