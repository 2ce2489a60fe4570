package main

import (
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
)

// failures are those that an event holds; their stack traces name paths.
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
