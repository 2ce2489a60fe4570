package starter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"interlock/agent"
	"interlock/signals"
)

// Sweep has a worker look after effects that may have happened and whose runs have
// ended, and returns what it found. On a task queue one sweep runs at a time: a
// second call waits for the one under way. Where its time is up the sweep goes on.
func (s *Starter) Sweep(ctx context.Context) (report signals.Swept, err error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	run, err := s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: s.sweeps(), TaskQueue: s.queue,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING}, signals.WorkflowSweep)
	if err == nil {
		err = run.Get(ctx, &report)
	}
	if err != nil {
		return report, s.explain(ctx, "sweep", s.sweeps(), err)
	}
	return report, nil
}

// sweeps is the workflow and schedule of the sweeps by the workers of one queue.
func (s *Starter) sweeps() string { return signals.WorkflowSweep + "/" + s.queue }

// ScheduleSweep has Temporal sweep the ledger again and again, by a schedule named
// interlock.sweep/<task queue>, which is made or changed; every 0 deletes it.
func (s *Starter) ScheduleSweep(ctx context.Context, every time.Duration) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	schedules := s.temporal.ScheduleClient()
	spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}}
	handle := schedules.GetHandle(ctx, s.sweeps())
	err := error(nil)
	switch {
	case every < 0:
		return agent.Errorf(agent.CodeInvalid, "a sweep every %s cannot be: give a time, or 0 to end it", every)
	case every == 0:
		err = handle.Delete(ctx)
		if _, none := errors.AsType[*serviceerror.NotFound](err); none {
			err = nil
		}
	default:
		_, err = schedules.Create(ctx, client.ScheduleOptions{ID: s.sweeps(), Spec: spec, Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP,
			Action: &client.ScheduleWorkflowAction{ID: s.sweeps(), Workflow: signals.WorkflowSweep, TaskQueue: s.queue}})
		if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
			err = handle.Update(ctx, client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
				in.Description.Schedule.Spec = &spec
				if a, ok := in.Description.Schedule.Action.(*client.ScheduleWorkflowAction); ok {
					a.TaskQueue = s.queue
				}
				return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
			}})
		}
	}
	if err != nil {
		return s.explain(ctx, "schedule of the sweep", s.sweeps(), err)
	}
	return nil
}

// ResolveEffect settles an effect in doubt whose run has ended, as a person has
// found out: durably when it returns. A repeat is harmless. Of a run under way the
// step's gate is decided instead ([Starter.Decide]).
func (s *Starter) ResolveEffect(ctx context.Context, in signals.Resolution) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", s.queue, in.Tenant, in.Key))
	run, err := s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: signals.WorkflowResolve + "/" + hex.EncodeToString(sum[:16]), TaskQueue: s.queue,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL, WorkflowExecutionErrorWhenAlreadyStarted: true}, signals.WorkflowResolve, in)
	var answer signals.Resolving
	if err == nil {
		err = run.Get(ctx, &answer)
	}
	switch {
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		return agent.Errorf(agent.CodeUnavailable, "effect %s is being resolved at this moment: look at it, and try again", in.Key)
	case err != nil:
		return s.explain(ctx, "resolution of effect", in.Key, err)
	case answer.Code != "":
		return agent.Errorf(answer.Code, "%s", answer.Reason)
	}
	return nil
}
