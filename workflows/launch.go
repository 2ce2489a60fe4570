package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
	"interlock/signals"
	"interlock/tool"
)

// Times of activities that no tool sets. A heartbeat comes every second; after
// heartbeatTimeout without one the worker is taken for dead.
const (
	heartbeatTimeout = 15 * time.Second
	modelTimeout     = 5 * time.Minute // of one attempt
	recordTimeout    = 30 * time.Second
	waitAtMost       = time.Minute // between two attempts of what waits for a store, a deploy or a person
)

// patient retries for ever, within the deadline: whether an error is for good
// is decided by the activity.
var patient = &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}

// patientModel backs off further: a provider that is down is not hammered.
var patientModel = &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Minute}

// record appends the pending events now. It never gives up: without its journal
// a run stands still.
func (l *loop) record(ctx workflow.Context) {
	in := signals.RecordInput{Ride: l.ride()}
	l.owed = !l.machine.FitsBatch() // what is over goes in the next one
	l.flying, l.records = l.flying+1, l.records+1
	workflow.GoNamed(ctx, "record", func(ctx workflow.Context) {
		defer func() { l.flying, l.records = l.flying-1, l.records-1 }()
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: recordTimeout, HeartbeatTimeout: heartbeatTimeout,
			RetryPolicy: patient, Summary: "record"})
		var out signals.RecordResult
		if err := workflow.ExecuteActivity(ctx, signals.ActivityRecord, in).Get(ctx, &out); err != nil {
			if !l.fatal(err) {
				panic(fmt.Sprintf("workflows: record ended with %v", err)) // it has no end of its own
			}
			return
		}
		l.carried(out.Carried)
	})
}

// putsOff reports that a record must wait for the one under way. Each carries all
// that the journal has not acknowledged: while the store is down, one for each
// input would have the history grow with the square of their number, up to where
// Temporal ends the run.
func (l *loop) putsOff() bool {
	if l.records == 0 {
		return false
	}
	l.owed = true
	return true
}

// late reports that a record was put off, and that its turn has come; or that more
// waits than the next Temporal run may be given.
func (l *loop) late() bool {
	return l.records == 0 && (l.owed || l.closing && !l.machine.FitsBatch())
}

// recordLate makes up for what was put off, unless another activity has brought
// the events meanwhile, or the run carries them on.
func (l *loop) recordLate(ctx workflow.Context) {
	l.owed = false
	if l.machine.Unacknowledged() && (l.ending != "" || !l.carriesOn()) {
		l.record(ctx)
	}
}

// room waits until the next activity carries all that the journal has not
// acknowledged: what is over goes before it in records, one at a time. Only the
// launch waits, so inputs are taken all the same, also while the store is down. An
// error says that ctx was cancelled, or that the run must not go on.
func (l *loop) room(ctx workflow.Context) error {
	for !l.machine.FitsBatch() {
		if l.records == 0 {
			l.record(l.free)
		}
		if err := workflow.Await(ctx, func() bool { return l.failure != nil || l.records == 0 || l.machine.FitsBatch() }); err != nil {
			return err
		}
		if l.failure != nil {
			return l.failure
		}
	}
	return ctx.Err()
}

func (l *loop) callModel(ctx workflow.Context, c agent.CallModel) {
	turn := c.View.Turn
	l.flying++
	l.goes(ctx, modelKey(turn), func(ctx workflow.Context) {
		defer func() { l.flying-- }()
		options := workflow.ActivityOptions{StartToCloseTimeout: modelTimeout + tool.Overhead, ScheduleToCloseTimeout: l.outage(),
			HeartbeatTimeout: heartbeatTimeout, RetryPolicy: patientModel, Summary: fmt.Sprintf("turn %d, phase %s", turn, c.View.Phase)}
		if l.room(ctx) != nil {
			return
		}
		in := signals.CallModelInput{Ride: l.ride(), View: c.View}
		var out signals.CallModelResult
		err := l.untilTried(ctx, &in.Ride, options, func(ctx workflow.Context) error {
			return workflow.ExecuteActivity(ctx, signals.ActivityCallModel, in).Get(ctx, &out)
		})
		switch {
		case err == nil:
			l.carried(out.Carried)
			a := out.Answer
			l.inbox.push(agent.Proposed{Turn: turn, Text: a.Text, Calls: a.Calls, Finish: a.Finish, Model: a.Model,
				Instructions: a.Instructions, Usage: a.Usage, Opaque: a.Opaque, ActiveMS: a.ActiveMS}, "")
		case temporal.IsCanceledError(err) || l.fatal(err):
			l.unridden(in.Ride)
		default:
			l.inbox.push(agent.ProposalFailed{Turn: turn, Reason: rootMessage(err)}, "")
		}
	})
}

// unridden gives back what an activity carried beside events and may not have
// brought: the next one carries it first. All of it is harmless again.
func (l *loop) unridden(r signals.Ride) {
	l.lookups = append(r.Lookups, l.lookups...)
	l.resolved = append(r.Resolved, l.resolved...)
}

// outage is how long a provider may be down before the run pauses.
func (l *loop) outage() time.Duration {
	if d := l.machine.Run().Limits.Outage; d > 0 {
		return d
	}
	return agent.DefaultOutage
}

// runStep runs a tool: a quick one inside this task first.
func (l *loop) runStep(ctx workflow.Context, task agent.Task) {
	info, _ := l.def.Tool(task.Tool)
	if info.Quick && task.Approved == nil { // else who approved it is judged first, by more than this task has
		l.runQuick(ctx, task, info)
		return
	}
	l.flying++
	l.goes(ctx, stepKey(task.Step), func(ctx workflow.Context) {
		defer func() { l.flying-- }()
		l.ordinary(ctx, task, info)
	})
}

func stepKey(step string) string { return "step " + step }

// runQuick tries a local activity once; past its half second, or on anything
// but a definite answer, the tool runs as an ordinary activity.
func (l *loop) runQuick(ctx workflow.Context, task agent.Task, info agent.ToolInfo) {
	l.flying++
	l.goes(ctx, stepKey(task.Step), func(ctx workflow.Context) {
		defer func() { l.flying-- }()
		local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: tool.QuickTimeout,
			RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}, Summary: summary(task)})
		var out signals.ToolResult
		err := workflow.ExecuteLocalActivity(local, signals.QuickActivity(task.Agent, task.Tool), task).Get(ctx, &out)
		switch {
		case err == nil:
			l.finished(task, out)
		case errorType(err) == signals.ErrRefused:
			l.inbox.push(agent.StepNotApplied{Step: task.Step, Reason: rootMessage(err), ForGood: true}, "")
		case temporal.IsCanceledError(err): // its result is dropped
		default:
			l.ordinary(ctx, task, info)
		}
	})
}

func summary(t agent.Task) string {
	text := fmt.Sprintf("step %s, %s", t.Step, t.Tool)
	if u := t.Undoes; u != nil {
		text += fmt.Sprintf(", undoes step %s, %s", u.Step, u.Tool)
	}
	return text
}

func (l *loop) finished(task agent.Task, r signals.ToolResult) {
	l.inbox.push(agent.StepFinished{Step: task.Step, Result: r.Result, Whole: r.Whole, Unkept: r.Unkept, ActiveMS: r.ActiveMS}, "")
}

// untilTried schedules a model call again when its time ran out and the last
// attempt had run nothing. A provider that is down so long pauses the run.
func (l *loop) untilTried(ctx workflow.Context, ride *signals.Ride, o workflow.ActivityOptions, run func(workflow.Context) error) error {
	ctx = workflow.WithActivityOptions(ctx, o)
	pause := time.Second
	for {
		err := run(ctx)
		if err == nil || temporal.IsCanceledError(err) {
			return err
		}
		if !waited(err) || errorType(err) == signals.ErrUnavailable || errorType(err) == signals.ErrStore {
			return err
		}
		l.unridden(*ride)
		*ride = signals.Ride{}
		// Its time may have been short, and what it waits for may take long.
		if err := workflow.Sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, waitAtMost)
		if err := l.room(ctx); err != nil {
			return err
		}
		*ride = l.ride()
	}
}

// waited reports whether an activity ended because its time was up while it waited,
// and the last attempt had run nothing: for a store that is down, a worker that
// lacks the code, a journal that differs, an operator's hold, an earlier attempt,
// or a directory of people that does not answer.
func waited(err error) bool {
	switch errorType(err) {
	case signals.ErrNotDeployed, signals.ErrDiverged, signals.ErrLost, signals.ErrEarlier, signals.ErrHeld, signals.ErrUnjudged, signals.ErrUnavailable, signals.ErrStore:
		return !timedOutItself(err)
	}
	return false
}

// timedOutItself reports that the deadline passed while an attempt ran.
func timedOutItself(err error) bool {
	var t *temporal.TimeoutError
	return errors.As(err, &t)
}

// failed says what is known of a step whose activity ended with an error. A
// timeout is never "not applied" where there is an effect.
func failed(task agent.Task, effect agent.Effect, err error) agent.Input {
	reason := rootMessage(err)
	var app *temporal.ApplicationError
	timedOut := timedOutItself(err)
	if errors.As(err, &app) && !timedOut {
		open := true
		switch app.Type() {
		case signals.ErrRefused:
			return agent.StepNotApplied{Step: task.Step, Reason: reason, ForGood: true}
		case signals.ErrNotApplied:
			if app.HasDetails() && app.Details(&open) == nil && !open {
				return agent.StepNotApplied{Step: task.Step, Reason: reason}
			}
		case signals.ErrUnapproved:
			return agent.StepUnapproved{Step: task.Step, Reason: reason}
		case signals.ErrJudgeAgain:
			return agent.JudgeAgain{Step: task.Step}
		case signals.ErrFenced:
			return agent.StepStopped{Step: task.Step}
		case signals.ErrInvalid:
			// The store refused the claim before anything ran.
			return agent.StepNotApplied{Step: task.Step, Reason: reason}
		}
	}
	if effect == agent.ReadOnly {
		return agent.StepNotApplied{Step: task.Step, Reason: reason}
	}
	if timedOut {
		reason = "the time was up: " + reason
	}
	return agent.StepUnknown{Step: task.Step, Reason: reason}
}

// errorType is the type of the application error in a chain, "" where there
// is none.
func errorType(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Type()
	}
	return ""
}

// rootMessage is what went wrong, without the SDK's wrapping.
func rootMessage(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	var t *temporal.TimeoutError
	if errors.As(err, &t) {
		if t.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT {
			return "its worker stopped answering"
		}
		return "it ran out of time"
	}
	return err.Error()
}
