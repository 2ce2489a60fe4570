package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
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

// try is a run to try by hand.
type try struct {
	address, queue, store string // of Temporal, the task queue, the SQLite file
	key, order            string
}

// text is the commands in order, each on a line of its own that can be pasted
// into a shell.
func (t try) text() string {
	run := signals.Address(demoTenant, demoAgent, t.key)
	body := payload(refund.Start{CustomerID: demoCustomer})
	var b strings.Builder
	add := func(what string, commands ...string) {
		fmt.Fprintf(&b, "# %s\n%s\n\n", what, strings.Join(commands, "\n"))
	}
	interlock := func(command string, words ...string) string {
		for i, w := range words {
			words[i] = word(w)
		}
		return self() + " " + command + " " + run + " " + strings.Join(words, " ")
	}
	b.WriteString("Try it: paste these into another terminal, one after the other.\n\n")
	add("Where everything is.", fmt.Sprintf("export TEMPORAL_ADDRESS=%s INTERLOCK_TASK_QUEUE=%s INTERLOCK_STORE_PATH=%s INTERLOCK_TENANT=%s",
		t.address, word(t.queue), word(t.store), demoTenant))
	add("Start a run for customer "+demoCustomer+" and say what the customer says; the model looks the order up and asks.",
		interlock("run start", "--as", demoCustomer, "--body", body, "--message", "Please refund order "+t.order+", it broke", "--wait"))
	add("Say yes; the run goes on to the gate.", interlock("run message", "yes, that one", "--as", demoCustomer, "--wait"))
	add("What does it wait for?", strings.TrimSpace(interlock("run why")))
	add("Which gates may role refunds decide, and what does this one show?", self()+" gate list --role refunds", interlock("gate show", "3.1"))
	add("Decide, on the gate exactly as it was shown. At a terminal leave out --digest: you are shown and asked. To refuse: gate reject ... --reason '...'.",
		`DIGEST=$(`+interlock("gate show", "3.1", "-o", "json")+` | grep -o '"digest": *"[^"]*"' | cut -d '"' -f 4)`,
		interlock("gate approve", "3.1", "--as", "ann", "--role", reviewer.Roles[0], "--wait")+` --digest "$DIGEST"`)
	add("See how it ended, and what led there.", strings.TrimSpace(interlock("run get")), strings.TrimSpace(interlock("run watch")))
	add("Any Temporal client can do the same.", "temporal workflow query --workflow-id "+run+" --type run --output json")
	return strings.TrimSuffix(b.String(), "\n")
}

// self is how this program is called: by its name where a shell finds it so.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return "interlock"
	}
	if found, err := exec.LookPath("interlock"); err == nil && found == path {
		return "interlock"
	}
	return word(path)
}

func payload(v any) string {
	j, err := json.Marshal(v)
	if err != nil {
		panic(err) // a type of ours
	}
	return string(j)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=-]+$`)

// word is a text as one word of a shell.
func word(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
