package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/signals"
)

func (a *app) rulingCommand() *cobra.Command {
	cmd := group("ruling", "Lists, lifts and confirms what a run must not do again", `Lists, lifts and confirms rulings: the refusals that a run remembers. A reject at a
gate makes one. It binds while the fields that the gate read are unchanged: code
refuses the same call. The model may draft one, which binds nothing until a person
confirms it.`,
		a.rulingListCommand(), a.rulingLiftCommand(), a.rulingConfirmCommand())
	a.sessionFlags(cmd)
	return cmd
}

// rulingLine is a ruling in a list.
type rulingLine struct {
	agent.Ruling
	Status agent.RulingStatus `json:"status"`
}

func (a *app) rulingListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list ADDRESS", Short: "Lists the rulings of a run, oldest first", Args: cobra.ExactArgs(1),
		Example: `  interlock ruling list acme/refund/ticket-311`,
	}
	output := outputFlag(cmd)
	cmd.RunE = a.about(false, func(ctx context.Context, s *session, address string, _ []string) error {
		run, err := s.starter.Get(ctx, address)
		if err != nil {
			return err
		}
		lines := []rulingLine{}
		for _, u := range run.Rulings {
			lines = append(lines, rulingLine{u, run.RulingStatus(u)})
		}
		lines = agent.Redacted(run.Redaction(), lines)
		return list(a, output, map[string]any{"address": address, "rulings": lines}, lines, func(w io.Writer) error { return printRulings(w, lines) })
	})
	return cmd
}

func printRulings(w io.Writer, lines []rulingLine) error {
	p := &printer{w: w}
	if len(lines) == 0 {
		p.line("There are no rulings.")
		return p.err
	}
	rows := [][]string{{"RULING", "STATUS", "AGE", "BY", "TOOL", "WHAT", "WHY"}}
	for _, l := range lines {
		why := l.Reason
		if l.Lifted != nil {
			why += "; lifted by " + l.Lifted.By.Subject + because(l.Lifted.Reason)
		}
		if l.Status == agent.RulingBinds && len(l.Reads) > 0 {
			why += "; while " + strings.Join(l.Reads, " and ") + " stay"
		}
		rows = append(rows, []string{l.ID, string(l.Status), age(l.At), inline(l.By.Subject), l.Tool, inline(l.Title), inline(why)})
	}
	p.table(rows)
	return p.err
}

func (a *app) rulingLiftCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lift ADDRESS RULING --reason WHY", Short: "Lifts a ruling, or drops the draft of one", Args: cobra.ExactArgs(2),
		Long: `Lifts a ruling: the same call goes to a person again, who sees what was ruled and by
whom it was lifted. The model is told in its next turn. Of a draft it drops the
draft. It needs a role that may decide about the call, or an operator's.`,
		Example: `  interlock ruling lift acme/refund/ticket-311 3.1 --reason "a photo came" --as ann --role refunds`,
	}
	reason := cmd.Flags().String("reason", "", "`why`; it is recorded, and the model is told")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if strings.TrimSpace(*reason) == "" {
			return usagef("a lift needs --reason: it is recorded, and the model is told")
		}
		return nil
	}
	return a.sending(cmd, func(ctx context.Context, s *session, address string, rest []string, c *caller) (agent.Receipt, error) {
		return s.starter.LiftRuling(ctx, address, signals.LiftRuling{ID: c.id, Ruling: rest[0], Principal: c.principal(), Reason: *reason})
	})
}

func (a *app) rulingConfirmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "confirm ADDRESS RULING", Short: "Makes a draft of the model's binding", Args: cobra.ExactArgs(2),
		Long: `Makes the draft of a ruling, which the model proposed, binding: code refuses the call
that ruling list shows while the fields that it rests on are unchanged. It needs a
role that may decide about the call, or an operator's.`,
		Example: `  interlock ruling confirm acme/refund/ticket-311 draft-c3_1 --as ann --role refunds`,
	}
	reason := cmd.Flags().String("reason", "", "`why`, instead of the model's reason")
	return a.sending(cmd, func(ctx context.Context, s *session, address string, rest []string, c *caller) (agent.Receipt, error) {
		return s.starter.ConfirmRuling(ctx, address, signals.ConfirmRuling{ID: c.id, Ruling: rest[0], Principal: c.principal(), Reason: *reason})
	})
}
