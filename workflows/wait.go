package workflows

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
	"interlock/signals"
)

// wait answers with what is new after an event as soon as there is something:
// a reply, a gate, a pause, an end. It answers "again" after a while, and at
// once when the run is about to be continued, so that it never holds that up.
func (l *loop) wait(ctx workflow.Context, raw converter.RawValue) (signals.News, error) {
	w, err := decode(signals.Waits, raw)
	if err != nil {
		return signals.News{}, updateError(err)
	}
	l.waiters++
	defer func() { l.waiters-- }()
	ctx, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	if err := workflow.Await(ctx, func() bool { return l.machine != nil || l.failure != nil }); err != nil {
		return signals.News{}, err
	}
	if l.failure != nil {
		return signals.News{}, l.failure
	}
	fresh := func() bool { return l.machine.Run().News > w.AfterSeq || l.machine.Run().Status.Ended() }
	if !fresh() && !l.closing {
		options := workflow.AwaitOptions{Timeout: signals.WaitFor, TimerOptions: workflow.TimerOptions{Summary: "a wait gives up"}}
		if _, err := workflow.AwaitWithOptions(ctx, options, func() bool { return fresh() || l.closing || l.failure != nil }); err != nil {
			return signals.News{}, err
		}
	}
	return signals.NewsOf(l.machine.Run(), w.AfterSeq), nil
}

func (l *loop) checkWait(_ workflow.Context, raw converter.RawValue) error {
	w, err := decode(signals.Waits, raw)
	switch {
	case err != nil:
	case w.AfterSeq < 0:
		err = agent.Errorf(agent.CodeInvalid, "after_seq is the number of an event, 0 before the first")
	case l.waiters >= signals.WaitMost:
		err = agent.Errorf(agent.CodeUnavailable, "%d callers wait for this run already; ask again later, or read the store", l.waiters)
	}
	if err != nil {
		return updateError(err)
	}
	return nil
}
