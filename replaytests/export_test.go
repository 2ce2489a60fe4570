package replaytests

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"interlock/store"
)

// server has the histories of one address; "" is the newest.
type server struct {
	client.Client
	runs map[string]*historypb.History
}

func (s server) GetWorkflowHistory(_ context.Context, _ string, runID string, _ bool, _ enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	h, ok := s.runs[runID]
	return &iterator{h.GetEvents(), ok}
}

type iterator struct {
	events []*historypb.HistoryEvent
	known  bool
}

func (i *iterator) HasNext() bool { return !i.known || len(i.events) > 0 }

func (i *iterator) Next() (*historypb.HistoryEvent, error) {
	if !i.known {
		return nil, serviceerror.NewNotFound("workflow execution not found")
	}
	e := i.events[0]
	i.events = i.events[1:]
	return e, nil
}

type branches struct {
	store.Reader
	list []store.Branch
}

func (b branches) Branches(context.Context, store.Chain) ([]store.Branch, error) { return b.list, nil }

// part is a history as a Temporal run of a chain has it.
func part(t *testing.T, runID, before string) *historypb.History {
	t.Helper()
	h := proto.Clone(load(t, "three-tools")).(*historypb.History)
	start := h.Events[0].GetWorkflowExecutionStartedEventAttributes()
	start.OriginalExecutionRunId, start.ContinuedExecutionRunId = runID, before
	return h
}

var address = store.Chain{Tenant: "acme", Address: "acme/parcel/three-tools"}

func TestExport(t *testing.T) {
	one, two, three := part(t, "r1", ""), part(t, "r2", "r1"), part(t, "r3", "r2")
	s := server{runs: map[string]*historypb.History{"": three, "r1": one, "r2": two, "r3": three}}
	write := func(name string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	order := func(data []byte) (ids []string) {
		all, err := Histories(data)
		require.NoError(t, err)
		for _, h := range all {
			ids = append(ids, runID(h))
		}
		return ids
	}
	data, err := Export(t.Context(), s, nil, address)
	require.NoError(t, err)
	require.Equal(t, []string{"r1", "r2", "r3"}, order(data))
	require.NoError(t, CheckFile(write("chain.json", data), samples()...))

	two.Events[len(two.Events)-1].GetWorkflowExecutionCompletedEventAttributes().Result = nil
	data, err = Export(t.Context(), s, nil, address)
	require.NoError(t, err)
	require.ErrorContains(t, CheckFile(write("chain.json", data), samples()...), "history chain.json: run 2 of 3 of its chain (r2): event ")

	delete(s.runs, "r1")
	data, err = Export(t.Context(), s, nil, address)
	require.NoError(t, err)
	require.Equal(t, []string{"r2", "r3"}, order(data))
	require.Contains(t, string(data), `"earlier":"r1"`)

	// The newest of an older chain under the same address, and of no abandoned branch.
	older := address
	older.FirstRunID = "r0"
	_, err = Export(t.Context(), s, nil, older)
	require.ErrorContains(t, err, "give a reader")
	s.runs["r0"] = part(t, "r0", "")
	data, err = Export(t.Context(), s, branches{list: []store.Branch{{RunID: "r0"}, {RunID: "rx", SupersededBy: "r0"}}}, older)
	require.NoError(t, err)
	require.Equal(t, []string{"r0"}, order(data))
	require.True(t, json.Valid(data))
	require.NotContains(t, string(data), `"runs"`, "one history is as Temporal's tools write it")
	_, err = Export(t.Context(), s, branches{}, older)
	require.ErrorContains(t, err, "first run id is r0")

	delete(s.runs, "")
	_, err = Export(t.Context(), s, nil, address)
	require.ErrorContains(t, err, "history of run acme/parcel/three-tools: workflow execution not found")
}

func TestAnonymous(t *testing.T) {
	e := &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskFailedEventAttributes{
		ActivityTaskFailedEventAttributes: &historypb.ActivityTaskFailedEventAttributes{
			Failure: &failurepb.Failure{StackTrace: "/home/x", Cause: &failurepb.Failure{StackTrace: "/home/y"}}}}}
	anonymous(e)
	f := e.GetActivityTaskFailedEventAttributes().GetFailure()
	require.Empty(t, f.StackTrace+f.GetCause().StackTrace)
}

func TestCompareEnd_ContinuedAsNew(t *testing.T) {
	payloads := func(v ...any) *commonpb.Payloads {
		p, err := converter.GetDefaultDataConverter().ToPayloads(v...)
		require.NoError(t, err)
		return p
	}
	type run struct {
		Amount int `json:"amount"`
	}
	last := &historypb.HistoryEvent{EventId: 40, EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
			WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{Input: payloads("start", run{5})}}}
	rec := &recorded{last: last}
	continued := func(v any) *capture {
		return &capture{end: &ending{err: &workflow.ContinueAsNewError{Input: payloads("start", v)}}}
	}
	require.Nil(t, compareEnd(rec, continued(run{5})))
	require.ErrorContains(t, compareEnd(rec, continued(run{6})), "event 40: next_input[1].amount: recorded 5, now 6")
	require.ErrorContains(t, compareEnd(rec, &capture{}), "the run was continued as new, and goes on now")
	rec.last = load(t, "three-tools").Events[len(load(t, "three-tools").Events)-1]
	require.ErrorContains(t, compareEnd(rec, continued(run{5})), "the run was completed, and is continued as new now")
	require.Equal(t, 3, goesOn(payloads("start", map[string]any{"snapshot": map[string]any{"run": map[string]any{"version": 3}}})))
	require.Zero(t, goesOn(payloads("start")))
}
