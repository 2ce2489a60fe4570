package starter_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"interlock/agent"
	"interlock/store"
)

const address = "acme/lab/k"

// journal is a run's events as a machine would have made them.
type journal struct {
	t      *testing.T
	events []agent.Event
}

// started begins a run that began at a time.
func started(t *testing.T, firstRunID, after string, at time.Time) *journal {
	t.Helper()
	j := &journal{t: t}
	j.events = append(j.events, agent.Event{At: at.UTC().Truncate(time.Microsecond)})
	return j.set(agent.EventStarted, "", agent.StartedData{Agent: "lab", Version: 1, Key: "k", FirstRunID: firstRunID, After: after,
		User: "ann", Body: agent.JSON("{}"), Limits: agent.DefaultLimits()})
}

// add appends an event, a second after the one before.
func (j *journal) add(kind agent.EventType, step string, data any) *journal {
	j.t.Helper()
	last := j.events[len(j.events)-1]
	j.events = append(j.events, agent.Event{At: last.At.Add(time.Second), Turn: last.Turn})
	if kind == agent.EventTurnStarted {
		j.events[len(j.events)-1].Turn++
	}
	return j.set(kind, step, data)
}

func (j *journal) set(kind agent.EventType, step string, data any) *journal {
	j.t.Helper()
	body, err := agent.Encode(data)
	require.NoError(j.t, err)
	e := &j.events[len(j.events)-1]
	e.Seq, e.Type, e.V, e.Step, e.Tenant, e.Data = int64(len(j.events)), kind, 1, step, "acme", body
	return j
}

func (j *journal) message(id, text string) *journal {
	j.t.Helper()
	body, err := agent.Encode([]any{"message", text})
	require.NoError(j.t, err)
	return j.add(agent.EventMessage, "", agent.MessageData{ID: id, Principal: ann, Text: text, Body: agent.DigestOf(body)})
}

func (j *journal) turn() *journal {
	return j.add(agent.EventTurnStarted, "", agent.TurnStartedData{})
}

func (j *journal) reply(text string) *journal {
	return j.add(agent.EventProposal, "", map[string]any{"text": text, "finish": "stop"}).add(agent.EventReply, "", agent.ReplyData{Text: text})
}

func (j *journal) completed() *journal {
	return j.add(agent.EventCompleted, "", agent.EndedData{})
}

// memory is a store of one address: its chains, oldest first.
type memory struct {
	store.Reader
	mu      sync.Mutex
	chains  []*journal
	err     error
	effects []store.Effect
	pages   [][]store.RunRow // of a list
	filters []store.RunFilter
}

func stored(chains ...*journal) *memory { return &memory{chains: chains} }

// change runs f while nobody reads.
func (m *memory) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *memory) chain(c store.Chain) (*agent.Run, []agent.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, nil, m.err
	}
	for i := len(m.chains) - 1; i >= 0 && c.Address == address; i-- {
		run, err := agent.Reduce(m.chains[i].events)
		if err != nil || c.FirstRunID == "" || c.FirstRunID == run.FirstRunID {
			return run, append([]agent.Event(nil), m.chains[i].events...), err
		}
	}
	return nil, nil, agent.Errorf(agent.CodeNotFound, "there is no such run")
}

func (m *memory) RunRow(_ context.Context, c store.Chain) (store.RunRow, error) {
	run, _, err := m.chain(c)
	if err != nil {
		return store.RunRow{}, err
	}
	row := store.RunRow{Tenant: "acme", Address: address, FirstRunID: run.FirstRunID, Agent: "lab", Key: "k", Version: 1, Seq: run.Seq,
		StartedAt: run.StartedAt, UpdatedAt: run.At, Head: agent.Head{Status: run.Status, Reason: run.Reason, Phase: run.Phase, Turn: run.Turn}}
	if run.Status.Ended() {
		row.EndedAt = &run.At
	}
	return row, nil
}

func (m *memory) Events(_ context.Context, c store.Chain, from int64, limit int) ([]agent.Event, error) {
	_, events, err := m.chain(c)
	if err != nil || int(from) > len(events) {
		return nil, err
	}
	events = events[from-1:]
	if limit > 0 && len(events) > limit {
		events = events[:limit]
	}
	return events, nil
}

func (m *memory) Branches(context.Context, store.Chain) ([]store.Branch, error) {
	return nil, errors.New("not here")
}

func (m *memory) RunRows(_ context.Context, _ string, f store.RunFilter) ([]store.RunRow, error) {
	m.filters = append(m.filters, f)
	if m.err != nil || len(m.pages) == 0 {
		return nil, m.err
	}
	page := m.pages[0]
	m.pages = m.pages[1:]
	return page, nil
}

func (m *memory) GateRows(_ context.Context, _ string, f store.GateFilter) (out []store.GateRow, err error) {
	run, _, err := m.chain(store.Chain{Address: address})
	if err != nil {
		return nil, err
	}
	for _, g := range run.Gates {
		if f.Status == "" || g.Status == f.Status {
			out = append(out, store.GateRow{Address: address, FirstRunID: run.FirstRunID, Gate: g})
		}
	}
	return out, nil
}

// ledger is a memory that has effects too.
type ledger struct {
	*memory
	store.Ledger
}

func (l ledger) Effects(context.Context, string, store.EffectFilter) ([]store.Effect, error) {
	return l.effects, nil
}

// temporal is a Temporal whose answers a test chooses.
type fake struct {
	client.Client
	starting func(client.StartWorkflowOptions, client.UpdateWorkflowOptions) (runID string, answer any, err error)
	updating func(client.UpdateWorkflowOptions) (answer any, err error)
	describe func(runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
	query    func(runID string) (*agent.Run, error)
	end      func(runID string) (any, error)
	history  []*history.HistoryEvent
	polled   time.Time
}

type startOperation struct {
	client.WithStartWorkflowOperation
	options client.StartWorkflowOptions
	args    []any
}

func (f *fake) NewWithStartWorkflowOperation(o client.StartWorkflowOptions, _ any, args ...any) client.WithStartWorkflowOperation {
	return &startOperation{options: o, args: args}
}

func (f *fake) UpdateWithStartWorkflow(_ context.Context, o client.UpdateWithStartWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	op := o.StartWorkflowOperation.(*startOperation)
	op.options.Memo["start"] = op.args[0]
	runID, answer, err := f.starting(op.options, o.UpdateOptions)
	if err != nil {
		return nil, err
	}
	return answered{runID: runID, answer: answer}, nil
}

func (f *fake) UpdateWorkflow(ctx context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	answer, err := f.updating(o)
	if err != nil {
		return nil, err
	}
	return answered{ctx: ctx, answer: answer}, nil
}

func (f *fake) DescribeWorkflow(_ context.Context, _, runID string) (*client.WorkflowExecutionDescription, error) {
	r, err := f.describe(runID)
	if err != nil {
		return nil, err
	}
	return &client.WorkflowExecutionDescription{RawResponse: r}, nil
}

func (f *fake) DescribeTaskQueue(context.Context, string, enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	out := &workflowservice.DescribeTaskQueueResponse{}
	if !f.polled.IsZero() {
		p := &taskqueue.PollerInfo{}
		setTime(&p.LastAccessTime, f.polled)
		out.Pollers = []*taskqueue.PollerInfo{p}
	}
	return out, nil
}

func (f *fake) QueryWorkflow(_ context.Context, _, runID, _ string, _ ...any) (converter.EncodedValue, error) {
	if f.query == nil {
		return nil, serviceerror.NewQueryFailed("no worker")
	}
	run, err := f.query(runID)
	return encoded{run}, err
}

func (f *fake) GetWorkflow(_ context.Context, _, runID string) client.WorkflowRun {
	return ending{f: f, runID: runID}
}

func (f *fake) GetWorkflowHistory(context.Context, string, string, bool, enums.HistoryEventFilterType) client.HistoryEventIterator {
	return &iterator{f.history}
}

type iterator struct{ events []*history.HistoryEvent }

func (i *iterator) HasNext() bool { return len(i.events) > 0 }
func (i *iterator) Next() (*history.HistoryEvent, error) {
	e := i.events[0]
	i.events = i.events[1:]
	return e, nil
}

// copied moves a value as JSON does.
func copied(from, to any) error {
	p, err := converter.GetDefaultDataConverter().ToPayload(from)
	if err != nil || to == nil {
		return err
	}
	return converter.GetDefaultDataConverter().FromPayload(p, to)
}

type answered struct {
	client.WorkflowUpdateHandle
	ctx    context.Context
	runID  string
	answer any // an error is one
}

func (a answered) RunID() string { return a.runID }
func (a answered) Get(_ context.Context, to any) error {
	if err, ok := a.answer.(error); ok {
		return err
	}
	return copied(a.answer, to)
}

type encoded struct{ run *agent.Run }

func (e encoded) HasValue() bool   { return e.run != nil }
func (e encoded) Get(to any) error { return copied(e.run, to) }

type ending struct {
	client.WorkflowRun
	f     *fake
	runID string
}

func (e ending) Get(_ context.Context, to any) error {
	if e.f.end == nil {
		return errors.New("it did not end well")
	}
	answer, err := e.f.end(e.runID)
	if err != nil {
		return err
	}
	return copied(answer, to)
}

// setTime sets a message's time without naming its type, whose package we do not
// depend on.
func setTime[T any](field **T, at time.Time) {
	*field = new(T)
	v := reflect.ValueOf(*field).Elem()
	v.FieldByName("Seconds").SetInt(at.Unix())
	v.FieldByName("Nanos").SetInt(int64(at.Nanosecond()))
}

// execution describes a run.
func execution(runID, firstRunID string, status enums.WorkflowExecutionStatus, memo map[string]any) *workflowservice.DescribeWorkflowExecutionResponse {
	fields := map[string]*common.Payload{}
	for k, v := range memo {
		fields[k], _ = converter.GetDefaultDataConverter().ToPayload(v)
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{
		ExecutionConfig: &workflow.WorkflowExecutionConfig{TaskQueue: &taskqueue.TaskQueue{Name: "q"}},
		WorkflowExecutionInfo: &workflow.WorkflowExecutionInfo{Execution: &common.WorkflowExecution{WorkflowId: address, RunId: runID},
			FirstRunId: firstRunID, Status: status, Memo: &common.Memo{Fields: fields}},
	}
}
