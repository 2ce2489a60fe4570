package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/config"
	"interlock/notice"
)

func (a *app) noticeCommand() *cobra.Command {
	return group("notice", "Checks who is told what happens to runs, and looks after what nobody took",
		`Checks the file of targets (notices.targets), sends a test, and looks after notices
that no target took: signed webhooks, messages to Slack, mails.`,
		a.noticeTargetsCommand(), a.noticeTestCommand(), a.noticeDeadCommand())
}

// targetLine is a target without what is secret of it.
type targetLine struct {
	notice.Target
	Where string `json:"where"`
}

// targets reads the file of targets, and where notices link to.
func (a *app) targets(cmd *cobra.Command) ([]notice.Target, config.Config, error) {
	cfg, err := a.settings(cmd, "")
	if err != nil {
		return nil, cfg, err
	}
	if cfg.Notices.Targets == "" {
		return nil, cfg, usagef("it is not known which file the workers read: name it by --notices-targets, INTERLOCK_NOTICES_TARGETS or notices.targets in the file of settings")
	}
	targets, err := notice.Read(cfg.Notices.Targets, a.variable)
	return targets, cfg, err
}

// variable looks up a variable; of a repeated name the last counts.
func (a *app) variable(name string) (value string, ok bool) {
	for _, entry := range slices.Backward(a.env) {
		if n, v, _ := strings.Cut(entry, "="); n == name {
			return v, true
		}
	}
	return "", false
}

func (a *app) noticeTargetsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "targets", Short: "Checks the file of targets and lists whom it names", Args: cobra.NoArgs,
		Long: `Checks the file of targets as a worker does, the secrets that it names included, and
lists whom it names. Every mistake is told. No secret is shown.`,
		Example: `  interlock notice targets --notices-targets targets.yaml`,
	}
	output := outputFlag(cmd)
	a.configured(cmd.Flags(), "notices.targets")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		targets, _, err := a.targets(cmd)
		if err != nil {
			return err
		}
		lines := []targetLine{}
		for _, t := range targets {
			lines = append(lines, targetLine{t, t.Where()})
		}
		return list(a, output, map[string]any{"targets": lines}, lines, func(w io.Writer) error { return printTargets(w, lines) })
	}
	return cmd
}

func printTargets(w io.Writer, lines []targetLine) error {
	p := &printer{w: w}
	if len(lines) == 0 {
		p.line("There are no targets: nobody is told.")
		return p.err
	}
	rows := [][]string{{"NAME", "KIND", "WHERE", "TOLD OF"}}
	for _, l := range lines {
		rows = append(rows, []string{l.Name, string(l.Kind), inline(l.Where), inline(l.toldOf())})
	}
	p.table(rows)
	return p.err
}

// toldOf are the filters in words.
func (l targetLine) toldOf() string {
	kinds := []string{}
	for _, k := range l.Kinds {
		kinds = append(kinds, string(k))
	}
	parts := []string{"everything"}
	if len(kinds) > 0 {
		parts[0] = strings.Join(kinds, ", ")
	}
	for _, f := range []struct {
		of   string
		list []string
	}{{"tenants", l.Tenants}, {"agents", l.Agents}, {"gates of roles", l.Roles}} {
		if len(f.list) > 0 {
			parts = append(parts, f.of+" "+strings.Join(f.list, ", "))
		}
	}
	if l.Titles {
		parts = append(parts, "with titles")
	}
	if l.AllowPrivate {
		parts = append(parts, "private addresses allowed")
	}
	return strings.Join(parts, "; ")
}

// tested is what came back of a test.
type tested struct {
	Target string `json:"target"`
	Where  string `json:"where"`
	ID     string `json:"id"`
	Answer string `json:"answer"`
}

func (a *app) noticeTestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "test TARGET", Short: "Sends a test notice to a target now, and says what came back", Args: cobra.ExactArgs(1),
		Long: `Sends a notice of the type notice.test to a target now, once, from this machine, and
says what came back. It is about no run.`,
		Example: `  interlock notice test ops --notices-targets targets.yaml`,
	}
	output := outputFlag(cmd)
	a.configured(cmd.Flags(), "notices.targets", "notices.page")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		targets, cfg, err := a.targets(cmd)
		if err != nil {
			return err
		}
		target, ok := notice.Find(targets, args[0])
		if !ok {
			return agent.Errorf(agent.CodeNotFound, "the file of targets names no %q: interlock notice targets lists whom it names", inline(args[0]))
		}
		n := notice.Notice{ID: strings.ToLower(rand.Text()), Kind: notice.Test, At: time.Now().UTC().Truncate(time.Microsecond)}
		answer, err := notice.NewSender(notice.Options{Page: cfg.Notices.Page}).Send(cmd.Context(), target, n)
		if err != nil {
			return fmt.Errorf("target %s (%s) did not take it: %w", target.Name, inline(target.Where()), err)
		}
		result := tested{target.Name, target.Where(), n.ID, answer}
		return a.show(output, result, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "Target %s (%s) has taken it: %s\n", result.Target, inline(result.Where), inline(result.Answer))
			return err
		})
	}
	return cmd
}
