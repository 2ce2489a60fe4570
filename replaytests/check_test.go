package replaytests

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/replaytests/internal/parcel"
)

func load(t *testing.T, name string) *historypb.History {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}

// find is the first event that pred accepts.
func find(t *testing.T, h *historypb.History, pred func(*historypb.HistoryEvent) bool) *historypb.HistoryEvent {
	t.Helper()
	for _, e := range h.Events {
		if pred(e) {
			return e
		}
	}
	require.Fail(t, "there is no such event")
	return nil
}

func scheduled(name string) func(*historypb.HistoryEvent) bool {
	return func(e *historypb.HistoryEvent) bool {
		return e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == name
	}
}

func TestCheck_ChangedCode(t *testing.T) {
	for name, c := range map[string]struct {
		agent *agent.Definition
		want  []string
	}{
		"commit": {parcel.Agent(parcel.World{Surcharge: 10}), []string{"activity CallModel", "data.patch.fee.minor: recorded 490, now 500",
			"state_set of step 1.2", "does not compare arguments", "a new version of the agent"}},
		"guard":   {parcel.Agent(parcel.World{NeedsZone: true}), []string{`data.status: recorded "done", now "refused"`, "call_answered"}},
		"version": {parcel.Agent(parcel.World{Version: 2}), []string{"pinned to parcel/v1; given are parcel/v2"}},
		"agent":   {refund.Agent(&shop.Shop{}, mail.Client{}), []string{"a run of agent parcel; given are refund/v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(load(t, "three-tools"), c.agent)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestCheck_NamesTheDifference(t *testing.T) {
	err := CheckFile(filepath.Join("testdata", "three-tools.json"), parcel.Agent(parcel.World{Surcharge: 10}))
	var d *Difference
	require.ErrorAs(t, err, &d)
	require.Equal(t, "CallModel", d.Activity)
	require.Regexp(t, `^batch\.events\[[0-9]+\]\.data\.patch\.fee\.minor$`, d.Path)
	require.Equal(t, []string{"490", "500"}, []string{d.Recorded, d.Now})
	require.Positive(t, d.Event)
	require.True(t, strings.HasPrefix(err.Error(), "history three-tools.json: event "), err.Error())
}

// Why arguments are compared at all: Temporal's replay of these two histories
// finds nothing.
func TestTemporalAloneMissesGuardAndCommit(t *testing.T) {
	for _, name := range []string{"bad-changed-guard", "bad-changed-commit"} {
		h := load(t, name)
		registry, err := agent.NewRegistry(samples()...)
		require.NoError(t, err)
		rec, err := read(h)
		require.NoError(t, err)
		require.NoError(t, replay(rec, h, registry, &capture{}), name)
		require.Error(t, Check(h, samples()...), name)
	}
}

// The histories of runs under way are of use too, wherever they stop.
func TestCheck_EveryBeginningOfAHistory(t *testing.T) {
	paths, err := histories("testdata")
	require.NoError(t, err)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if strings.HasPrefix(name, badPrefix) {
			continue
		}
		whole := load(t, name).Events
		for n := 4; n < len(whole); n++ {
			if isCommand(whole[n]) {
				continue // the events of a task come together
			}
			require.NoError(t, Check(&historypb.History{Events: whole[:n]}, samples()...), "%s, %d events", name, n)
		}
	}
}

// isCommand reports that an event came of a workflow task's commands.
func isCommand(e *historypb.HistoryEvent) bool {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED, enumspb.EVENT_TYPE_MARKER_RECORDED,
		enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, enumspb.EVENT_TYPE_TIMER_STARTED, enumspb.EVENT_TYPE_TIMER_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
		return true
	}
	return false
}

func TestCheck_ChangedCommands(t *testing.T) {
	for name, c := range map[string]struct {
		history string
		edit    func(t *testing.T, h *historypb.History)
		want    string
	}{
		"another activity": {"three-tools", func(t *testing.T, h *historypb.History) {
			find(t, h, scheduled("parcel.hold")).GetActivityTaskScheduledEventAttributes().ActivityType.Name = "parcel.release"
		}, "activity parcel.release, now parcel.hold"},
		"one that is no longer scheduled": {"three-tools", func(t *testing.T, h *historypb.History) {
			task := find(t, h, scheduled("parcel.hold")).GetActivityTaskScheduledEventAttributes().WorkflowTaskCompletedEventId
			h.Events = append(h.Events[:len(h.Events)-1:len(h.Events)-1], &historypb.HistoryEvent{EventId: 99, EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
				Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
					ActivityType: &commonpb.ActivityType{Name: "parcel.weigh"}, ActivityId: "99", WorkflowTaskCompletedEventId: task}}})
		}, "event 99, activity parcel.weigh: it was scheduled, and is not now"},
		"one that was not scheduled": {"three-tools", func(t *testing.T, h *historypb.History) {
			h.Events = h.Events[:find(t, h, scheduled("parcel.hold")).EventId-1]
		}, "activity parcel.hold: this task schedules it now, and did not"},
		"another local activity": {"quick-tool", func(t *testing.T, h *historypb.History) {
			m := find(t, h, func(e *historypb.HistoryEvent) bool {
				return e.GetMarkerRecordedEventAttributes().GetMarkerName() == "LocalActivity"
			}).GetMarkerRecordedEventAttributes().Details["data"].Payloads[0]
			m.Data = []byte(strings.Replace(string(m.Data), "parcel.zone.quick", "parcel.area.quick", 1))
		}, "activity parcel.area.quick, now parcel.zone.quick"},
		"another result": {"three-tools", func(t *testing.T, h *historypb.History) {
			p := h.Events[len(h.Events)-1].GetWorkflowExecutionCompletedEventAttributes().Result.Payloads[0]
			p.Data = []byte(strings.Replace(string(p.Data), "490", "480", 1))
		}, "result.state.fee.minor: recorded 480, now 490"},
		"another end": {"three-tools", func(t *testing.T, h *historypb.History) {
			last := h.Events[len(h.Events)-1]
			last.EventType, last.Attributes = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, &historypb.HistoryEvent_WorkflowExecutionCanceledEventAttributes{
				WorkflowExecutionCanceledEventAttributes: &historypb.WorkflowExecutionCanceledEventAttributes{}}
		}, "the run was cancelled through Temporal, and ends now"},
		"no start": {"plain", func(_ *testing.T, h *historypb.History) { h.Events = h.Events[1:] }, "does not begin with the start"},
		"nothing":  {"plain", func(_ *testing.T, h *historypb.History) { h.Events = nil }, "no events"},
	} {
		t.Run(name, func(t *testing.T) {
			h := load(t, c.history)
			c.edit(t, h)
			require.ErrorContains(t, Check(h, samples()...), c.want)
		})
	}
}

func TestCheck_WorkflowIDOfOldServers(t *testing.T) {
	h := load(t, "plain")
	h.Events[0].GetWorkflowExecutionStartedEventAttributes().WorkflowId = ""
	require.NoError(t, Check(h, samples()...))
}

func TestCheck_Agents(t *testing.T) {
	require.ErrorContains(t, Check(load(t, "plain")), "no agents")
	twice := append(samples(), samples()...)
	require.ErrorContains(t, Check(load(t, "plain"), twice...), "given twice")
}

func copyTo(t *testing.T, dir, from, to string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", from))
	require.NoError(t, err)
	path := filepath.Join(dir, to)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	_, err := histories(dir)
	require.ErrorContains(t, err, "no histories in "+dir)
	_, err = histories(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)

	broken := filepath.Join(dir, "broken.json")
	require.NoError(t, os.WriteFile(broken, []byte(`{"events": [`), 0o600))
	require.ErrorContains(t, verify(broken, samples()...), "history broken.json: it is no history in Temporal's JSON form")
	other := filepath.Join(dir, "other.json")
	require.NoError(t, os.WriteFile(other, []byte(`{"runs": []}`), 0o600))
	require.ErrorContains(t, verify(other, samples()...), "history other.json: it has no events")
	require.ErrorIs(t, CheckFile(filepath.Join(dir, "absent.json"), samples()...), os.ErrNotExist)
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	path := copyTo(t, dir, "bad-changed-commit.json", "bad-fee.json")
	require.ErrorContains(t, verify(path, samples()...), "nothing says how: put a part of the message into bad-fee.want")
	want := filepath.Join(dir, "bad-fee.want")
	require.NoError(t, os.WriteFile(want, []byte(" \n"), 0o600))
	require.ErrorContains(t, verify(path, samples()...), "nothing says how")
	require.NoError(t, os.WriteFile(want, []byte("something else\n"), 0o600))
	require.ErrorContains(t, verify(path, samples()...), `fails, but not with "something else"`)
	require.NoError(t, os.WriteFile(want, []byte("recorded 491, now 490\n"), 0o600))
	require.NoError(t, verify(path, samples()...))

	copyTo(t, dir, "three-tools.json", "bad-fee.json")
	require.ErrorContains(t, verify(path, samples()...), "history bad-fee.json replays, and must not")
}

func TestDiffPayloads(t *testing.T) {
	payload := func(encoding, data string) []*commonpb.Payload {
		return []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: []byte(data)}}
	}
	for _, c := range []struct{ recorded, now, want string }{
		{`{"a":1,"b":[true,null]}`, `{ "b":[true,null], "a":1 }`, ""},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, "a 9007199254740993 9007199254740992"},
		{`{"a":1}`, `{"a":1.0}`, "a 1 1.0"},
		{`{"a":{"b":[1,{"c":"x"}]}}`, `{"a":{"b":[1,{"c":"y"}]}}`, `a.b[1].c "x" "y"`},
		{`{"a":[1]}`, `{"a":[1,2]}`, "a[1]  2"},
		{`{"a":[1,2]}`, `{"a":[1]}`, "a[1] 2 "},
		{`{"a":null}`, `{}`, "a null "},
		{`{}`, `{"a":{}}`, "a  {}"},
		{`{"data":{"x":1},"type":"one"}`, `{"data":{"x":2},"type":"two"}`, `type "one" "two"`},
		{`{"hash":"1","v":{"x":1}}`, `{"hash":"2","v":{"x":2}}`, "v.x 1 2"},
		{`{"hash":"1","v":1}`, `{"hash":"2","v":1}`, `hash "1" "2"`},
		{`{"a":[]}`, `{"a":{}}`, "a [] {}"},
		{`1`, `{}`, " 1 {}"},
		{`{}`, `1`, " {} 1"},
	} {
		got := ""
		if d := diffPayloads(payload("json/plain", c.recorded), payload("json/plain", c.now)); d != nil {
			got = d.path + " " + d.recorded + " " + d.now
		}
		require.Equal(t, c.want, got, "%s and %s", c.recorded, c.now)
	}
	require.Nil(t, diffPayloads(payload("binary/plain", "{}"), payload("binary/plain", "{}")))
	require.Equal(t, &step{"byte 1", "32 (of 2 bytes)", "33 (of 2 bytes)"}, diffPayloads(payload("binary/plain", "12"), payload("binary/plain", "13")))
	require.Equal(t, &step{"byte 2", " (of 2 bytes)", "33 (of 3 bytes)"}, diffPayloads(payload("binary/plain", "12"), payload("binary/plain", "123")))
	require.Equal(t, "encoding", diffPayloads(payload("json/plain", "1"), payload("binary/plain", "1")).path)
	require.Equal(t, "number of arguments", diffPayloads(payload("json/plain", "1"), nil).path)
	two := append(payload("json/plain", "1"), payload("json/plain", `{"a":1}`)...)
	three := append(payload("json/plain", "1"), payload("json/plain", `{"a":2}`)...)
	require.Equal(t, "[1].a", diffPayloads(two, three).path)
}

func TestBrief(t *testing.T) {
	require.Equal(t, `panic: x`, brief(errors.New(`panic: x stack_trace:"goroutine 7`)))
	require.LessOrEqual(t, len(brief(errors.New(strings.Repeat("ä", 1000)))), 610)
}

func TestText(t *testing.T) {
	var v any
	require.NoError(t, json.Unmarshal([]byte(`"<`+strings.Repeat("x", 1000)+`"`), &v))
	require.True(t, strings.HasPrefix(text(v), `"<x`))
	require.LessOrEqual(t, len(text(v)), 250)
}
