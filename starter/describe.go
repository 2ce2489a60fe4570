package starter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"

	"interlock/agent"
	"interlock/signals"
)

// lookFor bounds one look at Temporal or at the store where the caller waits for
// an explanation.
const lookFor = 3 * time.Second

// pollerAge is how long after its latest poll a worker may be up still: a poll
// takes a minute where nothing comes.
const pollerAge = 75 * time.Second

// described is what Temporal says of a run.
type described struct {
	address     string
	err         error // it could not be asked
	missing     bool  // it does not know the run, any more or yet
	runID       string
	firstRunID  string
	status      enums.WorkflowExecutionStatus
	closedAt    time.Time
	closing     string // why it is closed, where it did not end by itself
	kind        string // type of the error that it failed with
	task        *workflow.PendingWorkflowTaskInfo
	taskFailure string // of the task that fails
	activities  []Pending
	queue       string
	polled      time.Time // when a worker polled the queue last; zero: nobody did
	pollers     bool      // polled is known
	plain       bool      // texts of errors are left to the worker's log
}

// Pending is an activity that a run waits for.
type Pending struct {
	Type     string    `json:"type"`
	Attempt  int       `json:"attempt"`
	Running  bool      `json:"running,omitempty"` // an attempt is under way
	Paused   bool      `json:"paused,omitempty"`  // in Temporal, by an operator
	Failure  string    `json:"failure,omitempty"` // of the latest attempt that ended
	Kind     string    `json:"kind,omitempty"`    // of the failure: a type of package signals
	LastAt   time.Time `json:"last_at,omitzero"`
	NextAt   time.Time `json:"next_at,omitzero"` // of the next attempt
	Deadline time.Time `json:"deadline,omitzero"`
}

func (d described) running() bool { return d.status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING }

// describe asks Temporal about a run, and further where the answer shows that
// something is wrong. No worker need be up.
func (s *Starter) describe(ctx context.Context, address string) described {
	d := described{address: address}
	raw, err := s.temporal.DescribeWorkflow(ctx, address, "")
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		d.missing = true
		return d
	case err != nil:
		d.err = err
		return d
	}
	r := raw.RawResponse
	info := r.GetWorkflowExecutionInfo()
	d.runID, d.firstRunID, d.status = info.GetExecution().GetRunId(), info.GetFirstRunId(), info.GetStatus()
	d.queue, d.task = r.GetExecutionConfig().GetTaskQueue().GetName(), r.GetPendingWorkflowTask()
	if info.GetCloseTime() != nil {
		d.closedAt = info.GetCloseTime().AsTime()
	}
	for _, a := range r.GetPendingActivities() {
		d.activities = append(d.activities, pending(a))
	}
	switch {
	case !d.running():
		s.readClose(ctx, &d)
	case d.task.GetAttempt() > 1:
		d.taskFailure = s.lastTaskFailure(ctx, address, d.runID)
	}
	if d.running() && (d.task != nil || len(d.activities) > 0) {
		s.readPollers(ctx, &d)
	}
	return d
}

func pending(a *workflow.PendingActivityInfo) Pending {
	p := Pending{Type: a.GetActivityType().GetName(), Attempt: int(a.GetAttempt()), Paused: a.GetPaused(),
		Running: a.GetState() == enums.PENDING_ACTIVITY_STATE_STARTED,
		Failure: a.GetLastFailure().GetMessage(), Kind: a.GetLastFailure().GetApplicationFailureInfo().GetType()}
	if a.GetLastFailure() != nil && p.Failure == "" {
		p.Failure = "no reason was given"
	}
	if t := a.GetLastAttemptCompleteTime(); t != nil {
		p.LastAt = t.AsTime()
	}
	if t := a.GetNextAttemptScheduleTime(); t != nil {
		p.NextAt = t.AsTime()
	}
	if t := a.GetExpirationTime(); t != nil {
		p.Deadline = t.AsTime()
	}
	return p
}

// readClose reads why a run is closed that did not end by itself.
func (s *Starter) readClose(ctx context.Context, d *described) {
	it := s.temporal.GetWorkflowHistory(ctx, d.address, d.runID, false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	if !it.HasNext() {
		return
	}
	e, err := it.Next()
	if err != nil {
		return
	}
	switch d.status {
	case enums.WORKFLOW_EXECUTION_STATUS_FAILED:
		f := e.GetWorkflowExecutionFailedEventAttributes().GetFailure()
		d.closing, d.kind = f.GetMessage(), f.GetApplicationFailureInfo().GetType()
	case enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		t := e.GetWorkflowExecutionTerminatedEventAttributes()
		d.closing = strings.TrimSpace("by " + t.GetIdentity() + " " + t.GetReason())
	}
}

// lastTaskFailure is why the run's workflow task fails. Only the first failure
// in a row stands in the history, which is read whole: it is short.
func (s *Starter) lastTaskFailure(ctx context.Context, address, runID string) string {
	failure := ""
	it := s.temporal.GetWorkflowHistory(ctx, address, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			break
		}
		switch a := e.GetWorkflowTaskFailedEventAttributes(); {
		case a.GetFailure().GetMessage() != "":
			failure = a.GetFailure().GetMessage()
		case e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			failure = ""
		}
	}
	return failure
}

// readPollers reads when a worker polled the run's queue last.
func (s *Starter) readPollers(ctx context.Context, d *described) {
	q, err := s.temporal.DescribeTaskQueue(ctx, d.queue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return
	}
	d.pollers = true
	for _, p := range q.GetPollers() {
		if at := p.GetLastAccessTime().AsTime(); at.After(d.polled) {
			d.polled = at
		}
	}
}

// finding is one thing that keeps a run from going on, and what to do.
type finding struct{ sentence, next string }

// taskFails: the agent's code panics, a version is missing, or the history does
// not fit the code.
func (d described) taskFails() (finding, bool) {
	if !d.running() || d.task.GetAttempt() <= 1 {
		return finding{}, false
	}
	f := finding{fmt.Sprintf("blocked: its workflow task has failed %d times", d.task.GetAttempt()-1),
		"deploy a worker with the code that the run needs (the worker's log has the reason)"}
	switch {
	case d.taskFailure == "":
	case d.task.GetAttempt() == 2:
		f.sentence = "blocked: its workflow task has failed: " + d.foreign(d.taskFailure)
	default: // the later ones may have had another reason; nobody keeps them
		f.sentence += ", at first because: " + d.foreign(d.taskFailure)
	}
	switch {
	case strings.Contains(d.taskFailure, "is not deployed"), strings.Contains(d.taskFailure, "unable to find workflow type"):
		f.next = "deploy a worker that has it"
	case agent.IsNewerBuild(d.taskFailure):
		f.next = "deploy the newer build on every worker of task queue " + d.queue
	case agent.IsStateChanged(d.taskFailure):
		f.next = "deploy a worker whose version has its state as it was; a changed state is a new version of the agent"
	case strings.Contains(d.taskFailure, "TMPRL1100"):
		f.next = "deploy the code that the run was at work with; its history does not fit this one"
	}
	return f, true
}

// noWorker: something is to be done and nobody is there to do it.
func (d described) noWorker() (finding, bool) {
	if !d.running() || !d.pollers || time.Since(d.polled) < pollerAge {
		return finding{}, false
	}
	sentence := "no worker polls task queue " + d.queue
	if !d.polled.IsZero() {
		sentence += " (the last one did at " + stamp(d.polled) + ")"
	}
	return finding{sentence, "start one"}, true
}

// activityFails: what the run waits for is tried again and again.
func (d described) activityFails() (finding, bool) {
	for _, a := range d.activities {
		if a.Failure != "" {
			return finding{fmt.Sprintf("activity %s has failed %d times (%s)", a.Type, max(a.Attempt-1, 1), d.failure(a)), a.tries()}, true
		}
	}
	return finding{}, false
}

// failing is the first activity that has failed as want says.
func (d described) failing(want func(Pending) bool) (Pending, bool) {
	for _, a := range d.activities {
		if a.Failure != "" && want(a) {
			return a, true
		}
	}
	return Pending{}, false
}

func (p Pending) ofKind(kinds ...string) bool {
	for _, k := range kinds {
		if p.Kind == k {
			return true
		}
	}
	return false
}

// store reports a failure to reach the store rather than what the activity is for.
func (p Pending) store() bool {
	return p.ofKind(signals.ErrStore) || p.Type == signals.ActivityRecord && !p.ofKind(signals.ErrDiverged, signals.ErrLost, signals.ErrNotDeployed)
}

// tries says how it goes on.
func (p Pending) tries() string {
	switch {
	case p.Paused:
		return fmt.Sprintf("paused in Temporal after attempt %d", p.Attempt)
	case p.Running:
		return fmt.Sprintf("attempt %d is under way", p.Attempt)
	case p.NextAt.IsZero():
		return fmt.Sprintf("attempt %d", p.Attempt)
	}
	return fmt.Sprintf("attempt %d, next try %s", p.Attempt, stamp(p.NextAt))
}

// stamp is a time as the journal's texts have it: UTC, whole seconds.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// failure is why an activity fails. Errors of stores, providers and tools name hosts,
// accounts and statements: who does not run the system is told what kind it is.
func (d described) failure(p Pending) string {
	if !d.plain {
		return brief(strings.TrimPrefix(p.Failure, signals.ErrDiverged+": "))
	}
	return p.inPlain()
}

func (p Pending) inPlain() string {
	switch {
	case p.ofKind(signals.ErrDiverged):
		return "the run's journal has other events than its code makes"
	case p.ofKind(signals.ErrNotDeployed):
		return "no worker has what it needs"
	case p.ofKind(signals.ErrHeld):
		return "an operator holds it"
	case p.ofKind(signals.ErrUnjudged):
		return "the workers cannot find out who may approve"
	case p.store():
		return "the store cannot be reached, or refuses"
	case p.Type == signals.ActivityCallModel:
		return "the provider does not answer, or refuses"
	}
	return "the worker's log has the reason"
}

// foreign is somebody else's text for who may see it.
func (d described) foreign(text string) string {
	if d.plain {
		return "an operator can see why"
	}
	return brief(text)
}

// brief keeps a foreign text to a line.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= briefBytes {
		return text
	}
	return strings.ToValidUTF8(text[:briefBytes], "") + "…"
}

const briefBytes = 300
