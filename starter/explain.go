package starter

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	switch {
	case endedMeanwhile(err):
		return agent.Errorf(agent.CodeEnded, "%s %s: the run ended meanwhile; look at it before sending this again", what, address)
	case errors.As(err, &app):
		return agent.Errorf(codeOf(app.Type()), "%s", app.Message())
	case hasEnded(err):
		return agent.Errorf(agent.CodeEnded, "%s %s: the run has ended; start a new one under a new key", what, address)
	case errors.As(err, &notFound):
		return agent.Errorf(agent.CodeNotFound, "%s: there is no run %s", what, address)
	case errors.Is(ctx.Err(), context.Canceled):
		return &agent.Error{Code: agent.CodeUnavailable, Message: fmt.Sprintf("%s %s: the caller gave up; try again with the same id", what, address), Err: ctx.Err()}
	case late(err), notTaken(err):
		return agent.Errorf(agent.CodeUnavailable, "%s %s: no answer in time: %s", what, address, s.whyBlocked(ctx, address))
	case errors.As(err, &unavailable):
		return agent.Errorf(agent.CodeUnavailable, "%s %s: Temporal cannot be reached (%v): try again with the same id", what, address, err)
	}
	return &agent.Error{Code: agent.CodeInternal, Message: fmt.Sprintf("%s %s: %v", what, address, err), Err: err}
}

// endedMeanwhile reports that a run took an update in and ended, or was ended,
// before it had answered.
func endedMeanwhile(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == "AcceptedUpdateCompletedWorkflow"
}

// hasEnded reports that Temporal knows the run, and that it is over.
func hasEnded(err error) bool {
	var notFound *serviceerror.NotFound
	return errors.As(err, &notFound) && strings.Contains(notFound.Message, "already completed")
}

// notTaken reports that the workflow task failed which an update came with, as it
// does when a signal arrives while the run is being continued, or where the
// agent's code panics. The run knows nothing of the update: it is sent again.
func notTaken(err error) bool {
	var notReady *serviceerror.WorkflowNotReady
	return errors.As(err, &notReady)
}

// late reports that a call ran out of time.
func late(err error) bool {
	var late *serviceerror.DeadlineExceeded
	var timeout *client.WorkflowUpdateServiceTimeoutOrCanceledError
	return errors.As(err, &late) || errors.As(err, &timeout) || errors.Is(err, context.DeadlineExceeded)
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor)
	defer cancel()
	d := s.describe(ctx, address)
	if d.err != nil {
		return "Temporal cannot be reached; try again with the same id"
	}
	if d.missing {
		return "Temporal does not know the run"
	}
	for _, find := range []func(described) (finding, bool){described.taskFails, described.noWorker, described.activityFails} {
		if f, ok := find(d); ok {
			return f.sentence + ": " + f.next
		}
	}
	return busy
}

const busy = "the run is busy; try again with the same id"
