package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
)

// timer is one that is set. No coroutine waits for it, nor for Temporal's cancel: a
// run that waits costs the memory of one.
type timer struct {
	key   string
	fires workflow.Future
	input agent.Input
}

// setTimer has an input arrive at a time, unless stop(key) comes first.
func (l *loop) setTimer(ctx workflow.Context, key string, at time.Time, summary string, input agent.Input) {
	wait := at.Sub(workflow.Now(ctx))
	ctx, cancel := workflow.WithCancel(ctx)
	l.stops[key] = cancel
	// Made in a coroutine, as activities are, so that the commands of a step stay in
	// their order.
	workflow.GoNamed(ctx, key, func(ctx workflow.Context) {
		if ctx.Err() == nil {
			l.timers = append(l.timers, timer{key, workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: summary}), input})
		}
	})
}

// arrived reports whether there is an input to take.
func (l *loop) arrived() bool {
	if l.inbox.waiting() || l.cancels == 0 && l.root.Err() != nil {
		return true
	}
	for _, t := range l.timers {
		if t.fires.IsReady() {
			return true
		}
	}
	return false
}

// pull takes in what has arrived by itself: signals, Temporal's cancel, timers.
func (l *loop) pull(ctx workflow.Context) {
	l.inbox.pull(ctx)
	if l.cancels == 0 && l.root.Err() != nil {
		l.cancelled()
	}
	var set []timer
	for _, t := range l.timers {
		if !t.fires.IsReady() {
			set = append(set, t)
			continue
		}
		if err := t.fires.Get(ctx, nil); !temporal.IsCanceledError(err) {
			l.inbox.push(t.input, "")
		}
		l.stop(t.key)
	}
	l.timers = set
}

// cancelled takes Temporal's own cancel, under the first id of its kind that no
// sender has used for something else: it is never refused for that.
func (l *loop) cancelled() {
	l.cancels++
	id := "temporal-cancel"
	if l.cancels > 1 {
		id = fmt.Sprintf("temporal-cancel-%d", l.cancels)
	}
	c := agent.CancelRun{ID: id, Principal: agent.Principal{Subject: "temporal", Auth: "temporal"}, Reason: "cancelled through Temporal"}
	l.inbox.push(c, "").cancel = true
}
