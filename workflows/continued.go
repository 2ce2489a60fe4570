package workflows

import (
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
	"interlock/signals"
)

// continued is the second argument of a run's workflow: where the Temporal run
// before it stopped. The first of a chain has none. Persisted in histories.
type continued struct {
	Snapshot agent.Snapshot     `json:"snapshot"`
	Lookups  []agent.Task       `json:"lookups,omitempty"`
	Resolved []signals.Resolved `json:"resolved,omitempty"`
}

// due reports that the history is long enough for the run to go on in a new
// Temporal run.
func (l *loop) due(ctx workflow.Context) bool {
	info, limits := workflow.GetInfo(ctx), l.machine.Run().Limits
	return info.GetContinueAsNewSuggested() ||
		limits.History > 0 && info.GetCurrentHistoryLength() >= limits.History ||
		limits.HistoryBytes > 0 && info.GetCurrentHistorySize() >= limits.HistoryBytes
}

// close keeps new turns from starting once the history is long. What is in
// flight ends first; then the run is continued.
func (l *loop) close(ctx workflow.Context) {
	if !l.closing && l.due(ctx) {
		l.closing = true
		l.machine.Hold()
		for _, s := range l.machine.Run().Steps {
			l.drain(s.ID)
		}
	}
}

// quiet reports that a closing run can be continued: nothing is in flight, and
// every sender has an answer.
func (l *loop) quiet(ctx workflow.Context) bool {
	return l.closing && l.ending == "" && l.flying == 0 && workflow.AllHandlersFinished(ctx)
}

// carriesOn reports that the run is about to be continued, and carries its events
// on: a record for each message of a steady stream would keep it from ever being
// quiet.
func (l *loop) carriesOn() bool {
	return l.closing && l.flying == l.records && len(l.lookups)+len(l.resolved) == 0
}

// next ends this Temporal run and starts the one that goes on. Nothing may block
// between the last look at the inbox and this: a signal would be lost.
func (l *loop) next(ctx workflow.Context, start converter.RawValue) error {
	c := continued{Snapshot: l.machine.Snapshot(), Lookups: l.lookups, Resolved: l.resolved}
	if _, err := agent.Encode(c); err != nil {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("the run cannot be carried on: %v", err), signals.ErrInvalid, nil)
	}
	return workflow.NewContinueAsNewError(ctx, l.info.WorkflowType.Name, start, c)
}

// reopen goes on from where the Temporal run before stopped. The run keeps its
// agent's version and limits; newer rules of the machine apply from here.
func (l *loop) reopen(ctx workflow.Context, agents *agent.Registry, raw converter.RawValue) error {
	var c continued
	if err := json.Unmarshal(raw.Payload().GetData(), &c); err != nil || c.Snapshot.Run == nil {
		return agent.Errorf(agent.CodeInvalid, "the second argument is no snapshot (%v)", err)
	}
	var rules int
	fresh := workflow.SideEffect(ctx, func(workflow.Context) any { return agent.Rules })
	if err := fresh.Get(&rules); err != nil {
		return err
	}
	run := c.Snapshot.Run
	def, err := agents.Get(run.Agent, run.Version)
	if err != nil {
		panic(fmt.Sprintf("%v: the task waits for a worker that has it", err))
	}
	if run.Address() != l.info.WorkflowExecution.ID || run.FirstRunID != l.info.FirstRunID {
		return agent.Errorf(agent.CodeInvalid, "the snapshot is of run %s of %s", run.FirstRunID, run.Address())
	}
	l.machine, err = agent.Restore(def, c.Snapshot)
	switch {
	case agent.ErrorCode(err) == agent.CodeUnavailable:
		panic(fmt.Sprintf("%v: the task waits for a worker that reads it", err))
	case err != nil:
		return err
	}
	l.def, l.lookups, l.resolved = def, c.Lookups, c.Resolved
	l.inbox.first("", agent.SnapshotLoaded{Rules: rules, RunID: l.info.OriginalRunID})
	return nil
}
