package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/signals"
	"interlock/starter"
)

func (a *app) stepCommand() *cobra.Command {
	cmd := group("step", "Undoes what a run has done", `Undoes what a run has done. A step is named by the run's address and its id, as
interlock run get shows them.`,
		a.stepUndoCommand())
	a.sessionFlags(cmd)
	return cmd
}

func (a *app) stepUndoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "undo ADDRESS STEP... --reason WHY", Short: "Undoes steps that happened, the last first", Args: cobra.MinimumNArgs(2),
		Long: `Undoes steps that happened, one after the other, the last first: all of those that
are named, or none where one cannot be. Each undo is a step of its own, of the tool
that the step's tool names for it, with its own gate. What it cannot undo stands.
The model is told in its next turn; the same call is a new effect then.

Where the run has ended, a repair run undoes the steps, which this command starts
from the run's journal. The same steps again are the same repair run.`,
		Example: `  interlock step undo acme/refund/ticket-311 3.1 --reason "paid twice" --as olga
  interlock step undo acme/refund/ticket-311 3.1 3.2 --reason "wrong customer" --wait`,
	}
	reason := cmd.Flags().String("reason", "", "`why`; it is recorded, and the model is told")
	output, who, wait := outputFlag(cmd), callerFlags(cmd), waitFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if strings.TrimSpace(*reason) == "" {
			return usagef("an undo needs --reason: it is recorded, and the model is told")
		}
		return a.about(false, func(ctx context.Context, s *session, address string, steps []string) error {
			if err := who.ready(); err != nil {
				return err
			}
			r := undone{Address: address, ID: who.id}
			var err error
			if r.Undone, err = s.starter.Undo(ctx, address, signals.Undo{ID: who.id, Principal: who.principal(), Steps: steps, Reason: *reason}); err != nil {
				return who.unanswered(err)
			}
			if err := r.await(ctx, s, steps, wait); err != nil {
				return err
			}
			return a.show(output, r, r.print)
		})(cmd, args)
	}
	return cmd
}

// undone is what became of a request to undo steps.
type undone struct {
	Address string `json:"address"`
	ID      string `json:"id"`
	starter.Undone
	Now      *signals.News `json:"now,omitempty"`      // with --wait, of the run that does it
	Standing []string      `json:"standing,omitempty"` // with --wait, steps that were not undone
}

// by is the run that undoes the steps.
func (r undone) by() string {
	if r.Repair != nil {
		return r.Repair.Address
	}
	return r.Address
}

// await waits as --wait says, and for the store to hold what is told.
func (r *undone) await(ctx context.Context, s *session, steps []string, wait *waiting) (err error) {
	seq := r.Receipt.Seq
	if wait.set() {
		if r.Now, err = s.settled(ctx, r.by(), seq, wait); err != nil {
			return err
		}
		if run, err := s.starter.Get(ctx, r.by()); err == nil {
			r.Standing = standingOf(run, steps)
		}
		seq = max(seq, r.Now.Seq)
	}
	if seq > 0 {
		s.recorded(ctx, r.by(), seq)
	}
	return nil
}

// standingOf are those of the steps that the run holds and that were not undone.
func standingOf(run *agent.Run, steps []string) (out []string) {
	for _, id := range steps {
		for _, st := range run.Steps {
			if st.ID == id && st.Status != agent.StepUndone {
				out = append(out, id)
			}
		}
	}
	return out
}

func (r undone) print(w io.Writer) error {
	p := &printer{w: w}
	if r.Repair == nil {
		if err := (sent{Address: r.Address, ID: r.ID, Receipt: r.Receipt, Now: r.Now}).print(w); err != nil {
			return err
		}
	} else {
		how := "a repair run undoes its steps"
		if !r.Repair.New {
			how = "a repair run for these steps was there before, nothing was done now; it is " + string(r.Receipt.Run)
		}
		p.line("%s has ended: %s: %s", r.Address, how, r.Repair.Address)
		if r.Now != nil {
			printNews(p, r.Repair.Address, *r.Now)
		}
	}
	if len(r.Standing) > 0 {
		p.line("  not undone: step %s; see interlock run why %s", strings.Join(r.Standing, ", step "), r.by())
	}
	return p.err
}
