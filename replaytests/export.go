package replaytests

import (
	"context"
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"interlock/store"
)

// Export writes what [Run] and [CheckFile] read: the histories of all Temporal
// runs of a run, as they stand. A run that was continued as new has several; of
// one that was reset it is the branch that counts.
//
// The run is named by its address, or where an older run under the same address
// is meant by its first run id too; then r says which Temporal run went on last.
// r may be nil otherwise.
//
// The file holds all that users, tools and the model said, in clear, as far as no
// codec hides it. What names machines and has no part in a replay is left out,
// but for the identities of workers and clients. Histories that Temporal has
// forgotten are missing; only where it has forgotten the last one is it an error.
func Export(ctx context.Context, c client.Client, r store.Reader, run store.Chain) ([]byte, error) {
	id, err := newest(ctx, r, run)
	if err != nil {
		return nil, err
	}
	var runs []*historypb.History
	for {
		h, err := fetch(ctx, c, run.Address, id)
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) && len(runs) > 0 {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("history of run %s: %w", run.Address, err)
		}
		runs = append([]*historypb.History{h}, runs...)
		if id = h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(); id == "" {
			break
		}
	}
	return write(runs, id)
}

// newest is the Temporal run that a chain has come to; "" is the one that stands
// at the address now.
func newest(ctx context.Context, r store.Reader, run store.Chain) (string, error) {
	if run.FirstRunID == "" {
		return "", nil
	}
	if r == nil {
		return "", fmt.Errorf("history of run %s: an older run is found through the store: give a reader, or leave out its first run id", run.Address)
	}
	branches, err := r.Branches(ctx, run)
	if err != nil {
		return "", fmt.Errorf("history of run %s: %w", run.Address, err)
	}
	for _, b := range slices.Backward(branches) {
		if b.SupersededBy == "" {
			return b.RunID, nil
		}
	}
	return "", fmt.Errorf("history of run %s: the store has no run under it whose first run id is %s", run.Address, run.FirstRunID)
}

func fetch(ctx context.Context, c client.Client, address, runID string) (*historypb.History, error) {
	h := &historypb.History{}
	it := c.GetWorkflowHistory(ctx, address, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return nil, err
		}
		anonymous(e)
		h.Events = append(h.Events, e)
	}
	if len(h.Events) == 0 {
		return nil, errNoEvents
	}
	return h, nil
}

// anonymous takes away what names a machine and has no part in a replay: sticky
// task queues, and stack traces.
func anonymous(e *historypb.HistoryEvent) {
	if q := e.GetWorkflowTaskScheduledEventAttributes().GetTaskQueue(); q.GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
		q.Name = "sticky"
	}
	for _, f := range failures(e) {
		for ; f != nil; f = f.GetCause() {
			f.StackTrace = ""
		}
	}
}

// failures are those that an event holds.
func failures(e *historypb.HistoryEvent) []*failurepb.Failure {
	return []*failurepb.Failure{
		e.GetWorkflowTaskFailedEventAttributes().GetFailure(),
		e.GetActivityTaskFailedEventAttributes().GetFailure(),
		e.GetActivityTaskTimedOutEventAttributes().GetFailure(),
		e.GetActivityTaskStartedEventAttributes().GetLastFailure(),
		e.GetMarkerRecordedEventAttributes().GetFailure(),
		e.GetWorkflowExecutionFailedEventAttributes().GetFailure(),
		e.GetWorkflowExecutionUpdateCompletedEventAttributes().GetOutcome().GetFailure(),
	}
}
