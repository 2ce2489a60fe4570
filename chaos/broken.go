package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"interlock/agent"
	"interlock/tool"
)

// breakage is a part of the effect protocol that is switched off, so that the
// harness can be seen to report it.
type breakage string

const (
	whole     breakage = ""
	noClaim   breakage = "claim"   // a claim finds nothing of earlier attempts
	noSettle  breakage = "settle"  // how it ended is not written down
	noOrdinal breakage = "ordinal" // a call after a refusal has the key of the one before
	noWait    breakage = "wait"    // an attempt does not wait for the one before
	noUndo    breakage = "undo"    // an undo is told to have happened, and marked, and nothing is sent
	noLook    breakage = "look"    // of what was told to stop nobody finds out whether it had happened
)

var breakages = []breakage{noClaim, noSettle, noOrdinal, noWait, noUndo, noLook}

// observedTool is a tool whose claims and settlements are reached points, and
// whose protocol may be broken.
type observedTool struct {
	agent.Tool[state]
	how breakage
}

func (t observedTool) Spec() agent.ToolSpec[state] {
	s := t.Tool.Spec()
	s.Source = observedRunner{s.Source.(tool.Runner), t.how}
	return s
}

type observedRunner struct {
	tool.Runner
	how breakage
}

func (r observedRunner) Attempt(ctx context.Context, t agent.Task, p tool.Ports) (tool.Result, error) {
	if r.how == noOrdinal {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", t.Scope, t.Tool, t.Args))
		t.Key = hex.EncodeToString(sum[:16])
	}
	if r.how == noUndo && t.Undoes != nil {
		return tool.Result{JSON: agent.JSON(`{"ref":"undone"}`)}, nil
	}
	p.Ledger = observedLedger{p.Ledger, r.how}
	return r.Runner.Attempt(ctx, t, p)
}

// Fence makes it a [tool.Fencer], as every tool is.
func (r observedRunner) Fence(ctx context.Context, t agent.Task, reason string, p tool.Ports) (tool.Result, error) {
	if r.how == noLook {
		return tool.Result{}, &tool.Failure{Kind: tool.FailedFenced, Err: errors.New(reason)}
	}
	p.Ledger = observedLedger{p.Ledger, r.how}
	return r.Runner.(tool.Fencer).Fence(ctx, t, reason, p)
}

type observedLedger struct {
	tool.Ledger
	how breakage
}

func (l observedLedger) Claim(ctx context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	attemptOf(ctx).reach(beforeClaim)
	if l.how == noWait {
		by.Exclusive = false
	}
	if l.how == noClaim {
		_, err := l.Ledger.Claim(ctx, t, tool.Terms{Attempt: by.Attempt})
		return tool.Row{}, err
	}
	return l.Ledger.Claim(ctx, t, by)
}

func (l observedLedger) Settle(ctx context.Context, t agent.Task, s tool.Settlement) error {
	if l.how == noSettle {
		return nil
	}
	return l.Ledger.Settle(ctx, t, s)
}
