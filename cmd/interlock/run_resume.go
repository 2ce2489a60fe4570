package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/signals"
	"interlock/starter"
)

func (a *app) runResumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "resume ADDRESS... | --all", Short: "Lets paused runs go on; a budget at its limit is granted once more", Args: cobra.ArbitraryArgs,
		Long: `Lets paused runs go on: the ones named, or with --all every paused one of a tenant
whose reason begins with --reason. A budget that a run was paused for is granted
once more. One line a run; where some of them cannot be resumed the others are,
and the exit code is 1.`,
		Example: `  interlock run resume acme/refund/ticket-311
  interlock run resume --all --tenant acme --reason model --note "the provider is back"`,
	}
	output, who := outputFlag(cmd), callerFlags(cmd)
	all := cmd.Flags().Bool("all", false, "every paused run of the tenant")
	in := starter.ResumeAll{}
	cmd.Flags().StringVar(&in.Reason, "reason", "", "with --all: only runs whose reason begins with this `prefix`")
	cmd.Flags().StringVar(&in.Agent, "agent", "", "with --all: only runs of this `agent`")
	cmd.Flags().StringVar(&in.Note, "note", "", "`why`; it is recorded")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := resumes(args, *all, in); err != nil {
			return err
		}
		open := func(cmd *cobra.Command) (*session, error) { return a.open(cmd, false) }
		if *all {
			open = func(cmd *cobra.Command) (*session, error) { return a.openFor(cmd, "") }
		}
		s, err := open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		if err := who.ready(); err != nil {
			return err
		}
		in.ID, in.Principal = who.id, who.principal()
		var found []starter.Resumed
		if *all {
			found, err = s.starter.ResumeAll(cmd.Context(), s.tenant, in)
		} else {
			found = s.resume(cmd.Context(), args, in)
		}
		return who.unanswered(a.showResumed(output, found, err))
	}
	return cmd
}

// resumes checks what is named before anything is resumed.
func resumes(addresses []string, all bool, in starter.ResumeAll) error {
	switch {
	case all && len(addresses) > 0:
		return usagef("--all and addresses: name the runs, or give --all")
	case !all && len(addresses) == 0:
		return usagef("which run? Give its address, or --all with --reason")
	case !all && (in.Reason != "" || in.Agent != ""):
		return usagef("--reason and --agent choose among all paused runs: they need --all; why you resume is --note")
	case all && in.Reason == "":
		return usagef("--all needs --reason: a prefix of what the runs are paused for, such as model or budget:")
	}
	for _, address := range addresses {
		if err := checkAddress(address); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) resume(ctx context.Context, addresses []string, in starter.ResumeAll) []starter.Resumed {
	var found []starter.Resumed
	for _, address := range addresses {
		r := starter.Resumed{Address: address}
		r.Receipt, r.Err = s.starter.Resume(ctx, address, signals.Resume{ID: in.ID, Principal: in.Principal, Reason: in.Note})
		if r.Err == nil {
			s.recorded(ctx, address, r.Receipt.Seq)
		}
		found = append(found, r)
	}
	return found
}

// resumedLine is what came of one run.
type resumedLine struct {
	starter.Resumed
	Code  agent.Code `json:"code,omitempty"`
	Error string     `json:"error,omitempty"`
}

// showResumed writes a line a run. One run that failed alone gives its own exit
// code.
func (a *app) showResumed(output *choice, found []starter.Resumed, err error) error {
	lines := []resumedLine{}
	failed, last := 0, error(nil)
	for _, r := range found {
		l := resumedLine{Resumed: r}
		if r.Err != nil {
			l.Code, l.Error, last = agent.ErrorCode(r.Err), r.Err.Error(), r.Err
			failed++
		}
		lines = append(lines, l)
	}
	written := list(a, output, map[string]any{"runs": lines}, lines, func(w io.Writer) error { return printResumed(w, lines) })
	switch {
	case err != nil:
		return fmt.Errorf("%d resumed, then: %w", len(found)-failed, err)
	case written != nil:
		return written
	case failed == 1 && len(found) == 1:
		return last
	case failed > 0:
		return fmt.Errorf("%d of %d runs were not resumed: the same again tries those once more", failed, len(found))
	}
	return nil
}

func printResumed(w io.Writer, lines []resumedLine) error {
	p := &printer{w: w}
	for _, l := range lines {
		switch {
		case l.Error != "":
			p.line("%s: not resumed: %s", l.Address, inline(l.Error))
		case l.Receipt.Status == agent.Repeated:
			p.line("%s: resumed before", l.Address)
		default:
			p.line("%s: resumed%s", l.Address, because(inline(l.Reason)))
		}
	}
	if len(lines) == 0 {
		p.line("No run is paused for that.")
	}
	return p.err
}
