package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"interlock/agent"
	"interlock/signals"
)

// void is the problem of a verdict that decided nothing, nil of one that did. A
// repeat is answered as the first was: the journal knows how that was judged.
func (s *Server) void(ctx context.Context, c *call, address string, v signals.Verdict, r agent.Receipt) *Problem {
	switch r.Status {
	case agent.Voided:
		return voided(r.Code, r.Reason, r.Gate)
	case agent.Repeated:
		first, ok := s.judged(ctx, c.caller.Tenant, address, v.ID, r.Seq)
		if !ok {
			return problem(agent.CodeUnavailable, "The verdict had come before, and how it was judged is not recorded yet: send it again.")
		}
		if first.Judgement == "void" {
			return voided(first.Code, first.Reason, s.outcome(ctx, address, v.Gate, r.Gate))
		}
	}
	return nil
}

// voided makes the problem.
func voided(code agent.Code, reason string, g *agent.GateOutcome) *Problem {
	if code == agent.CodeConflict && g != nil && g.Status != agent.GateOpen {
		code = agent.CodeGateClosed
	}
	p := problem(code, "The verdict decided nothing: "+reason+".")
	p.Gate = g
	return p
}

// A verdict's judgement is in the journal soon after it was given: it is looked for
// so often, for so long.
const (
	judgedFor   = 3 * time.Second
	judgedEvery = 100 * time.Millisecond
)

// judged reads how a verdict was judged when it came first.
func (s *Server) judged(ctx context.Context, tenant, address, id string, seq int64) (d agent.VerdictData, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, judgedFor)
	defer cancel()
	again := time.NewTicker(judgedEvery)
	defer again.Stop()
	for {
		events, err := s.reads.Events(ctx, chainOf(tenant, address), seq, 1)
		if err == nil && len(events) > 0 {
			ok := events[0].Type == agent.EventVerdict && json.Unmarshal(events[0].Data, &d) == nil && d.Verdict.ID == id
			return d, ok
		}
		select {
		case <-ctx.Done():
			return d, false
		case <-again.C:
		}
	}
}

// outcome is how a gate stands, where the run has not said it.
func (s *Server) outcome(ctx context.Context, address, gate string, told *agent.GateOutcome) *agent.GateOutcome {
	if told != nil {
		return told
	}
	row, err := s.runs.Gate(ctx, address, gate)
	if err != nil {
		return nil
	}
	out := &agent.GateOutcome{ID: row.Gate.ID, Status: row.Gate.Status, At: row.Gate.ClosedAt}
	if row.Gate.By != nil {
		out.By = row.Gate.By.Subject
	}
	return out
}

// notDecided is why a run did not take a verdict. One that has ended had decided
// about its gates before: who comes too late is told by whom.
func (s *Server) notDecided(ctx context.Context, address string, v signals.Verdict, err error) error {
	if agent.ErrorCode(err) != agent.CodeEnded {
		return err
	}
	g := s.outcome(ctx, address, v.Gate, nil)
	if g == nil || g.Status == agent.GateOpen {
		return err
	}
	text := fmt.Sprintf("the run has ended, and gate %s was closed as %s", g.ID, g.Status)
	if g.By != "" {
		text += " by " + g.By
	}
	return voided(agent.CodeGateClosed, text, g)
}
