package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"interlock/agent"
	"interlock/signals"
)

// defaultReason is why --decide reject says no.
const defaultReason = "the photo shows no damage"

// atGate shows an open gate, gets a verdict and gives it.
func (d *demo) atGate(ctx context.Context, g agent.Gate) error {
	showGate(d.say, g, d.story.run)
	if d.page {
		return d.onPage(ctx, g)
	}
	verdict, reason, err := d.decision(ctx)
	if err != nil {
		return err
	}
	d.doing = "the verdict takes effect"
	r, err := d.stage.starter.Decide(ctx, d.story.address, signals.Verdict{ID: "demo-verdict", Gate: g.ID, Digest: g.Digest,
		Verdict: verdict, Reason: reason, Principal: reviewer})
	if err != nil {
		return err
	}
	if r.Status != agent.Accepted {
		return fmt.Errorf("the verdict decided nothing (%s): %s", r.Status, r.Reason)
	}
	d.verdict, d.reason = verdict, reason
	return d.story.settled(ctx, r.Seq)
}

// decision is the reviewer's verdict: the one that a flag names, or the answer
// of whoever sits at the terminal.
func (d *demo) decision(ctx context.Context) (agent.VerdictValue, string, error) {
	switch {
	case d.decide == "reject":
		fmt.Fprintf(d.say, "--decide reject: %s (role %s) rejects: %s\n\n", reviewer.Subject, reviewer.Roles[0], defaultReason)
		return agent.Reject, defaultReason, nil
	case d.decide == "approve":
		fmt.Fprintf(d.say, "--decide approve: %s (role %s) approves.\n\n", reviewer.Subject, reviewer.Roles[0])
		return agent.Approve, "", nil
	case !d.app.terminal:
		fmt.Fprintf(d.say, "There is no terminal to ask on, so %s (role %s) approves; --decide reject would refuse.\n\n", reviewer.Subject, reviewer.Roles[0])
		return agent.Approve, "", nil
	}
	defer d.patience.pause()()
	fmt.Fprintln(d.say, "You are the reviewer. Type `approve`, or `reject` and a reason.")
	lines := linesOf(d.app.in)
	for {
		fmt.Fprint(d.say, "> ")
		select {
		case <-ctx.Done():
			return "", "", context.Cause(ctx)
		case line := <-lines:
			if line.err != nil {
				fmt.Fprintln(d.say)
				return "", "", fmt.Errorf("no verdict was given and nothing was refunded: %w", line.err)
			}
			verdict, reason, hint := parseVerdict(line.text)
			if hint == "" {
				fmt.Fprintln(d.say)
				return verdict, reason, nil
			}
			fmt.Fprintln(d.say, hint)
		}
	}
}

// parseVerdict takes nothing but a clear word for a verdict, and else gives a
// hint.
func parseVerdict(line string) (v agent.VerdictValue, reason, hint string) {
	word, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
	reason = strings.TrimSpace(reason)
	switch v := agent.VerdictValue(strings.ToLower(word)); {
	case v == agent.Approve && reason == "":
		return v, "", ""
	case v == agent.Approve:
		return "", "", "An approval takes no conditions: type `approve` alone, or `reject` and why."
	case v == agent.Reject && reason == "":
		return "", "", "A reject needs a reason, which the model and the customer are told: type `reject` and why."
	case v == agent.Reject:
		return v, reason, ""
	}
	return "", "", "Type `approve`, or `reject` and a reason; Ctrl-C ends the demo."
}

type line struct {
	text string
	err  error
}

// linesOf reads lines until the input ends. A read from a terminal cannot be
// interrupted: the goroutine stays at it until the process ends.
func linesOf(in io.Reader) <-chan line {
	lines := make(chan line, 1)
	go func() {
		scanner := bufio.NewScanner(in)
		for scanner.Scan() {
			lines <- line{text: scanner.Text()}
		}
		err := scanner.Err()
		if err == nil {
			err = errors.New("the input ended")
		}
		lines <- line{err: err}
	}()
	return lines
}
