package replaytests

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"

	"interlock/agent"
	"interlock/signals"
)

// recorded is what a history says that was done.
type recorded struct {
	workflowID, runID string
	agent             string // or the type of a workflow that is no run
	version           int    // 0 where the first task has not been recorded, and of no run

	tasks  []*task // that were completed, in order
	locals map[string]local
	last   *historypb.HistoryEvent
}

// task is a workflow task and the activities that it scheduled.
type task struct {
	started    int64
	activities []activity
}

type activity struct {
	event int64
	name  string
	input []*commonpb.Payload
}

type local struct {
	event int64
	name  string
}

var errNoStart = errors.New("it does not begin with the start of a workflow: record the whole history")

func read(h *historypb.History) (*recorded, error) {
	events := h.GetEvents()
	if len(events) == 0 {
		return nil, errNoEvents
	}
	start := events[0].GetWorkflowExecutionStartedEventAttributes()
	if start == nil {
		return nil, errNoStart
	}
	r := &recorded{workflowID: start.GetWorkflowId(), runID: start.GetOriginalExecutionRunId(), agent: start.GetWorkflowType().GetName(),
		locals: map[string]local{}, last: events[len(events)-1]}
	if r.workflowID == "" { // servers before 1.22
		var in signals.Start
		if err := json.Unmarshal(first(start.GetInput()).GetData(), &in); err != nil {
			return nil, fmt.Errorf("it does not hold the workflow's id, and its input is no start of a run: %w", err)
		}
		r.workflowID = signals.Address(in.Tenant, in.Agent, in.Key)
	}
	r.version = goesOn(start.GetInput())
	completed := map[int64]*task{}
	for _, e := range events {
		if a := e.GetWorkflowTaskCompletedEventAttributes(); a != nil {
			completed[e.GetEventId()] = &task{started: a.GetStartedEventId()}
			r.tasks = append(r.tasks, completed[e.GetEventId()])
		}
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			t := completed[a.GetWorkflowTaskCompletedEventId()]
			if t == nil {
				return nil, fmt.Errorf("event %d was scheduled by a workflow task that is not in the history", e.GetEventId())
			}
			t.activities = append(t.activities, activity{e.GetEventId(), a.GetActivityType().GetName(), a.GetInput().GetPayloads()})
		}
		if a := e.GetMarkerRecordedEventAttributes(); a != nil {
			r.marker(e.GetEventId(), a)
		}
	}
	return r, nil
}

// goesOn is the agent's version of a run that goes on from another Temporal run,
// which is the start's second argument; 0 where there is none.
func goesOn(input *commonpb.Payloads) int {
	var before struct {
		Snapshot struct {
			Run struct {
				Version int `json:"version"`
			} `json:"run"`
		} `json:"snapshot"`
	}
	if p := input.GetPayloads(); len(p) > 1 {
		_ = json.Unmarshal(p[1].GetData(), &before) // no snapshot of ours: the replay will say so
	}
	return before.Snapshot.Run.Version
}

// marker reads the SDK's markers: local activities, and the pins of the run,
// which are its first side effect.
func (r *recorded) marker(id int64, a *historypb.MarkerRecordedEventAttributes) {
	data := first(a.GetDetails()["data"]).GetData()
	switch a.GetMarkerName() {
	case "LocalActivity":
		var m struct{ ActivityID, ActivityType string }
		if json.Unmarshal(data, &m) == nil {
			r.locals[m.ActivityID] = local{id, m.ActivityType}
		}
	case "SideEffect":
		var pins struct {
			Version int `json:"version"`
		}
		if r.version == 0 && json.Unmarshal(data, &pins) == nil {
			r.version = pins.Version
		}
	}
}

// besides are the workflows that are no runs. No agent has such a name.
var besides = []string{signals.WorkflowNotice, signals.WorkflowSweep, signals.WorkflowResolve}

// servedBy says so when the history is of another agent, or of a version that is
// not given: the replay would say it less clearly.
func (r *recorded) servedBy(registry *agent.Registry) error {
	var have []string
	known := false
	for _, name := range registry.Names() {
		for _, d := range registry.Versions(name) {
			have = append(have, fmt.Sprintf("%s/v%d", name, d.Version))
		}
		known = known || name == r.agent
	}
	if !known && slices.Contains(besides, r.agent) {
		return nil
	}
	if !known {
		return fmt.Errorf("it is of a run of agent %s; given are %s", r.agent, strings.Join(have, ", "))
	}
	if r.version == 0 {
		return nil
	}
	if _, err := registry.Get(r.agent, r.version); err != nil {
		return fmt.Errorf("its run is pinned to %s/v%d; given are %s: keep a version registered for as long as runs are pinned to it",
			r.agent, r.version, strings.Join(have, ", "))
	}
	return nil
}

func first(p *commonpb.Payloads) *commonpb.Payload {
	if len(p.GetPayloads()) == 0 {
		return nil
	}
	return p.GetPayloads()[0]
}
