package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"interlock/signals"
)

// Sweep looks after effects whose runs can no longer do it. It is no part of a run.
func Sweep(ctx workflow.Context) (report signals.Swept, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Minute, ScheduleToCloseTimeout: time.Hour,
		HeartbeatTimeout: heartbeatTimeout, RetryPolicy: patient, Summary: "sweep"})
	err = workflow.ExecuteActivity(ctx, signals.WorkflowSweep).Get(ctx, &report)
	return report, err
}

// Resolve settles an effect in doubt of a run that has ended.
func Resolve(ctx workflow.Context, in signals.Resolution) (answer signals.Resolving, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: recordTimeout, ScheduleToCloseTimeout: 10 * time.Minute,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second}, Summary: "resolve " + in.Key})
	err = workflow.ExecuteActivity(ctx, signals.WorkflowResolve, in).Get(ctx, &answer)
	return answer, err
}
