package main

import (
	"fmt"
	"io"
)

// print writes the report for people.
func (r *report) print(w io.Writer) error {
	p := &printer{w: w}
	r.printTimeline(p)
	r.printSteps(p)
	r.printGates(p)
	r.printState(p)
	p.title("Outside")
	for _, f := range r.Refunds {
		p.line("  shop       refund %s: %s for order %s", f.ID, f.Amount, f.OrderID)
	}
	if len(r.Refunds) == 0 {
		p.line("  shop       no refund")
	}
	for _, m := range r.Receipts {
		p.line("  mail       %s to %s: %s", m.ID, m.To, m.Subject)
	}
	if len(r.Receipts) == 0 {
		p.line("  mail       no receipt")
	}
	p.title("Cost")
	p.line("  Temporal   %d history events, %d bytes", r.History.Events, r.History.Bytes)
	p.line("  model      %d calls, %d bytes of requests in all (the last: %d), %d tokens", r.Model.Calls, r.Model.BytesTotal, r.Model.BytesLast, r.Model.Tokens)
	return p.err
}

func (r *report) printTimeline(p *printer) {
	p.title(fmt.Sprintf("Journal of run %s (%d events; what goes without saying is left out)", r.Run.ID, r.Events))
	p.line("   seconds  who       what")
	for _, e := range r.journal {
		timeline{since: r.journal[0].At}.write(p, e)
	}
}

func (r *report) printSteps(p *printer) {
	p.title("Steps")
	for _, s := range r.Steps {
		p.line("  %-5s  %-14s  %-10s  %s", s.ID, s.Tool, s.Status, s.reason)
	}
}

func (r *report) printGates(p *printer) {
	p.title("Gates")
	for _, g := range r.Gates {
		p.line("  %-5s  %-14s  %s", g.ID, g.Status, g.Title)
		p.line("  %-5s  %-14s  by %s%s", "", "", principal(g.Principal, g.Verified), because(g.Reason))
	}
	if len(r.Gates) == 0 {
		p.line("  none: nobody was asked")
	} else {
		p.line("  (unverified: the demo signs nothing, so nothing proves who it was)")
	}
	if len(r.Rulings) > 0 {
		p.title("Rulings (a person's refusals, which code enforces)")
	}
	for _, g := range r.Rulings {
		p.line("  %-5s  %s, rejected by %s: %s", g.ID, g.Title, g.By.Subject, g.Reason)
	}
}

func (r *report) printState(p *printer) {
	p.title(fmt.Sprintf("State: %s in phase %s", r.Run.Status, r.Run.Phase))
	names, values := members(r.Run.State)
	for _, n := range names {
		v := value(values[n])
		if empty(values[n]) {
			v = "-"
		}
		p.line("  %-11s  %-10s  %s", n, v, origin(r.run, n))
	}
}
