package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"interlock/signals"
)

// chain is what Temporal holds of a run, over all its continuations.
type chain struct {
	payload []byte // the last model call's argument

	Events     int64
	Bytes      int64
	Runs       int
	Timers     int
	Upserts    int // of search attributes
	Markers    int // of local activities
	Activities map[string]int
	Arguments  map[string]int // bytes by activity type
	Results    map[string]int
	Parts      map[string]int           // bytes of what our activities carry, by part
	Spent      map[string]time.Duration // by what a turn waited for; see spend
	Requests   []int                    // bytes of each turn's model request, in order
	Replies    int                      // model calls that made no call: none of them began a turn

	began, ended time.Time // of the turns: see window
	times        map[int64]time.Time
	types        map[int64]string // scheduled event: activity type
	waits        bool             // the next workflow task takes a turn's activity in
}

// readChain reads the histories of a run.
func readChain(ctx context.Context, c client.Client, id, run string) (*chain, error) {
	out := &chain{Activities: map[string]int{}, Arguments: map[string]int{}, Results: map[string]int{}, Parts: map[string]int{},
		Spent: map[string]time.Duration{}}
	for run != "" {
		d, err := c.DescribeWorkflow(ctx, id, run)
		if err != nil {
			return nil, err
		}
		info := d.RawResponse.GetWorkflowExecutionInfo()
		out.Events += info.GetHistoryLength()
		out.Bytes += info.GetHistorySizeBytes()
		out.Runs++
		out.times, out.types = map[int64]time.Time{}, map[int64]string{}
		run = ""
		for it := c.GetWorkflowHistory(ctx, id, info.GetExecution().GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
			e, err := it.Next()
			if err != nil {
				return nil, err
			}
			if err := out.take(e); err != nil {
				return nil, err
			}
			run = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		}
	}
	return out, nil
}

func (c *chain) take(e *historypb.HistoryEvent) error {
	c.times[e.GetEventId()] = e.GetEventTime().AsTime()
	c.spend(e)
	switch e.GetEventType() {
	case enums.EVENT_TYPE_TIMER_STARTED:
		c.Timers++
	case enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		c.Upserts++
	case enums.EVENT_TYPE_MARKER_RECORDED:
		if e.GetMarkerRecordedEventAttributes().GetMarkerName() == "LocalActivity" {
			c.Markers++
		}
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return c.scheduled(e)
	case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		return c.completed(e)
	case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		if c.waits {
			c.ended, c.waits = e.GetEventTime().AsTime(), false
		}
	}
	return nil
}

// spend adds up how long workflow tasks and activities waited for a worker, and
// how long a worker had them. The latter includes the way there and back.
func (c *chain) spend(e *historypb.HistoryEvent) {
	what, since := "", int64(0)
	switch e.GetEventType() {
	case enums.EVENT_TYPE_WORKFLOW_TASK_STARTED:
		what, since = "workflow tasks: waited", e.GetWorkflowTaskStartedEventAttributes().GetScheduledEventId()
	case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		what, since = "workflow tasks: ran", e.GetWorkflowTaskCompletedEventAttributes().GetStartedEventId()
	case enums.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		since = e.GetActivityTaskStartedEventAttributes().GetScheduledEventId()
		what = c.types[since] + ": waited"
	case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		what, since = c.types[a.GetScheduledEventId()]+": ran", a.GetStartedEventId()
	default:
		return
	}
	c.Spent[what] += e.GetEventTime().AsTime().Sub(c.times[since])
}

func (c *chain) scheduled(e *historypb.HistoryEvent) error {
	a := e.GetActivityTaskScheduledEventAttributes()
	kind := a.GetActivityType().GetName()
	c.types[e.GetEventId()] = kind
	c.Activities[kind]++
	c.Arguments[kind] += size(a.GetInput())
	if kind == signals.ActivityCallModel {
		c.payload = a.GetInput().GetPayloads()[0].GetData()
	}
	if kind == signals.ActivityRecord {
		return nil
	}
	if c.began.IsZero() {
		c.began = c.times[a.GetWorkflowTaskCompletedEventId()]
	}
	if kind == bareModel || kind == bareTool {
		return nil
	}
	return c.parts(kind, a.GetInput())
}

func (c *chain) completed(e *historypb.HistoryEvent) error {
	a := e.GetActivityTaskCompletedEventAttributes()
	kind := c.types[a.GetScheduledEventId()]
	c.Results[kind] += size(a.GetResult())
	if kind == signals.ActivityRecord {
		return nil
	}
	if kind == signals.ActivityCallModel {
		var out signals.CallModelResult
		if err := decode(a.GetResult(), &out); err != nil {
			return err
		}
		if len(out.Answer.Calls) == 0 {
			c.Replies++
			return nil
		}
		c.Requests = append(c.Requests, out.Answer.Bytes)
	}
	c.waits = true
	return nil
}

// window is the time of the turns alone: from the workflow task that schedules
// the first model call to the one that takes the last turn's result in. Start
// and end of a run, which no turn pays for, are not in it.
func (c *chain) window() time.Duration { return c.ended.Sub(c.began) }

// parts splits what our activities carry.
func (c *chain) parts(kind string, input *commonpb.Payloads) error {
	var in struct {
		Batch map[string]json.RawMessage `json:"batch"`
		View  map[string]json.RawMessage `json:"view"`
		Task  json.RawMessage            `json:"task"`
	}
	if err := decode(input, &in); err != nil {
		return err
	}
	name := "tool"
	if kind == signals.ActivityCallModel {
		name = "model"
	}
	rest := size(input)
	add := func(part string, bytes int) {
		c.Parts[name+" argument: "+part] += bytes
		rest -= bytes
	}
	add("events", len(in.Batch["events"]))
	if kind == signals.ActivityCallModel {
		turns := len(in.View["turns"])
		view := 0
		for _, v := range in.View {
			view += len(v)
		}
		add("view, turns", turns)
		add("view, the rest", view-turns)
	} else {
		add("task", len(in.Task))
	}
	c.Parts[name+" argument: the rest"] += rest
	return nil
}

func size(p *commonpb.Payloads) int {
	n := 0
	for _, e := range p.GetPayloads() {
		n += len(e.GetData())
	}
	return n
}

func decode(p *commonpb.Payloads, into any) error {
	if len(p.GetPayloads()) != 1 {
		return fmt.Errorf("an activity of ours has %d payloads, not one", len(p.GetPayloads()))
	}
	return json.Unmarshal(p.GetPayloads()[0].GetData(), into)
}

// average is what an activity's payloads hold on average.
func (c *chain) average(kind string) sizes {
	n := max(c.Activities[kind], 1)
	return sizes{Argument: c.Arguments[kind] / n, Result: c.Results[kind] / n}
}
