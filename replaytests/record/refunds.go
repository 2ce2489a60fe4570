package main

import (
	"context"
	"fmt"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/signals"
)

const customer = "c-017"

func (w *world) refundAgent() *agent.Definition {
	return refund.Agent(w.shop, mail.Client{BaseURL: w.mail.URL()})
}

// order brings a run to the customer's yes. The question is waited for first: an
// answer to none confirms nothing.
func (w *world) order(ctx context.Context, number string) (string, error) {
	address, err := w.start(ctx, "refund", customer, refund.Start{CustomerID: customer}, "")
	if err != nil {
		return "", err
	}
	if err := w.say(ctx, address, customer, "Please refund order "+number+", it broke"); err != nil {
		return "", err
	}
	if _, err := w.until(ctx, address, "the question", func(r *agent.Run) bool {
		return r.Status == agent.RunWaiting && r.Reason == "user" && len(r.Shown) == 2
	}); err != nil {
		return "", err
	}
	return address, w.say(ctx, address, customer, "yes, that one")
}

// plain is below the limit: no person is asked.
func plain(ctx context.Context, w *world) (string, error) {
	if err := w.serve(ctx, refund.Model(), w.refundAgent()); err != nil {
		return "", err
	}
	address, err := w.order(ctx, "1017")
	if err != nil {
		return "", err
	}
	return address, w.untilClosed(ctx, address, agent.RunCompleted)
}

// decided is above the limit, and a reviewer decides.
func decided(verdict agent.VerdictValue, reason string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		if err := w.serve(ctx, refund.Model(), w.refundAgent()); err != nil {
			return "", err
		}
		address, err := w.order(ctx, "1042")
		if err != nil {
			return "", err
		}
		run, err := w.until(ctx, address, "the gate", func(r *agent.Run) bool { return r.Status == agent.RunWaiting && r.Reason == "gate" })
		if err != nil {
			return "", err
		}
		gate := run.Gates[len(run.Gates)-1]
		receipt, err := w.starter.Decide(ctx, address, signals.Verdict{ID: "v1", Gate: gate.ID, Digest: gate.Digest, Verdict: verdict, Reason: reason,
			Principal: agent.Principal{Subject: "ann", Roles: []string{"refunds"}}})
		if err != nil {
			return "", err
		}
		if receipt.Status != agent.Accepted {
			return "", fmt.Errorf("the verdict is %s: %s", receipt.Status, receipt.Reason)
		}
		return address, w.untilClosed(ctx, address, agent.RunCompleted)
	}
}
