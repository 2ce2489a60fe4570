package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

func (a *app) runGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get ADDRESS", Short: "Shows a run: state with its sources, steps, gates, budget", Args: cobra.ExactArgs(1)}
	output := outputFlag(cmd)
	unmask := unmaskFlag(cmd)
	cmd.RunE = a.about(false, func(ctx context.Context, s *session, address string, _ []string) error {
		run, err := s.starter.Get(ctx, address)
		if err != nil {
			return err
		}
		if !*unmask {
			run = run.Masked()
		}
		shown := shownRun{Run: run}
		if s.store != nil {
			tenant, _, _, _ := signals.SplitAddress(address)
			if usage, err := s.store.ModelUsage(ctx, tenant, address); err == nil {
				shown.Bill = &bill{usage.Calls, usage.Twice, usage.Usage}
			}
			if run.Status.Ended() {
				if shown.RepairedBy, err = s.starter.Repairs(ctx, run); err != nil {
					return err
				}
			}
		}
		return a.show(output, shown, func(w io.Writer) error { return printRun(w, shown) })
	})
	return cmd
}

// shownRun is a run and, where there is a store, what its provider billed.
type shownRun struct {
	*agent.Run
	Bill       *bill            `json:"bill,omitempty"`
	RepairedBy []starter.Repair `json:"repaired_by,omitempty"`
}

// bill is what a provider billed for a run: a call that was asked again, because
// its answer was lost before it was recorded, is in it twice.
type bill struct {
	Calls int         `json:"calls"`
	Twice int         `json:"twice"` // of them, those whose answer was not used
	Usage agent.Usage `json:"usage"`
}

// page is a list of runs.
type page struct {
	Runs  []runLine `json:"runs"`
	After string    `json:"after,omitempty"` // for the next page, where there may be one
}

// runLine is a run in a list.
type runLine struct {
	Address    string          `json:"address"`
	FirstRunID string          `json:"first_run_id"`
	Agent      string          `json:"agent"`
	Version    int             `json:"version"`
	User       string          `json:"user"`
	Status     agent.RunStatus `json:"status"`
	Reason     string          `json:"reason,omitempty"`
	Phase      string          `json:"phase,omitempty"`
	Turn       int             `json:"turn"`
	Seq        int64           `json:"seq"`
	StartedAt  string          `json:"started_at"`
	UpdatedAt  string          `json:"updated_at"`
	row        store.RunRow
}

const wireTime = "2006-01-02T15:04:05.000000Z"

func lineOf(r store.RunRow) runLine {
	return runLine{r.Address, r.FirstRunID, r.Agent, r.Version, r.User, r.Head.Status, r.Head.Reason, r.Head.Phase, r.Head.Turn, r.Seq,
		r.StartedAt.UTC().Format(wireTime), r.UpdatedAt.UTC().Format(wireTime), r}
}

func (a *app) runListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "Lists a tenant's runs, newest first", Args: cobra.NoArgs,
		Example: `  interlock run list --tenant acme --status paused --reason budget:
  interlock run list --tenant acme --agent refund -o jsonl`,
	}
	output := outputFlag(cmd)
	status := &choice{"", []string{"running", "waiting", "paused", "completed", "cancelled", "failed"}}
	cmd.Flags().Var(status, "status", "only runs of this status")
	var f store.RunFilter
	cmd.Flags().StringVar(&f.Agent, "agent", "", "only runs of this `agent`")
	cmd.Flags().StringVar(&f.User, "user", "", "only runs that serve this `subject`")
	cmd.Flags().StringVar(&f.Reason, "reason", "", "only runs whose reason begins with this `prefix`")
	cmd.Flags().StringVar(&f.Address, "address", "", "only the runs that followed one another under this `address`")
	cmd.Flags().StringVar(&f.After, "after", "", "the next page: the `cursor` that the page before ended with")
	limitFlag(cmd, &f.Limit, "runs of one page")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkLimit(f.Limit, "page"); err != nil {
			return err
		}
		f.Status = agent.RunStatus(status.value)
		s, err := a.openFor(cmd, f.Address)
		if err != nil {
			return err
		}
		defer s.close()
		rows, err := s.starter.List(cmd.Context(), s.tenant, f)
		if err != nil {
			return err
		}
		p, all := page{Runs: []runLine{}}, &store.Redactions{Reader: s.store}
		for _, r := range rows {
			p.Runs = append(p.Runs, lineOf(all.Row(cmd.Context(), s.tenant, r)))
		}
		if len(rows) == f.Limit {
			p.After = rows[len(rows)-1].Cursor
			defer fmt.Fprintf(a.err, "There may be more: --after %s\n", p.After)
		}
		return list(a, output, p, p.Runs, p.print)
	}
	return cmd
}

// openFor makes a session for a list of one tenant: of the configured one, or of
// the run that the list is narrowed to.
func (a *app) openFor(cmd *cobra.Command, address string) (*session, error) {
	cfg, err := a.settings(cmd, "warn")
	if err != nil {
		return nil, err
	}
	tenant := cfg.Tenant
	if address != "" {
		if err := checkAddress(address); err != nil {
			return nil, err
		}
		tenant, _, _, _ = signals.SplitAddress(address)
	}
	if tenant == "" {
		return nil, usagef("no tenant is named: give --tenant, or set INTERLOCK_TENANT or the file's key tenant")
	}
	s, err := a.open(cmd, true)
	if err == nil {
		s.tenant = tenant
	}
	return s, err
}

func (p page) print(w io.Writer) error {
	out := &printer{w: w}
	if len(p.Runs) == 0 {
		out.line("There are no such runs.")
		return out.err
	}
	rows := [][]string{{"ADDRESS", "STATUS", "PHASE", "TURN", "USER", "CHANGED", "REASON"}}
	for _, r := range p.Runs {
		rows = append(rows, []string{r.Address, string(r.Status), r.Phase, fmt.Sprint(r.Turn), inline(r.User), age(r.row.UpdatedAt) + " ago", inline(r.Reason)})
	}
	out.table(rows)
	return out.err
}

func (a *app) runWatchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "watch ADDRESS", Short: "Follows a run's events until it has ended", Args: cobra.ExactArgs(1),
		Long: `Follows a run's events, from the store, until the run has ended; the exit code is
0 then, however it ended. The text form leaves out what goes without saying; jsonl
has every event, a line each. After an interruption go on with --from.`,
	}
	output := outputFlag(cmd)
	from := cmd.Flags().Int64("from", 1, "the first `event` that is shown")
	unmask := unmaskFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *from < 1 {
			return usagef("--from %d is no event: the first is 1", *from)
		}
		return a.about(true, func(ctx context.Context, s *session, address string, _ []string) error {
			w := &watcher{printer: printer{w: screen{a.out}}, form: output.value, app: a}
			var known agent.Follow
			tenant, _, _, _ := signals.SplitAddress(address)
			w.begin()
			for e, err := range s.starter.Watch(ctx, address, *from-1) {
				if err == nil && !*unmask {
					if e.Seq > known.Seq() {
						err = store.Learn(ctx, s.store, store.Chain{Tenant: tenant, Address: address}, &known)
					}
					e = agent.Redacted(known.Redaction(), e)
				}
				if err == nil {
					err = w.event(e)
				}
				if err != nil {
					w.end()
					return err
				}
			}
			w.end()
			return w.err
		})(cmd, args)
	}
	return cmd
}

func unmaskFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("unmask", false, "show the values of sensitive fields too")
}

// watcher writes events as they come.
type watcher struct {
	printer
	app   *app
	form  string
	shown int
	timeline
}

func (w *watcher) begin() {
	if w.form == asJSON {
		w.line("[")
	}
}

func (w *watcher) end() {
	if w.form == asJSON {
		w.line("]")
	}
}

func (w *watcher) event(e agent.Event) error {
	w.shown++
	switch w.form {
	case asText:
		w.write(&w.printer, e)
		return w.err
	case asJSON:
		if w.shown > 1 {
			w.line(",")
		}
	}
	return writeLine(w.app.out, e)
}

func (a *app) runWhyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "why ADDRESS", Short: "Says in a sentence what a run waits for, and what to do", Args: cobra.ExactArgs(1),
		Long: `Says in a sentence what a run waits for, and which command comes next. It looks at
the store and at Temporal, and works as long as one of them answers; no worker
need be up.`,
	}
	output := outputFlag(cmd)
	cmd.RunE = a.about(false, func(ctx context.Context, s *session, address string, _ []string) error {
		why, err := s.starter.Why(ctx, address)
		if err != nil {
			return err
		}
		return a.show(output, why, func(w io.Writer) error { return printWhy(w, why) })
	})
	return cmd
}

func printWhy(w io.Writer, why starter.Why) error {
	p := &printer{w: w}
	p.line("%s: %s", why.Address, indented(why.Sentence, 2))
	if why.Next != "" {
		p.line("next: %s", indented(why.Next, 2))
	}
	printWaits(p, why.Waits)
	for _, u := range why.Unseen {
		p.line("not seen: %s", indented(u, 2))
	}
	if !why.UpdatedAt.IsZero() {
		p.line("(event %d of turn %d in phase %s, %s ago)", why.Seq, why.Turn, strings.TrimSpace(why.Phase), age(why.UpdatedAt))
	}
	return p.err
}
