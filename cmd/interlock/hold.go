package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"interlock/starter"
	"interlock/store"
	"interlock/tool"
)

// holdLine is a hold in a list.
type holdLine struct {
	Tenant     string     `json:"tenant"` // "" is all of them, as in what follows
	Agent      string     `json:"agent"`
	Tool       string     `json:"tool"`
	By         string     `json:"by"`
	Reason     string     `json:"reason"`
	At         time.Time  `json:"at"`
	ReleasedBy string     `json:"released_by,omitempty"`
	ReleasedAt *time.Time `json:"released_at,omitempty"`
	// UnderWay are effects that had been claimed when the hold was made.
	UnderWay []ledgerLine `json:"under_way,omitempty"`
}

func holdOf(h store.Hold) holdLine {
	return holdLine{h.Tenant, h.Agent, h.Tool, h.By, h.Reason, h.At, h.ReleasedBy, h.ReleasedAt, nil}
}

// holding are the flags that say what a hold is on.
func holding(cmd *cobra.Command) (h *store.Hold, everything *bool) {
	h = &store.Hold{}
	cmd.Flags().StringVar(&h.Agent, "agent", "", "only effects of this `agent`'s runs")
	cmd.Flags().StringVar(&h.Tool, "tool", "", "only effects of this `tool`")
	cmd.Flags().StringVar(&h.Tenant, "tenant", "", "only effects of this `tenant`'s runs")
	return h, cmd.Flags().Bool("everything", false, "all effects of all agents, where nothing narrower is named")
}

func checkHolding(h *store.Hold, everything bool) error {
	if named := h.Agent != "" || h.Tool != "" || h.Tenant != ""; named == everything {
		return usagef("say what is meant: --agent, --tool or --tenant, or all of them; or --everything")
	}
	return nil
}

func (a *app) holdCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "hold --agent A --tool T --tenant X --reason WHY", Short: "Keeps effects from starting, until they are released",
		Args: cobra.NoArgs,
		Long: `Keeps effects from starting: those of an agent, a tool, a tenant, or what is all of
these. Runs go on with everything else; a step that is held waits, and interlock run
why says so. Its own time does not run out meanwhile. When the command returns, no
effect that the hold is on starts any more; those that had started are listed.`,
		Example: `  interlock hold --tool issue_refund --reason "the bank books twice"
  interlock hold --agent refund --tenant acme --reason "wrong amounts since 14:00"`,
	}
	output, who := outputFlag(cmd), callerFlags(cmd)
	h, everything := holding(cmd)
	cmd.Flags().StringVar(&h.Reason, "reason", "", "`why`; whoever waits is told")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkHolding(h, *everything); err != nil {
			return err
		}
		if strings.TrimSpace(h.Reason) == "" {
			return usagef("a hold needs --reason: whoever waits is told why")
		}
		return a.withHolds(cmd, who, func(s *session) error {
			h.By = who.as
			stands, err := s.store.Hold(cmd.Context(), *h)
			if err != nil {
				return err
			}
			line := holdOf(stands)
			if line.UnderWay, err = s.underWay(cmd, stands); err != nil {
				return err
			}
			return a.show(output, line, line.print)
		})
	}
	list, release := a.holdListCommand(), a.holdReleaseCommand()
	cmd.AddCommand(list, release)
	// The tenant of a hold is named, and never one that is configured.
	a.configured(cmd.PersistentFlags(), slices.Concat([]string{"task_queue"}, storeKeys, temporalKeys, logKeys)...)
	cmd.PersistentFlags().Duration("timeout", starter.DefaultDeadline, "give up after so long where the store does not answer")
	return cmd
}

// withHolds opens the store for an operator.
func (a *app) withHolds(cmd *cobra.Command, who *caller, do func(s *session) error) error {
	if err := who.ready(); err != nil {
		return err
	}
	s, err := a.open(cmd, true)
	if err != nil {
		return err
	}
	defer s.close()
	return do(s)
}

// underWay are the effects that had started before a hold.
func (s *session) underWay(cmd *cobra.Command, h store.Hold) (lines []ledgerLine, err error) {
	tenants := []string{h.Tenant}
	if h.Tenant == "" {
		if tenants, err = s.store.OpenTenants(cmd.Context()); err != nil {
			return nil, err
		}
	}
	for _, t := range tenants {
		rows, err := s.store.Effects(cmd.Context(), t, store.EffectFilter{Agent: h.Agent, Tool: h.Tool, State: store.StateOpen})
		if err != nil {
			return nil, err
		}
		for _, e := range rows {
			lines = append(lines, ledgerLineOf(e))
		}
	}
	return lines, nil
}

func (l holdLine) print(w io.Writer) error {
	p := &printer{w: w}
	p.line("Held: %s, by %s since %s: %s", l.on(), inline(l.By), stamp(l.At), inline(l.Reason))
	if len(l.UnderWay) == 0 {
		p.line("No such effect is under way.")
		return p.err
	}
	p.line("Under way already, or not known how they ended:")
	if p.err != nil {
		return p.err
	}
	return printLedger(w, l.UnderWay)
}

// on says what a hold is on.
func (l holdLine) on() string {
	var parts []string
	for _, x := range [][2]string{{"tool", l.Tool}, {"agent", l.Agent}, {"tenant", l.Tenant}} {
		if x[1] != "" {
			parts = append(parts, x[0]+" "+inline(x[1]))
		}
	}
	if len(parts) == 0 {
		return "everything"
	}
	return strings.Join(parts, ", ")
}

func (a *app) holdListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "Lists what is held", Args: cobra.NoArgs}
	output := outputFlag(cmd)
	ended := cmd.Flags().Bool("released", false, "those that were released, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.open(cmd, true)
		if err != nil {
			return err
		}
		defer s.close()
		all, err := s.store.AllHolds(cmd.Context(), "", *ended)
		if err != nil {
			return err
		}
		lines := []holdLine{}
		for _, h := range all {
			lines = append(lines, holdOf(h))
		}
		return list(a, output, map[string]any{"holds": lines}, lines, func(w io.Writer) error { return printHolds(w, lines) })
	}
	return cmd
}

func printHolds(w io.Writer, lines []holdLine) error {
	p := &printer{w: w}
	if len(lines) == 0 {
		p.line("Nothing is held.")
		return p.err
	}
	rows := [][]string{{"HELD", "BY", "AGE", "RELEASED", "REASON"}}
	for _, l := range lines {
		released := "-"
		if l.ReleasedAt != nil {
			released = fmt.Sprintf("%s ago by %s", age(*l.ReleasedAt), inline(l.ReleasedBy))
		}
		rows = append(rows, []string{l.on(), inline(l.By), age(l.At), released, inline(l.Reason)})
	}
	p.table(rows)
	return p.err
}

func (a *app) holdReleaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "release --agent A --tool T --tenant X", Short: "Releases a hold: what waited goes on by itself", Args: cobra.NoArgs,
		Long: `Releases the hold that was made with the same --agent, --tool and --tenant. What
waited goes on by itself, within half a minute.`,
		Example: `  interlock hold release --tool issue_refund`,
	}
	output, who := outputFlag(cmd), callerFlags(cmd)
	h, everything := holding(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkHolding(h, *everything); err != nil {
			return err
		}
		return a.withHolds(cmd, who, func(s *session) error {
			ended, err := s.store.ReleaseHold(cmd.Context(), *h, who.as)
			if err != nil {
				return err
			}
			line := holdOf(ended)
			return a.show(output, line, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "Released: %s, held by %s for %s; what waited goes on within %s\n", line.on(), inline(line.By), age(line.At), tool.HoldRetry)
				return err
			})
		})
	}
	return cmd
}
