package replaytests

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"interlock/agent"
	"interlock/signals"
)

// told are the events of a run that its activities carried, in words: of a step with
// its tool and how it ended, of a gate with how it closed.
func told(t *testing.T, name string) []string {
	t.Helper()
	rec, err := read(load(t, name))
	require.NoError(t, err)
	events := map[int64]agent.Event{}
	for _, task := range rec.tasks {
		for _, a := range task.activities {
			for _, e := range batchOf(a.input).Events {
				events[e.Seq] = e
			}
		}
	}
	tools := map[string]string{}
	var out []string
	for _, seq := range slices.Sorted(maps.Keys(events)) {
		e := events[seq]
		var d struct {
			Tool, Status, Judgement, Source string
			Verdict                         json.RawMessage
		}
		require.NoError(t, json.Unmarshal(e.Data, &d))
		if e.Type == agent.EventStepStarted {
			tools[e.Step] = d.Tool
		}
		word := string(e.Type)
		for _, more := range []string{tools[e.Step], d.Status, d.Judgement} {
			if more != "" {
				word += " " + more
			}
		}
		if d.Source == agent.SourceRollback {
			word += " " + d.Source
		}
		if e.Type == agent.EventVerdict {
			var v agent.VerdictData
			require.NoError(t, json.Unmarshal(e.Data, &v))
			word += fmt.Sprintf(" %s", v.Verdict.Verdict)
		}
		out = append(out, word)
	}
	return out
}

// What each of these histories is for happens in it, in this order.
func TestScenes(t *testing.T) {
	for name, want := range map[string][]string{
		"interrupted": {"step_started track running", "step_started reserve running", "step_started ship running", "interrupted", "step_settled track abandoned",
			"step_stopping reserve", "step_done reserve", "undo_requested", "step_started release running", "step_settled reserve undone", "interrupt_settled", "turn_started", "reply"},
		"rolled-back": {"step_done reserve", "interrupted", "step_settled track abandoned", "step_done ship", "undo_requested", "step_started release running",
			"step_settled reserve undone", "interrupt_settled", "reply"},
		"rolled-back-fields": {"state_set track", "interrupted", "step_settled track abandoned", "undo_requested", "step_started release running",
			"step_settled reserve undone", "state_set rollback", "interrupt_settled", "reply"},
		"cancelled-undone": {"step_done reserve", "cancel_requested", "step_started release running", "step_settled reserve undone", "cancelled"},
		"edited": {"verdict pay_two valid edit", "gate_closed pay_two edited", "step_settled pay_two edited", "gate_opened pay_two", "verdict pay_two valid approve", "gate_counted pay_two",
			"gate_closed pay_two approved", "step_resumed pay_two", "step_done pay_two"},
		"taken-back": {"verdict pay_later pending approve", "gate_pending pay_later", "verdict pay_later valid take_back", "gate_pending pay_later",
			"verdict pay_later pending approve", "verdict pay_later valid approve", "gate_closed pay_later approved", "step_done pay_later"},
		"expired":      {"gate_opened pay_soon", "gate_escalated pay_soon", "gate_closed pay_soon expired", "step_settled pay_soon expired", "reply"},
		"in-time":      {"gate_opened pay_soon", "verdict pay_soon valid approve", "gate_closed pay_soon approved", "step_done pay_soon"},
		"ruled":        {"verdict pay valid reject", "ruling_made pay", "call_answered refused", "ruling_lifted", "gate_opened pay"},
		"in-doubt":     {"step_settled ring in_doubt", "gate_opened ring", "verdict valid happened", "gate_closed ring resolved", "step_done ring", "reply"},
		"signed":       {"verdict pay valid approve", "step_done pay"},
		"said-at-once": {"message", "turn_started", "message", "message", "message", "reply", "turn_started", "step_started locate running", "completed"},
		"repaired":     {"started", "undo_requested", "step_started release running", "step_settled undone", "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			all := told(t, name)
			rest := all
			for _, w := range want {
				n := slices.Index(rest, w)
				require.GreaterOrEqual(t, n, 0, "%q is not, or not after what stands before it, in\n%s", w, strings.Join(all, "\n"))
				rest = rest[n+1:]
			}
		})
	}
	require.NotNil(t, find(t, load(t, "signed"), func(e *historypb.HistoryEvent) bool {
		return strings.Contains(string(first(e.GetMarkerRecordedEventAttributes().GetDetails()["data"]).GetData()), signals.ActivityCheckToken)
	}), "its token is checked by a local activity")
	rec, err := read(load(t, "said-at-once"))
	require.NoError(t, err)
	var begun []string
	for _, a := range rec.tasks[0].activities {
		begun = append(begun, a.name)
	}
	require.Equal(t, []string{signals.ActivityRecord, signals.ActivityCallModel}, begun, "one record at a time")
}

// The workflows that are no runs are compared as runs are, in what they ask for and
// in how they end.
func TestCheck_Besides(t *testing.T) {
	for name, want := range map[string][]string{
		"notice-told":   {signals.ActivityDeliver},
		"notice-dead":   {signals.ActivityDeliver, signals.ActivityBury},
		"notice-retold": {signals.ActivityDeliver, signals.ActivityMarkNoticed},
		"swept":         {signals.WorkflowSweep},
		"resolved":      {signals.WorkflowResolve},
	} {
		rec, err := read(load(t, name))
		require.NoError(t, err)
		var got []string
		for _, task := range rec.tasks {
			for _, a := range task.activities {
				got = append(got, a.name)
			}
		}
		require.Equal(t, want, got, name)
	}
	altered := func(name string, in func(*historypb.HistoryEvent) *[]byte, old, other string) error {
		h := load(t, name)
		done := false
		for _, e := range h.Events {
			if data := in(e); data != nil && strings.Contains(string(*data), old) {
				*data, done = []byte(strings.Replace(string(*data), old, other, 1)), true
			}
		}
		require.True(t, done, "%s holds no %s", name, old)
		return Check(h, samples()...)
	}
	of := func(activity string) func(*historypb.HistoryEvent) *[]byte {
		return func(e *historypb.HistoryEvent) *[]byte {
			if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == activity && len(a.GetInput().GetPayloads()) > 0 {
				return &a.GetInput().GetPayloads()[0].Data
			}
			return nil
		}
	}
	result := func(e *historypb.HistoryEvent) *[]byte {
		if p := e.GetWorkflowExecutionCompletedEventAttributes().GetResult().GetPayloads(); e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED && len(p) > 0 {
			return &p[0].Data
		}
		return nil
	}
	require.ErrorContains(t, altered("notice-told", of(signals.ActivityDeliver), `"target":"desk"`, `"target":"disk"`), `target: recorded "disk", now "desk"`)
	require.ErrorContains(t, altered("notice-dead", of(signals.ActivityBury), "410", "411"), "reason: recorded")
	require.ErrorContains(t, altered("notice-retold", of(signals.ActivityMarkNoticed), `"retry":1`, `"retry":2`), "retry: recorded 2, now 1")
	require.ErrorContains(t, altered("resolved", of(signals.WorkflowResolve), `"happened":true`, `"happened":false`), "happened: recorded false, now true")
	require.ErrorContains(t, altered("swept", result, `"looked":1`, `"looked":2`), "result.looked: recorded 2, now 1")
}
