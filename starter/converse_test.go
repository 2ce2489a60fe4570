package starter_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"interlock/agent"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

// sessions is a Temporal with the workflow runs of one id, oldest first.
type sessions struct {
	fake
	runs    []*session
	sent    []string // update ids, in order
	refuses func(*session, client.UpdateWorkflowOptions) (any, error)
}

type session struct {
	id      string
	start   signals.Start
	memo    map[string]any
	closed  bool
	ending  bool     // takes no message any more
	handled []string // message ids
}

func newSessions(runs ...*session) *sessions {
	s := &sessions{runs: runs}
	s.starting, s.updating, s.describe, s.query, s.end = s.startOrReach, s.reach, s.about, s.ask, s.await
	return s
}

func (s *sessions) latest() *session {
	if len(s.runs) == 0 {
		return nil
	}
	return s.runs[len(s.runs)-1]
}

func (s *sessions) startOrReach(o client.StartWorkflowOptions, u client.UpdateWorkflowOptions) (string, any, error) {
	run := s.latest()
	switch {
	case run != nil && !run.closed:
	case run != nil && o.WorkflowIDReusePolicy == enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE:
		return "", nil, serviceerror.NewWorkflowExecutionAlreadyStarted("finished", "", run.id)
	default:
		run = &session{id: "new" + string(rune('0'+len(s.runs))), start: o.Memo["start"].(signals.Start), memo: o.Memo}
		s.runs = append(s.runs, run)
	}
	answer, err := s.reach(u)
	return run.id, answer, err
}

func (s *sessions) reach(u client.UpdateWorkflowOptions) (any, error) {
	s.sent = append(s.sent, u.UpdateID)
	run := s.latest()
	if run == nil {
		return nil, serviceerror.NewNotFound("workflow not found")
	}
	if run.closed {
		return nil, serviceerror.NewNotFound("workflow execution already completed")
	}
	if s.refuses != nil {
		if answer, err := s.refuses(run, u); answer != nil || err != nil {
			return answer, err
		}
	}
	if run.ending {
		return agent.Receipt{Status: agent.Refused, Code: agent.CodeEnded, Reason: "the run is ending"}, nil
	}
	run.handled = append(run.handled, strings.Split(u.UpdateID, ":")[1])
	return agent.Receipt{Status: agent.Accepted, Seq: 7}, nil
}

func (s *sessions) find(runID string) *session {
	for _, r := range s.runs {
		if r.id == runID {
			return r
		}
	}
	return s.latest()
}

func (s *sessions) about(runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	run := s.find(runID)
	if run == nil {
		return nil, serviceerror.NewNotFound("workflow not found")
	}
	status := enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	if run.closed {
		status = enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
	}
	return execution(run.id, run.id, status, run.memo), nil
}

func (s *sessions) ask(runID string) (*agent.Run, error) {
	run := &agent.Run{FirstRunID: runID, Status: agent.RunCompleted}
	for _, id := range s.find(runID).handled {
		body, _ := agent.Encode([]any{"message", "hi"})
		run.Handled = append(run.Handled, agent.Handled{ID: id, By: run.Sender(ann), Body: agent.DigestOf(body), Seq: 3})
	}
	return run, nil
}

// await closes a run that is ending.
func (s *sessions) await(runID string) (any, error) {
	s.find(runID).closed = true
	return signals.End{Status: agent.RunCompleted}, nil
}

var talk = starter.Converse{Agent: "lab", Tenant: "acme", Key: "k", Principal: ann, Body: map[string]any{"n": 1},
	Message: signals.Message{ID: "m", Principal: ann, Text: "hi"}}

func TestConverse_StartsOrReaches(t *testing.T) {
	t.Parallel()
	temporal := newSessions()
	s := starter.New(temporal)
	got, err := s.Converse(t.Context(), talk)
	require.NoError(t, err)
	require.Equal(t, starter.Conversed{Address: address, FirstRunID: "new0", New: true, Receipt: agent.Receipt{Status: agent.Accepted, Seq: 7}}, got)
	start := temporal.runs[0].start
	require.Nil(t, start.Message, "it comes once, as the update")
	require.Empty(t, start.After)
	require.JSONEq(t, `{"n":1}`, start.Body.String())
	require.Equal(t, start.Digest(), temporal.runs[0].memo[signals.MemoBody], "a start with this body is the same start")

	next := talk
	next.Body, next.Message.ID = "something else", "m2"
	got, err = s.Converse(t.Context(), next)
	require.NoError(t, err)
	require.Equal(t, "new0", got.FirstRunID)
	require.False(t, got.New)
	require.Equal(t, []string{"m", "m2"}, temporal.runs[0].handled)
}

// A session whose run has ended goes on in the next one, which names it; what
// the ended run had handled starts nothing. With and without a store.
func TestConverse_FollowsAnEndedRun(t *testing.T) {
	t.Parallel()
	was := func(t *testing.T) *memory {
		return stored(started(t, "first", "", time.Now()).message("m", "hi").completed())
	}
	for name, options := range map[string]func(*testing.T) []starter.Option{
		"with a reader":    func(t *testing.T) []starter.Option { return []starter.Option{starter.WithReader(was(t))} },
		"without a reader": func(*testing.T) []starter.Option { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temporal := newSessions(&session{id: "first", closed: true, handled: []string{"m"}})
			s := starter.New(temporal, options(t)...)
			got, err := s.Converse(t.Context(), talk)
			require.NoError(t, err)
			require.Equal(t, agent.Repeated, got.Receipt.Status)
			require.Equal(t, "first", got.FirstRunID)
			require.False(t, got.New)
			other := talk
			other.Message.Text = "something else"
			_, err = s.Converse(t.Context(), other)
			require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
			require.Len(t, temporal.runs, 1)

			next := talk
			next.Message.ID = "m2"
			got, err = s.Converse(t.Context(), next)
			require.NoError(t, err)
			require.True(t, got.New)
			require.Equal(t, "new1", got.FirstRunID)
			require.Equal(t, "first", temporal.runs[1].start.After)
			require.Equal(t, []string{"m2"}, temporal.runs[1].handled)
		})
	}
}

// A message that meets the end of a run goes on to the next.
func TestConverse_MeetsTheEnd(t *testing.T) {
	t.Parallel()
	cut := temporal.NewApplicationError("the run completed", "AcceptedUpdateCompletedWorkflow")
	for name, refuses := range map[string]func(*session, client.UpdateWorkflowOptions) (any, error){
		"refused": nil,
		"cut off": func(r *session, _ client.UpdateWorkflowOptions) (any, error) { return endOnce(r, cut) },
		"closed meanwhile": func(r *session, _ client.UpdateWorkflowOptions) (any, error) {
			return endOnce(r, serviceerror.NewNotFound("workflow execution already completed"))
		},
		"an answer too old": func(r *session, u client.UpdateWorkflowOptions) (any, error) { return remembered(r, u) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temporal := newSessions(&session{id: "first", ending: true})
			temporal.refuses = refuses
			got, err := starter.New(temporal).Converse(t.Context(), talk)
			require.NoError(t, err)
			require.True(t, got.New)
			require.Equal(t, agent.Accepted, got.Receipt.Status)
			require.Equal(t, "first", temporal.runs[1].start.After)
			require.Equal(t, []string{"m"}, temporal.runs[1].handled)
			require.Len(t, temporal.runs, 2)
		})
	}
}

func endOnce(r *session, err error) (any, error) {
	if !r.ending {
		return nil, nil
	}
	r.closed = true
	return nil, err
}

// remembered is the old outcome that Temporal gives to an update's old id.
func remembered(_ *session, u client.UpdateWorkflowOptions) (any, error) {
	if strings.Count(u.UpdateID, ":") > 2 {
		return nil, nil
	}
	return agent.Receipt{Status: agent.Refused, Code: agent.CodeEnded}, nil
}

// A refusal that the run would not give any more does not stand for ever.
func TestOldRefusals(t *testing.T) {
	t.Parallel()
	temporal := newSessions(&session{id: "first"})
	temporal.refuses = func(_ *session, u client.UpdateWorkflowOptions) (any, error) {
		if strings.Count(u.UpdateID, ":") > 2 {
			return nil, nil
		}
		return agent.Receipt{Status: agent.Refused, Code: agent.CodeUnavailable, Reason: "busy; send this again later"}, nil
	}
	s := starter.New(temporal)
	got, err := s.Converse(t.Context(), talk)
	require.NoError(t, err)
	require.Equal(t, agent.Accepted, got.Receipt.Status)
	r, err := s.Message(t.Context(), address, signals.Message{ID: "m2", Principal: ann, Text: "hi"})
	require.NoError(t, err)
	require.Equal(t, agent.Accepted, r.Status)

	temporal.refuses = func(*session, client.UpdateWorkflowOptions) (any, error) {
		return agent.Receipt{Status: agent.Refused, Code: agent.CodeUnavailable, Reason: "busy; send this again later"}, nil
	}
	_, err = s.Converse(t.Context(), talk)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "send this again later")
}

// A run that is ending for longer than the caller waits: the message is not
// taken, and the caller is told.
func TestConverse_TheEndTakesLong(t *testing.T) {
	t.Parallel()
	temporal := newSessions(&session{id: "first", ending: true})
	temporal.end = func(string) (any, error) { return nil, context.DeadlineExceeded }
	_, err := starter.New(temporal, starter.WithDeadline(100*time.Millisecond)).Converse(t.Context(), talk)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "try again with the same id")
	require.Len(t, temporal.runs, 1)
}

// A repeat of a message of the run before reaches no run at all, for a while.
func TestConverse_RepeatOfTheRunBefore(t *testing.T) {
	t.Parallel()
	first := started(t, "first", "", time.Now()).message("m", "hi").completed()
	temporal := newSessions(&session{id: "first", closed: true}, &session{id: "second"})
	young := stored(first, started(t, "second", "first", time.Now()).message("m2", "hello"))
	got, err := starter.New(temporal, starter.WithReader(young)).Converse(t.Context(), talk)
	require.NoError(t, err)
	require.Equal(t, agent.Repeated, got.Receipt.Status)
	require.Equal(t, "first", got.FirstRunID)
	require.Empty(t, temporal.sent)
}

// Without its store a starter reaches a run that is there, and starts none.
func TestConverse_StoreDown(t *testing.T) {
	t.Parallel()
	down := stored()
	down.err = agent.Errorf(agent.CodeUnavailable, "the store is locked")
	temporal := newSessions(&session{id: "first"})
	s := starter.New(temporal, starter.WithReader(down))
	got, err := s.Converse(t.Context(), talk)
	require.NoError(t, err)
	require.Equal(t, starter.Conversed{Address: address, FirstRunID: "first", Receipt: agent.Receipt{Status: agent.Accepted, Seq: 7}}, got)
	temporal.runs[0].closed = true
	_, err = s.Converse(t.Context(), talk)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "the store is locked")
	require.Len(t, temporal.runs, 1)
}

// Between the look at which run is the latest and the start of the next, another
// came and went: the journal will not take ours, and the message goes on.
func TestConverse_Outrun(t *testing.T) {
	t.Parallel()
	memory := stored(started(t, "first", "", time.Now()).completed())
	temporal := newSessions(&session{id: "first", closed: true})
	temporal.starting = func(o client.StartWorkflowOptions, u client.UpdateWorkflowOptions) (string, any, error) {
		if len(temporal.runs) == 1 {
			temporal.runs = append(temporal.runs, &session{id: "second", closed: true})
			memory.chains = append(memory.chains, started(t, "second", "first", time.Now()).completed())
		}
		return temporal.startOrReach(o, u)
	}
	got, err := starter.New(temporal, starter.WithReader(memory)).Converse(t.Context(), talk)
	require.NoError(t, err)
	require.True(t, got.New)
	require.Len(t, temporal.runs, 4)
	require.Equal(t, "first", temporal.runs[2].start.After, "refused by the journal")
	require.True(t, temporal.runs[2].closed)
	require.Equal(t, "second", temporal.runs[3].start.After)
	require.Equal(t, temporal.runs[3].id, got.FirstRunID)
}

// A run that had said yes to a message and could not record it is gone on from:
// Temporal still gives its yes to whoever repeats the message.
func TestConverse_LostWithItsRun(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]starter.Option{
		"with a reader":    {starter.WithReader(stored(started(t, "first", "", time.Now()).completed()))},
		"without a reader": nil,
	} {
		temporal := newSessions(&session{id: "doomed", closed: true})
		temporal.starting = func(o client.StartWorkflowOptions, u client.UpdateWorkflowOptions) (string, any, error) {
			if strings.Count(u.UpdateID, ":") == 2 {
				return "doomed", agent.Receipt{Status: agent.Accepted, Seq: 4}, nil
			}
			return temporal.startOrReach(o, u)
		}
		got, err := starter.New(temporal, options...).Converse(t.Context(), talk)
		require.NoError(t, err, name)
		require.True(t, got.New, name)
		require.Equal(t, []string{"m"}, temporal.runs[1].handled, name)
	}
}

// Without a store nobody knows which run to follow where Temporal has forgotten
// it: that is said, rather than tried again and again.
func TestConverse_ForgottenWithoutAReader(t *testing.T) {
	t.Parallel()
	temporal := newSessions(&session{id: "refused", closed: true})
	temporal.describe = func(string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return execution("refused", "refused", enums.WORKFLOW_EXECUTION_STATUS_FAILED, nil), nil
	}
	temporal.history = []*history.HistoryEvent{{Attributes: &history.HistoryEvent_WorkflowExecutionFailedEventAttributes{
		WorkflowExecutionFailedEventAttributes: &history.WorkflowExecutionFailedEventAttributes{Failure: failed(signals.ErrKeyUsed, "the key was used")}}}}
	_, err := starter.New(temporal).Converse(t.Context(), talk)
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "starter.WithReader")
	require.Len(t, temporal.runs, 1)
}

// A terminated run is followed too; one that recorded nothing is not followed.
func TestConverse_ClosedInTemporal(t *testing.T) {
	t.Parallel()
	temporal := newSessions(&session{id: "first", closed: true})
	s := starter.New(temporal, starter.WithReader(stored(started(t, "first", "", time.Now().Add(-2*time.Hour)))))
	got, err := s.Converse(t.Context(), talk)
	require.NoError(t, err)
	require.True(t, got.New)
	require.Equal(t, "first", temporal.runs[1].start.After)

	temporal = newSessions(&session{id: "first", closed: true})
	_, err = starter.New(temporal, starter.WithReader(stored())).Converse(t.Context(), talk)
	require.NoError(t, err)
	require.Empty(t, temporal.runs[1].start.After)
}

var _ store.Reader = (*memory)(nil)
