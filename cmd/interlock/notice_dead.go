package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/store"
)

// deadLine is a notice that a target did not take.
type deadLine struct {
	ID       string        `json:"id"`
	Target   string        `json:"target"`
	Kind     string        `json:"type"`
	Address  string        `json:"address"`
	Reason   string        `json:"reason"`
	Retry    int           `json:"retry"`
	BuriedAt time.Time     `json:"buried_at"`
	Notice   agent.JSON    `json:"notice"`
	End      store.DeadEnd `json:"end,omitempty"`
	EndedBy  string        `json:"ended_by,omitempty"`
	EndedAt  *time.Time    `json:"ended_at,omitempty"`
	Cursor   string        `json:"cursor"`
}

func deadLineOf(d store.DeadNotice) deadLine {
	return deadLine{d.ID, d.Target, d.Kind, d.Address, d.Reason, d.Retry, d.BuriedAt, d.Notice, d.End, d.EndedBy, d.EndedAt, d.Cursor}
}

func (a *app) noticeDeadCommand() *cobra.Command {
	cmd := group("dead", "Lists notices that no target took, has them told again, or drops them", `Lists a tenant's notices that were tried for as long as notices.give_up says, that a
target wanted no more of (410), or whose target was taken out of the file; has them
told again, or drops them.`,
		a.deadListCommand(), a.deadRetryCommand(), a.deadDropCommand())
	a.sessionFlags(cmd)
	return cmd
}

func (a *app) deadListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "Lists a tenant's dead notices, oldest first", Args: cobra.NoArgs,
		Example: `  interlock notice dead list --tenant acme --target ops`,
	}
	output := outputFlag(cmd)
	var f store.DeadFilter
	cmd.Flags().StringVar(&f.Target, "target", "", "only those of this `target`")
	cmd.Flags().BoolVar(&f.Ended, "ended", false, "those that were sent or dropped, too")
	cmd.Flags().StringVar(&f.After, "after", "", "go on after the notice with this `cursor`")
	limitFlag(cmd, &f.Limit, "notices")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkLimit(f.Limit, "list"); err != nil {
			return err
		}
		s, err := a.openFor(cmd, "")
		if err != nil {
			return err
		}
		defer s.close()
		rows, err := s.store.DeadNotices(cmd.Context(), s.tenant, f)
		if err != nil {
			return err
		}
		lines := []deadLine{}
		for _, d := range rows {
			lines = append(lines, deadLineOf(d))
		}
		if len(lines) == f.Limit {
			defer fmt.Fprintf(a.err, "There may be more: give --after %s\n", lines[len(lines)-1].Cursor)
		}
		return list(a, output, map[string]any{"notices": lines}, lines, func(w io.Writer) error { return printDead(w, lines) })
	}
	return cmd
}

func printDead(w io.Writer, lines []deadLine) error {
	p := &printer{w: w}
	if len(lines) == 0 {
		p.line("There are no such notices.")
		return p.err
	}
	rows := [][]string{{"ID", "TARGET", "AGE", "TYPE", "ADDRESS", "ENDED", "REASON"}}
	for _, l := range lines {
		ended := "-"
		if l.End != "" {
			ended = string(l.End) + " by " + inline(l.EndedBy)
		}
		rows = append(rows, []string{inline(l.ID), inline(l.Target), age(l.BuriedAt), inline(l.Kind), inline(l.Address), ended, inline(l.Reason)})
	}
	p.table(rows)
	return p.err
}

// which are the flags that name dead notices: one by its id, or all of a target.
type which struct {
	target string
	all    bool
}

func whichFlags(cmd *cobra.Command) *which {
	w := &which{}
	cmd.Flags().StringVar(&w.target, "target", "", "the one of this `target`; needed where several did not take it")
	cmd.Flags().BoolVar(&w.all, "all", false, "all that wait, of --target or of every target, in the place of an ID")
	return w
}

// deadOnes are those that are meant, which wait for an operator.
func (s *session) deadOnes(cmd *cobra.Command, w *which, args []string) (all []store.DeadNotice, err error) {
	f := store.DeadFilter{Target: w.target, Limit: 500}
	if len(args) == 1 {
		f.ID, f.Ended = args[0], true
	}
	for {
		page, err := s.store.DeadNotices(cmd.Context(), s.tenant, f)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < f.Limit {
			break
		}
		f.After = page[len(page)-1].Cursor
	}
	switch {
	case w.all:
	case len(all) == 0:
		return nil, agent.Errorf(agent.CodeNotFound, "there is no dead notice %s: interlock notice dead list", inline(args[0]))
	case len(all) > 1:
		return nil, usagef("%d targets did not take notice %s: say which, by --target", len(all), inline(args[0]))
	}
	return all, nil
}

// settling makes a command do something to each of the dead notices that are meant.
// Of all, those are left out that somebody else sees to at the moment.
func (a *app) settling(cmd *cobra.Command, said string, do func(cmd *cobra.Command, s *session, d *store.DeadNotice, by string) error) {
	output, who, w := outputFlag(cmd), callerFlags(cmd), whichFlags(cmd)
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if w.all == (len(args) == 1) {
			return usagef("say which: the ID of one, or --all")
		}
		if err := who.ready(); err != nil {
			return err
		}
		s, err := a.openFor(cmd, "")
		if err != nil {
			return err
		}
		defer s.close()
		dead, err := s.deadOnes(cmd, w, args)
		if err != nil {
			return err
		}
		lines := []deadLine{}
		for i := range dead {
			err := do(cmd, s, &dead[i], who.as)
			if w.all && err != nil && agent.ErrorCode(err) == agent.CodeConflict {
				fmt.Fprintf(screen{a.err}, "Left out: %v\n", err)
				continue
			}
			if err != nil && w.all {
				return fmt.Errorf("%w (%d were done before)", err, len(lines))
			}
			if err != nil {
				return err
			}
			lines = append(lines, deadLineOf(dead[i]))
		}
		return list(a, output, map[string]any{"notices": lines}, lines, func(w io.Writer) error {
			p := &printer{w: w}
			for _, l := range lines {
				p.line("%s: %s of %s to %s", said, inline(l.ID), inline(l.Address), inline(l.Target))
			}
			if len(lines) == 0 {
				p.line("There are no such notices.")
			}
			return p.err
		})
	}
}

func (a *app) deadRetryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "retry ID | --all", Short: "Has a dead notice told again",
		Long: `Has a worker tell a dead notice again, for as long as notices.give_up says. It has the
id that it had. interlock notice dead list --ended tells what became of it.`,
		Example: `  interlock notice dead retry 5d41402abc4b2a76b9719d911017c592 --tenant acme
  interlock notice dead retry --all --target ops --tenant acme`,
	}
	a.settling(cmd, "Told again", func(cmd *cobra.Command, s *session, d *store.DeadNotice, by string) error {
		cfg, err := a.settings(cmd, "warn")
		if err != nil {
			return err
		}
		return s.starter.TellAgain(cmd.Context(), *d, cfg.Notices.GiveUp, by)
	})
	return cmd
}

func (a *app) deadDropCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "drop ID | --all", Short: "Drops a dead notice: nobody need be told any more",
		Example: `  interlock notice dead drop 5d41402abc4b2a76b9719d911017c592 --tenant acme`,
	}
	a.settling(cmd, "Dropped", func(cmd *cobra.Command, s *session, d *store.DeadNotice, by string) (err error) {
		*d, err = s.store.SettleDead(cmd.Context(), d.Tenant, d.ID, d.Target, store.DeadDropped, by)
		return err
	})
	return cmd
}
