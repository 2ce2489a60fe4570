package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/api/visible"
	"interlock/store"
)

func (a *app) gateCommand() *cobra.Command {
	cmd := group("gate", "Lists, shows and decides gates", `Lists, shows and decides gates: the points at which a run waits for a person.

A verdict names what was shown by its digest. If that changed meanwhile, the
gate is void and the verdict decides nothing.`,
		a.gateListCommand(), a.gateShowCommand(), a.gateApproveCommand(), a.gateRejectCommand(),
		a.gateReturnCommand(), a.gateEditCommand(), a.gateTakeBackCommand(), a.gateAnswerCommand(),
		a.gateHappenedCommand(), a.gateDidNotHappenCommand())
	a.sessionFlags(cmd)
	return cmd
}

// gateLine is a gate in a list, and all of it.
type gateLine struct {
	Address    string     `json:"address"`
	FirstRunID string     `json:"first_run_id,omitempty"`
	Agent      string     `json:"agent"`
	Gate       agent.Gate `json:"gate"`
}

func (a *app) gateListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "Lists a tenant's gates, oldest first", Args: cobra.NoArgs,
		Example: `  interlock gate list --tenant acme --role refunds
  interlock gate list --tenant acme --older-than 4h -o jsonl`,
	}
	output := outputFlag(cmd)
	status := &choice{"open", []string{"open", "approved", "rejected", "returned", "edited", "answered", "resolved", "expired", "void", "withdrawn", "any"}}
	cmd.Flags().Var(status, "status", "only gates of this status")
	var f store.GateFilter
	cmd.Flags().StringVar(&f.Role, "role", "", "only gates that this `role` may decide")
	cmd.Flags().StringVar(&f.Agent, "agent", "", "only gates of this `agent`'s runs")
	cmd.Flags().StringVar(&f.Address, "address", "", "only gates of the run with this `address`")
	older := cmd.Flags().Duration("older-than", 0, "only gates that were opened so long ago")
	limitFlag(cmd, &f.Limit, "gates at most")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkLimit(f.Limit, "list"); err != nil {
			return err
		}
		if *older < 0 {
			return usagef("--older-than %s is no age: give a duration such as 4h", *older)
		}
		if status.value != "any" {
			f.Status = agent.GateStatus(status.value)
		}
		if *older > 0 {
			f.Before = time.Now().Add(-*older)
		}
		s, err := a.openFor(cmd, f.Address)
		if err != nil {
			return err
		}
		defer s.close()
		rows, err := s.starter.Gates(cmd.Context(), s.tenant, f)
		if err != nil {
			return err
		}
		lines := []gateLine{}
		all := &store.Redactions{Reader: s.store}
		for _, r := range rows {
			x := all.Of(cmd.Context(), store.Chain{Tenant: s.tenant, Address: r.Address, FirstRunID: r.FirstRunID})
			lines = append(lines, gateLine{r.Address, r.FirstRunID, r.Agent, agent.Redacted(x, r.Gate)})
		}
		if len(lines) == f.Limit {
			defer fmt.Fprintf(a.err, "There may be more: narrow the list, or give a --limit up to 500\n")
		}
		return list(a, output, map[string]any{"gates": lines}, lines, func(w io.Writer) error { return printGates(w, lines) })
	}
	return cmd
}

func printGates(w io.Writer, lines []gateLine) error {
	p := &printer{w: w}
	if len(lines) == 0 {
		p.line("There are no such gates.")
		return p.err
	}
	rows := [][]string{{"ADDRESS", "GATE", "STATUS", "AGE", "EXPIRES", "MAY DECIDE", "APPROVED", "ASKED BY", "TOOL", "TITLE"}}
	for _, l := range lines {
		g := l.Gate
		expires := "-"
		if g.ExpiresAt != nil && g.Status == agent.GateOpen {
			expires = "in " + age(time.Now().Add(-time.Until(*g.ExpiresAt)))
		}
		rows = append(rows, []string{l.Address, g.ID, string(g.Status), age(g.OpenedAt), expires, inline(deciders(g)), approvals(g), inline(askedBy(g)), g.Tool, inline(g.Title)})
	}
	p.table(rows)
	return p.err
}

// shownGate is a gate with what stands beside it.
type shownGate struct {
	gateLine
	Run        agent.RunStatus             `json:"run"`
	Provenance map[string]agent.Provenance `json:"provenance"` // of the Reads fields, now
	Misleading []string                    `json:"misleading"` // what its texts hold that does not show as what it is
	run        *agent.Run
}

func (a *app) gateShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ADDRESS GATE", Short: "Shows a gate whole: what will run, on which grounds, and who may decide", Args: cobra.ExactArgs(2),
		Long: `Shows a gate whole: the tool and its exact arguments, nothing left out, the fields
that the decision rests on with where they come from, earlier refusals, who may
decide until when, and the digest that a verdict names. Characters that would
mislead stand as \uXXXX, which in the arguments is the same JSON. Sensitive values are
masked: who decides about the gate gives --unmask.`,
	}
	output := outputFlag(cmd)
	unmask := cmd.Flags().Bool("unmask", false, "show the sensitive values of this gate, to decide about it")
	cmd.RunE = a.about(true, func(ctx context.Context, s *session, address string, rest []string) error {
		g, err := s.gate(ctx, address, rest[0])
		if err != nil {
			return err
		}
		if x := g.run.Redaction(); *unmask {
			g.run = agent.Redacted(g.run.RedactionAt(g.Gate), g.run)
		} else {
			g.run, g.Gate = agent.Redacted(x, g.run), agent.Redacted(x, g.Gate)
		}
		return a.show(output, g, func(w io.Writer) error { return g.print(w) })
	})
	return cmd
}

// gate reads a gate and the run that it stands in.
func (s *session) gate(ctx context.Context, address, id string) (*shownGate, error) {
	row, err := s.starter.Gate(ctx, address, id)
	if err != nil {
		return nil, err
	}
	events, err := s.events(ctx, address)
	if err != nil {
		return nil, err
	}
	run, err := agent.Reduce(events)
	if err != nil {
		return nil, err
	}
	g := &shownGate{gateLine: gateLine{row.Address, row.FirstRunID, row.Agent, row.Gate}, Run: run.Status, Provenance: map[string]agent.Provenance{}, Misleading: []string{}, run: run}
	for _, f := range row.Gate.Reads {
		if p, ok := run.Provenance[f]; ok {
			g.Provenance[f] = p
		}
	}
	g.Misleading = append(g.Misleading, visible.Gate(row.Gate)...)
	return g, nil
}

func (g *shownGate) print(w io.Writer) error {
	p := &printer{w: w}
	gate := g.Gate
	p.line("Gate %s of %s, %s", gate.ID, g.Address, gate.Status)
	printGate(p, gate, g.run)
	p.line("  opened      %s (%s ago)", stamp(gate.OpenedAt), age(gate.OpenedAt))
	p.line("  digest      %s", gate.Digest)
	if gate.Status != agent.GateOpen {
		p.line("  closed      %s", byWhom(gate))
	}
	if len(g.Misleading) > 0 {
		p.line("\nCAREFUL: it holds %s. They stand as \\uXXXX above.", strings.Join(g.Misleading, ", "))
	}
	return p.err
}
