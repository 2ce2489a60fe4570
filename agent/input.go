package agent

import (
	"fmt"
	"time"
)

// Input is one thing that happens to a run. Time comes in with [Machine.Step].
type Input interface{ input() }

// Started is the first input of every run.
type Started struct {
	Tenant, Key, FirstRunID string
	Version, Rules          int
	Salt                    string // of the chain, random; what decides nothing
	Fingerprint             string
	Limits                  Limits
	Principal               Principal
	User                    string
	Body                    JSON   // the agent's In
	Digest                  string // of all that makes a start the same start
	After                   string // first run id of the run that it follows under its address
	Repair                  *Repair
}

// Message is what the user says. ID makes a repeat harmless.
type Message struct {
	ID        string
	Principal Principal
	Text      string
	Policy    MessagePolicy // while the run is busy; "": the agent's own
	First     bool          // it came with the start: it waits for what that began
}

// Proposed is the model's answer. Calls have arguments as the model wrote them.
type Proposed struct {
	Turn         int
	Text         string
	Calls        []RawCall
	Finish       FinishReason
	Model        string
	Instructions string
	Usage        Usage
	Opaque       JSON
	ActiveMS     int64 // of the attempt that answered; 0 where it was not measured
}

// RawCall is a call as the model wrote it: Args may be no JSON at all.
type RawCall struct {
	ProviderID string `json:"provider_id,omitempty"`
	Tool       string `json:"tool"`
	Args       string `json:"args"`
}

// ProposalFailed says that the model call ended without an answer, for good.
type ProposalFailed struct {
	Turn   int
	Reason string
}

// StepFinished is a tool's result: it happened.
type StepFinished struct {
	Step   string
	Result JSON
	Whole  *Blob // set where Result is what Keep made of it
	// Unkept says why Result is empty although the step happened: it is too large
	// and the tool names no Keep, or it is no JSON that is accepted.
	Unkept string
	// ActiveMS is how long the attempt took that had the result; 0 where it was
	// not measured.
	ActiveMS int64
}

// StepNotApplied says that the step failed and nothing happened.
type StepNotApplied struct {
	Step, Reason string
	ForGood      bool // the other side refused it: calling again is a new effect
}

// StepUnapproved says that a step which people had approved has not begun: one of
// them may not approve it any more.
type StepUnapproved struct {
	Step, Reason string
}

// StepUnknown says that nobody knows whether the step happened.
type StepUnknown struct{ Step, Reason string }

// StepStopped says that a step has not begun, and never will: it was stopped before.
type StepStopped struct{ Step string }

// StepBegun says that a step which was told to stop had begun, and that nobody knows
// yet what became of it.
type StepBegun struct{ Step, Reason string }

// JudgeAgain says that a step had to wait, and has not begun: whether it still may is
// to be judged now.
type JudgeAgain struct{ Step string }

// EffectStands says that the effect of a step that waits at its gate has
// happened already, in an earlier branch of the run.
type EffectStands struct {
	Step   string
	Result JSON
	Whole  *Blob
	Unkept string // see StepFinished
}

// VerdictGiven is a person's decision.
type VerdictGiven struct{ Verdict Verdict }

// GateTimerFired says that a gate's timer fired.
type GateTimerFired struct{ Gate string }

// IdleTimerFired says that the timer of [SetIdle] fired.
type IdleTimerFired struct{}

// CancelRun asks for the end of the run.
type CancelRun struct {
	ID        string
	Principal Principal
	Reason    string
	Undo      UndoScope // what is undone before the run ends; "": nothing
}

// AmendRun sets fields of the state from outside.
type AmendRun struct {
	ID        string
	Principal Principal
	Fields    JSON // an object; null sets a field's zero value
	Reason    string
}

// PauseRun stops the run until it is resumed.
type PauseRun struct {
	ID        string
	Principal Principal
	Reason    string
}

// ResumeRun lets a paused run go on.
type ResumeRun struct {
	ID        string
	Principal Principal
	Reason    string
}

// UndoSteps asks that steps which happened be undone, the last first.
type UndoSteps struct {
	ID        string
	Principal Principal
	Steps     []string
	Reason    string
}

// LiftRuling ends a ruling.
type LiftRuling struct {
	ID        string
	Ruling    string
	Principal Principal
	Reason    string
}

// ConfirmRuling makes a draft of the model's a ruling.
type ConfirmRuling struct {
	ID        string
	Ruling    string
	Principal Principal
	Reason    string
}

// SnapshotLoaded says that a new Temporal run goes on with the run.
type SnapshotLoaded struct {
	Rules int
	RunID string
}

// Malformed is a signal that could not be read: recorded, since its sender
// gets no answer.
type Malformed struct{ Name, Reason string }

func (Started) input()        {}
func (Message) input()        {}
func (Proposed) input()       {}
func (ProposalFailed) input() {}
func (StepFinished) input()   {}
func (StepNotApplied) input() {}
func (StepUnapproved) input() {}
func (StepUnknown) input()    {}
func (StepStopped) input()    {}
func (StepBegun) input()      {}
func (JudgeAgain) input()     {}
func (EffectStands) input()   {}
func (VerdictGiven) input()   {}
func (GateTimerFired) input() {}
func (IdleTimerFired) input() {}
func (CancelRun) input()      {}
func (AmendRun) input()       {}
func (PauseRun) input()       {}
func (ResumeRun) input()      {}
func (UndoSteps) input()      {}
func (LiftRuling) input()     {}
func (ConfirmRuling) input()  {}
func (SnapshotLoaded) input() {}
func (Malformed) input()      {}

// By is an input as of somebody who was authenticated.
func By(in Input, who Principal) Input {
	switch in := in.(type) {
	case Message:
		in.Principal = who
		return in
	case VerdictGiven:
		in.Verdict.Principal, in.Verdict.Verified = who, true
		return in
	case CancelRun:
		in.Principal = who
		return in
	case AmendRun:
		in.Principal = who
		return in
	case PauseRun:
		in.Principal = who
		return in
	case ResumeRun:
		in.Principal = who
		return in
	case UndoSteps:
		in.Principal = who
		return in
	case LiftRuling:
		in.Principal = who
		return in
	case ConfirmRuling:
		in.Principal = who
		return in
	}
	panic(fmt.Sprintf("agent: %T names nobody who sends it", in))
}

// Receipt answers the sender of an input.
type Receipt struct {
	Status ReceiptStatus `json:"status"`
	Code   Code          `json:"code,omitempty"`   // where it was refused, or decided nothing
	Reason string        `json:"reason,omitempty"` // what was wrong and what to do
	Seq    int64         `json:"seq,omitempty"`    // the event that recorded it
	Run    RunStatus     `json:"run"`
	Gate   *GateOutcome  `json:"gate,omitempty"` // for a verdict: how its gate stands
	Took   *Took         `json:"took,omitempty"` // for a message or a cancel that was accepted: where it takes effect
}

// Took says where an input takes effect.
type Took struct {
	How  TookHow `json:"how"`
	Turn int     `json:"turn,omitempty"` // of a message: the turn that begins with it
	// Stopping are the steps that are told to stop: each ends as stopped, or is told of
	// as having run before.
	Stopping []string `json:"stopping,omitempty"`
}

// stopping adds the steps that are told to stop.
func (t *Took) stopping(steps []string) *Took {
	if t == nil || t.How == TookNow {
		t = &Took{How: TookStopping}
	}
	t.Stopping = steps
	return t
}

// TookHow says how an input takes effect. On the wire; never rename.
type TookHow string

const (
	TookNow         TookHow = "now"          // at once
	TookQueued      TookHow = "queued"       // after what runs
	TookInterrupted TookHow = "interrupted"  // it cut the turn short
	TookRollingBack TookHow = "rolling_back" // it cut the turn short, and what that did is being undone: the event interrupt_settled says what stands
	TookMerged      TookHow = "merged"       // into an interrupt or a cancel that was under way
	TookStopping    TookHow = "stopping"     // it was taken at once, and stops steps
)

// ReceiptStatus says what became of an input. On the wire; never rename.
type ReceiptStatus string

const (
	Accepted ReceiptStatus = "accepted"
	Repeated ReceiptStatus = "repeated" // it had been accepted before; nothing was done now
	Refused  ReceiptStatus = "refused"  // nothing was recorded
	Voided   ReceiptStatus = "void"     // a verdict that decided nothing; recorded
	KeptBack ReceiptStatus = "kept"     // a verdict that will be judged when the message is answered
)

// GateOutcome tells a reviewer how a gate stands, and who decided it.
type GateOutcome struct {
	ID     string     `json:"id"`
	Status GateStatus `json:"status"`
	By     string     `json:"by,omitempty"`
	At     *time.Time `json:"at,omitempty"`
}

// Command is what the machine wants done. The order in a Step is the order in
// which they are to be started.
type Command interface{ command() }

// CallModel asks for a proposal. Its result comes back as Proposed or ProposalFailed.
type CallModel struct{ View View }

// CancelModel lets go of the model call of Turn; its answer is not wanted.
type CancelModel struct{ Turn int }

// RunStep runs a tool. It comes back as StepFinished, StepNotApplied,
// StepUnapproved, JudgeAgain, StepUnknown, or as StepStopped where it was stopped in
// another branch.
type RunStep struct{ Task Task }

// CancelStep lets go of a step that only reads; nothing comes back.
type CancelStep struct{ Step string }

// StopStep stops a step with an effect: its activity is cancelled, then its effect is
// fenced. It comes back as StepStopped, StepFinished, StepNotApplied or StepBegun;
// with Undo, what has begun is told to stop, and comes back as StepUnknown instead.
type StopStep struct {
	Task   Task
	Reason string
	Undo   bool
}

// OpenGate sets the gate's timers, and asks whether the effect of its step
// stands already (Lookup nil: nothing to ask).
type OpenGate struct {
	Gate        string
	ExpiresAt   *time.Time
	EscalatesAt *time.Time
	Lookup      *Task
}

// SetPending sets the time at which a verdict takes effect. It comes back as
// GateTimerFired; where it fires for nothing, nothing follows.
type SetPending struct {
	Gate  string
	Until time.Time
}

// Resolve settles an effect as a person found out, in the ledger.
type Resolve struct {
	Task    Task
	Refused string // why it did not happen; "" when it happened
	Result  JSON
	By, How string // who found it out, and in their words how
}

// CloseGate stops the gate's timers.
type CloseGate struct{ Gate string }

// SetIdle sets the one timer of a run that waits for its user; it comes back as
// IdleTimerFired. One that was set before is replaced.
type SetIdle struct{ At time.Time }

// Record appends the pending events now: somebody waits to see them, and no
// activity of this Step would carry them.
type Record struct{}

// Finish ends the run, after the events are recorded.
type Finish struct{ Status RunStatus }

func (CallModel) command()   {}
func (CancelModel) command() {}
func (RunStep) command()     {}
func (CancelStep) command()  {}
func (StopStep) command()    {}
func (OpenGate) command()    {}
func (SetPending) command()  {}
func (CloseGate) command()   {}
func (Resolve) command()     {}
func (SetIdle) command()     {}
func (Record) command()      {}
func (Finish) command()      {}

// Task is all that running a step needs. It is the tool activity's input.
type Task struct {
	Step    string `json:"step"`
	Agent   string `json:"agent"`
	Version int    `json:"version"`
	Tool    string `json:"tool"`
	Args    JSON   `json:"args"`
	Effect  Effect `json:"effect"`
	Key     string `json:"key,omitempty"` // of the effect; none for ReadOnly
	Scope   string `json:"scope,omitempty"`
	Ordinal int    `json:"ordinal,omitempty"`
	Tenant  string `json:"tenant"`
	User    string `json:"user"`  // the subject that the run serves
	Limit   int    `json:"limit"` // of the result, in bytes
	// Undoes is the effect that this one undoes: once this one is applied, that one
	// stands no more.
	Undoes *Undoes `json:"undoes,omitempty"`
	// Approved is who let the step run, where it waited at a gate. They are judged
	// once more before it starts.
	Approved *Approved `json:"approved,omitempty"`
	// NotAfter is until when the step may begin: then its approval expires. nil: no bound.
	NotAfter *time.Time `json:"not_after,omitempty"`
}

// Approved is who approved a call, and which role each of them needed for that: one
// of these.
type Approved struct {
	Roles []string    `json:"roles"`
	By    []Principal `json:"by"`
}

// Undone is the task of the effect that this one undoes; ok is false where it
// undoes none.
func (t Task) Undone() (o Task, ok bool) {
	u := t.Undoes
	if u == nil {
		return t, false
	}
	o = t
	o.Step, o.Tool, o.Effect, o.Key, o.Ordinal, o.Undoes, o.Approved = u.Step, u.Tool, u.Effect, u.Key, u.Ordinal, nil, nil
	o.NotAfter = nil
	o.Args = encodeValue(object(t.Args)["args"])
	return o, true
}

// Undoes names an effect that a task undoes.
type Undoes struct {
	Step    string `json:"step"`
	Tool    string `json:"tool"`
	Effect  Effect `json:"effect"`
	Key     string `json:"key"`
	Ordinal int    `json:"ordinal,omitempty"`
}
