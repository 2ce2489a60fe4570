package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/signals"
)

func (a *app) gateReturnCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "return ADDRESS GATE --reason NOTE", Short: "Returns what a gate shows, with a note", Args: cobra.ExactArgs(2),
		Long: `Returns what a gate shows, with a note that the model is told. It does not run, and
nothing is remembered against it: the same call may be proposed again.`,
		Example: `  interlock gate return acme/refund/ticket-311 3.1 --reason "ask for a photo first" --as ann --role refunds`,
	}
	v := &signals.Verdict{Verdict: agent.Return}
	cmd.Flags().StringVar(&v.Reason, "reason", "", "the `note`; the model and the user are told")
	return a.deciding(cmd, v)
}

func (a *app) gateTakeBackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "take-back ADDRESS GATE", Short: "Takes your own verdict back, while it has not taken effect", Args: cobra.ExactArgs(2),
		Long: `Takes your own verdict back. That is possible where the gate's policy lets a verdict
wait for a while, and until that is over: gate show says until when. The gate is open
again then, as if nobody had decided.`,
		Example: `  interlock gate take-back acme/refund/ticket-311 3.1 --as ann --role refunds`,
	}
	v := &signals.Verdict{Verdict: agent.TakeBack}
	cmd.Flags().StringVar(&v.Reason, "reason", "", "`why`; it is recorded")
	return a.deciding(cmd, v)
}

func (a *app) gateEditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "edit ADDRESS GATE --args JSON --reason WHY", Short: "Puts a call with other arguments in the place of the one that a gate shows", Args: cobra.ExactArgs(2),
		Long: `Puts a call of the same tool with other arguments in the place of the one that a gate
shows: your proposal, with a step of its own. Give all of the arguments. They are
checked as the tool's, and the policy is judged again: where it lets you decide, and
one approval is enough, the call runs; else a new gate asks others.`,
		Example: `  interlock gate edit acme/refund/ticket-311 3.1 --args '{"order_id":"1042","amount":{"minor":5000,"currency":"EUR"}}' --reason "less the fee" --as ann --role refunds`,
	}
	v, args := &signals.Verdict{Verdict: agent.Edit}, ""
	cmd.Flags().StringVar(&v.Reason, "reason", "", "`why`; the model and the user are told")
	cmd.Flags().StringVar(&args, "args", "", "the new arguments, whole, as `JSON`")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		j, err := agent.Canonical([]byte(args))
		if err != nil {
			return usagef("--args is no JSON that is accepted: %v; give all arguments of the call, as an object", err)
		}
		v.Args = j
		return nil
	}
	return a.deciding(cmd, v)
}

func (a *app) gateAnswerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "answer ADDRESS GATE [--yes | --no] [FIELD=VALUE...]", Short: "Answers a question, as the run's user", Args: cobra.MinimumNArgs(2),
		Long: `Answers a question that a run asks its user. --yes confirms the values that the
question shows, --no does not, and FIELD=VALUE sets a field that it asks for. A
message (run message) is an answer too, which the model interprets.

A VALUE is read as that of run amend. Give --as the run's user.`,
		Example: `  interlock gate answer acme/refund/ticket-311 2.1 --yes --as c-017
  interlock gate answer acme/orders/t-1 4.2 port=8080 --as c-017`,
	}
	v := &signals.Verdict{Verdict: agent.GiveAnswer}
	var yes, no bool
	var object string
	cmd.Flags().BoolVar(&yes, "yes", false, "the values shown are right")
	cmd.Flags().BoolVar(&no, "no", false, "the values shown are not right")
	cmd.Flags().StringVar(&object, "fields", "", "all fields as one `JSON` object, instead of FIELD=VALUE")
	cmd.Flags().StringVar(&v.Reason, "reason", "", "a `word` to it; the model is told")
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		switch {
		case yes && no:
			return usagef("an answer is --yes or --no, not both")
		case !yes && !no && object == "" && len(args) == 2:
			return usagef("say what you answer: --yes, --no, or FIELD=VALUE")
		}
		return nil
	}
	return a.decidingWith(cmd, v, func(ctx context.Context, s *session, address string, rest []string, v *signals.Verdict) error {
		v.Answer = &agent.Answer{}
		if yes || no {
			v.Answer.Confirm = &yes
		}
		if object == "" && len(rest) == 0 {
			return nil
		}
		fields, err := s.fieldsOf(ctx, address, object, rest)
		v.Answer.Fields = fields
		return err
	})
}

// answerWords are an answer as its sender reads it again.
func answerWords(a agent.Answer) string {
	var out []string
	if a.Confirm != nil {
		out = append(out, map[bool]string{true: "yes to the values shown", false: "no to the values shown"}[*a.Confirm])
	}
	if len(a.Fields) > 0 {
		out = append(out, a.Fields.String())
	}
	return strings.Join(out, ", ")
}
