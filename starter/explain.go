package starter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"interlock/agent"
)

// explain turns an error of Temporal into one that says what to do. Where a
// call ran out of time it looks for the reason.
func (s *Starter) explain(ctx context.Context, what, address string, err error) error {
	var app *temporal.ApplicationError
	var notFound *serviceerror.NotFound
	var unavailable *serviceerror.Unavailable
	var late *serviceerror.DeadlineExceeded
	var timeout *client.WorkflowUpdateServiceTimeoutOrCanceledError
	switch {
	case errors.As(err, &app) && app.Type() == "AcceptedUpdateCompletedWorkflow":
		return agent.Errorf(agent.CodeEnded, "%s %s: the run ended meanwhile; look at it before sending this again", what, address)
	case errors.As(err, &app):
		return agent.Errorf(codeOf(app.Type()), "%s", app.Message())
	case errors.As(err, &notFound) && strings.Contains(notFound.Message, "already completed"):
		return agent.Errorf(agent.CodeEnded, "%s %s: the run has ended; start a new one under a new key", what, address)
	case errors.As(err, &notFound):
		return agent.Errorf(agent.CodeNotFound, "%s: there is no run %s", what, address)
	case errors.As(err, &late), errors.As(err, &timeout), errors.Is(err, context.DeadlineExceeded):
		return agent.Errorf(agent.CodeUnavailable, "%s %s: no answer in time: %s", what, address, s.whyBlocked(ctx, address))
	case errors.As(err, &unavailable):
		return agent.Errorf(agent.CodeUnavailable, "%s %s: Temporal cannot be reached (%v): try again with the same id", what, address, err)
	}
	return &agent.Error{Code: agent.CodeInternal, Message: fmt.Sprintf("%s %s: %v", what, address, err), Err: err}
}

func codeOf(t string) agent.Code {
	switch c := agent.Code(t); c {
	case agent.CodeInvalid, agent.CodeNotFound, agent.CodeConflict, agent.CodeDenied, agent.CodeEnded, agent.CodeUnavailable:
		return c
	}
	return agent.CodeInternal
}

// whyBlocked says in a sentence what keeps a run from answering.
func (s *Starter) whyBlocked(ctx context.Context, address string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	described, err := s.temporal.DescribeWorkflow(ctx, address, "")
	if err != nil {
		return "Temporal cannot be reached; try again with the same id"
	}
	d := described.RawResponse
	queue := d.GetExecutionConfig().GetTaskQueue().GetName()
	if task := d.GetPendingWorkflowTask(); task != nil && task.GetAttempt() > 1 {
		return fmt.Sprintf("the run's workflow task has failed %d times: deploy a worker with the code that the run needs (its log has the reason)", task.GetAttempt()-1)
	}
	for _, a := range d.GetPendingActivities() {
		if a.GetLastFailure() != nil {
			return fmt.Sprintf("activity %s has failed %d times: %s", a.GetActivityType().GetName(), a.GetAttempt()-1, a.GetLastFailure().GetMessage())
		}
	}
	q, err := s.temporal.DescribeTaskQueue(ctx, queue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	if err == nil && len(q.GetPollers()) == 0 {
		return fmt.Sprintf("no worker polls task queue %s: start one", queue)
	}
	return "the run is busy; try again with the same id"
}
