package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
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
	d.story = &story{reader: d.stage.store, tenant: demoTenant, address: started.Address, told: func(e agent.Event) { tell(d.say, e) }}
	said := 0
	says := func(text string) error {
		said++
		d.doing = fmt.Sprintf("the model answers %q", text)
		r, err := d.stage.starter.Message(ctx, started.Address, signals.Message{ID: fmt.Sprintf("demo-%d", said), Principal: customer, Text: text})
		if err != nil {
			return err
		}
		return d.story.settled(ctx, r.Seq)
	}
	if err := says(fmt.Sprintf("Please refund order %s, it broke", d.order)); err != nil {
		return err
	}
	if _, asked := openGate(d.story.run, true); asked {
		if err := says("yes, that one"); err != nil {
			return err
		}
	}
	if gate, open := openGate(d.story.run, false); open {
		if err := d.atGate(ctx, gate); err != nil {
			return err
		}
	}
	if !d.story.run.Status.Ended() {
		if err := says("Forget it, then"); err != nil {
			return err
		}
	}
	if run := d.story.run; !run.Status.Ended() {
		return fmt.Errorf("the run did not end: it is %s (%s) in phase %s; run the demo again with --keep DIR to look at it", run.Status, run.Reason, run.Phase)
	}
	return nil
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
	told            func(agent.Event) // called once for each event

	events []agent.Event
	run    *agent.Run
}

// journalPause is between two looks at the journal: a look costs a read of a
// local file.
const journalPause = 20 * time.Millisecond

// settled waits until the run has taken in event seq and, after it, waits for
// somebody or has ended.
func (s *story) settled(ctx context.Context, seq int64) error {
	ticker := time.NewTicker(journalPause)
	defer ticker.Stop()
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
