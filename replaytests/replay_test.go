package replaytests

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/replaytests/internal/freight"
	"interlock/replaytests/internal/parcel"
	"interlock/signals"
)

// samples are the agents whose runs were recorded, without what they need: a
// replay calls no tool.
func samples() []*agent.Definition {
	return []*agent.Definition{refund.Agent(&shop.Shop{}, mail.Client{}), parcel.Agent(parcel.World{}), freight.Agent(freight.World{})}
}

func TestHistories(t *testing.T) { Run(t, "testdata", samples()...) }

// A history recorded anew must still be of what its name says.
func TestHistoriesAreWhatTheyAreCalled(t *testing.T) {
	count := func(name string, pred func(*historypb.HistoryEvent) bool) int {
		n := 0
		for _, e := range load(t, name).Events {
			if pred(e) {
				n++
			}
		}
		return n
	}
	ofType := func(et enumspb.EventType) func(*historypb.HistoryEvent) bool {
		return func(e *historypb.HistoryEvent) bool { return e.GetEventType() == et }
	}
	require.Zero(t, count("plain", ofType(enumspb.EVENT_TYPE_TIMER_STARTED)), "no gate")
	require.Equal(t, 1, count("approved", ofType(enumspb.EVENT_TYPE_TIMER_CANCELED)), "a gate that was decided")
	require.Equal(t, 1, count("approved", scheduled("refund.issue_refund")))
	require.Equal(t, 1, count("rejected", ofType(enumspb.EVENT_TYPE_TIMER_CANCELED)))
	require.Zero(t, count("rejected", scheduled("refund.issue_refund")))
	require.Equal(t, 1, count("quick-tool", func(e *historypb.HistoryEvent) bool {
		return e.GetMarkerRecordedEventAttributes().GetMarkerName() == "LocalActivity"
	}))
	require.Equal(t, 2, count("cancelled-mid-tool", ofType(enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED)), "what only reads is let go of, and what may not have begun is told to stop")
	require.Zero(t, count("cancelled-mid-tool", scheduled(signals.ActivityFence)), "it had its effect: there is nothing to fence")
	require.Zero(t, count("cancelled-at-once", scheduled(signals.ActivityCallModel)), "a call that was let go of in the task that made it")
	require.Equal(t, 2, count("cancelled-at-once", scheduled(signals.ActivityRecord)))
	require.Equal(t, 1, count("worker-killed", func(e *historypb.HistoryEvent) bool {
		a := e.GetActivityTaskStartedEventAttributes()
		return a.GetAttempt() == 2 && a.GetLastFailure().GetTimeoutFailureInfo().GetTimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT
	}))
	rec, err := read(load(t, "three-tools"))
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(rec.tasks, func(t *task) bool { return len(t.activities) == 3 }), "three tools at once")
}
