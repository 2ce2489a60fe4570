package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
	"interlock/signals"
)

// loop takes one input after the other, so that two turns can never run at
// once, and launches each command in a coroutine whose result comes back as an
// input.
type loop struct {
	inbox   *inbox
	root    workflow.Context // whose end is Temporal's own cancel
	free    workflow.Context // the run's own, which nothing cancels
	cancels int              // that were taken of it
	timers  []timer
	info    *workflow.Info
	began   string // what a token of the run's own start says of its chain
	def     *agent.Definition
	machine *agent.Machine

	lookups  []agent.Task       // to be carried by the next activity
	resolved []signals.Resolved // the same
	store    string             // identity of the one that acknowledged the latest events
	stops    map[string]workflow.CancelFunc
	trials   map[string]*trial         // of running steps
	stopping map[string]agent.StopStep // steps that were told to stop
	fences   []*fencing                // that wait for their activity
	idles    int                       // timers of a run that waits for its user: only the latest counts
	flying   int                       // activities whose result is still to come
	records  int                       // of them, those that only record
	owed     bool                      // a record that was put off, since one was under way
	waiters  int
	closing  bool // the history is long: the run is to be continued
	ending   agent.RunStatus
	failure  error // ends the workflow: it must not go on
}

func (l *loop) checkMessage(m signals.Message) error {
	if err := agent.CheckPolicy(m.Policy); err != nil || l.machine == nil {
		return err
	}
	return l.machine.CheckMessage(m.Text)
}

func (l *loop) query() (*agent.Run, error) {
	if l.failure != nil {
		return nil, l.failure // what it did has no place in the journal
	}
	if l.machine == nil {
		return nil, fmt.Errorf("the run has not started; a worker that serves its agent must take its first task")
	}
	return l.machine.Run(), nil
}

// waiting answers with all that the run waits for.
func (l *loop) waiting() ([]agent.Waiting, error) {
	r, err := l.query()
	if err != nil {
		return nil, err
	}
	return r.Waits(), nil
}

// run goes on until the run has ended, all its events are recorded, and every
// sender has an answer; or until it is to be continued, with nothing in flight.
func (l *loop) run(ctx workflow.Context) error {
	for {
		if err := workflow.Await(ctx, func() bool {
			return l.arrived() || l.failure != nil || l.late() || len(l.fences) > 0 || l.over() || l.quiet(ctx)
		}); err != nil {
			return err
		}
		l.pull(ctx)
		switch {
		case l.failure != nil:
			return l.failure
		case l.late():
			l.recordLate(ctx)
		case len(l.fences) > 0:
			l.fenceAll(ctx)
		case len(l.inbox.entries) > 0:
			l.take(ctx, l.inbox.pop())
		case l.quiet(ctx):
			return nil
		case l.over():
			// The run is over. Its senders get their answers; what arrives
			// meanwhile is refused, never lost.
			if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) || l.arrived() }); err != nil {
				return err
			}
			if !l.arrived() {
				return nil
			}
		}
	}
}

// over reports that the run has ended and its last events are recorded.
func (l *loop) over() bool { return l.ending != "" && !l.machine.Unacknowledged() && l.flying == 0 }

func (l *loop) take(ctx workflow.Context, e *entry) {
	if why := l.believe(ctx, e); why != "" {
		e.receipt, e.done = agent.Receipt{Status: agent.Refused, Code: agent.CodeDenied, Reason: why, Run: l.machine.Run().Status}, true
		if e.signal != "" {
			l.inbox.push(agent.Malformed{Name: e.signal, Reason: why}, e.trace)
		}
		return
	}
	commands, receipt := l.machine.Step(workflow.Now(ctx), e.trace, e.input)
	e.receipt, e.done = receipt, true
	if e.cancel && receipt.Code == agent.CodeConflict {
		l.cancelled()
	}
	if e.signal != "" && receipt.Status == agent.Refused && receipt.Code != agent.CodeEnded {
		l.inbox.push(agent.Malformed{Name: e.signal, Reason: receipt.Reason}, e.trace)
	}
	// Gates first: whatever activity comes next asks about their effects.
	for _, c := range commands {
		switch c := c.(type) {
		case agent.OpenGate:
			if c.Lookup != nil {
				l.lookups = append(l.lookups, *c.Lookup)
			}
		case agent.Resolve:
			l.resolved = append(l.resolved, signals.Resolved(c))
		}
	}
	l.close(ctx)
	finishes := slices.ContainsFunc(commands, func(c agent.Command) bool { _, ok := c.(agent.Finish); return ok })
	for _, c := range commands {
		if _, record := c.(agent.Record); record && (!finishes && l.carriesOn() || l.putsOff()) {
			continue
		}
		l.launch(ctx, c)
	}
	workflow.SetCurrentDetails(ctx, l.details())
}

func (l *loop) launch(ctx workflow.Context, c agent.Command) {
	switch c := c.(type) {
	case agent.CallModel:
		l.callModel(ctx, c)
	case agent.CancelModel:
		l.stop(modelKey(c.Turn))
	case agent.RunStep:
		l.runStep(ctx, c.Task)
	case agent.CancelStep:
		l.stop(stepKey(c.Step))
	case agent.StopStep:
		l.stopStep(ctx, c)
	case agent.OpenGate:
		l.startTimers(ctx, c)
	case agent.SetPending:
		l.setTimer(ctx, fmt.Sprintf("verdict on gate %s, %d", c.Gate, c.Until.UnixMicro()), c.Until, "the verdict on gate "+c.Gate+" takes effect", agent.GateTimerFired{Gate: c.Gate})
	case agent.CloseGate:
		l.stop("gate " + c.Gate)
		l.stop("escalation " + c.Gate)
	case agent.SetIdle:
		l.startIdle(ctx, c.At)
	case agent.Resolve:
		// Carried by the next activity.
	case agent.Record:
		l.record(ctx)
	case agent.Finish:
		l.ending = c.Status
	default:
		panic(fmt.Sprintf("workflows: unknown command %T", c))
	}
}

func modelKey(turn int) string { return fmt.Sprintf("turn %d", turn) }

// stop cancels what runs under a key; the coroutine notices by itself. Keys are
// used once in a run.
func (l *loop) stop(key string) {
	if cancel, ok := l.stops[key]; ok {
		cancel()
		delete(l.stops, key)
	}
}

// goes runs f in a coroutine of its own, which stop(key) cancels.
func (l *loop) goes(ctx workflow.Context, key string, f func(ctx workflow.Context)) {
	ctx, cancel := workflow.WithCancel(ctx)
	l.stops[key] = cancel
	workflow.GoNamed(ctx, key, func(ctx workflow.Context) {
		f(ctx)
		l.stop(key)
	})
}

// startTimers sets a gate's timers. Two never fire for the same: the machine judges
// by the clock.
func (l *loop) startTimers(ctx workflow.Context, g agent.OpenGate) {
	l.startTimer(ctx, "gate "+g.Gate, g.Gate, g.ExpiresAt, "expires")
	l.startTimer(ctx, "escalation "+g.Gate, g.Gate, g.EscalatesAt, "is escalated")
}

func (l *loop) startTimer(ctx workflow.Context, key, gate string, at *time.Time, what string) {
	if at == nil {
		return
	}
	l.setTimer(ctx, key, *at, "gate "+gate+" "+what, agent.GateTimerFired{Gate: gate})
}

// startIdle sets the timer at which a run that waits for its user looks up again,
// in the place of the one before.
func (l *loop) startIdle(ctx workflow.Context, at time.Time) {
	l.stop(fmt.Sprintf("idle %d", l.idles))
	l.idles++
	l.setTimer(ctx, fmt.Sprintf("idle %d", l.idles), at, "the user says nothing", agent.IdleTimerFired{})
}

// ride is what the next activity carries.
func (l *loop) ride() signals.Ride {
	batch := l.machine.NextBatch()
	batch.Acked, batch.Store = l.machine.Run().Seq, l.store
	if batch.First > 0 {
		batch.Acked = batch.First - 1
	}
	r := signals.Ride{FirstRunID: l.info.FirstRunID, Batch: batch, Lookups: l.lookups, Resolved: l.resolved}
	for _, s := range l.machine.Run().Steps {
		if s.Status == agent.StepInDoubt && slices.ContainsFunc(l.lookups, func(t agent.Task) bool { return t.Step == s.ID }) {
			r.Doubts = append(r.Doubts, s.ID)
		}
	}
	l.lookups, l.resolved = nil, nil
	return r
}

// carried takes what came of a ride.
func (l *loop) carried(c signals.Carried) {
	l.machine.Ack(c.Acked)
	if c.Acked > 0 && c.Store != "" {
		l.store = c.Store
	}
	for _, s := range c.Standing {
		l.inbox.push(agent.EffectStands{Step: s.Step, Result: s.Result, Whole: s.Whole, Unkept: s.Unkept}, "")
	}
}

// fatal reports errors after which the run must not go on: its journal belongs
// to another run.
func (l *loop) fatal(err error) bool {
	switch errorType(err) {
	case signals.ErrKeyUsed, signals.ErrConflict, signals.ErrSuperseded:
		l.failure = temporal.NewNonRetryableApplicationError(rootMessage(err), errorType(err), nil)
		return true
	}
	return false
}

// details is what Temporal's UI shows of the run.
func (l *loop) details() string {
	r := l.machine.Run()
	text := fmt.Sprintf("**%s** in phase **%s**, turn %d", r.Status, r.Phase, r.Turn)
	if r.Reason != "" {
		text += ": " + r.Redaction().Text(r.Reason)
	}
	for _, w := range r.Waits() {
		text += "\n- " + waits(w)
	}
	return text
}

// waits is one thing that a run waits for, in a line.
func waits(w agent.Waiting) string {
	text := string(w.For) + ": " + w.What
	if w.Gate != "" {
		text += ", gate " + w.Gate
	}
	if len(w.Who) > 0 {
		text += ", for " + strings.Join(w.Who, " or ")
	}
	text += ", since " + w.Since.UTC().Format(time.RFC3339)
	if w.Until != nil {
		text += ", until " + w.Until.UTC().Format(time.RFC3339) + ": then " + w.Then
	}
	return text
}
