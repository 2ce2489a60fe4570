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
	Store    string             `json:"store,omitempty"` // that acknowledged the latest events
	// State is what the state looked like when the run was carried on.
	State agent.StateShape `json:"state"`
}

// continues reads what a run goes on from: a member that is not known, anywhere in
// it, is refused, since what it says would be lost.
var continues = agent.NewDecoder[continued]()

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
	return l.closing && l.ending == "" && l.flying == 0 && l.machine.FitsBatch() && workflow.AllHandlersFinished(ctx)
}

// carriesOn reports that the run is about to be continued, and carries its events
// on: a record for each message of a steady stream would keep it from ever being
// quiet.
func (l *loop) carriesOn() bool {
	return l.closing && l.machine.FitsBatch() && l.flying == l.records && len(l.lookups)+len(l.resolved) == 0
}

// next ends this Temporal run and starts the one that goes on. Nothing may block
// between the last look at the inbox and this: a signal would be lost.
func (l *loop) next(ctx workflow.Context, start converter.RawValue) error {
	c := continued{Snapshot: l.machine.Snapshot(), Lookups: l.lookups, Resolved: l.resolved, State: l.def.StateShape(), Store: l.store}
	if _, err := agent.Encode(c); err != nil {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("the run cannot be carried on: %v", err), signals.ErrInvalid, nil)
	}
	return workflow.NewContinueAsNewError(ctx, l.info.WorkflowType.Name, start, c)
}

// blocks panics where other code must go on with the run, which blocks the task, and
// hands back any other error.
func blocks(err error) error {
	if agent.ErrorCode(err) == agent.CodeUnavailable {
		panic(err.Error())
	}
	return err
}

// readContinued reads the second argument of a run's workflow. CodeUnavailable: it is
// a snapshot of this run by another build. Any other error: it is none of this run.
func (l *loop) readContinued(data []byte) (continued, error) {
	var head struct {
		Snapshot struct {
			V   int `json:"v"`
			Run struct {
				V          int    `json:"v"`
				Rules      int    `json:"rules"`
				Tenant     string `json:"tenant"`
				Agent      string `json:"agent"`
				Key        string `json:"key"`
				FirstRunID string `json:"first_run_id"`
			} `json:"run"`
		} `json:"snapshot"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return continued{}, agent.Errorf(agent.CodeInvalid, "the second argument is no snapshot (%v)", err)
	}
	s, run := head.Snapshot, head.Snapshot.Run
	if address := signals.Address(run.Tenant, run.Agent, run.Key); address != l.info.WorkflowExecution.ID || run.FirstRunID != l.info.FirstRunID {
		return continued{}, agent.Errorf(agent.CodeInvalid, "the second argument is no snapshot of this run, but of run %q of %q", run.FirstRunID, address)
	}
	if err := agent.CheckSnapshot(s.V, run.V, run.Rules); err != nil {
		return continued{}, err // rather than the first of the members that are unknown
	}
	c, err := continues.Decode(data)
	if err != nil {
		return c, agent.UnknownSnapshot(err)
	}
	return c, nil
}

// reopen goes on from where the Temporal run before stopped. The run keeps its
// agent's version and limits; newer rules of the machine apply from here.
func (l *loop) reopen(ctx workflow.Context, agents *agent.Registry, raw converter.RawValue) error {
	c, err := l.readContinued(raw.Payload().GetData())
	if err != nil {
		return blocks(err)
	}
	var rules int
	fresh := workflow.SideEffect(ctx, func(workflow.Context) any { return agent.Rules })
	if err := fresh.Get(&rules); err != nil {
		return err
	}
	if err := agent.CheckRules(rules); err != nil {
		return blocks(err)
	}
	run := c.Snapshot.Run
	def, err := agents.Get(run.Agent, run.Version)
	if err != nil {
		panic(fmt.Sprintf("%v: the task waits for a worker that has it", err))
	}
	if err := def.CheckState(c.State); err != nil {
		return blocks(err)
	}
	if l.machine, err = agent.Restore(def, c.Snapshot); err != nil {
		return blocks(err)
	}
	l.def, l.lookups, l.resolved, l.store = def, c.Lookups, c.Resolved, c.Store
	l.inbox.first("", agent.SnapshotLoaded{Rules: rules, RunID: l.info.OriginalRunID})
	return nil
}
