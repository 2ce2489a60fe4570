package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/signals"
)

func (a *app) ledgerResolveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "resolve KEY --happened JSON | --did-not-happen --reason HOW", Short: "Says what became of an effect in doubt whose run has ended", Args: cobra.ExactArgs(1),
		Long: `Says what became of an effect in doubt whose run has ended, once you have found out on
the other side. It is settled for good; who found out, and how, stays in the ledger.
Of a run under way the step's gate is decided instead (interlock gate happened).

A worker does it, which knows what the tool's results look like. Where none has the
agent's version any more, --unchecked takes the result as it is.`,
		Example: `  interlock ledger resolve 0f3c3ad1c6f64f6d8c5f6e4c1a0b9d8e --happened '{"id":"r-1042"}' --reason "seen in the bank's list" --as olga --tenant acme
  interlock ledger resolve 0f3c3ad1c6f64f6d8c5f6e4c1a0b9d8e --did-not-happen --reason "no trace of it" --as olga --tenant acme`,
	}
	output, who := outputFlag(cmd), callerFlags(cmd)
	in := signals.Resolution{}
	var result string
	var not bool
	cmd.Flags().StringVar(&result, "happened", "", "it happened: what the tool would have answered, as `JSON`, @FILE, or - for stdin")
	cmd.Flags().BoolVar(&not, "did-not-happen", false, "it did not happen")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "`how` you found out; it stays in the ledger")
	cmd.Flags().BoolVar(&in.Unchecked, "unchecked", false, "take the result although no worker has the agent's version")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if strings.TrimSpace(in.Reason) == "" {
			return usagef("a resolution needs --reason: how you found out")
		}
		in.Happened = cmd.Flags().Changed("happened")
		if in.Happened == not {
			return usagef("say either --happened with the result, or --did-not-happen")
		}
		if in.Happened {
			if in.Result, err = a.bodyOf(result); err != nil {
				return err
			}
			if in.Result == nil {
				return usagef("--happened needs the result, as the tool would have answered it")
			}
		}
		if err := who.ready(); err != nil {
			return err
		}
		s, err := a.openFor(cmd, "")
		if err != nil {
			return err
		}
		defer s.close()
		in.Tenant, in.Key, in.Principal = s.tenant, args[0], who.principal()
		if err := s.starter.ResolveEffect(cmd.Context(), in); err != nil {
			return err
		}
		e, err := s.store.Effect(cmd.Context(), s.tenant, in.Key)
		if err != nil {
			return err
		}
		l := ledgerLineOf(e)
		return a.show(output, l, func(w io.Writer) error { return shownEffect{ledgerLine: l}.print(w) })
	}
	return cmd
}

func (a *app) ledgerSweepCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sweep", Short: "Looks after effects that may have happened and whose runs have ended", Args: cobra.NoArgs,
		Long: `Has a worker look at all effects, of all tenants, that may have happened and that no
attempt can be at any more. A run under way sees to its own. Where the run has
ended, or was terminated, the other side is asked where the tool can do that; else
the effect is in doubt, and interlock ledger list --state in_doubt lists it.

With --every Temporal does it again and again, by a schedule of the task queue;
--every 0s ends that.`,
		Example: `  interlock ledger sweep
  interlock ledger sweep --every 10m`,
	}
	output := outputFlag(cmd)
	every := cmd.Flags().Duration("every", 0, "do it every so often, from now on; 0s ends it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		scheduled := cmd.Flags().Changed("every")
		if scheduled && *every != 0 && *every < time.Minute {
			return usagef("--every %s is too often: give 1m or more, or 0s to end it", *every)
		}
		s, err := a.open(cmd, false)
		if err != nil {
			return err
		}
		defer s.close()
		if scheduled {
			if err := s.starter.ScheduleSweep(cmd.Context(), *every); err != nil {
				return err
			}
			return a.show(output, map[string]string{"every": every.String()}, func(w io.Writer) error {
				text := fmt.Sprintf("A sweep every %s, by one of Temporal's schedules (temporal schedule list)\n", *every)
				if *every == 0 {
					text = "No sweep is scheduled any more\n"
				}
				_, err := io.WriteString(w, text)
				return err
			})
		}
		report, err := s.starter.Sweep(cmd.Context())
		if agent.ErrorCode(err) == agent.CodeUnavailable && err != nil {
			return agent.Errorf(agent.CodeUnavailable, "%w (where a worker has begun it, it goes on: the same command waits for its end)", err)
		}
		if err != nil {
			return err
		}
		return a.show(output, report, func(w io.Writer) error { return printSwept(w, report) })
	}
	return cmd
}

func printSwept(w io.Writer, r signals.Swept) error {
	p := &printer{w: w}
	if r.Looked == 0 {
		p.line("Nothing is stranded.")
		return p.err
	}
	p.line("%d effects were stranded:", r.Looked)
	for _, n := range []struct {
		count int
		what  string
	}{{r.Alive, "are of runs under way, which see to them"}, {r.Applied, "happened: the other side says so"}, {r.NotApplied, "did not happen: the other side says so"},
		{r.Waiting, "were in doubt already"}, {r.InDoubt, "are in doubt: interlock ledger list --state in_doubt"}, {len(r.Unasked), "could not be asked about:"}} {
		if n.count > 0 {
			p.line("  %-4d %s", n.count, n.what)
		}
	}
	for _, u := range r.Unasked {
		p.line("       %s of %s: %s", u.Key, u.Tenant, inline(u.Reason))
	}
	return p.err
}
