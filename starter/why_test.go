package starter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"interlock/agent"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

// noon is when the runs of these tests begin.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// situation is what can be seen of a run.
type situation struct {
	journal *journal
	effects []store.Effect
	storeIs error
	down    bool // Temporal
	missing bool // in Temporal
	first   string
	status  enums.WorkflowExecutionStatus
	task    int // attempt of the pending workflow task
	pending []*workflow.PendingActivityInfo
	history []*history.HistoryEvent
	polled  time.Time
	ahead   *journal // what the run itself says, where it is asked
}

func (x situation) why(t *testing.T) (starter.Why, error) {
	t.Helper()
	f := &fake{history: x.history, polled: x.polled}
	f.describe = func(string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		switch {
		case x.down:
			return nil, serviceerror.NewUnavailable("connection refused")
		case x.missing:
			return nil, serviceerror.NewNotFound("workflow not found")
		}
		if x.status == 0 {
			x.status = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
		}
		first := x.first
		if first == "" {
			first = "first"
		}
		d := execution("run", first, x.status, nil)
		setTime(&d.WorkflowExecutionInfo.CloseTime, noon.Add(time.Hour))
		d.PendingActivities = x.pending
		if x.task > 0 {
			d.PendingWorkflowTask = &workflow.PendingWorkflowTaskInfo{Attempt: int32(x.task)}
		}
		return d, nil
	}
	if x.ahead != nil {
		f.query = func(string) (*agent.Run, error) { return agent.Reduce(x.ahead.events) }
	}
	m := stored()
	if x.journal != nil {
		m.chains = append(m.chains, x.journal)
	}
	m.err, m.effects = x.storeIs, x.effects
	return starter.New(f, starter.WithReader(ledger{memory: m})).Why(t.Context(), address)
}

// fails is an activity that is tried again at 12:14.
func fails(activity, kind, message string, attempt int32) *workflow.PendingActivityInfo {
	a := &workflow.PendingActivityInfo{ActivityType: &common.ActivityType{Name: activity}, Attempt: attempt, State: enums.PENDING_ACTIVITY_STATE_SCHEDULED,
		LastFailure: failed(kind, message)}
	setTime(&a.NextAttemptScheduleTime, noon.Add(14*time.Minute))
	return a
}

func failed(kind, message string) *failure.Failure {
	return &failure.Failure{Message: message, FailureInfo: &failure.Failure_ApplicationFailureInfo{
		ApplicationFailureInfo: &failure.ApplicationFailureInfo{Type: kind}}}
}

func taskFailed(message string) []*history.HistoryEvent {
	return []*history.HistoryEvent{
		{EventType: enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED},
		{EventType: enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, Attributes: &history.HistoryEvent_WorkflowTaskFailedEventAttributes{
			WorkflowTaskFailedEventAttributes: &history.WorkflowTaskFailedEventAttributes{Failure: failed("", message)}}},
	}
}

func (j *journal) step(id string, status agent.StepStatus) *journal {
	return j.add(agent.EventStepStarted, id, agent.StepStartedData{Kind: agent.KindTool, Tool: "pay", Args: agent.JSON("{}"), By: agent.ByModel, Status: status})
}

func (j *journal) gate(id, title string) *journal {
	expires := noon.Add(24 * time.Hour)
	return j.step(id, agent.StepWaiting).add(agent.EventGateOpened, id, agent.GateOpenedData{Gate: agent.Gate{ID: id, Kind: agent.KindTool, Tool: "pay",
		Args: agent.JSON("{}"), Title: title, Roles: []string{"refunds"}, Digest: "d", OpenedAt: noon, ExpiresAt: &expires, Status: agent.GateOpen}})
}

// idling is a run by the newest rules whose user is reminded after an hour.
func idling(t *testing.T) *journal {
	j := started(t, "first", "", noon)
	limits := agent.DefaultLimits()
	limits.Idle.Remind = time.Hour
	return j.set(agent.EventStarted, "", agent.StartedData{Agent: "lab", Version: 1, Key: "k", FirstRunID: "first", User: "ann", Body: agent.JSON("{}"), Rules: agent.Rules, Limits: limits})
}

// Nothing here may have a Once effect done again: no reset.
const afterLoss = "bring the missing events back: a later copy of the database, or the server that has them; the run then goes on by itself. " +
	"Where there is none, interlock store restored --reason …, find out on the other side what its steps have done (temporal workflow show --workflow-id " + address + " has them), " +
	"and temporal workflow terminate --workflow-id " + address + " --reason …; do not reset it: that would do again what the ledger does not know any more"

func TestWhy(t *testing.T) {
	t.Parallel()
	begun := func() *journal { return started(t, "first", "", noon) }
	talking := func() *journal { return begun().message("m", "hi").turn() }
	open := store.Effect{Claim: store.Claim{Scope: address + "/first", Step: "1.1", Tool: "pay"}, Outcome: store.Outcome{Status: store.EffectClaimed}, Attempts: 1}
	locked := agent.Errorf(agent.CodeUnavailable, "the store is locked")
	for name, tc := range map[string]struct {
		situation
		says, next string
		unseen     int
	}{
		"user": {situation{journal: talking().reply("Hello.")}, "waits for the user since 2026-11-29T12:00:03Z", "interlock run message " + address + " …", 0},
		"user who is reminded": {situation{journal: idling(t).message("m", "hi").turn().add(agent.EventProposal, "", agent.Proposal{Text: "Hello."}).reply("Hello.")},
			"waits for the user since 2026-11-29T12:00:03Z; at 2026-11-29T13:00:03Z the user is reminded", "interlock run message " + address + " …", 0},
		"gate": {situation{journal: talking().gate("1.1", "Refund 89.90 EUR").reply("Wait.")},
			"waits for a person with role refunds at gate 1.1 (Refund 89.90 EUR) until 2026-11-30T12:00:00Z", "interlock gate show " + address + " 1.1", 0},
		"gate, Temporal down": {situation{journal: talking().gate("1.1", "Refund 89.90 EUR").reply("Wait."), down: true},
			"waits for a person with role refunds at gate 1.1 (Refund 89.90 EUR) until 2026-11-30T12:00:00Z", "interlock gate show " + address + " 1.1", 1},
		"paused": {situation{journal: begun().add(agent.EventPaused, "", agent.PausedData{Reason: "budget:turns"})},
			"paused (budget:turns) since 2026-11-29T12:00:01Z", "interlock run resume " + address, 0},
		"model down": {situation{journal: talking(), polled: time.Now(), pending: []*workflow.PendingActivityInfo{fails("CallModel", signals.ErrUnavailable, "503 try later", 7)}},
			"the model cannot be reached since 2026-11-29T12:00:02Z (attempt 7, next try 2026-11-29T12:14:00Z): 503 try later", "wait, or interlock run pause " + address, 0},
		"model down, store too": {situation{storeIs: locked, polled: time.Now(), pending: []*workflow.PendingActivityInfo{fails("CallModel", signals.ErrUnavailable, "503 try later", 7)}},
			"the model cannot be reached (attempt 7, next try 2026-11-29T12:14:00Z): 503 try later", "wait, or interlock run pause " + address, 1},
		"journal down": {situation{journal: talking(), polled: time.Now(), pending: []*workflow.PendingActivityInfo{fails("Record", signals.ErrUnavailable, "disk full", 3)}},
			"its events cannot be recorded (attempt 3, next try 2026-11-29T12:14:00Z): disk full", "mend the store; the run goes on by itself", 0},
		"tool fails": {situation{journal: talking().step("1.1", agent.StepRunning), polled: time.Now(), pending: []*workflow.PendingActivityInfo{fails("lab.pay", signals.ErrUnknown, "no answer", 2)}},
			"step 1.1 (lab.pay) fails (attempt 2, next try 2026-11-29T12:14:00Z): no answer", "wait, or interlock run cancel " + address, 0},
		"diverged": {situation{journal: talking(), polled: time.Now(), pending: []*workflow.PendingActivityInfo{fails("CallModel", signals.ErrDiverged, "diverged: event 17 follows another history", 2)}},
			"diverged: event 17 follows another history (attempt 2, next try 2026-11-29T12:14:00Z)",
			"deploy the code that wrote the journal; or, so that the run decides anew from there, temporal workflow reset --workflow-id " + address + " --event-id ID --reason …: " +
				"ID is the last WorkflowTaskCompleted in temporal workflow show --workflow-id " + address + " before that event of the journal was recorded (interlock run events " + address + " says when)", 0},
		"lost events": {situation{journal: talking(), polled: time.Now(), pending: []*workflow.PendingActivityInfo{fails("Record", signals.ErrLost, "the store has lost events: up to 9, and the journal ends at event 3", 2)}},
			"cannot go on: the store has lost events: up to 9, and the journal ends at event 3 (attempt 2, next try 2026-11-29T12:14:00Z)", afterLoss, 0},
		"ahead of an older copy": {situation{journal: talking(), ahead: talking().gate("1.1", "Refund 89.90 EUR").reply("Wait.")},
			"is ahead of the store, which has lost events: the run is at event 7 (waiting (gate)), and its journal ends at event 3: lists and inboxes do not show what came after", afterLoss, 0},
		"tool gone": {situation{journal: talking(), polled: time.Now(), pending: []*workflow.PendingActivityInfo{fails("lab.pay", signals.ErrNotDeployed, "agent lab/v1 is not deployed on this worker", 2)}},
			"blocked: agent lab/v1 is not deployed on this worker (attempt 2, next try 2026-11-29T12:14:00Z)", "deploy a worker that has it", 0},
		"version gone": {situation{journal: talking(), task: 13, history: taskFailed("agent lab/v3 is not deployed on this worker; it serves lab/v2")},
			"blocked: its workflow task has failed 12 times, at first because: agent lab/v3 is not deployed on this worker; it serves lab/v2", "deploy a worker that has it", 0},
		"code panics, store down": {situation{storeIs: locked, task: 3, history: taskFailed("nobody thought of this")},
			"blocked: its workflow task has failed 2 times, at first because: nobody thought of this", "deploy a worker with the code that the run needs (the worker's log has the reason)", 1},
		"no worker":   {situation{journal: talking(), task: 1}, "no worker polls task queue q", "start one", 0},
		"worker gone": {situation{journal: talking(), task: 1, polled: noon}, "no worker polls task queue q (the last one did at 2026-11-29T12:00:00Z)", "start one", 0},
		"at work": {situation{journal: talking(), polled: time.Now(), pending: []*workflow.PendingActivityInfo{{ActivityType: &common.ActivityType{Name: "CallModel"}, Attempt: 1, State: enums.PENDING_ACTIVITY_STATE_STARTED}}},
			"is at work: CallModel (attempt 1 is under way)", "wait: interlock run watch " + address, 0},
		"in doubt": {situation{journal: talking().step("1.1", agent.StepRunning).add(agent.EventStepSettled, "1.1", agent.StepSettledData{Status: agent.StepInDoubt, Reason: "the time was up"}).reply("Hm.")},
			"nobody knows whether step 1.1 (pay) happened: the time was up", "find out, and interlock run cancel " + address, 0},
		"cancelling": {situation{journal: talking().step("1.1", agent.StepRunning).add(agent.EventCancelRequested, "", agent.CancelRequestedData{ID: "c", Principal: ann})},
			"is being cancelled and waits for the end of step 1.1 (pay)", "wait: interlock run watch " + address, 0},
		"cancelling, at an undo's gate": {situation{journal: talking().step("1.1", agent.StepRunning).add(agent.EventStepDone, "1.1", agent.StepDoneData{Result: agent.JSON("{}")}).
			add(agent.EventCancelRequested, "", agent.CancelRequestedData{ID: "c", Principal: ann, Undo: agent.UndoRun}).gate("1.2", "Give it back")},
			"is being cancelled; what it did is undone first; it waits for a person with role refunds at gate 1.2 (Give it back)", "interlock gate show " + address + " 1.2", 0},
		"ended":            {situation{journal: talking().completed(), status: enums.WORKFLOW_EXECUTION_STATUS_COMPLETED}, "has ended: completed at 2026-11-29T12:00:03Z", "interlock run get " + address, 0},
		"ended, forgotten": {situation{journal: talking().add(agent.EventFailed, "", agent.EndedData{Reason: "bad"}), missing: true}, "has ended: failed at 2026-11-29T12:00:03Z (bad)", "interlock run get " + address, 0},
		"terminated": {situation{journal: talking().step("1.1", agent.StepRunning), effects: []store.Effect{open, {}}, status: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
			history: []*history.HistoryEvent{{Attributes: &history.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
				WorkflowExecutionTerminatedEventAttributes: &history.WorkflowExecutionTerminatedEventAttributes{Identity: "bob", Reason: "by mistake"}}}}},
			"was closed in Temporal as terminated at 2026-11-29T13:00:00Z: by bob by mistake; its journal ends at event 4, running; nobody knows whether step 1.1 (pay) happened",
			"temporal workflow reset --workflow-id " + address + " --type LastWorkflowTask --reason …, to let it go on; or interlock run start under a new key", 0},
		"refused by the journal": {situation{first: "second", status: enums.WORKFLOW_EXECUTION_STATUS_FAILED,
			history: []*history.HistoryEvent{{Attributes: &history.HistoryEvent_WorkflowExecutionFailedEventAttributes{
				WorkflowExecutionFailedEventAttributes: &history.WorkflowExecutionFailedEventAttributes{Failure: failed(signals.ErrKeyUsed, "the key was used")}}}}},
			"was closed in Temporal as failed at 2026-11-29T13:00:00Z: the key was used", "interlock run start under a new key", 0},
		"lost in Temporal": {situation{journal: talking(), missing: true},
			"is not known to Temporal, though its journal, which ends at event 3, has it as running: it was deleted there, or lives in another namespace",
			"look for it in the right namespace; else interlock run export " + address, 0},
		"just started":     {situation{}, "has been started, and has not recorded anything yet", "wait: interlock run watch " + address, 0},
		"the next started": {situation{journal: talking().completed(), first: "second"}, "has been started, and has not recorded anything yet", "wait: interlock run watch " + address, 0},
		"busy, Temporal down": {situation{journal: talking(), down: true},
			"was at work at event 3 (running), as far as the journal knows", "wait: interlock run watch " + address, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := tc.why(t)
			require.NoError(t, err)
			require.Equal(t, tc.says, w.Sentence)
			require.Equal(t, tc.next, w.Next)
			require.Len(t, w.Unseen, tc.unseen, "%v", w.Unseen)
			require.Equal(t, address, w.Address)
		})
	}
}

func TestWhy_Facts(t *testing.T) {
	t.Parallel()
	w, err := situation{journal: started(t, "first", "", noon).message("m", "hi").turn().gate("1.1", "Refund"), task: 4, polled: time.Now(),
		pending: []*workflow.PendingActivityInfo{fails("CallModel", signals.ErrUnavailable, "503", 7)}}.why(t)
	require.NoError(t, err)
	require.Equal(t, agent.RunRunning, w.Status)
	require.EqualValues(t, 5, w.Seq)
	require.Equal(t, 1, w.Turn)
	require.Equal(t, 3, w.TaskFailures)
	require.Equal(t, "1.1", w.Gates[0].ID)
	require.Equal(t, []starter.Pending{{Type: "CallModel", Attempt: 7, Failure: "503", Kind: signals.ErrUnavailable, NextAt: noon.Add(14 * time.Minute)}}, w.Activities)
}

func TestWhy_NobodyKnows(t *testing.T) {
	t.Parallel()
	_, err := situation{missing: true}.why(t)
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err), "%v", err)
	w, err := situation{down: true, storeIs: agent.Errorf(agent.CodeUnavailable, "the store is locked")}.why(t)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "the store is locked")
	require.Len(t, w.Unseen, 2)
	_, err = situation{missing: true, storeIs: agent.Errorf(agent.CodeUnavailable, "the store is locked")}.why(t)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
}
