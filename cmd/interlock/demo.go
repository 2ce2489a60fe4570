package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/config"
	"interlock/examples/trip"
)

// Who takes part in the demo.
const (
	demoTenant   = "acme"
	demoAgent    = "refund"
	demoKey      = "demo"
	demoCustomer = "c-017"
)

var reviewer = agent.Principal{Subject: "demo-reviewer", Roles: []string{"refunds"}}

// demo plays one run: the customer's part and, unless somebody sits at the
// terminal, the reviewer's.
type demo struct {
	app    *app
	decide string // ask, approve, reject
	order  string
	patience
	output *choice
	model  string // "": the script
	page   bool   // the verdict is given in a browser
	door   *door  // of the pages, once they are served
	token  string // of who decides there

	stage *stage
	story *story
	told  string    // what was said last of what holds the run up
	say   io.Writer // what a person follows: stdout, or stderr where stdout is for JSON

	verdict agent.VerdictValue // as it was given; "" where nobody was asked
	reason  string
}

var orderForm = regexp.MustCompile(`^[0-9]{4}$`)

func (a *app) demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Plays a whole run on this machine: a refund that a person must approve",
		Long: `Starts a local Temporal, a shop, a mail service and a worker in a temporary
folder, plays a customer who wants a refund, stops at the gate where a person
must decide, and shows what was done and on which grounds. The model is a
script: no account is needed. Nothing is left behind.

The demo checks the shop's database and the outbox: it exits with 0 only if they
hold what the verdict allows and nothing else, and with 1 if not or if anything
failed. 2: a flag or the configuration is wrong. 130: interrupted by Ctrl-C.

--model NAME plays it on a model of OpenAI, or of a server that speaks its API:
OPENAI_API_KEY and OPENAI_BASE_URL say where and with which key (or model.base_url
and model.api_key_file). Such a model may take another way, ask more or give up;
what it cannot do is pay without the approval.`,
		Example: `  interlock demo
  interlock demo --page             # decide in a browser
  interlock demo --decide reject
  interlock demo --decide approve -o json | jq .steps
  interlock demo --order 1017       # below 50 EUR: nobody is asked
  interlock demo --scenario interrupt   # "actually, cancel that", while three tools run
  interlock demo --order 1024       # another customer's: not refunded
  OPENAI_BASE_URL=http://localhost:11434/v1 interlock demo --model qwen3`,
		Args: cobra.NoArgs,
	}
	o := demoOptions{scenario: &choice{scenarioRefund, []string{scenarioRefund, scenarioInterrupt}}, decide: &choice{"ask", []string{"ask", "approve", "reject"}}}
	cmd.Flags().Var(o.scenario, "scenario", "what is played: a refund that a person must approve, or a user who changes their mind while three tools run")
	cmd.Flags().Var(o.decide, "decide", "the verdict at the gate; ask asks you, and approves where there is no terminal")
	cmd.Flags().BoolVar(&o.page, "page", false, "give the verdict in a browser, on the reviewers' page, which is served for it")
	cmd.Flags().StringVar(&o.order, "order", "1042", "`number` of the order that the customer names; customer "+demoCustomer+" has 1017, 1042 and 1043")
	cmd.Flags().StringVar(&o.keep, "keep", "", "keep all data in `DIR`, an empty or new folder")
	cmd.Flags().DurationVar(&o.limit, "timeout", 2*time.Minute, "give up after so long, not counting the time in which you are asked (with --model: 10m)")
	cmd.Flags().StringVar(&o.model, "model", "", "play it on this model; `name` is its provider's")
	o.output = outputFlag(cmd)
	a.configured(cmd.Flags(), "task_queue", "model.base_url", "model.api_key_file", "model.stream", "model.max_output", "log.level", "log.format")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.playDemo(cmd, o) }
	return cmd
}

// demoOptions are the demo's own flags.
type demoOptions struct {
	scenario           *choice
	decide, output     *choice
	order, keep, model string
	page               bool
	limit              time.Duration
}

func (a *app) playDemo(cmd *cobra.Command, o demoOptions) error {
	if err := checkScenario(o.scenario.value, cmd.Flags().Changed); err != nil {
		return err
	}
	if !orderForm.MatchString(o.order) {
		return usagef("--order %q is no order number: it has four digits, such as 1042", o.order)
	}
	if o.page && (cmd.Flags().Changed("decide") || o.scenario.value != scenarioRefund) {
		return usagef("--page has you decide about the refund in a browser: leave --decide and --scenario out")
	}
	if o.limit <= 0 {
		return usagef("--timeout %s leaves no time: give a duration such as 2m", o.limit)
	}
	if o.model != "" && !cmd.Flags().Changed("timeout") {
		o.limit = 10 * time.Minute
	}
	a.overrides = map[string]string{"model.name": o.model, "model.provider": providerOf(o.model)}
	cfg, err := a.settings(cmd, "warn")
	if err != nil {
		return err
	}
	proposes, err := sampleModel(cfg)
	if err != nil {
		return err
	}
	dir, err := a.demoFolder(o.keep)
	if err != nil {
		return err
	}
	cfg.Store = config.Store{Path: filepath.Join(dir, "interlock.db")}
	cfg.ShutdownTimeout = min(cfg.ShutdownTimeout, 5*time.Second)
	d := &demo{app: a, decide: o.decide.value, order: o.order, output: o.output, model: o.model, page: o.page, patience: patience{limit: o.limit},
		stage: &stage{settings: cfg, log: cfg.Log.Logger(a.err), model: proposes}}
	play := d.run
	if o.scenario.value == scenarioInterrupt {
		c := &cutDemo{demo: d, desk: &trip.Desk{Slow: 2 * time.Second}}
		d.stage.desk, d.stage.model = c.desk, trip.Model()
		play = c.run
	}
	err = errors.Join(play(cmd.Context()), a.scratch.remove())
	if o.keep != "" {
		fmt.Fprintf(a.err, "Kept in %s; look at it with: interlock dev --store-path %s\n", dir, cfg.Store.Path)
	}
	return err
}

// providerOf: whatever the configuration says, without --model it is the script.
func providerOf(name string) string {
	if name == "" {
		return config.Scripted
	}
	return config.OpenAI
}

func (a *app) demoFolder(keep string) (string, error) {
	if keep == "" {
		return a.scratch.make()
	}
	if err := emptyFolder(keep); err != nil {
		return "", usageError{fmt.Errorf("--keep: %w", err)}
	}
	return keep, nil
}

// run plays the demo and stops everything before it shows the outcome.
func (d *demo) run(ctx context.Context) error {
	d.say = screen{d.app.out}
	if d.output.value != asText {
		d.say = screen{d.app.err}
	}
	ctx, done := d.patience.begin(ctx)
	defer done()
	rep, err := d.play(ctx)
	err = d.patience.explain(ctx, err)
	err = errors.Join(err, d.stage.Close())
	if rep == nil {
		return err
	}
	if d.output.value != asText {
		return errors.Join(d.app.show(d.output, rep, nil), err)
	}
	if err := errors.Join(rep.print(d.say), err); err != nil {
		return err
	}
	if !d.foreseen() {
		fmt.Fprintf(d.say, "\nThe verdict was %s, of which the demo does not know beforehand what it allows: see above what was done.\n", d.verdict)
		return nil
	}
	fmt.Fprintf(d.say, "\nChecked: the shop's database and the outbox hold what the verdict allows, and nothing else.\nTry it by hand: interlock dev\n")
	return nil
}

// play runs until the run has ended. The report is nil where there is nothing
// to report.
func (d *demo) play(ctx context.Context) (*report, error) {
	fmt.Fprintf(d.say, intro, d.proposer())
	d.doing = "starting Temporal and the worker"
	begun := time.Now()
	if err := d.stage.Open(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(d.say, "Up in %.1f s: Temporal on %s, a worker, a shop, a mail service.\n\n", time.Since(begun).Seconds(), d.stage.temporal.Address())
	if err := d.converse(ctx); err != nil {
		d.aftermath(ctx)
		return nil, err
	}
	d.doing = "reading the outcome"
	rep, err := d.collect(ctx)
	if err != nil {
		return nil, err
	}
	return rep, d.check(ctx, rep)
}

const intro = `Interlock demo: a customer asks for a refund. The model talks to the customer and
proposes; code checks each proposal and acts; above 50 EUR a person must approve.
(%s)

`

func (d *demo) proposer() string {
	if d.model == "" {
		return "The model is a script here. Any other could only do the same: propose."
	}
	return "The model is " + d.model + ". It only proposes."
}

// aftermath shows how far a run came that went no further, and why.
func (d *demo) aftermath(ctx context.Context) {
	if d.story == nil || len(d.story.events) == 0 || errors.Is(context.Cause(ctx), context.Canceled) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = d.story.read(ctx) // what was read before is shown
	p := &printer{w: d.say}
	p.title("How far it came")
	for _, e := range d.story.events {
		timeline{since: d.story.events[0].At}.write(p, e)
	}
	if why, err := d.stage.starter.Why(ctx, d.story.address); err == nil {
		p.line("\n%s", indented(why.Sentence, 2))
	}
}

// patience is how long the demo may take, without the time in which a person
// thinks.
type patience struct {
	limit time.Duration
	doing string // what is waited for
	timer *time.Timer
}

var errImpatient = errors.New("the demo takes too long")

func (p *patience) begin(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.timer = time.AfterFunc(p.limit, func() { cancel(errImpatient) })
	return ctx, func() { p.timer.Stop(); cancel(nil) }
}

// pause stops the clock until the returned function is called.
func (p *patience) pause() (resume func()) {
	p.timer.Stop()
	return func() { p.timer.Reset(p.limit) }
}

// explain replaces whatever failed because the time was up.
func (p *patience) explain(ctx context.Context, err error) error {
	if err == nil || context.Cause(ctx) != errImpatient {
		return err
	}
	return fmt.Errorf("gave up after %s while %s: try again with a longer --timeout, or with --log-level debug to see what blocks", p.limit, p.doing)
}
