package signals

import (
	"time"

	"interlock/agent"
)

// Names of the activities that every run has; each tool is one more, named
// <agent>.<tool>.
const (
	ActivityCallModel = "CallModel"
	ActivityRecord    = "Record"
	ActivityFence     = "Fence"
)

// ToolActivity is the activity type of a tool.
func ToolActivity(agentName, tool string) string { return agentName + "." + tool }

// Types of the errors that activities and updates fail with.
const (
	ErrRefused     = "refused"           // a tool: for good, nothing happened
	ErrNotApplied  = "not_applied"       // a tool: nothing happened
	ErrUnknown     = "unknown"           // a tool: nobody knows
	ErrNotDeployed = "not_deployed"      // this worker lacks the agent version or tool
	ErrUnavailable = "unavailable"       // the model's provider: no answer
	ErrStore       = "store_unavailable" // the store: nothing was run
	ErrModel       = "model_failed"      // the provider refused for good
	ErrDiverged    = "diverged"          // the journal holds other events
	ErrLost        = "lost_events"       // the journal lacks events that it had acknowledged
	ErrSuperseded  = "superseded"        // a reset run holds the journal now
	ErrKeyUsed     = "key_used"          // the key was used by another run with the same start
	ErrConflict    = "conflict"          // the key was used by another run with another start
	ErrInvalid     = "invalid"           // the input can never work
	ErrEarlier     = "earlier_attempt"   // a tool: an attempt before may still run; nothing was run
	ErrHeld        = "held"              // a tool: an operator keeps it from starting; nothing was run
	ErrUnapproved  = "unapproved"        // a tool: who approved it may not any more; nothing was run
	ErrFenced      = "fenced"            // a tool: it was stopped before it began, and never happens under this key
	ErrJudgeAgain  = "judge_again"       // a tool: it waited, and what it was decided on is judged anew; nothing was run
	ErrUnjudged    = "unjudged"          // a tool: whether who approved it still may cannot be found out; nothing was run
)

// Ride is what every ordinary activity carries and commits before it does
// anything else.
type Ride struct {
	FirstRunID string      `json:"first_run_id"`
	Batch      agent.Batch `json:"batch"`
	// Lookups are steps that wait at gates which this batch opens: does their
	// effect stand already?
	Lookups []agent.Task `json:"lookups,omitempty"`
	// Doubts are the steps of Lookups that are in doubt: where their effect does not
	// stand, the ledger records that a person must find out.
	Doubts []string `json:"doubts,omitempty"`
	// Resolved are effects of which a person has said what became of them. They
	// are settled before anything else runs; again is harmless.
	Resolved []Resolved `json:"resolved,omitempty"`
}

// Resolved is one effect that was in doubt.
type Resolved struct {
	Task    agent.Task `json:"task"`
	Refused string     `json:"refused,omitempty"` // why it did not happen; "" when it happened
	Result  agent.JSON `json:"result,omitempty"`
	By      string     `json:"by,omitempty"`  // who found it out
	How     string     `json:"how,omitempty"` // in their words
}

// Carried is what came of a ride.
type Carried struct {
	Acked    int64      `json:"acked,omitempty"` // seq up to which the journal holds all events
	Store    string     `json:"store,omitempty"` // identity of the store that says so
	Standing []Standing `json:"standing,omitempty"`
}

// Standing is an effect that has happened before its gate was opened.
type Standing struct {
	Step string `json:"step"`
	ToolResult
}

// RecordInput and RecordResult are those of the activity Record.
type RecordInput struct {
	Ride
}

// RecordResult is the result of Record.
type RecordResult struct {
	Carried
}

// CallModelInput is the input of CallModel. The view in it is the checkpoint
// of the turn.
type CallModelInput struct {
	Ride
	View agent.View `json:"view"`
}

// CallModelResult is the result of CallModel.
type CallModelResult struct {
	Carried
	Answer Answer `json:"answer"`
}

// Answer is a model's answer as it was recorded.
type Answer struct {
	Text         string             `json:"text,omitempty"`
	Calls        []agent.RawCall    `json:"calls,omitempty"`
	Finish       agent.FinishReason `json:"finish"`
	Model        string             `json:"model"`
	Instructions string             `json:"instructions"` // digest
	Usage        agent.Usage        `json:"usage,omitzero"`
	Opaque       agent.JSON         `json:"opaque,omitempty"`
	Bytes        int                `json:"bytes"`               // of the request
	ActiveMS     int64              `json:"active_ms,omitempty"` // how long the attempt took that had it
}

// ToolInput is the input of a tool's activity.
type ToolInput struct {
	Ride
	Task agent.Task `json:"task"`
	// Waited: an activity of the step ended before, since it had to wait. This one has
	// no end of its own; the tool's time is reckoned from its first claim.
	Waited bool `json:"waited,omitempty"`
	// Since is when the first attempt ran that said that nothing happened, where one did.
	Since time.Time `json:"since,omitzero"`
}

// Past is what the attempts of one activity of a tool know of those before, by their
// heartbeats, and the detail of ErrJudgeAgain. What is lost with a worker is learnt anew.
type Past struct {
	Held  bool      `json:"held,omitempty"` // one was held: what the step was decided on may be long ago
	Since time.Time `json:"since,omitzero"` // when the first one ran that said that nothing happened
}

// FenceInput is the input of the activity Fence: steps that were stopped. What has
// not begun of them never happens. Nothing is run.
type FenceInput struct {
	Ride
	Steps []Fence `json:"steps"`
}

// Fence is one step that was stopped.
type Fence struct {
	Task   agent.Task `json:"task"`
	Reason string     `json:"reason"`
}

// FenceResult says of each step how its effect stands.
type FenceResult struct {
	Carried
	Steps []Fenced `json:"steps"`
}

// Fenced is how the effect of a step stands that was stopped.
type Fenced struct {
	Step   string     `json:"step"`
	Stands FenceStand `json:"stands"`
	Reason string     `json:"reason,omitempty"` // refused, begun: what is known
	// Wait: begun, and more can be found out after it.
	Wait time.Duration `json:"wait,omitempty"`
	ToolResult
}

// FenceStand says how an effect stands that was to be stopped. Persisted in
// histories; never rename.
type FenceStand string

const (
	StandsFenced  FenceStand = "fenced"  // it has not begun, and never happens
	StandsDone    FenceStand = "done"    // it had happened before
	StandsRefused FenceStand = "refused" // the other side had refused it for good
	StandsBegun   FenceStand = "begun"   // nobody knows what became of it
)

// ToolOutput is the result of a tool's activity.
type ToolOutput struct {
	Carried
	ToolResult
}

// ToolResult is a tool's result as a run gets it.
type ToolResult struct {
	Result agent.JSON  `json:"result,omitempty"`
	Whole  *agent.Blob `json:"whole,omitempty"`
	Unkept string      `json:"unkept,omitempty"` // why there is no result, although it happened
	// ActiveMS is how long the attempt took that had it; 0 where none was needed.
	ActiveMS int64 `json:"active_ms,omitempty"`
}

// QuickActivity is the local activity of a quick tool.
func QuickActivity(agentName, tool string) string { return agentName + "." + tool + ".quick" }
