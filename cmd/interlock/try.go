package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/examples/refund/shop"
	"interlock/signals"
	"interlock/store"
)

// freeKey is a key under which no run has been started: each address is used
// once.
func freeKey(ctx context.Context, r store.Reader) (string, error) {
	for n := 1; ; n++ {
		key := fmt.Sprintf("k%d", n)
		_, err := r.RunRow(ctx, store.Chain{Tenant: demoTenant, Address: signals.Address(demoTenant, demoAgent, key)})
		if agent.ErrorCode(err) == agent.CodeNotFound {
			return key, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// freeOrder is an order of the demo's customer that needs a reviewer and has not
// been refunded; the last of them where all have been.
func freeOrder(ctx context.Context, s *shop.Shop) (order string, err error) {
	for _, order = range []string{"1042", "1043"} {
		o, err := s.Find(ctx, shop.FindArgs{OrderID: order})
		if err != nil || o.Status != "refunded" {
			return order, err
		}
	}
	return order, nil
}

// try is a run to try by the temporal CLI.
type try struct{ address, queue, key, order string }

// text is the commands in order, each on a line of its own that can be pasted
// into a shell. Their payloads are made from the types that the run decodes.
func (t try) text() string {
	customer := agent.Principal{Subject: demoCustomer}
	body := agent.JSON(payload(refund.Start{CustomerID: demoCustomer}))
	query := t.query()
	start := payload(signals.Start{Agent: demoAgent, Tenant: demoTenant, Key: t.key, Principal: customer, Body: body})
	verdict := payload(signals.Verdict{ID: "v1", Gate: "3.1", Digest: "DIGEST", Verdict: agent.Approve, Principal: agent.Principal{Subject: "ann", Roles: reviewer.Roles}})
	var b strings.Builder
	add := func(what string, commands ...string) {
		fmt.Fprintf(&b, "# %s\n%s\n\n", what, strings.Join(commands, "\n"))
	}
	b.WriteString("Try it: paste these into another terminal, one after the other.\n\n")
	add("Start a run for customer "+demoCustomer+".", t.temporal("start", "--type refund --task-queue "+word(t.queue)+" --input "+word(start)))
	add("Say what the customer says; the model looks the order up and asks.", t.update("message",
		payload(signals.Message{ID: "m1", Principal: customer, Text: "Please refund order " + t.order + ", it broke"})))
	add("Wait until it has asked.", t.wait(`"kind": *"ask"`))
	add("Say yes; the run goes on to the gate.", t.update("message", payload(signals.Message{ID: "m2", Principal: customer, Text: "yes, that one"})))
	add("Wait until it is at the gate.", t.wait(`"reason": *"gate"`))
	add("Look at the run: its state, and the open gate with its digest.", query)
	add(`Decide, on the gate exactly as it was shown. To refuse: "verdict":"reject","reason":"...".`,
		`DIGEST=$(`+query+` | grep -o '"digest": *"[^"]*"' | tail -n 1 | cut -d '"' -f 4)`,
		strings.Replace(t.update("verdict", verdict), `"DIGEST"`, `"'$DIGEST'"`, 1))
	add("See how it ended.", t.temporal("result", ""))
	return strings.TrimSuffix(b.String(), "\n")
}

func (t try) temporal(verb, flags string) string {
	id := signals.Address(demoTenant, demoAgent, t.key)
	return strings.TrimSpace(fmt.Sprintf("temporal workflow %s --address %s --workflow-id %s %s", verb, t.address, id, flags))
}

func (t try) query() string { return t.temporal("query", "--type run --output json") }

func (t try) wait(pattern string) string {
	return "until " + t.query() + " | grep -q " + word(pattern) + "; do sleep 1; done"
}

func (t try) update(name, input string) string {
	return t.temporal("update execute", "--name "+name+" --input "+word(input))
}

func payload(v any) string {
	j, err := json.Marshal(v)
	if err != nil {
		panic(err) // a type of ours
	}
	return string(j)
}

// word quotes a text for a shell.
func word(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
