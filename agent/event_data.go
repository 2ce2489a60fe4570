package agent

// The data of each event type. Members may be added; none may change its
// meaning under the same Event.V.

// StartedData is the data of EventStarted.
type StartedData struct {
	Agent       string    `json:"agent"`
	Version     int       `json:"version"`
	Key         string    `json:"key"`
	FirstRunID  string    `json:"first_run_id"`
	Rules       int       `json:"rules"`
	Salt        string    `json:"salt,omitempty"` // of the chain ([Event.Chain]): people are not shown it
	Fingerprint string    `json:"fingerprint"`
	Limits      Limits    `json:"limits"`
	Principal   Principal `json:"principal"`
	User        string    `json:"user"`
	Body        JSON      `json:"body"`
	BodyDigest  string    `json:"body_digest"` // of all that makes a start the same start
	// After is the first run id of the ended run that this one follows under the
	// same address; "" for the first there.
	After string `json:"after,omitempty"`
	// Repair is what a repair run is to undo, without the state: that is set next.
	Repair *Repair `json:"repair,omitempty"`
	// Scope is what the run's effects are unique in, where it is not its own.
	Scope string `json:"scope,omitempty"`
	// Sensitive names the fields whose values people are not shown, by name or place (guests.passport).
	Sensitive []string `json:"sensitive,omitempty"`
	// Hidden names the fields that no model is shown.
	Hidden []string `json:"hidden,omitempty"`
}

// MessageData is the data of EventMessage.
type MessageData struct {
	ID        string    `json:"id"`
	Principal Principal `json:"principal"`
	Text      string    `json:"text"`
	Body      string    `json:"body"` // digest, to tell a repeat from another message
	// Policy is the message's own, where it has one.
	Policy MessagePolicy `json:"policy,omitempty"`
	// First says that it came with the start, where that matters.
	First bool `json:"first,omitempty"`
	// Took is where it takes effect, as its sender was told.
	Took *Took `json:"took,omitempty"`
}

// TurnStartedData is the data of EventTurnStarted.
type TurnStartedData struct {
	LastWord bool `json:"last_word,omitempty"`
}

// TurnCutData is the data of EventTurnCut.
type TurnCutData struct {
	Reason string `json:"reason"`
	LetGo  bool   `json:"let_go,omitempty"` // the call may still run; its answer is not wanted
}

// CallAnsweredData is the data of EventCallAnswered: code's answer to a call.
type CallAnsweredData struct {
	Call   string `json:"call"`
	Status string `json:"status"` // done or refused, or the step's where Step is set
	Text   string `json:"text,omitempty"`
	Step   string `json:"step,omitempty"`
	Read   *Read  `json:"read,omitempty"`
}

// ReplyData is the data of EventReply: what the user is told.
type ReplyData struct {
	Text string `json:"text"`
	Last bool   `json:"last,omitempty"` // the run's last word
}

// StateSetData is the data of EventStateSet.
type StateSetData struct {
	Patch    JSON     `json:"patch"` // RFC 7386, against the state before
	Source   string   `json:"source"`
	By       string   `json:"by,omitempty"`       // subject, of an amend
	Fields   []string `json:"fields"`             // that changed by the writer
	Reset    []string `json:"reset,omitempty"`    // that changed because they follow one that did
	Verified []string `json:"verified,omitempty"` // by an outside source, changed or not
}

// ConfirmedData is the data of EventConfirmed.
type ConfirmedData struct {
	Fields  []string `json:"fields"`
	Quote   string   `json:"quote"`             // the message that closed the ask, whole
	How     string   `json:"how"`               // [SaidYes], [ClickedYes]
	Message int64    `json:"message,omitempty"` // its seq
}

// FactData is the data of EventFactRecorded.
type FactData struct {
	Quote   string `json:"quote"`
	Message int64  `json:"message"` // seq
}

// PhaseEnteredData is the data of EventPhaseEntered.
type PhaseEnteredData struct {
	Phase string `json:"phase"`
	Final bool   `json:"final,omitempty"`
	By    string `json:"by"` // start, model, auto, gate, rollback
	// Step is the move that people approved.
	Step string `json:"step,omitempty"`
	// Since is the event that had entered the phase, where a rollback returns to it.
	Since int64 `json:"since,omitempty"`
}

// StepStartedData is the data of EventStepStarted.
type StepStartedData struct {
	Kind    StepKind   `json:"kind"`
	Tool    string     `json:"tool"`
	Args    JSON       `json:"args"`
	By      StepSource `json:"by"`
	Call    string     `json:"call,omitempty"`
	Status  StepStatus `json:"status"` // running, waiting; refused for an Enter call that code refuses
	Reason  string     `json:"reason,omitempty"`
	Key     string     `json:"key,omitempty"`
	Effect  string     `json:"effect,omitempty"` // tool and digest of the arguments
	Ordinal int        `json:"ordinal,omitempty"`
	// Repeatable: each call of it is an effect of its own.
	Repeatable bool `json:"repeatable,omitempty"`
	// Compensation is the tool that can undo it.
	Compensation string   `json:"compensation,omitempty"`
	Undoes       string   `json:"undoes,omitempty"`    // the step that this one undoes
	Replaces     string   `json:"replaces,omitempty"`  // the step in whose place it stands
	EditedBy     string   `json:"edited_by,omitempty"` // subject
	Reserves     []string `json:"reserves,omitempty"`  // fields whose confirmations it takes
}

// StepDoneData is the data of EventStepDone.
type StepDoneData struct {
	Result   JSON  `json:"result"`
	ActiveMS int64 `json:"active_ms,omitempty"` // of the attempt that had it
	Whole    *Blob `json:"whole,omitempty"`
	Stood    bool  `json:"stood,omitempty"` // it had happened in an earlier branch
	// Uncommitted: a commit_refused follows.
	Uncommitted bool   `json:"uncommitted,omitempty"`
	Reason      string `json:"reason,omitempty"`
}

// CommitRefusedData is the data of EventCommitRefused.
type CommitRefusedData struct {
	Reason string `json:"reason"`
}

// StepSettledData is the data of EventStepSettled.
type StepSettledData struct {
	Status  StepStatus `json:"status"`
	Reason  string     `json:"reason,omitempty"`
	ForGood bool       `json:"for_good,omitempty"` // the same call is a new effect
	By      string     `json:"by,omitempty"`       // undone: the step that did it
	Again   bool       `json:"again,omitempty"`    // a step in its place is made; of an undo: it is begun anew
}

// StepBegunData is the data of EventStepBegun. That of EventStepStopping is [Stopping].
type StepBegunData struct {
	Reason string `json:"reason,omitempty"` // what is known of it
}

// GateOpenedData is the data of EventGateOpened.
type GateOpenedData struct {
	Gate Gate `json:"gate"`
}

// GateClosedData is the data of EventGateClosed.
type GateClosedData struct {
	Gate     string       `json:"gate"`
	Status   GateStatus   `json:"status"`
	Reason   string       `json:"reason,omitempty"`
	Verdict  VerdictValue `json:"verdict,omitempty"`
	By       *Principal   `json:"by,omitempty"`
	Verified bool         `json:"verified,omitempty"`
	Message  int64        `json:"message,omitempty"` // of an ask: the seq of the message that answered it
	No       bool         `json:"no,omitempty"`      // of an ask: the values that it showed are not right
}

// GateCountedData is the data of EventGateCounted.
type GateCountedData struct {
	Gate      string     `json:"gate"`
	Approvals []Approval `json:"approvals"` // all so far
}

// GateEscalatedData is the data of EventGateEscalated.
type GateEscalatedData struct {
	Gate  string   `json:"gate"`
	Roles []string `json:"roles"` // that may decide too
}

// GatePendingData is the data of EventGatePending.
type GatePendingData struct {
	Gate    string          `json:"gate"`
	Pending *PendingVerdict `json:"pending,omitempty"` // nil: it was taken back, or is judged now
}

// VerdictData is the data of EventVerdict.
type VerdictData struct {
	Verdict   Verdict `json:"verdict"`
	Judgement string  `json:"judgement"`        // valid, kept, void
	Code      Code    `json:"code,omitempty"`   // void: what kind of reason
	Reason    string  `json:"reason,omitempty"` // why void
	Body      string  `json:"body"`
}

// RulingMadeData is the data of EventRulingMade.
type RulingMadeData struct {
	Ruling Ruling `json:"ruling"`
}

// RulingDraftedData is the data of EventRulingDrafted.
type RulingDraftedData struct {
	Ruling Ruling `json:"ruling"`
}

// RulingConfirmedData is the data of EventRulingConfirmed, and of
// EventRulingLifted.
type RulingConfirmedData struct {
	ID        string    `json:"id"`
	Ruling    string    `json:"ruling"`
	Principal Principal `json:"principal"`
	Reason    string    `json:"reason,omitempty"`
	Body      string    `json:"body"`
}

// CancelRequestedData is the data of EventCancelRequested. Without an id it is the
// run's own: it was idle for too long.
type CancelRequestedData struct {
	ID        string    `json:"id,omitempty"`
	Principal Principal `json:"principal"`
	Reason    string    `json:"reason,omitempty"`
	Undo      UndoScope `json:"undo,omitempty"`
	Body      string    `json:"body,omitempty"`
	Took      *Took     `json:"took,omitempty"` // as its sender was told
}

// InputRefusedData is the data of EventInputRefused.
type InputRefusedData struct {
	Name   string `json:"name"` // of the signal
	Reason string `json:"reason"`
}

// TrimmedData is the data of EventTrimmed.
type TrimmedData struct {
	Turns   int      `json:"turns,omitempty"`   // the oldest so many
	Results []string `json:"results,omitempty"` // steps whose results are archived
	Rulings []string `json:"rulings,omitempty"` // that bind nothing any more, or were too many
}

// PausedData is the data of EventPaused. ID, Principal and Body are of a pause
// that somebody asked for.
type PausedData struct {
	Reason    string     `json:"reason"`
	ID        string     `json:"id,omitempty"`
	Principal *Principal `json:"principal,omitempty"`
	Body      string     `json:"body,omitempty"`
}

// ResumedData is the data of EventResumed.
type ResumedData struct {
	ID        string    `json:"id"`
	Principal Principal `json:"principal"`
	Reason    string    `json:"reason,omitempty"`
	Body      string    `json:"body"`
	Budget    string    `json:"budget,omitempty"` // the budget that is granted once more
}

// AmendedData is the data of EventAmended; a state_set follows where it changed
// anything.
type AmendedData struct {
	ID        string    `json:"id"`
	Principal Principal `json:"principal"`
	Fields    []string  `json:"fields"`
	Reason    string    `json:"reason,omitempty"`
	Body      string    `json:"body"`
}

// UndoRequestedData is the data of EventUndoRequested. Without an id it is the
// run's own: a cut or a cancel has it undone.
type UndoRequestedData struct {
	ID        string    `json:"id,omitempty"`
	Principal Principal `json:"principal"`
	Steps     []string  `json:"steps,omitempty"` // in the order in which they will be undone
	Reason    string    `json:"reason"`
	Body      string    `json:"body,omitempty"`
	// Stands are those that were to be undone, too, and cannot be.
	Stands []Standing `json:"stands,omitempty"`
}

// SnapshotLoadedData is the data of EventSnapshotLoaded.
type SnapshotLoadedData struct {
	Rules int    `json:"rules"`
	RunID string `json:"run_id"` // the Temporal run that goes on
}

// EndedData is the data of EventCompleted, EventCancelled and EventFailed.
type EndedData struct {
	Reason string `json:"reason,omitempty"`
	// Failed are steps of the final phase's Enter that did not happen; and those
	// that somebody wanted undone, and that stand.
	Failed []string `json:"failed,omitempty"`
}
