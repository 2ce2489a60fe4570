package replaytests

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
	"interlock/signals"
)

// Difference is the first thing that the present code does otherwise than the
// code that wrote a history.
type Difference struct {
	Event       int64  // of Temporal's history
	Activity    string // its type as recorded; where nothing was recorded, as it is now
	NowActivity string // its type now, where that differs
	// Path leads to the value that differs, as in
	// batch.events[3].data.patch.amount.minor. It may be empty.
	Path          string
	Recorded, Now string // as JSON, clipped; "" where there is none
	where         string // in which event of the run
	about         string // what differs where it is no value
}

func (d *Difference) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "event %d", d.Event)
	if d.Activity != "" {
		fmt.Fprintf(&b, ", activity %s", d.Activity)
	}
	if d.NowActivity != "" {
		fmt.Fprintf(&b, ", now %s", d.NowActivity)
	}
	if d.Path != "" {
		fmt.Fprintf(&b, ": %s: recorded %s, now %s", d.Path, orAbsent(d.Recorded), orAbsent(d.Now))
	}
	b.WriteString(d.where)
	if d.about != "" {
		fmt.Fprintf(&b, ": %s", d.about)
	}
	return b.String()
}

func orAbsent(s string) string {
	if s == "" {
		return "absent"
	}
	return s
}

// compare finds the first difference.
func compare(rec *recorded, now *capture, stopped bool) *Difference {
	d, l := compareActivities(rec, now, stopped), compareLocals(rec, now, stopped)
	switch {
	case l != nil && (d == nil || l.Event < d.Event):
		return l
	case d != nil || stopped:
		return d
	}
	return compareEnd(rec, now)
}

// compareActivities goes as far as the replay did: what lies beyond the place
// where it stopped was never asked for and proves nothing.
func compareActivities(rec *recorded, now *capture, stopped bool) *Difference {
	for _, t := range rec.tasks {
		if stopped && t.started > now.at {
			return nil
		}
		if d := compareTask(t, now.calls); d != nil {
			return d
		}
	}
	return nil
}

// compareTask pairs what one workflow task scheduled with what it schedules now,
// in order: the SDK schedules every activity that is called, also one that is
// cancelled in the same task. What is called in a task that the history does not
// complete is not compared.
func compareTask(t *task, all []*call) *Difference {
	calls := slices.DeleteFunc(slices.Clone(all), func(c *call) bool { return c.at != t.started })
	for i := range max(len(t.activities), len(calls)) {
		switch {
		case i >= len(calls):
			a := t.activities[i]
			return &Difference{Event: a.event, Activity: a.name, about: "it was scheduled, and is not now"}
		case i >= len(t.activities):
			c := calls[i]
			return &Difference{Event: t.started, Activity: c.name, about: "this task schedules it now, and did not; it carries " + carries(c)}
		}
		if d := comparePair(t.activities[i], calls[i]); d != nil {
			return d
		}
	}
	return nil
}

func comparePair(a activity, c *call) *Difference {
	d := &Difference{Event: a.event, Activity: a.name}
	if c.err != nil {
		d.about = fmt.Sprintf("its arguments cannot be encoded now: %v", c.err)
		return d
	}
	s := diffPayloads(a.input, c.input)
	if s != nil {
		d.Path, d.Recorded, d.Now, d.where = s.path, s.recorded, s.now, inEvent(a, c, s.path)
	}
	if a.name != c.name {
		d.NowActivity = c.name
	}
	if s == nil && d.NowActivity == "" {
		return nil
	}
	return d
}

var eventPath = regexp.MustCompile(`^batch\.events\[([0-9]+)\]`)

// inEvent says which event of the run a path leads into.
func inEvent(a activity, c *call, path string) string {
	m := eventPath.FindStringSubmatch(path)
	if m == nil {
		return ""
	}
	i, err := strconv.Atoi(m[1])
	if err != nil {
		return ""
	}
	for _, side := range []struct {
		word   string
		events []agent.Event
	}{{"", batchOf(a.input).Events}, {" now", batchOf(c.input).Events}} {
		if i < len(side.events) {
			e := side.events[i]
			of := ""
			if e.Step != "" {
				of = " of step " + e.Step
			}
			return fmt.Sprintf(" (event %d of the run%s: %s%s)", e.Seq, side.word, e.Type, of)
		}
	}
	return ""
}

// carries lists the events that an activity takes along.
func carries(c *call) string {
	var types []string
	for _, e := range batchOf(c.input).Events {
		types = append(types, fmt.Sprintf("%d %s", e.Seq, e.Type))
	}
	if len(types) == 0 {
		return "no events"
	}
	return strings.Join(types, ", ")
}

func batchOf(input []*commonpb.Payload) agent.Batch {
	var in struct{ signals.Ride }
	if len(input) > 0 {
		_ = json.Unmarshal(input[0].GetData(), &in) // of other workflows' activities: no events
	}
	return in.Batch
}

// compareLocals compares by the number of the call, as the SDK does: a local
// activity is recorded when it ends. Its arguments are in no history.
func compareLocals(rec *recorded, now *capture, stopped bool) *Difference {
	var found *Difference
	for id, l := range rec.locals {
		n, err := strconv.Atoi(id)
		d := &Difference{Event: l.event, Activity: l.name}
		switch {
		case err != nil || (n > len(now.locals) && stopped):
			continue
		case n > len(now.locals):
			d.about = "it ran as a local activity, and does not now"
		case now.locals[n-1] != l.name:
			d.NowActivity = now.locals[n-1]
		default:
			continue
		}
		if found == nil || d.Event < found.Event {
			found = d
		}
	}
	return found
}

// compareEnd compares how the run ended, which Temporal's replay does only in
// part: neither results nor failures and cancels.
func compareEnd(rec *recorded, now *capture) *Difference {
	d := &Difference{Event: rec.last.GetEventId()}
	end := now.end
	switch rec.last.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return compareResult(d, rec.last.GetWorkflowExecutionCompletedEventAttributes().GetResult().GetPayloads(), end)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		if end == nil || !temporal.IsCanceledError(end.err) {
			d.about = "the run was cancelled through Temporal, and " + how(end)
			return d
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		want := rec.last.GetWorkflowExecutionFailedEventAttributes().GetFailure().GetMessage()
		if end == nil || end.err == nil || message(end.err) != want {
			d.about = fmt.Sprintf("the run failed with %q, and %s", want, how(end))
			return d
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		var next *workflow.ContinueAsNewError
		if end == nil || !errors.As(end.err, &next) {
			d.about = "the run was continued as new, and " + how(end)
			return d
		}
		was := rec.last.GetWorkflowExecutionContinuedAsNewEventAttributes().GetInput().GetPayloads()
		if s := diffPayloads(was, next.Input.GetPayloads()); s != nil {
			d.Path, d.Recorded, d.Now = "next_input"+s.path, s.recorded, s.now
			d.about = "what the next Temporal run goes on from"
			return d
		}
	default:
		if end != nil && slices.ContainsFunc(rec.tasks, func(t *task) bool { return t.started == end.at }) {
			d.about = "the run went on, and " + how(end)
			return d
		}
	}
	return nil
}

// compareResult compares what a workflow that was completed answered; d is where.
func compareResult(d *Difference, was []*commonpb.Payload, end *ending) *Difference {
	if end == nil || end.err != nil {
		d.about = "the run was completed, and " + how(end)
		return d
	}
	var now *commonpb.Payloads
	if end.result != nil { // else it answers nothing, as a notice does
		var err error
		if now, err = converter.GetDefaultDataConverter().ToPayloads(end.result); err != nil {
			d.about = fmt.Sprintf("the run's result cannot be encoded now: %v", err)
			return d
		}
	}
	s := diffPayloads(was, now.GetPayloads())
	if s == nil {
		return nil
	}
	d.Path, d.Recorded, d.Now = strings.TrimSuffix("result."+s.path, "."), s.recorded, s.now
	return d
}

func how(end *ending) string {
	switch {
	case end == nil:
		return "goes on now"
	case errors.As(end.err, new(*workflow.ContinueAsNewError)):
		return "is continued as new now"
	case end.err != nil:
		return fmt.Sprintf("ends now with %q", message(end.err))
	}
	return "ends now"
}

func message(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}
