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

func (a *app) runCommand() *cobra.Command {
	cmd := group("run", "Starts, reads and steers runs", `Starts, reads and steers runs. A run is named by its address,
<tenant>/<agent>/<key>.

What is sent to a run carries an id, so that it may be sent again when no answer
came. Who sends it is recorded as unverified: nothing proves it.`,
		a.runStartCommand(), a.runGetCommand(), a.runListCommand(), a.runWatchCommand(), a.runWhyCommand(),
		a.runMessageCommand(), a.runAmendCommand(), a.runPauseCommand(), a.runResumeCommand(), a.runCancelCommand(), a.runExportCommand())
	a.sessionFlags(cmd)
	return cmd
}

// sent is what became of something that was sent to a run.
type sent struct {
	Address string        `json:"address"`
	ID      string        `json:"id"`
	Receipt agent.Receipt `json:"receipt"`
	Now     *signals.News `json:"now,omitempty"` // with --wait
}

func (r sent) print(w io.Writer) error {
	p := &printer{w: w}
	text := map[agent.ReceiptStatus]string{agent.Accepted: "taken in", agent.Repeated: "had been taken in before, nothing was done now",
		agent.KeptBack: "kept: it is judged once the message before it is answered"}[r.Receipt.Status]
	if text == "" {
		text = string(r.Receipt.Status)
	}
	line := text
	if r.Receipt.Seq > 0 {
		line += fmt.Sprintf(" (event %d)", r.Receipt.Seq)
	}
	if r.Receipt.Reason != "" {
		line += ": " + inline(r.Receipt.Reason)
	}
	p.line("%s%s; the run is %s", line, tookEffect(r.Receipt.Took), r.Receipt.Run)
	if r.Now != nil {
		printNews(p, r.Address, *r.Now)
	}
	return p.err
}

// tookEffect says where an input takes effect.
func tookEffect(t *agent.Took) string {
	if t == nil {
		return ""
	}
	text := map[agent.TookHow]string{agent.TookQueued: "read after what runs now", agent.TookInterrupted: "this turn is cut short",
		agent.TookRollingBack: "this turn is cut short, and what it did is being undone", agent.TookMerged: "merged into what is under way"}[t.How]
	switch {
	case text == "" && t.Turn > 0:
		return fmt.Sprintf(", taken up by turn %d", t.Turn)
	case text == "":
		return ""
	case t.Turn > 0:
		return fmt.Sprintf(", %s, taken up by turn %d", text, t.Turn)
	}
	return ", " + text
}

// seen is the last event that the caller has been told of.
func (r sent) seen() int64 {
	if r.Now != nil {
		return max(r.Receipt.Seq, r.Now.Seq)
	}
	return r.Receipt.Seq
}

// sending makes a command that sends something to one run.
func (a *app) sending(cmd *cobra.Command, do func(ctx context.Context, s *session, address string, rest []string, c *caller) (agent.Receipt, error)) *cobra.Command {
	output, who, wait := outputFlag(cmd), callerFlags(cmd), waitFlag(cmd)
	cmd.RunE = a.about(false, func(ctx context.Context, s *session, address string, rest []string) error {
		if err := who.ready(); err != nil {
			return err
		}
		r := sent{Address: address, ID: who.id}
		var err error
		if r.Receipt, err = do(ctx, s, address, rest, who); err != nil {
			return who.unanswered(err)
		}
		if wait.set() {
			if r.Now, err = s.settled(ctx, address, r.Receipt.Seq, wait); err != nil {
				return err
			}
		}
		s.recorded(ctx, address, r.seen())
		return a.show(output, r, r.print)
	})
	return cmd
}

func (a *app) runMessageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "message ADDRESS TEXT", Short: "Tells a run what its user says", Args: cobra.ExactArgs(2),
		Example: `  interlock run message acme/refund/ticket-311 "refund 1042, it broke" --as c-017 --wait
  interlock run message acme/refund/ticket-311 "actually, cancel that" --as c-017 --policy rollback`,
	}
	policy := &choice{"", []string{"queue", "reject", "interrupt", "rollback"}}
	cmd.Flags().Var(policy, "policy", "what it does while the run is busy: it is read after this turn, or refused, or cuts this turn\nshort, or has what that did undone, too; default: the agent's own")
	return a.sending(cmd, func(ctx context.Context, s *session, address string, rest []string, c *caller) (agent.Receipt, error) {
		return s.starter.Message(ctx, address, signals.Message{ID: c.id, Principal: c.principal(), Text: rest[0], Policy: agent.MessagePolicy(policy.value)})
	})
}

func (a *app) runCancelCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cancel ADDRESS", Short: "Ends a run once its running steps have ended", Args: cobra.ExactArgs(1)}
	reason := reasonFlag(cmd)
	undo := &choice{string(agent.UndoNone), []string{"none", "turn", "run"}}
	cmd.Flags().Var(undo, "undo", "what is undone before it ends: nothing, what the latest turn did, or all that can be")
	return a.sending(cmd, func(ctx context.Context, s *session, address string, _ []string, c *caller) (agent.Receipt, error) {
		return s.starter.Cancel(ctx, address, signals.Cancel{ID: c.id, Principal: c.principal(), Reason: *reason, Undo: agent.UndoScope(undo.value)})
	})
}

func (a *app) runPauseCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "pause ADDRESS", Short: "Stops a run until it is resumed: nothing new starts", Args: cobra.ExactArgs(1)}
	reason := reasonFlag(cmd)
	return a.sending(cmd, func(ctx context.Context, s *session, address string, _ []string, c *caller) (agent.Receipt, error) {
		return s.starter.Pause(ctx, address, signals.Pause{ID: c.id, Principal: c.principal(), Reason: *reason})
	})
}

func reasonFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("reason", "", "`why`; it is recorded")
}

func (a *app) runStartCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "start ADDRESS", Short: "Starts a run; the same start again is the same run", Args: cobra.ExactArgs(1),
		Example: `  interlock run start acme/refund/ticket-311 --body '{"customer_id":"c-017"}' --user c-017
  interlock run start acme/refund/ticket-311 --body @start.json --message "refund 1042" --wait`,
	}
	output, who, wait := outputFlag(cmd), callerFlags(cmd), waitFlag(cmd)
	body := cmd.Flags().String("body", "", "the agent's start input: `JSON`, @FILE, or - for stdin")
	message := cmd.Flags().String("message", "", "first `text` of the user")
	user := cmd.Flags().String("user", "", "`subject` that the run serves (default: the principal)")
	version := cmd.Flags().Int("agent-version", 0, "version of the agent; 0 is the newest")
	cmd.RunE = a.about(false, func(ctx context.Context, s *session, address string, _ []string) error {
		in := starter.Start{User: *user, Version: *version}
		in.Tenant, in.Agent, in.Key, _ = signals.SplitAddress(address)
		given, err := a.bodyOf(*body)
		if err != nil {
			return err
		}
		if given != nil {
			in.Body = given
		}
		if err := who.ready(); err != nil {
			return err
		}
		in.Principal = who.principal()
		if *message != "" {
			in.Message = &signals.Message{ID: who.id, Principal: in.Principal, Text: *message}
		}
		r := begun{ID: who.id}
		if r.Started, err = s.starter.Start(ctx, in); err != nil {
			return who.unanswered(err)
		}
		if wait.set() {
			if r.Now, err = s.settled(ctx, address, 0, wait); err != nil {
				return err
			}
			s.recorded(ctx, address, r.Now.Seq)
		}
		return a.show(output, r, r.print)
	})
	return cmd
}

// begun is a run that was started.
type begun struct {
	starter.Started
	ID  string        `json:"id"` // of the first message
	Now *signals.News `json:"now,omitempty"`
}

func (r begun) print(w io.Writer) error {
	p := &printer{w: w}
	how := "started"
	if !r.New {
		how = "had been started before, nothing was done now"
	}
	p.line("%s %s (first run %s)", r.Address, how, r.FirstRunID)
	if r.Now != nil {
		printNews(p, r.Address, *r.Now)
	}
	return p.err
}
