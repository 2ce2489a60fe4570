package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// waiting is a --wait: how long.
type waiting struct{ limit time.Duration }

func waitFlag(cmd *cobra.Command) *waiting {
	w := &waiting{}
	cmd.Flags().DurationVar(&w.limit, "wait", 0, "wait, up to so long, until the run waits for somebody or has ended (--wait alone: 5m)")
	cmd.Flags().Lookup("wait").NoOptDefVal = "5m"
	return w
}

func (w *waiting) set() bool { return w.limit > 0 }

// waitRound is how long one wait for news takes; then the run is looked at
// again, since it can come to rest without any.
const waitRound = 5 * time.Second

// recordedFor is how long a command waits for the store to hold what it did.
const recordedFor = 2 * time.Second

// recorded waits for the store to hold event seq, so that the next command, which
// reads the store, sees what this one did. That it takes longer is no error: the
// run has taken it in.
func (s *session) recorded(ctx context.Context, address string, seq int64) {
	if s.store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordedFor)
	defer cancel()
	tenant, _, _, _ := signals.SplitAddress(address)
	for {
		row, err := s.store.RunRow(ctx, store.Chain{Tenant: tenant, Address: address})
		if err == nil && row.Seq >= seq || agent.ErrorCode(err) == agent.CodeInvalid {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// settled waits until the run has taken in event seq and, after it, waits for
// somebody or has ended. When the time is up it says what holds the run up.
func (s *session) settled(ctx context.Context, address string, seq int64, w *waiting) (*signals.News, error) {
	limited, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	for {
		run, err := s.starter.Get(limited, address)
		switch {
		case err == nil && run.Seq >= seq && run.Status != agent.RunRunning:
			news := signals.NewsOf(run, seq)
			news.Again = false // it is settled: there is nothing to ask again for
			return &news, nil
		case err == nil:
			round, done := context.WithTimeout(limited, waitRound)
			_, _ = s.starter.Wait(round, address, run.Seq) // whatever came of it, the run is looked at
			done()
		case limited.Err() == nil && agent.ErrorCode(err) != agent.CodeUnavailable && agent.ErrorCode(err) != agent.CodeNotFound:
			return nil, err
		}
		if limited.Err() != nil {
			return nil, s.late(ctx, address, w, err)
		}
		time.Sleep(min(100*time.Millisecond, w.limit)) // a Temporal that refuses at once is not asked in a loop
	}
}

func (s *session) late(ctx context.Context, address string, w *waiting, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text := fmt.Sprintf("%s is still at work after %s", address, w.limit)
	if why, e := s.starter.Why(ctx, address); e == nil {
		text += ": " + why.Sentence
	} else if err != nil {
		text += ": " + err.Error()
	}
	return agent.Errorf(agent.CodeUnavailable, "%s. What was sent stands; see `interlock run why %s`", text, address)
}

// printNews says what the run said and what it waits for.
func printNews(p *printer, address string, n signals.News) {
	if n.Reply != nil {
		p.line("  agent     %s", indented(n.Reply.Text, 12))
	}
	for _, g := range n.Gates {
		if g.Kind == agent.KindAsk {
			p.line("  agent     %s", indented(question(g), 12))
			continue
		}
		p.line("  gate %-5s%s, for %s: interlock gate show %s %s", g.ID, inline(g.Title), deciders(g), address, g.ID)
	}
	p.line("  the run is %s in phase %s", state(n.Status, n.Reason), n.Phase)
}

// state is a status with its reason.
func state(s agent.RunStatus, reason string) string {
	switch {
	case reason == "":
		return string(s)
	case s == agent.RunWaiting:
		return "waiting for " + inline(reason)
	}
	return string(s) + " (" + inline(reason) + ")"
}

// indented is a text of several lines below a label: no line of it can pass for
// one of ours.
func indented(text string, by int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, l := range lines {
		lines[i] = inline(l)
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", by))
}
