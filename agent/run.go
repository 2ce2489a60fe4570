package agent

import (
	"time"
)

// RunStatus is where a run stands. Persisted; never rename.
type RunStatus string

const (
	RunRunning   RunStatus = "running"   // a model call or a step runs, or the next is about to
	RunWaiting   RunStatus = "waiting"   // for what [Run.Reason] says: user, gate, operator
	RunPaused    RunStatus = "paused"    // nothing new starts; Reason says why
	RunCompleted RunStatus = "completed" // it reached a final phase and had its last word
	RunCancelled RunStatus = "cancelled" // a cancel ended it
	RunFailed    RunStatus = "failed"    // it could not even start
)

// Ended reports whether nothing can happen to the run any more.
func (s RunStatus) Ended() bool {
	return s == RunCompleted || s == RunCancelled || s == RunFailed
}

// StepStatus is where a step stands. Persisted; never rename.
type StepStatus string

const (
	StepWaiting   StepStatus = "waiting"   // at its gate
	StepRunning   StepStatus = "running"   // its activity runs
	StepDone      StepStatus = "done"      // it happened
	StepRefused   StepStatus = "refused"   // by code before it ran, or by the tool for good
	StepFailed    StepStatus = "failed"    // it did not happen
	StepRejected  StepStatus = "rejected"  // by a person, at its gate
	StepReturned  StepStatus = "returned"  // by a person, with a note
	StepEdited    StepStatus = "edited"    // replaced by a person's edit
	StepExpired   StepStatus = "expired"   // nobody decided in time
	StepVoid      StepStatus = "void"      // what it was decided on changed
	StepWithdrawn StepStatus = "withdrawn" // by the model
	StepCancelled StepStatus = "cancelled" // before it ran, or it is known not to have happened
	StepAbandoned StepStatus = "abandoned" // ReadOnly, let go while it ran
	StepInDoubt   StepStatus = "in_doubt"  // nobody knows whether it happened
	StepUndone    StepStatus = "undone"    // it happened and was compensated
)

// Open reports whether the step has no definite end yet.
func (s StepStatus) Open() bool {
	return s == StepWaiting || s == StepRunning || s == StepInDoubt
}

// StepKind says what a step does when it runs.
type StepKind string

const (
	KindTool StepKind = "tool"
	KindMove StepKind = "move" // a move that has a gate
	KindAsk  StepKind = "ask"  // a question to the run's user
	// KindDoubt is of gates only: did the step happen?
	KindDoubt StepKind = "doubt"
)

// Run is one execution of an agent, whole: what [Reduce] makes of its events.
// Only apply changes it. All of it is JSON, so that whoever reads a journal
// needs no agent's code.
type Run struct {
	V           int       `json:"v"`     // schema of this struct
	Rules       int       `json:"rules"` // which decisions of the machine apply
	Tenant      string    `json:"tenant"`
	Agent       string    `json:"agent"`
	Version     int       `json:"version"`
	Key         string    `json:"key"`
	FirstRunID  string    `json:"first_run_id"` // of the chain; with tenant and address the identity
	Fingerprint string    `json:"fingerprint"`
	Principal   Principal `json:"principal"`
	User        string    `json:"user"` // the subject that the run serves
	Limits      Limits    `json:"limits"`
	// Sensitive are the fields whose values only who decides about them sees, and Hidden
	// those that no model is shown: names, or places such as guests.passport.
	Sensitive []string `json:"sensitive,omitempty"`
	Hidden    []string `json:"hidden,omitempty"`
	// Known are values that stood in sensitive fields, or where one was named, and are not
	// in the state; Unseen the same of hidden ones. KnownCut: there were too many to keep.
	Known    []JSON `json:"known,omitempty"`
	Unseen   []JSON `json:"unseen,omitempty"`
	KnownCut bool   `json:"known_cut,omitempty"`
	// ScopeOf is what the run's effects are unique in, where it is not its own
	// address and first run id.
	ScopeOf string `json:"scope,omitempty"`
	// Repairs is the ended run whose steps this run undoes; it does nothing else.
	Repairs *Repaired `json:"repairs,omitempty"`

	Status    RunStatus `json:"status"`
	Reason    string    `json:"reason,omitempty"`
	Since     time.Time `json:"since,omitzero"` // when Status and Reason became what they are
	StartedAt time.Time `json:"started_at"`
	At        time.Time `json:"at"` // of the last event
	Seq       int64     `json:"seq"`

	Phase      string                  `json:"phase"`
	PhaseSeq   int64                   `json:"phase_seq"` // event that entered it
	Final      bool                    `json:"final,omitempty"`
	Autos      int                     `json:"autos,omitempty"` // Auto moves in a row
	State      JSON                    `json:"state"`
	Provenance map[string]Provenance   `json:"provenance,omitempty"`
	Shown      map[string]Showing      `json:"shown,omitempty"`     // field: where code last showed its present value
	Confirmed  map[string]Confirmation `json:"confirmed,omitempty"` // field: the user's yes to its value

	Turn     int    `json:"turn"`
	NextStep int    `json:"next_step"`           // n of the next step id <turn>.<n>
	Calling  bool   `json:"calling,omitempty"`   // the model call of Turn runs
	LastWord bool   `json:"last_word,omitempty"` // it is the last one
	Opening  []Item `json:"opening,omitempty"`   // what the next turn opens with
	Turns    []Turn `json:"turns,omitempty"`     // recent, oldest first
	Due      bool   `json:"due,omitempty"`       // something new to tell the model
	Owed     int64  `json:"owed,omitempty"`      // the latest message that is unanswered
	Spoken   bool   `json:"spoken,omitempty"`    // the last word was said, or could not be

	Reminded time.Time `json:"reminded,omitzero"` // when the user last was, who said nothing
	News     int64     `json:"news,omitempty"`    // event of the latest that somebody waits for: a reply, a gate opened, a pause, an end
	Reply    *Reply    `json:"reply,omitempty"`   // the latest text to the user

	Steps    []Step         `json:"steps,omitempty"`   // open ones, and those of recent turns
	Gates    []Gate         `json:"gates,omitempty"`   // the same
	Kept     []Verdict      `json:"kept,omitempty"`    // verdicts judged after the unanswered message
	Pending  []Verdict      `json:"pending,omitempty"` // verdicts that can be taken back still
	Facts    []Fact         `json:"facts,omitempty"`
	Rulings  []Ruling       `json:"rulings,omitempty"`
	Ordinals map[string]int `json:"ordinals,omitempty"` // effect: calls before it that do not count
	Handled  []Handled      `json:"handled,omitempty"`
	Undo     []Undoing      `json:"undo,omitempty"` // what is to be undone, one after the other

	Used      Used     `json:"used"`
	Granted   Granted  `json:"granted,omitzero"`
	Cancel    *Cancel  `json:"cancel,omitempty"`
	Cut       *Cutting `json:"cut,omitempty"`    // the turn that is being cut short
	Before    *Before  `json:"before,omitempty"` // what a rollback of the latest turn goes back to
	Gone      int      `json:"gone,omitempty"`   // effects that happened and whose steps the run holds no more
	Trimmed   Trimmed  `json:"trimmed,omitzero"`
	FailedEnd []string `json:"failed_end,omitempty"` // final Enter steps that did not happen
}

// Address is the run's workflow id: <tenant>/<agent>/<key>.
func (r *Run) Address() string { return r.Tenant + "/" + r.Agent + "/" + r.Key }

// Scope is what the run's effects are unique in. A reset keeps it.
func (r *Run) Scope() string {
	if r.ScopeOf != "" {
		return r.ScopeOf
	}
	return r.Address() + "/" + r.FirstRunID
}

// Principal is who acts. Roles count only as far as Auth is believed.
type Principal struct {
	Subject string   `json:"subject"`
	Roles   []string `json:"roles,omitempty"`
	Tenant  string   `json:"tenant,omitempty"`
	Auth    string   `json:"auth,omitempty"` // how it was authenticated; "" is unverified
}

// Reply is a text to the user.
type Reply struct {
	Seq  int64  `json:"seq"` // of its event
	Text string `json:"text"`
	Last bool   `json:"last,omitempty"` // the run's last word
}

// Provenance says where a field's value comes from.
type Provenance struct {
	Source     string     `json:"source"` // start, user, model, tool, amend, follows, repair
	Turn       int        `json:"turn,omitempty"`
	Step       string     `json:"step,omitempty"`
	By         string     `json:"by,omitempty"`          // subject, where a person or a backend set it by an amend
	Rev        int64      `json:"rev"`                   // event of the last change
	VerifiedAt *time.Time `json:"verified_at,omitempty"` // by an outside source; nil: never
}

// Fact is something the user said, verbatim.
type Fact struct {
	Quote string `json:"quote"`
	Turn  int    `json:"turn"`
	Seq   int64  `json:"seq"` // of the message that it stands in
}

// Ruling is a reviewer's remembered refusal. It binds while the fields that
// the refused gate read are unchanged, and nobody has lifted it. A draft is one
// that the model proposes: it binds nothing until a person confirms it.
type Ruling struct {
	ID     string    `json:"id"` // of the gate; of a draft, its own
	Tool   string    `json:"tool"`
	Title  string    `json:"title"`
	Args   string    `json:"args"` // digest
	Reads  []string  `json:"reads,omitempty"`
	Reason string    `json:"reason"`
	By     Principal `json:"by"`
	At     time.Time `json:"at"`
	Seq    int64     `json:"seq,omitempty"` // of the event that made it; none in that event itself
	Draft  bool      `json:"draft,omitempty"`
	Lifted *Lift     `json:"lifted,omitempty"`
}

// Lift is the end of a ruling by a person.
type Lift struct {
	By     Principal `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Item is one thing that a turn opens with: a user's message, or what code has
// to tell of an earlier call.
type Item struct {
	Kind ItemKind `json:"kind"`
	Seq  int64    `json:"seq"`
	ID   string   `json:"id,omitempty"` // of the message
	By   string   `json:"by,omitempty"` // subject
	Step string   `json:"step,omitempty"`
	Text string   `json:"text"`
	// Fields and By are of the one item that tells of amends.
	Fields []string `json:"fields,omitempty"`
	// Undo is the step whose undo the item tells of: the latest is the only one.
	Undo string `json:"undo,omitempty"`
}

// ItemKind is message or outcome.
type ItemKind string

const (
	ItemMessage ItemKind = "message"
	ItemOutcome ItemKind = "outcome"
)

// Turn is one model call, what it opened with, and what it proposed.
type Turn struct {
	N        int       `json:"n"`
	Seq      int64     `json:"seq"`
	At       time.Time `json:"at"`
	Opening  []Item    `json:"opening,omitempty"`
	Proposal *Proposal `json:"proposal,omitempty"` // nil: none yet, or the call was cut
	Cut      string    `json:"cut,omitempty"`      // why there is none
}

// Proposal is what the model answered, in provider-neutral form.
type Proposal struct {
	Text         string         `json:"text,omitempty"`
	Calls        []ProposedCall `json:"calls,omitempty"`
	Finish       FinishReason   `json:"finish"`
	Model        string         `json:"model,omitempty"`
	Instructions string         `json:"instructions,omitempty"` // digest
	Usage        Usage          `json:"usage,omitzero"`
	Opaque       JSON           `json:"opaque,omitempty"`    // the provider's own items, bound to Model
	ActiveMS     int64          `json:"active_ms,omitempty"` // of the attempt that answered
	Excess       int            `json:"excess,omitempty"`    // calls that it made, where they were too many to be kept
}

// ProposedCall is one call of a proposal and its one answer.
type ProposedCall struct {
	ID         string `json:"id"`                    // ours, unique in the run: c<turn>_<n>
	ProviderID string `json:"provider_id,omitempty"` // as it came: may be empty or repeated
	Tool       string `json:"tool"`
	Args       JSON   `json:"args,omitempty"`
	Raw        string `json:"raw,omitempty"`  // where the arguments are no JSON that we accept
	Step       string `json:"step,omitempty"` // the step that answers it
	Status     string `json:"status,omitempty"`
	Text       string `json:"text,omitempty"`
	Read       *Read  `json:"read,omitempty"` // a result to be read on, when the context is rendered
}

// Read asks for a part of a step's whole result.
type Read struct {
	Step   string `json:"step"`
	Offset int    `json:"offset"`
}

// FinishReason says why the model stopped.
type FinishReason string

const (
	FinishStop     FinishReason = "stop"
	FinishCalls    FinishReason = "calls"
	FinishLength   FinishReason = "length"   // cut off: never a success
	FinishFiltered FinishReason = "filtered" // withheld: never a success
)

// Usage counts tokens. The parts are disjoint: their sum is what was billed.
type Usage struct {
	Input      int64 `json:"input,omitempty"` // not from a cache
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Output     int64 `json:"output,omitempty"` // visible
	Reasoning  int64 `json:"reasoning,omitempty"`
}

// Total is the sum of all parts.
func (u Usage) Total() int64 {
	return u.Input + u.CacheRead + u.CacheWrite + u.Output + u.Reasoning
}

// Step is one call that the run has committed to.
type Step struct {
	ID       string     `json:"id"` // <turn>.<n>
	Kind     StepKind   `json:"kind"`
	Tool     string     `json:"tool"` // for a move: move
	Args     JSON       `json:"args"`
	By       StepSource `json:"by"`
	Status   StepStatus `json:"status"`
	Reason   string     `json:"reason,omitempty"`
	Turn     int        `json:"turn"`
	Seq      int64      `json:"seq"` // of step_started
	RunAt    time.Time  `json:"run_at,omitzero"`
	Key      string     `json:"key,omitempty"`    // of its effect
	Effect   string     `json:"effect,omitempty"` // digest of tool and arguments
	Ordinal  int        `json:"ordinal,omitempty"`
	Result   JSON       `json:"result,omitempty"`
	Whole    *Blob      `json:"whole,omitempty"`    // where Result is what Keep made of more
	Archived int        `json:"archived,omitempty"` // bytes of a Result that is shown no more; the journal has it
	// Compensation is the tool that can undo the step. As long as it can, and there
	// is room, Result stays, and so does the step when its turn goes.
	Compensation string `json:"compensation,omitempty"`
	Undoes       string `json:"undoes,omitempty"`    // the step that this one undoes
	UndoneBy     string `json:"undone_by,omitempty"` // the step that undid this one
	// Replaces is the step in whose place this one stands: one that a person edited,
	// or whose policy had changed when a person decided.
	Replaces string `json:"replaces,omitempty"`
	EditedBy string `json:"edited_by,omitempty"` // subject of who wrote its arguments
	// Stopping is why it was told to stop. Begun: it had begun when that was found out.
	Stopping *Stopping `json:"stopping,omitempty"`
	Begun    bool      `json:"begun,omitempty"`
	Again    bool      `json:"again,omitempty"` // it was stopped before it began, and a step in its place is to be made
	// Reserves are the fields whose confirmations the step has taken.
	Reserves []string `json:"reserves,omitempty"`
}

// effective reports whether what the step ran, or undid, has an effect.
func (s *Step) effective() bool { return s != nil && (s.Key != "" || s.Undoes != "") }

// StepSource says who made the call.
type StepSource string

const (
	ByModel StepSource = "model"
	ByEnter StepSource = "enter"
	ByUndo  StepSource = "undo"
)

// Blob refers to bytes in the blob store.
type Blob struct {
	Ref   string `json:"ref"` // hex SHA-256 of the bytes
	Bytes int    `json:"bytes"`
}

// Handled remembers an input, so that a repeat is answered as the first was.
type Handled struct {
	ID   string `json:"id"`
	By   string `json:"by"`   // whose id it is, see [Run.Sender]
	Body string `json:"body"` // digest
	Seq  int64  `json:"seq"`
	Code Code   `json:"code,omitempty"` // of a verdict that decided nothing
	Took *Took  `json:"took,omitempty"`
}

// Receipt answers a repeat as the first was answered.
func (h Handled) Receipt(run RunStatus) Receipt {
	r := Receipt{Status: Repeated, Code: h.Code, Seq: h.Seq, Took: h.Took, Run: run}
	if h.Code != "" {
		r.Reason = "it decided nothing when it came first; the event says why"
	}
	return r
}

func (h Handled) size() int {
	n := len(h.ID) + len(h.By) + len(h.Body) + len(h.Code) + 50
	if h.Took != nil {
		n += 40
	}
	return n
}

// Cancel is a cancel under way: the run ends when its running steps have, and
// what is to be undone is undone or stands.
type Cancel struct {
	Reason    string    `json:"reason,omitempty"`
	Principal Principal `json:"principal"`
	Seq       int64     `json:"seq"`
	Undo      UndoScope `json:"undo,omitempty"`
}

// Used counts against the [Budget]. The last three count in a row.
type Used struct {
	Turns      int    `json:"turns"`
	ModelCalls int    `json:"model_calls"`
	Usage      Usage  `json:"usage,omitzero"`
	ActiveMS   int64  `json:"active_ms"`
	Refusals   int    `json:"refusals,omitempty"`
	ToolErrors int    `json:"tool_errors,omitempty"`
	SameCall   int    `json:"same_call,omitempty"`
	LastCall   string `json:"last_call,omitempty"` // digest
}

// Granted is what had been used when a budget was granted once more.
type Granted struct {
	Turns      int   `json:"turns,omitempty"`
	ModelCalls int   `json:"model_calls,omitempty"`
	Tokens     int64 `json:"tokens,omitempty"`
	ActiveMS   int64 `json:"active_ms,omitempty"`
}

// Trimmed counts what the run no longer holds; the journal has it all.
type Trimmed struct {
	Turns   int `json:"turns,omitempty"`
	Results int `json:"results,omitempty"`
	Steps   int `json:"steps,omitempty"`
	Rulings int `json:"rulings,omitempty"`
}
