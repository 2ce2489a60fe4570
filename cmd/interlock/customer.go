package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/llm"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

// What the customer says at most. A script needs three messages; a real model
// may take another way, and must not be talked to for ever.
const (
	mostMessages = 12
	mostNudges   = 4 // where the model asks for nothing that could be answered
	mostGoodbyes = 2
)

// converse plays the customer until the run has ended.
func (d *demo) converse(ctx context.Context) error {
	d.doing = "starting the run"
	customer := agent.Principal{Subject: demoCustomer}
	started, err := d.stage.starter.Start(ctx, starter.Start{Agent: demoAgent, Tenant: demoTenant, Key: demoKey,
		Principal: customer, Body: refund.Start{CustomerID: demoCustomer}})
	if err != nil {
		return err
	}
	d.story = &story{reader: d.stage.store, tenant: demoTenant, address: started.Address, told: func(e agent.Event) { tell(d.say, e) }, slow: d.blocked}
	c := conversation{order: d.order}
	if d.model == "" {
		c.nudges = mostNudges // none: a script that asks for nothing has given up
	}
	text := fmt.Sprintf("Please refund order %s, it broke", d.order)
	for said := 1; said <= mostMessages && text != ""; said++ {
		d.doing = fmt.Sprintf("the model answers %q", text)
		r, err := d.stage.starter.Message(ctx, started.Address, signals.Message{ID: fmt.Sprintf("demo-%d", said), Principal: customer, Text: text})
		if err != nil {
			return err
		}
		if err := d.story.settled(ctx, r.Seq); err != nil {
			return err
		}
		if gate, open := openGate(d.story.run, false); open {
			if err := d.atGate(ctx, gate); err != nil {
				return err
			}
		}
		text = c.next(d.story.run)
	}
	if run := d.story.run; !run.Status.Ended() {
		return fmt.Errorf("the run did not end: it is %s in phase %s", state(run.Status, run.Reason), run.Phase)
	}
	return nil
}

// blocked tells of what holds the run up. What only an operator can mend ends
// the demo: a worker would go on trying for a day.
func (d *demo) blocked(ctx context.Context) error {
	why, err := d.stage.starter.Why(ctx, d.story.address)
	if err != nil {
		return nil // the demo has a time limit
	}
	for _, a := range why.Activities {
		if a.Type == signals.ActivityCallModel && (strings.Contains(a.Failure, string(llm.KindUnauthorized)) || strings.Contains(a.Failure, "quota")) {
			return fmt.Errorf("the model's provider does not serve this key: %s", a.Failure)
		}
		if a.Failure != "" && why.Sentence != d.told {
			d.told = why.Sentence
			fmt.Fprintf(d.say, "  (%s)\n", indented(why.Sentence, 3))
		}
	}
	return nil
}

// conversation is the customer's part: yes to what is right, no to what is
// not, a few words more where the model does not get on, and then good-bye.
type conversation struct {
	order            string
	nudges, goodbyes int
}

// next is what the customer says now; "" where there is nothing more to say.
func (c *conversation) next(run *agent.Run) string {
	if run.Status.Ended() || run.Status == agent.RunPaused {
		return ""
	}
	if ask, asked := openGate(run, true); asked {
		named, shown := ask.Shown["order_id"]
		switch {
		case shown && value(named) == c.order:
			return "yes, that one"
		case shown:
			return "No, I mean order " + c.order
		}
	}
	if c.nudges < mostNudges && len(run.Rulings) == 0 {
		c.nudges++
		return fmt.Sprintf("It is order %s. Please show me order and amount, so that I can say yes", c.order)
	}
	if c.goodbyes < mostGoodbyes {
		c.goodbyes++
		return "Forget it, then"
	}
	return ""
}

// openGate is the open gate that asks the customer, or the one that asks a
// reviewer.
func openGate(run *agent.Run, ask bool) (agent.Gate, bool) {
	for _, g := range run.Gates {
		if g.Status == agent.GateOpen && ask == (g.Kind == agent.KindAsk) {
			return g, true
		}
	}
	return agent.Gate{}, false
}

// journalReader is the part of the store that tells what a run did.
type journalReader interface {
	Events(ctx context.Context, run store.Chain, from int64, limit int) ([]agent.Event, error)
}

// story follows a run by its journal.
type story struct {
	reader          journalReader
	tenant, address string
	told            func(agent.Event)           // called once for each event
	slow            func(context.Context) error // called now and then while nothing happens; an error ends the waiting

	events []agent.Event
	run    *agent.Run
}

// journalPause is between two looks at the journal: a look costs a read of a
// local file.
const journalPause = 20 * time.Millisecond

// slowPause is how long nothing may happen before Temporal is asked why.
const slowPause = 3 * time.Second

// settled waits until the run has taken in event seq and, after it, waits for
// somebody or has ended.
func (s *story) settled(ctx context.Context, seq int64) error {
	ticker := time.NewTicker(journalPause)
	defer ticker.Stop()
	slow := time.NewTicker(slowPause)
	defer slow.Stop()
	for {
		if err := s.read(ctx); err != nil {
			return err
		}
		if s.run != nil && s.run.Seq >= seq && s.run.Status != agent.RunRunning {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		case <-slow.C:
			if err := s.slow(ctx); err != nil {
				return err
			}
		}
	}
}

func (s *story) read(ctx context.Context) error {
	more, err := s.reader.Events(ctx, store.Chain{Tenant: s.tenant, Address: s.address}, int64(len(s.events))+1, 0)
	if err != nil || len(more) == 0 {
		return err
	}
	s.events = append(s.events, more...)
	run, err := agent.Reduce(s.events)
	if err != nil {
		return errors.Join(errors.New("the journal cannot be read"), err)
	}
	s.run = run
	for _, e := range more {
		s.told(e)
	}
	return nil
}
