package starter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"interlock/agent"
	"interlock/signals"
	"interlock/starter"
)

// waits is a Temporal that answers each wait as the test says, and keeps their
// ids.
func waits(answer func(n int) (any, error)) (f *fake, ids *[]string) {
	f, ids = &fake{polled: time.Now()}, &[]string{}
	f.updating = func(o client.UpdateWorkflowOptions) (any, error) {
		*ids = append(*ids, o.UpdateID)
		return answer(len(*ids))
	}
	f.describe = func(string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return execution("run", "first", enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil), nil
	}
	return f, ids
}

var hello = signals.News{Seq: 5, Status: agent.RunWaiting, Reason: "user", Phase: "work", Reply: &agent.Reply{Seq: 5, Text: "Hello."}}

func TestWait(t *testing.T) {
	t.Parallel()
	again := signals.News{Again: true, Seq: 3, Status: agent.RunRunning}
	f, ids := waits(func(n int) (any, error) {
		if n < 3 {
			return again, nil
		}
		return hello, nil
	})
	began := time.Now()
	news, err := starter.New(f).Wait(t.Context(), address, 2)
	require.NoError(t, err)
	require.Equal(t, hello, news)
	require.Len(t, *ids, 3)
	require.NotEqual(t, (*ids)[0], (*ids)[1], "Temporal gives an old id its old answer")
	require.Greater(t, time.Since(began), time.Second, "again that comes at once is no reason to ask at once")
}

// Without an answer from the run the store is looked at.
func TestWait_FromTheStore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails any // an answer, or an error
		err   error
	}{
		"too many wait":    {temporal.NewApplicationError("5 callers wait for this run already", string(agent.CodeUnavailable)), nil},
		"nobody takes it":  {nil, context.DeadlineExceeded},
		"Temporal is down": {nil, serviceerror.NewUnavailable("connection refused")},
		"closed":           {nil, serviceerror.NewNotFound("workflow execution already completed")},
		"forgotten":        {nil, serviceerror.NewNotFound("workflow not found")},
		"its task failed":  {nil, serviceerror.NewWorkflowNotReady("unexpected workflow task failure")},
		"cut off":          {temporal.NewApplicationError("the run completed", "AcceptedUpdateCompletedWorkflow"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, ids := waits(func(int) (any, error) { return tc.fails, tc.err })
			j := started(t, "first", "", noon).message("m", "hi").turn().reply("Hello.").completed()
			news, err := starter.New(f, starter.WithReader(stored(j))).Wait(t.Context(), address, 2)
			require.NoError(t, err)
			require.Equal(t, signals.News{Seq: 6, Status: agent.RunCompleted, Reply: &agent.Reply{Seq: 5, Text: "Hello."}}, news)
			require.Len(t, *ids, 1)
		})
	}
}

// The store is looked at until something comes; a wait that nobody has taken in
// is joined rather than left behind.
func TestWait_Looks(t *testing.T) {
	t.Parallel()
	f, ids := waits(func(int) (any, error) { return nil, context.DeadlineExceeded })
	j := started(t, "first", "", noon).message("m", "hi")
	m := stored(j)
	time.AfterFunc(600*time.Millisecond, func() { m.change(func() { j.turn().reply("Hello.") }) })
	news, err := starter.New(f, starter.WithReader(m)).Wait(t.Context(), address, 2)
	require.NoError(t, err)
	require.Equal(t, "Hello.", news.Reply.Text)
	require.Greater(t, len(*ids), 1)
	require.Equal(t, (*ids)[0], (*ids)[1])
}

func TestWait_Deadline(t *testing.T) {
	t.Parallel()
	again := signals.News{Again: true, Seq: 3, Status: agent.RunPaused, Reason: "budget:turns"}
	f, _ := waits(func(int) (any, error) { return again, nil })
	news, err := starter.New(f, starter.WithDeadline(700*time.Millisecond)).Wait(t.Context(), address, 3)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "nothing new after event 3 in time: the run is paused (budget:turns); ask again")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, again, news)

	f, _ = waits(func(int) (any, error) { return nil, serviceerror.NewDeadlineExceeded("late") })
	f.describe = func(string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return nil, errors.New("connection refused")
	}
	news, err = starter.New(f, starter.WithDeadline(700*time.Millisecond)).Wait(t.Context(), address, 3)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "Temporal cannot be reached")
	require.True(t, news.Again)

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err = starter.New(f).Wait(ctx, address, 3)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "the caller gave up")
}

// What waiting does not mend is an error at once.
func TestWait_Refused(t *testing.T) {
	t.Parallel()
	f, ids := waits(func(int) (any, error) {
		return nil, temporal.NewApplicationError("after_seq is the number of an event", string(agent.CodeInvalid))
	})
	_, err := starter.New(f).Wait(t.Context(), address, 3)
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%v", err)
	require.Len(t, *ids, 1)
	f, _ = waits(func(int) (any, error) { return nil, serviceerror.NewNotFound("workflow not found") })
	_, err = starter.New(f).Wait(t.Context(), address, 0)
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err), "%v", err)
}

// A closed run without a store: itself, else its result, says how it ended.
func TestWait_EndedWithoutAReader(t *testing.T) {
	t.Parallel()
	f, _ := waits(func(int) (any, error) { return nil, serviceerror.NewNotFound("workflow execution already completed") })
	f.query = func(string) (*agent.Run, error) {
		return &agent.Run{Status: agent.RunCompleted, Seq: 9, News: 9, Reply: &agent.Reply{Seq: 8, Text: "Bye."}}, nil
	}
	news, err := starter.New(f).Wait(t.Context(), address, 2)
	require.NoError(t, err)
	require.Equal(t, "Bye.", news.Reply.Text)
	f.query = nil
	f.end = func(string) (any, error) { return signals.End{Status: agent.RunCancelled, Reason: "no need"}, nil }
	news, err = starter.New(f).Wait(t.Context(), address, 2)
	require.NoError(t, err)
	require.Equal(t, signals.News{Status: agent.RunCancelled, Reason: "no need"}, news)
	f.end = nil
	_, err = starter.New(f).Wait(t.Context(), address, 2)
	require.Equal(t, agent.CodeEnded, agent.ErrorCode(err), "%v", err)
}

func TestSay(t *testing.T) {
	t.Parallel()
	f, ids := waits(func(n int) (any, error) {
		if n == 1 {
			return agent.Receipt{Status: agent.Accepted, Seq: 4}, nil
		}
		return hello, nil
	})
	said, err := starter.New(f).Say(t.Context(), address, signals.Message{ID: "m", Principal: ann, Text: "hi"})
	require.NoError(t, err)
	require.Equal(t, starter.Said{Receipt: agent.Receipt{Status: agent.Accepted, Seq: 4}, News: hello}, said)
	require.Len(t, *ids, 2)
}

// An input that a run had before it ended is answered as it was then; any other
// is told how the run ended, also where Temporal has forgotten it.
func TestAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, gone := range []error{serviceerror.NewNotFound("workflow execution already completed"), serviceerror.NewNotFound("workflow not found")} {
		f, _ := waits(func(int) (any, error) { return nil, gone })
		s := starter.New(f, starter.WithReader(stored(started(t, "first", "", noon).message("m", "hi").completed())))
		r, err := s.Message(t.Context(), address, signals.Message{ID: "m", Principal: ann, Text: "hi"})
		require.NoError(t, err)
		require.Equal(t, agent.Receipt{Status: agent.Repeated, Seq: 2, Run: agent.RunCompleted}, r)
		r, err = s.Pause(t.Context(), address, signals.Pause{ID: "p", Principal: ann})
		require.Equal(t, agent.CodeEnded, agent.ErrorCode(err), "%v", err)
		require.ErrorContains(t, err, "the run has ended (completed)")
		require.Equal(t, agent.RunCompleted, r.Run)
	}
	f, _ := waits(func(int) (any, error) { return nil, serviceerror.NewNotFound("workflow execution already completed") })
	f.end = func(string) (any, error) { return signals.End{Status: agent.RunCancelled}, nil }
	r, err := starter.New(f).Resume(t.Context(), address, signals.Resume{ID: "p", Principal: ann})
	require.ErrorContains(t, err, "the run has ended (cancelled)")
	require.Equal(t, agent.RunCancelled, r.Run)
}

// What a repeat must be the same in is what the run itself compares.
func TestAfterTheEnd_Amend(t *testing.T) {
	t.Parallel()
	body, err := agent.Encode([]any{"amend", `{"a":1,"b":2}`, "why"})
	require.NoError(t, err)
	j := started(t, "first", "", noon).add(agent.EventAmended, "", agent.AmendedData{ID: "a", Principal: ann, Fields: []string{"a"}, Body: agent.DigestOf(body)}).completed()
	f, _ := waits(func(int) (any, error) { return nil, serviceerror.NewNotFound("workflow execution already completed") })
	s := starter.New(f, starter.WithReader(stored(j)))
	for fields, code := range map[string]agent.Code{`{"b": 2, "a": 1}`: "", `{"b": 2, "a": 3}`: agent.CodeConflict} {
		r, err := s.Amend(t.Context(), address, signals.Amend{ID: "a", Principal: ann, Fields: agent.JSON(fields), Reason: "why"})
		if code == "" {
			require.NoError(t, err)
			require.Equal(t, agent.Repeated, r.Status)
			continue
		}
		require.Equal(t, code, agent.ErrorCode(err), fmt.Sprint(err))
	}
}
