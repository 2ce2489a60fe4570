package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"interlock/signals"
)

// Notice tells one notice to one target, again and again until its time is up. What
// is not taken until then is buried, for an operator. It is no part of a run.
func Notice(ctx workflow.Context, in signals.Telling) error {
	deliver := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, ScheduleToCloseTimeout: in.Within(),
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: in.First(), BackoffCoefficient: signals.RetryFactor,
			MaximumInterval: max(in.First(), signals.RetryMost)}, Summary: "deliver to " + in.Target})
	patiently := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: recordTimeout, RetryPolicy: patient, Summary: "bury"})
	err := workflow.ExecuteActivity(deliver, signals.ActivityDeliver, in).Get(ctx, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		return err // Temporal was told to stop it: nobody gave it up
	case err != nil:
		return workflow.ExecuteActivity(patiently, signals.ActivityBury, signals.Burial{Telling: in, Reason: lastReason(err)}).Get(ctx, nil)
	case in.Retry > 0:
		return workflow.ExecuteActivity(patiently, signals.ActivityMarkNoticed, in).Get(ctx, nil)
	}
	return nil
}

// lastReason is what the last attempt said.
func lastReason(err error) string {
	var said *temporal.ApplicationError
	if errors.As(err, &said) {
		return said.Message()
	}
	return "no worker has said what became of the attempts"
}
