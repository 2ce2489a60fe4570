package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/signals"
)

func (a *app) gateApproveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "approve ADDRESS GATE", Short: "Approves what a gate shows: it runs, exactly so", Args: cobra.ExactArgs(2),
		Example: `  interlock gate approve acme/refund/ticket-311 3.1 --as ann --role refunds
  interlock gate approve acme/refund/ticket-311 3.1 --digest 59441b71916571a0c7c38b92f1fbd8f0 --as ann --role refunds`,
	}
	return a.deciding(cmd, &signals.Verdict{Verdict: agent.Approve})
}

func (a *app) gateRejectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "reject ADDRESS GATE --reason WHY", Short: "Rejects what a gate shows; code remembers it", Args: cobra.ExactArgs(2),
		Long: `Rejects what a gate shows. The model is told the reason, and code refuses the same
call while the fields that the gate read are unchanged.`,
		Example: `  interlock gate reject acme/refund/ticket-311 3.1 --reason "no damage on the photo" --as ann --role refunds`,
	}
	v := &signals.Verdict{Verdict: agent.Reject}
	cmd.Flags().StringVar(&v.Reason, "reason", "", "`why`; the model and the user are told")
	return a.deciding(cmd, v)
}

func (a *app) gateHappenedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "happened ADDRESS GATE --result JSON --reason HOW", Short: "Says that a step in doubt happened", Args: cobra.ExactArgs(2),
		Long: `Says that a step in doubt happened, once you have found out on the other side. The
result goes into the run's state and into the ledger, as the tool would have
answered it: the step is never run again.`,
		Example: `  interlock gate happened acme/refund/ticket-311 3.1-doubt --result '{"id":"r-1042"}' --reason "seen in the bank's list" --as olga --role operator`,
	}
	v, result := &signals.Verdict{Verdict: agent.Happened}, ""
	cmd.Flags().StringVar(&v.Reason, "reason", "", "`how` you found out; it stays in the journal and the ledger")
	cmd.Flags().StringVar(&result, "result", "", "what the tool would have answered, as `JSON`")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		j, err := agent.Canonical([]byte(result))
		if err != nil {
			return usagef("--result is no JSON that is accepted: %v; give what the tool would have answered", err)
		}
		v.Result = j
		return nil
	}
	return a.deciding(cmd, v)
}

func (a *app) gateDidNotHappenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "did-not-happen ADDRESS GATE --reason HOW [--again]", Short: "Says that a step in doubt did not happen", Args: cobra.ExactArgs(2),
		Long: `Says that a step in doubt did not happen, once you have found out on the other side.
It is given up, and the model is told; or with --again it is run once more.`,
		Example: `  interlock gate did-not-happen acme/refund/ticket-311 3.1-doubt --again --reason "no trace of it in the bank's list" --as olga --role operator`,
	}
	v := &signals.Verdict{Verdict: agent.DidNotHappen}
	cmd.Flags().StringVar(&v.Reason, "reason", "", "`how` you found out; it stays in the journal and the ledger")
	cmd.Flags().BoolVar(&v.Again, "again", false, "run it once more")
	return a.deciding(cmd, v)
}

// digestLength: less of a digest could be met by other arguments on purpose.
const digestLength = 32

// deciding makes a command that gives a verdict. What it decides on is named by
// its digest, or shown and confirmed at the terminal: never something unseen.
func (a *app) deciding(cmd *cobra.Command, given *signals.Verdict) *cobra.Command {
	return a.decidingWith(cmd, given, func(context.Context, *session, string, []string, *signals.Verdict) error { return nil })
}

// reasons say why a verdict needs its reason.
var reasons = map[agent.VerdictValue]string{
	agent.Reject:       "a reject needs --reason: the model and the user are told why",
	agent.Return:       "a return needs --reason: the note that the model is told",
	agent.Edit:         "an edit needs --reason: the model and the user are told why",
	agent.Happened:     "happened needs --reason: how you found out",
	agent.DidNotHappen: "did_not_happen needs --reason: how you found out",
}

// decidingWith fills in what the run must be asked for, from the arguments behind
// the gate.
func (a *app) decidingWith(cmd *cobra.Command, given *signals.Verdict, fill func(context.Context, *session, string, []string, *signals.Verdict) error) *cobra.Command {
	digest := cmd.Flags().String("digest", "", "`digest` of the gate as it was shown to you; without it the gate is shown and you are asked")
	output, who, wait := outputFlag(cmd), callerFlags(cmd), waitFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if why, needed := reasons[given.Verdict]; needed && strings.TrimSpace(given.Reason) == "" {
			return usagef("%s", why)
		}
		switch {
		case *digest != "" && len(*digest) < digestLength:
			return usagef("--digest %q is cut short: it has %d digits, as `interlock gate show %s %s` shows it", *digest, digestLength, args[0], args[1])
		case *digest == "" && !a.terminal:
			return usagef("give the --digest of what was shown to you (`interlock gate show %s %s`): there is no terminal to show it on", args[0], args[1])
		}
		return a.about(*digest == "", func(ctx context.Context, s *session, address string, rest []string) error {
			v := *given
			v.Gate, v.Digest = rest[0], *digest
			if err := fill(ctx, s, address, rest[1:], &v); err != nil {
				return err
			}
			if v.Digest == "" {
				var err error
				if v.Digest, err = a.confirmed(ctx, s, address, v); err != nil {
					return err
				}
			}
			if err := who.ready(); err != nil {
				return err
			}
			v.ID, v.Principal = who.id, who.principal()
			return who.unanswered(a.decide(ctx, s, address, v, output, wait))
		})(cmd, args)
	}
	return cmd
}

// decide gives a verdict. One that decided nothing is a conflict.
func (a *app) decide(ctx context.Context, s *session, address string, v signals.Verdict, output *choice, wait *waiting) error {
	r := sent{Address: address, ID: v.ID}
	var err error
	if r.Receipt, err = s.starter.Decide(ctx, address, v); err != nil {
		return err
	}
	if r.Receipt.Status == agent.Voided {
		if err := a.show(output, r, func(io.Writer) error { return nil }); err != nil {
			return err
		}
		return agent.Errorf(agent.CodeConflict, "the verdict decided nothing: %s%s. See `interlock gate show %s %s`",
			r.Receipt.Reason, standing(r.Receipt.Gate), address, v.Gate)
	}
	if wait.set() {
		if r.Now, err = s.settled(ctx, address, r.Receipt.Seq, wait); err != nil {
			return err
		}
	}
	s.recorded(ctx, address, r.seen())
	return a.show(output, r, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s of gate %s by %s: ", v.Verdict, v.Gate, inline(principal(&v.Principal, false)))
		if err != nil {
			return err
		}
		return r.print(w)
	})
}

// standing says how a gate stands that a verdict did not decide.
func standing(g *agent.GateOutcome) string {
	if g == nil || g.Status == "" || g.Status == agent.GateOpen {
		return ""
	}
	text := fmt.Sprintf("; the gate is %s", g.Status)
	if g.By != "" {
		text += " by " + g.By
	}
	return text
}

// confirmed shows a gate at the terminal and returns its digest once somebody
// has typed the verdict.
func (a *app) confirmed(ctx context.Context, s *session, address string, v signals.Verdict) (digest string, err error) {
	g, err := s.gate(ctx, address, v.Gate)
	if err != nil {
		return "", err
	}
	if g.Gate.Status != agent.GateOpen {
		return "", agent.Errorf(agent.CodeConflict, "gate %s is %s%s: there is nothing to decide", v.Gate, g.Gate.Status, because(byWhom(g.Gate)))
	}
	if err := g.print(screen{a.err}); err != nil {
		return "", err
	}
	switch {
	case v.Verdict == agent.Edit:
		fmt.Fprintf(screen{a.err}, "\nwith these arguments instead: %s\n", inline(v.Args.String()))
	case v.Answer != nil:
		fmt.Fprintf(screen{a.err}, "\nyour answer: %s\n", inline(answerWords(*v.Answer)))
	}
	fmt.Fprintf(a.err, "\nType `%s` to %s exactly this, anything else to leave it: ", v.Verdict, v.Verdict)
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case line := <-linesOf(a.in):
		if line.err == nil && strings.EqualFold(strings.TrimSpace(line.text), string(v.Verdict)) {
			return g.Gate.Digest, nil
		}
	}
	return "", fmt.Errorf("no verdict was given: gate %s is as it was", v.Gate)
}
