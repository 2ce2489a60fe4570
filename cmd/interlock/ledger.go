package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/store"
)

func (a *app) ledgerCommand() *cobra.Command {
	cmd := group("ledger", "Lists, shows and resolves effects", `Lists, shows and resolves effects: what the tools of all runs have done, what was
refused, and what nobody knows. A tool whose effect is in its own database
(Transactional) has its rows there.

States: applied, refused (for good), undone, not_applied (claimed, and certainly
not done), open (an attempt runs, or it is not known what it did), in_doubt (a
person must find out).`,
		a.ledgerListCommand(), a.ledgerShowCommand(), a.ledgerResolveCommand(), a.ledgerSweepCommand())
	a.sessionFlags(cmd)
	return cmd
}

// ledgerLine is a row of the ledger.
type ledgerLine struct {
	Key       string            `json:"key"`
	State     store.EffectState `json:"state"`
	Address   string            `json:"address"`
	Scope     string            `json:"scope"`
	Step      string            `json:"step"`
	Agent     string            `json:"agent"`
	Version   int               `json:"version"`
	Tool      string            `json:"tool"`
	Effect    agent.Effect      `json:"effect"`
	Ordinal   int               `json:"ordinal"`
	Args      agent.JSON        `json:"args"`
	Result    agent.JSON        `json:"result,omitempty"`
	Whole     *agent.Blob       `json:"whole,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	By        string            `json:"by,omitempty"`
	Attempts  int               `json:"attempts"`
	Released  int               `json:"released"`
	ClaimedAt time.Time         `json:"claimed_at"`
	AttemptAt time.Time         `json:"attempt_at"`
	Deadline  *time.Time        `json:"deadline,omitempty"`
	SettledAt *time.Time        `json:"settled_at,omitempty"`
	DoubtAt   *time.Time        `json:"doubt_at,omitempty"`
	UndoneAt  *time.Time        `json:"undone_at,omitempty"`
	UndoneBy  string            `json:"undone_by,omitempty"`
	Cursor    string            `json:"cursor"`
}

func ledgerLineOf(e store.Effect) ledgerLine {
	l := ledgerLine{Key: e.Key, State: e.State(), Address: e.Address, Scope: e.Scope, Step: e.Step, Agent: e.Agent, Version: e.Version,
		Tool: e.Tool, Effect: e.Kind, Ordinal: e.Ordinal, Args: e.Args, Result: e.Result, Whole: e.Whole, Reason: e.Reason, By: e.By,
		Attempts: e.Attempts, Released: e.Released, ClaimedAt: e.ClaimedAt, AttemptAt: e.AttemptAt, SettledAt: e.SettledAt,
		DoubtAt: e.DoubtAt, UndoneAt: e.UndoneAt, UndoneBy: e.UndoneBy, Cursor: e.Cursor}
	if !e.Deadline.IsZero() {
		l.Deadline = &e.Deadline
	}
	return l
}

func (a *app) ledgerListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "Lists a tenant's effects, oldest first", Args: cobra.NoArgs,
		Long: `Lists a tenant's effects, oldest first: by tool, agent and version, time, state, and
by the instructions that the model had when it asked for them. So it tells what a
bad deploy has done.`,
		Example: `  interlock ledger list --tenant acme --state in_doubt
  interlock ledger list --tenant acme --agent refund --agent-version 3 --tool issue_refund --since 90m -o jsonl
  interlock ledger list --tenant acme --instructions 5d41402a --since 2026-11-29T22:00:00Z --until 1h`,
	}
	output := outputFlag(cmd)
	states := []string{"any"}
	for _, s := range store.EffectStates {
		states = append(states, string(s))
	}
	state := &choice{"any", states}
	cmd.Flags().Var(state, "state", "only effects in this state")
	var f store.EffectFilter
	cmd.Flags().StringVar(&f.Tool, "tool", "", "only effects of this `tool`")
	cmd.Flags().StringVar(&f.Agent, "agent", "", "only effects of this `agent`'s runs")
	cmd.Flags().IntVar(&f.Version, "agent-version", 0, "only effects of runs of this version of the agent")
	cmd.Flags().StringVar(&f.Address, "address", "", "only effects of the run with this `address`")
	cmd.Flags().StringVar(&f.Instructions, "instructions", "", "only effects that the model asked for with the instructions of this `digest`, or of one that begins so")
	between := betweenFlags(cmd, "first claimed")
	cmd.Flags().StringVar(&f.After, "after", "", "go on after the effect with this `cursor`")
	limitFlag(cmd, &f.Limit, "effects at most")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if err := checkLimit(f.Limit, "list"); err != nil {
			return err
		}
		if state.value != "any" {
			f.State = store.EffectState(state.value)
		}
		if f.Since, f.Until, err = between.times(); err != nil {
			return err
		}
		if err := f.Check(); err != nil {
			return usageError{err}
		}
		s, err := a.openFor(cmd, f.Address)
		if err != nil {
			return err
		}
		defer s.close()
		rows, err := s.store.Effects(cmd.Context(), s.tenant, f)
		if err != nil {
			return err
		}
		lines := []ledgerLine{}
		all := &store.Redactions{Reader: s.store}
		for _, e := range rows {
			lines = append(lines, agent.Redacted(all.OfEffect(cmd.Context(), e), ledgerLineOf(e)))
		}
		if len(lines) == f.Limit {
			defer fmt.Fprintf(a.err, "There may be more: give --after %s\n", lines[len(lines)-1].Cursor)
		}
		return list(a, output, map[string]any{"effects": lines}, lines, func(w io.Writer) error { return printLedger(w, lines) })
	}
	return cmd
}

func printLedger(w io.Writer, lines []ledgerLine) error {
	p := &printer{w: w}
	if len(lines) == 0 {
		p.line("There are no such effects.")
		return p.err
	}
	rows := [][]string{{"KEY", "STATE", "AGE", "TOOL", "STEP", "ADDRESS", "VERSION", "REASON"}}
	for _, l := range lines {
		reason := inline(l.Reason)
		if l.By != "" {
			reason = strings.TrimSpace(inline(l.By) + ": " + reason)
		}
		rows = append(rows, []string{l.Key, string(l.State), age(l.ClaimedAt), l.Tool, l.Step, l.Address, fmt.Sprint(l.Version), reason})
	}
	p.table(rows)
	return p.err
}

// shownEffect is a row with the attempts that may have had the effect.
type shownEffect struct {
	ledgerLine
	MayHaveRun []attemptLine `json:"may_have_run"`
}

type attemptLine struct {
	Attempt  int       `json:"attempt"`
	At       time.Time `json:"at"`
	Deadline time.Time `json:"deadline"`
	RunID    string    `json:"run_id,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

func (a *app) ledgerShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show KEY", Short: "Shows an effect whole, with the attempts that may have had it", Args: cobra.ExactArgs(1),
		Example: `  interlock ledger show 0f3c3ad1c6f64f6d8c5f6e4c1a0b9d8e --tenant acme`,
	}
	output := outputFlag(cmd)
	unmask := unmaskFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.openFor(cmd, "")
		if err != nil {
			return err
		}
		defer s.close()
		e, err := s.store.Effect(cmd.Context(), s.tenant, args[0])
		if err != nil {
			return err
		}
		attempts, err := s.store.Attempts(cmd.Context(), s.tenant, args[0])
		if err != nil {
			return err
		}
		shown := shownEffect{ledgerLineOf(e), []attemptLine{}}
		for _, x := range attempts {
			shown.MayHaveRun = append(shown.MayHaveRun, attemptLine{x.N, x.At, x.Deadline, x.Branch, x.Reason})
		}
		if !*unmask {
			shown = agent.Redacted((&store.Redactions{Reader: s.store}).OfEffect(cmd.Context(), e), shown)
		}
		return a.show(output, shown, shown.print)
	}
	return cmd
}

func (s shownEffect) print(w io.Writer) error {
	p := &printer{w: w}
	line := func(label, text string) { p.line("  %-11s %s", label, text) }
	p.line("Effect %s, %s", s.Key, s.State)
	line("call", s.Tool+" "+inline(s.Args.String()))
	line("promise", string(s.Effect))
	line("step", fmt.Sprintf("%s of %s (%s/v%d)", s.Step, s.Address, s.Agent, s.Version))
	if s.Ordinal > 0 {
		line("ordinal", fmt.Sprintf("%d: equal calls before it were refused for good, undone, or are effects of their own", s.Ordinal))
	}
	if s.Result != nil {
		line("result", inline(s.Result.String()))
	}
	if s.Reason != "" {
		line("because", inline(s.Reason))
	}
	if s.By != "" {
		line("found out by", inline(s.By))
	}
	line("attempts", fmt.Sprintf("%d, of which %d certainly did nothing; the first %s", s.Attempts, s.Released, stamp(s.ClaimedAt)))
	for _, x := range s.MayHaveRun {
		text := fmt.Sprintf("attempt %d, of %s, may act until %s", x.Attempt, stamp(x.At), stamp(x.Deadline))
		if x.Reason != "" {
			text += ": " + inline(x.Reason)
		}
		line("", text)
	}
	for _, t := range []struct {
		label string
		at    *time.Time
	}{{"settled", s.SettledAt}, {"in doubt", s.DoubtAt}, {"undone", s.UndoneAt}} {
		if t.at != nil {
			line(t.label, stamp(*t.at))
		}
	}
	if s.UndoneBy != "" {
		line("", "by effect "+s.UndoneBy)
	}
	if s.State == store.StateInDoubt {
		line("next", "find out on the other side; then interlock ledger resolve "+s.Key+", or the step's gate where its run is under way")
	}
	return p.err
}
