package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"interlock/agent"
	"interlock/examples/trip"
	"interlock/signals"
	"interlock/starter"
)

// The scenarios of the demo.
const (
	scenarioRefund    = "refund"
	scenarioInterrupt = "interrupt"
)

// cutReport is what the scenario interrupt shows.
type cutReport struct {
	Run     string       `json:"run"`
	Took    agent.Took   `json:"took"`  // where the second message took effect
	Steps   []stepReport `json:"steps"` // what became of each call
	Account string       `json:"account"`
	Answer  string       `json:"answer"`

	lines   []string // of Steps, in words
	answers time.Duration
}

// cutDemo plays a traveller who changes their mind while three tools are in flight.
type cutDemo struct {
	*demo
	desk *trip.Desk
}

const cutIntro = `Interlock demo: a traveller changes their mind while three tools are in flight.
Each tool says what becomes of it then: wait, abandon, or undo.

`

// play runs until the model has answered the second message.
func (d *cutDemo) play(ctx context.Context) (*cutReport, error) {
	fmt.Fprint(d.say, cutIntro)
	d.doing = "starting Temporal and the worker"
	if err := d.stage.Open(ctx); err != nil {
		return nil, err
	}
	d.doing = "starting the run"
	traveller := agent.Principal{Subject: demoCustomer}
	started, err := d.stage.starter.Start(ctx, starter.Start{Agent: "trip", Tenant: demoTenant, Key: demoKey, Principal: traveller, Body: trip.Start{Traveller: demoCustomer}})
	if err != nil {
		return nil, err
	}
	d.story = &story{reader: d.stage.store, tenant: demoTenant, address: started.Address, told: func(agent.Event) {}, slow: d.blocked}
	first := "Book me flight LX 318 to Zurich, a car there, and find a hotel"
	if _, err := d.stage.starter.Message(ctx, started.Address, signals.Message{ID: "demo-1", Principal: traveller, Text: first}); err != nil {
		return nil, err
	}
	fmt.Fprintf(d.say, "  traveller  %s\n", first)
	d.doing = "waiting for three tools to run"
	if err := d.desk.Busy(ctx, 3); err != nil {
		return nil, err
	}
	fmt.Fprintf(d.say, "  model      book_flight, reserve_car, compare_hotels: three tools are in flight\n")
	second := "Actually, cancel that"
	begun := time.Now()
	r, err := d.stage.starter.Message(ctx, started.Address, signals.Message{ID: "demo-2", Principal: traveller, Text: second})
	if err != nil {
		return nil, err
	}
	if r.Took == nil {
		return nil, errors.New("the receipt does not say where the message took effect")
	}
	fmt.Fprintf(d.say, "  traveller  %s\n  receipt    %s%s (after %d ms)\n", second, r.Status, tookEffect(r.Took), time.Since(begun).Milliseconds())
	d.doing = "waiting for the tools to end and the model to answer"
	if err := d.story.settled(ctx, r.Seq); err != nil {
		return nil, err
	}
	rep := d.collect(r)
	rep.answers = time.Since(begun)
	return rep, d.check(rep)
}

func (d *cutDemo) collect(r agent.Receipt) *cutReport {
	run := d.story.run
	out := &cutReport{Run: run.Address(), Took: *r.Took, Steps: []stepReport{}}
	for _, s := range run.Steps {
		out.Steps = append(out.Steps, stepReport{ID: s.ID, Tool: s.Tool, Status: s.Status})
		out.lines = append(out.lines, becameOf(s))
	}
	for _, e := range d.story.events {
		if e.Type == agent.EventInterruptSettled {
			out.Account = data[agent.InterruptSettledData](e).Account
		}
	}
	if run.Reply != nil {
		out.Answer = run.Reply.Text
	}
	return out
}

// becameOf says what became of a call.
func becameOf(s agent.Step) string {
	switch {
	case s.Undoes != "":
		return "made by code, to undo step " + s.Undoes
	case s.Status == agent.StepUndone:
		return "undo: told to stop; it happened all the same, and was undone by step " + s.UndoneBy
	case s.Status == agent.StepCancelled:
		return "undo: told to stop, and stopped before it happened"
	case s.Status == agent.StepAbandoned:
		return "abandon: it only reads, and was let go while it ran"
	}
	return "wait: it ran to its end, and stands"
}

// check compares what is said with what the desk holds.
func (d *cutDemo) check(r *cutReport) error {
	status := map[string]agent.StepStatus{}
	for _, s := range r.Steps {
		status[s.Tool] = s.Status
	}
	switch {
	case status["book_flight"] != agent.StepUndone || status["release_flight"] != agent.StepDone || status["reserve_car"] != agent.StepDone || status["compare_hotels"] != agent.StepAbandoned:
		return fmt.Errorf("the steps ended as %v", status)
	case d.desk.Holds("flight LX 318") || !d.desk.Holds("car in Zurich"):
		return errors.New("the desk holds something else than the steps say")
	case r.Answer == "" || r.Account == "":
		return errors.New("the model was not told, or has not answered")
	}
	return nil
}

func (r *cutReport) print(w io.Writer) error {
	p := &printer{w: w}
	p.title("What became of the tools")
	rows := [][]string{}
	for i, s := range r.Steps {
		rows = append(rows, []string{"  " + s.ID, s.Tool, string(s.Status), r.lines[i]})
	}
	p.table(rows)
	p.title("What code told the model, before it was called again")
	p.line("  %s", wrapped(r.Account, 100, 2))
	p.title(fmt.Sprintf("The model's next answer (%.1f s after the message)", r.answers.Seconds()))
	p.line("  %q", r.Answer)
	return p.err
}

// run plays the scenario and stops everything before it shows the outcome.
func (d *cutDemo) run(ctx context.Context) error {
	d.say = screen{d.app.out}
	if d.output.value != asText {
		d.say = screen{d.app.err}
	}
	ctx, done := d.patience.begin(ctx)
	defer done()
	rep, err := d.play(ctx)
	err = d.patience.explain(ctx, err)
	if err != nil {
		d.aftermath(ctx)
	}
	err = errors.Join(err, d.stage.Close())
	switch {
	case rep == nil:
		return err
	case d.output.value != asText:
		return errors.Join(d.app.show(d.output, rep, nil), err)
	}
	if err := errors.Join(rep.print(d.say), err); err != nil {
		return err
	}
	fmt.Fprintf(d.say, "\nChecked: the desk holds the car and no flight.\n")
	return nil
}

// onlyRefund are the flags that belong to the scenario refund.
var onlyRefund = []string{"decide", "order", "model"}

// checkScenario refuses flags of another scenario.
func checkScenario(scenario string, changed func(string) bool) error {
	if i := slices.IndexFunc(onlyRefund, changed); scenario == scenarioInterrupt && i >= 0 {
		return usagef("--%s belongs to the scenario %s: leave it out", onlyRefund[i], scenarioRefund)
	}
	return nil
}
