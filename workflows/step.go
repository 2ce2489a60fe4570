package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
	"interlock/signals"
	"interlock/tool"
)

// trial is what a run knows of the activities of one step.
type trial struct {
	first  time.Time // when the first one was scheduled
	since  time.Time // when the first attempt ran that said that nothing happened
	waited bool      // one has waited: the next have no end of their own
	drains bool      // it is cancelled, and scheduled again in the next Temporal run
}

func (l *loop) trial(ctx workflow.Context, step string) *trial {
	t := l.trials[step]
	if t == nil {
		t = &trial{first: workflow.Now(ctx)}
		l.trials[step] = t
	}
	return t
}

// ordinary runs a tool as an activity and tells the machine how it ended.
func (l *loop) ordinary(ctx workflow.Context, task agent.Task, info agent.ToolInfo) {
	t := l.trial(ctx, task.Step)
	in := signals.ToolInput{Task: task, Waited: t.waited, Since: t.since}
	var out signals.ToolOutput
	err := l.room(ctx)
	if err == nil {
		in.Ride = l.ride()
		out, err = l.tried(ctx, &in, info, t)
	}
	if err == nil {
		l.carried(out.Carried)
		l.ends(task, agent.StepFinished{Step: task.Step, Result: out.Result, Whole: out.Whole, Unkept: out.Unkept, ActiveMS: out.ActiveMS})
		return
	}
	l.unridden(in.Ride)
	_, stops := l.stopping[task.Step]
	switch kind := errorType(err); {
	case l.fatal(err):
	case kind == signals.ErrRefused, kind == signals.ErrInvalid, kind == signals.ErrFenced:
		l.ends(task, failed(task, info.Effect, err))
	case stops:
		l.fenced(ctx, task, info)
	case temporal.IsCanceledError(err): // let go of, or carried on: nobody waits for it here
	case kind == signals.ErrJudgeAgain:
		t.judge(err)
		l.inbox.push(agent.JudgeAgain{Step: task.Step}, "")
	default:
		l.ends(task, failed(task, info.Effect, err))
	}
}

// judge takes from the error of a step that waited what its next activity must know.
func (t *trial) judge(err error) {
	var past signals.Past
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.HasDetails() && app.Details(&past) == nil {
		t.since, t.waited = past.Since, t.waited || past.Held
	}
}

// ends tells the machine how a step ended.
func (l *loop) ends(task agent.Task, in agent.Input) {
	delete(l.trials, task.Step)
	delete(l.stopping, task.Step)
	l.inbox.push(in, "")
}

// tried runs a step's activity. One that has waited until its time was up is scheduled
// again without an end: it backs off to a minute, and the tool's own time is reckoned
// from its first claim.
func (l *loop) tried(ctx workflow.Context, in *signals.ToolInput, info agent.ToolInfo, t *trial) (out signals.ToolOutput, err error) {
	attempt, all := tool.Times(info)
	o := workflow.ActivityOptions{StartToCloseTimeout: attempt, HeartbeatTimeout: heartbeatTimeout, RetryPolicy: patient, Summary: summary(in.Task),
		// One with an effect that is stopped says how it ended; of one that only reads
		// nobody wants to know.
		WaitForCancellation: info.Effect != agent.ReadOnly}
	for {
		if o.ScheduleToCloseTimeout = max(all-workflow.Now(ctx).Sub(t.first), attempt); t.waited {
			o.ScheduleToCloseTimeout = 0
			l.drain(in.Task.Step)
		}
		err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), signals.ToolActivity(in.Task.Agent, in.Task.Tool), *in).Get(ctx, &out)
		if err == nil || temporal.IsCanceledError(err) || !waited(err) {
			return out, err
		}
		l.unridden(in.Ride)
		in.Ride = signals.Ride{}
		if err := workflow.Sleep(ctx, time.Second); err != nil {
			return out, err
		}
		t.waited, in.Waited = true, true
		if err := l.room(ctx); err != nil {
			return out, err
		}
		in.Ride = l.ride()
	}
}

// drain lets go of a step that waits where the run is to be continued: it has not
// begun, and is scheduled again in the next Temporal run.
func (l *loop) drain(step string) {
	if t := l.trials[step]; l.closing && t != nil && t.waited && !t.drains {
		t.drains = true
		if cancel, runs := l.stops[stepKey(step)]; runs {
			cancel()
		}
	}
}

// stopStep stops a step: what runs of it is cancelled, and when that has ended its
// effect is fenced.
func (l *loop) stopStep(ctx workflow.Context, c agent.StopStep) {
	step := c.Task.Step
	l.stopping[step] = c
	if cancel, runs := l.stops[stepKey(step)]; runs {
		cancel()
		return
	}
	info, _ := l.def.Tool(c.Task.Tool)
	l.flying++
	l.goes(ctx, stepKey(step), func(ctx workflow.Context) {
		defer func() { l.flying-- }()
		l.fenced(ctx, c.Task, info)
	})
}

// fenced finds out how a stopped step stands, and tells the machine. Of one that has
// begun more can be found out later where its other side can be asked.
func (l *loop) fenced(ctx workflow.Context, task agent.Task, info agent.ToolInfo) {
	ctx, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	_, all := tool.Times(info)
	until := workflow.Now(ctx).Add(all)
	for rest := time.Second; ; rest = min(2*rest, time.Minute) {
		f := l.fence(ctx, task)
		if f == nil {
			return // the run must not go on
		}
		switch asks := info.Effect == agent.Reconcilable && workflow.Now(ctx).Before(until); {
		case f.Stands == signals.StandsFenced:
			l.ends(task, agent.StepStopped{Step: task.Step})
		case f.Stands == signals.StandsDone:
			l.ends(task, agent.StepFinished{Step: task.Step, Result: f.Result, Whole: f.Whole, Unkept: f.Unkept})
		case f.Stands == signals.StandsRefused:
			l.ends(task, agent.StepNotApplied{Step: task.Step, Reason: f.Reason, ForGood: true})
		case asks:
			_ = workflow.Sleep(ctx, max(rest, f.Wait))
			continue
		case l.stopping[task.Step].Undo:
			l.ends(task, agent.StepUnknown{Step: task.Step, Reason: f.Reason})
		default:
			l.ends(task, agent.StepBegun{Step: task.Step, Reason: f.Reason})
		}
		return
	}
}

// fencing is one step that waits for its fence.
type fencing struct {
	step   signals.Fence
	answer *signals.Fenced
	done   bool
}

// fence has a step fenced, with all others that wait for it, by one activity. nil:
// the run must not go on.
func (l *loop) fence(ctx workflow.Context, task agent.Task) *signals.Fenced {
	f := &fencing{step: signals.Fence{Task: task, Reason: l.stopping[task.Step].Reason}}
	l.fences = append(l.fences, f)
	_ = workflow.Await(ctx, func() bool { return f.done })
	return f.answer
}

// fenceAll launches the activity that fences all steps that wait for it.
func (l *loop) fenceAll(ctx workflow.Context) {
	all := l.fences
	l.fences = nil
	in, within := signals.FenceInput{}, recordTimeout
	for _, f := range all {
		info, _ := l.def.Tool(f.step.Task.Tool)
		in.Steps, within = append(in.Steps, f.step), within+info.Timeout
	}
	l.flying++
	workflow.GoNamed(ctx, "fence", func(ctx workflow.Context) {
		defer func() { l.flying-- }()
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: within, HeartbeatTimeout: heartbeatTimeout,
			RetryPolicy: patient, Summary: "fence " + names(in.Steps)})
		if l.room(ctx) != nil {
			return
		}
		in.Ride = l.ride()
		var out signals.FenceResult
		err := workflow.ExecuteActivity(ctx, signals.ActivityFence, in).Get(ctx, &out)
		if err != nil && !l.fatal(err) {
			panic("workflows: fence ended with " + err.Error()) // it has no end of its own
		}
		if err == nil {
			l.carried(out.Carried)
		}
		for i, f := range all {
			f.done = true
			if err == nil {
				f.answer = &out.Steps[i]
			}
		}
	})
}

func names(steps []signals.Fence) (out string) {
	for i, s := range steps {
		if i > 0 {
			out += ", "
		}
		out += s.Task.Step
	}
	return out
}
