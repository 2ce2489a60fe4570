package agent

import (
	"reflect"
	"time"
)

// Effect is what a tool promises about its side effect when it is retried.
// Persisted; never rename.
type Effect string

const (
	ReadOnly      Effect = "read_only"     // no side effect: run again
	Keyed         Effect = "keyed"         // the other side dedupes on our key: run again with the same key
	Transactional Effect = "transactional" // claim, effect and result are one transaction: all or nothing
	Reconcilable  Effect = "reconcilable"  // the other side can be asked whether a key happened
	Once          Effect = "once"          // none of these: never run again, in doubt
)

// Tool is something an agent with state S can call. Package tool makes them.
type Tool[S any] interface {
	// Spec is fixed: it returns the same tool each time.
	Spec() ToolSpec[S]
}

// ToolSpec is what the machine must know of a tool. Commit and Gate run inside
// decide: they read nothing but their arguments.
type ToolSpec[S any] struct {
	Name       string
	Doc        string // what the model is told of it
	Effect     Effect
	Quick      bool          // ReadOnly and local: 500 ms at most, never the network
	Repeatable bool          // each call is an effect of its own, equal arguments or not
	Timeout    time.Duration // of one attempt
	Deadline   time.Duration // of all attempts
	Verifies   []string      // fields that a result of this tool verifies
	// Confirmed names the fields that the user must have said yes to. The call takes
	// that yes, once: it is refused without it, and so is an argument of the same name
	// that has another value than the field.
	Confirmed []string
	Args      reflect.Type
	Result    reflect.Type
	Gate      *GateSpec[S]
	// Undo compensates for a call of this tool; nil: nothing does. Its arguments
	// are of type UndoArgs: what was called, and what came of it.
	Undo     Tool[S]
	UndoArgs reflect.Type
	// OnCut is what becomes of a running call when its turn is cut short; "":
	// abandon where the tool only reads, else wait.
	OnCut OnCut
	// Commit puts a result into the state. An error refuses it: the state
	// stays, the step is done all the same, and the model is told.
	Commit func(s *S, args, result JSON) error
	// Source is the value that made the spec; activities find the tool's
	// function by it.
	Source any
}

// onCut is what becomes of a running call when its turn is cut short.
func (t ToolSpec[S]) onCut() OnCut {
	switch {
	case t.OnCut != "":
		return t.OnCut
	case t.Effect == ReadOnly:
		return CutAbandon
	}
	return CutWait
}

// GateSpec is a policy: when a person must decide, who, and by when.
type GateSpec[S any] struct {
	Policy  string        // why a person is asked, in words for the reviewer
	Roles   []string      // who may decide; at least one
	Reads   []string      // fields that the decision rests on: a change voids the gate
	Expires time.Duration // 0: never. Expiry never approves
	// Quorum is how many different persons must approve; 0: one. One reject closes
	// the gate all the same.
	Quorum int
	// Distinct is separation of duties: who asked may not decide. Those are the user
	// whom the run serves, who started it, whoever edited the call, and whoever
	// amended a field that the gate reads.
	Distinct bool
	// Edit names the arguments that a reviewer may edit; [EveryArgument] is all of
	// them. None: an edit is refused. An edited call needs at least the approvals of
	// the gate that it came from, whatever When says of it. Commit must then take what
	// it writes from the arguments and the result, not from what the state had asked for.
	Edit     []string
	Escalate Escalate
	// TakeBack is how long a verdict waits before it takes effect: until then its
	// person may take it back. 0: it takes effect at once. At most 15 minutes.
	TakeBack time.Duration
	// When says whether this call needs a decision. nil: always. It fails
	// closed: a panic or arguments that it cannot read open the gate.
	When func(s Situation[S], args JSON) bool
	// Title is the call in a line, for the reviewer.
	Title func(s Situation[S], args JSON) string
	// Risk says what is at stake, for the reviewer: a level or a few words.
	Risk func(s Situation[S], args JSON) string
}

// EveryArgument in Edit lets a reviewer edit whatever a call was made with.
const EveryArgument = "*"

// Escalate lets more roles decide a gate that is still open After it opened. It
// never decides by itself.
type Escalate struct {
	After time.Duration // 0: never
	Roles []string
}

// Call is a call that code makes, on entering a phase.
type Call struct {
	Tool string
	Args any
	// Source is the tool, so that a definition finds the tools that only its
	// Enter functions call.
	Source any
}
