package main

import (
	"context"
	"fmt"
	"time"

	"interlock/agent"
)

// onPage has somebody decide in a browser: it serves the pages, says where and by
// which token, and waits until the gate is closed.
func (d *demo) onPage(ctx context.Context, g agent.Gate) error {
	if err := d.openPages(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.say, "\nYou are the reviewer. Open this page, sign in with the token, and decide:\n\n  page   http://%s/runs/%s/%s/gates/%s\n  token  %s\n\n",
		d.door.public.Addr(), demoAgent, demoKey, g.ID, d.token)
	resume := d.patience.pause()
	closed, err := d.story.closed(ctx, g.ID)
	resume()
	if err != nil {
		return fmt.Errorf("no verdict was given and nothing was refunded: %w", err)
	}
	d.verdict, d.reason = agent.VerdictValue(closed.Verdict), closed.Reason
	fmt.Fprintf(d.say, "Gate %s is %s: %s\n\n", closed.ID, closed.Status, byWhom(closed))
	d.doing = "the verdict takes effect"
	return d.story.settled(ctx, d.story.run.Seq)
}

// openPages serves the pages, once. They end with the stage.
func (d *demo) openPages(ctx context.Context) error {
	if d.door != nil {
		return nil
	}
	d.stage.settings.API.Listen = "127.0.0.1:0"
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	opened, people, err := d.stage.openAPI(serving)
	if err != nil {
		stop()
		return err
	}
	for _, p := range people {
		if p.variable == "REVIEWER" {
			d.token = p.token
		}
	}
	d.door = opened
	served := make(chan error, 1)
	go func() { served <- opened.serve(serving) }()
	d.stage.later(func() error { stop(); return <-served })
	return nil
}

// closed waits until a gate is open no more.
func (s *story) closed(ctx context.Context, id string) (agent.Gate, error) {
	ticker := time.NewTicker(journalPause)
	defer ticker.Stop()
	for {
		if err := s.read(ctx); err != nil {
			return agent.Gate{}, err
		}
		for _, g := range s.run.Gates {
			if g.ID == id && g.Status != agent.GateOpen {
				return g, nil
			}
		}
		select {
		case <-ctx.Done():
			return agent.Gate{}, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// foreseen reports a verdict of which the demo knows beforehand what it allows. On
// a page a person can give others.
func (d *demo) foreseen() bool {
	return !d.page || d.verdict == "" || d.verdict == agent.Approve || d.verdict == agent.Reject
}
