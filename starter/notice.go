package starter

import (
	"context"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// TellAgain has a worker tell a dead notice again, for as long as giveUp says (0:
// [signals.GiveUp]), on behalf of by. It returns when that has begun: the store's
// list says what became of it.
func (s *Starter) TellAgain(ctx context.Context, d store.DeadNotice, giveUp time.Duration, by string) error {
	if d.End != "" {
		return agent.Errorf(agent.CodeConflict, "notice %s for target %s was %s before, by %s", d.ID, d.Target, d.End, d.EndedBy)
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	in := signals.Telling{Tenant: d.Tenant, Target: d.Target, ID: d.ID, Notice: d.Notice, GiveUpMS: giveUp.Milliseconds(), Retry: d.Retry + 1, By: by}
	_, err := s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: in.WorkflowID(), TaskQueue: s.queue,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY, // one that was terminated has told nothing
		WorkflowExecutionErrorWhenAlreadyStarted: true, StaticSummary: "notice to " + d.Target}, signals.WorkflowNotice, in)
	switch {
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		return agent.Errorf(agent.CodeConflict, "notice %s for target %s is being told again already", d.ID, d.Target)
	case err != nil:
		return s.explain(ctx, "retry of notice", d.ID, err)
	}
	return nil
}
