package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MessagePolicy is what a message does while the run is busy: while a model call
// or a step runs. Persisted; never rename.
type MessagePolicy string

const (
	MessageQueue     MessagePolicy = "queue"     // it is taken in, and read after this turn
	MessageReject    MessagePolicy = "reject"    // it is not taken in, and its sender is told at once
	MessageInterrupt MessagePolicy = "interrupt" // this turn is cut short, and the model called with it
	MessageRollback  MessagePolicy = "rollback"  // and what this turn did is undone first
)

// MessagePolicies are all of them.
var MessagePolicies = []MessagePolicy{MessageQueue, MessageReject, MessageInterrupt, MessageRollback}

// CheckPolicy says whether a message's policy is one. "" is: the agent's own.
func CheckPolicy(p MessagePolicy) error {
	if p == "" || slices.Contains(MessagePolicies, p) {
		return nil
	}
	return Errorf(CodeInvalid, "there is no message policy %q: it is %s, or left out for the agent's own", clip(string(p), 60), words(MessagePolicies))
}

func (p MessagePolicy) unlessQueue() MessagePolicy {
	if p == MessageQueue {
		return ""
	}
	return p
}

// OnCut is what becomes of a running step when its turn is cut short. Persisted;
// never rename.
type OnCut string

const (
	CutWait    OnCut = "wait"    // it runs to its end, and the turn waits for that
	CutAbandon OnCut = "abandon" // it is let go; only where there is no effect
	CutUndo    OnCut = "undo"    // it is told to stop, and undone if it has happened and can be
)

// UndoScope is what a cancel undoes before the run ends. Persisted; never rename.
type UndoScope string

const (
	UndoNone UndoScope = "none" // nothing; "" is the same
	UndoTurn UndoScope = "turn" // what the latest turn did
	UndoRun  UndoScope = "run"  // what the whole run did
)

// UndoScopes are all of them, the weakest first.
var UndoScopes = []UndoScope{UndoNone, UndoTurn, UndoRun}

// CheckUndoScope says whether what a cancel is to undo is a word for it.
func CheckUndoScope(u UndoScope) error {
	if u == "" || slices.Contains(UndoScopes, u) {
		return nil
	}
	return Errorf(CodeInvalid, "a cancel undoes %s, not %q", words(UndoScopes), clip(string(u), 60))
}

// norm is "" for none.
func (u UndoScope) norm() UndoScope {
	if u == UndoNone {
		return ""
	}
	return u
}

// beyond reports whether u undoes more than v.
func (u UndoScope) beyond(v UndoScope) bool {
	rank := func(s UndoScope) int { return max(slices.Index(UndoScopes, s), 0) }
	return rank(u) > rank(v)
}

func words[S ~string](all []S) string {
	var out []string
	for _, w := range all {
		out = append(out, string(w))
	}
	return strings.Join(out[:len(out)-1], ", ") + " or " + out[len(out)-1]
}

// Cutting is a turn that is being cut short: its steps end and what is to be
// undone is, and then the model is called.
type Cutting struct {
	Turn  int       `json:"turn"`
	By    Principal `json:"by"`
	Undo  UndoScope `json:"undo,omitempty"`  // turn: what the turn did is undone
	Steps []string  `json:"steps,omitempty"` // that ran when it was cut
}

// InterruptedData is the data of EventInterrupted: a message cuts the turn short.
type InterruptedData struct {
	Message   string    `json:"message"` // its id
	Principal Principal `json:"principal"`
	Undo      UndoScope `json:"undo,omitempty"`
	Steps     []string  `json:"steps,omitempty"` // that ran
}

// InterruptSettledData is the data of EventInterruptSettled: the account of what
// became of a turn that was cut short.
type InterruptSettledData struct {
	Account string   `json:"account"`
	Steps   []string `json:"steps,omitempty"` // that it tells of
	// RolledBack: fields and phase are what they were before the turn, and what the
	// user is said to have confirmed in it is not confirmed.
	RolledBack bool `json:"rolled_back,omitempty"`
}

// Standing is a step that was to be undone, and why it cannot be.
type Standing struct {
	Step string `json:"step"`
	Why  string `json:"why"`
}

func applyCancel(r *Run, e Event, d CancelRequestedData) {
	if d.ID != "" { // else the run's own, since it was idle
		r.handled(e.Seq, d.ID, d.Body, d.Principal, Handled{Took: d.Took})
	}
	if r.Cancel == nil {
		r.Cancel = &Cancel{Reason: d.Reason, Principal: d.Principal, Seq: e.Seq}
		if r.Cut != nil { // a rollback under way is gone through with
			r.Cancel.Undo = r.Cut.Undo
		}
	} else {
		r.wantAgain()
	}
	if d.Undo.beyond(r.Cancel.Undo) {
		r.Cancel.Undo = d.Undo
	}
	if r.Cancel.Undo != "" {
		r.Owed = 0 // no message is answered any more: a verdict about an undo decides at once
	}
	r.standInDoubt(e)
}

// wantAgain lets undos be asked for once more that an earlier cancel, which undid
// less, has closed at their gates: they have not run.
func (r *Run) wantAgain() {
	r.Undo = slices.DeleteFunc(r.Undo, func(u Undoing) bool {
		s := r.step(u.As)
		return u.Stands != "" && s != nil && s.Status == StepCancelled
	})
}

// standInDoubt ends the undo that is in doubt when a cancel begins to undo: no
// operator is asked any more, and the others would wait for it for ever.
func (r *Run) standInDoubt(e Event) {
	u := r.undoing()
	if u == nil || !r.undoesAtEnd() {
		return
	}
	if s := r.step(u.As); s != nil && s.Status == StepInDoubt {
		r.stands(e, *u, undoInDoubt(s))
	}
}

func undoInDoubt(s *Step) string {
	return fmt.Sprintf("nobody knows whether its undo, step %s, %s, happened", s.ID, s.Tool)
}

func applyInterrupted(r *Run, _ Event, d InterruptedData) {
	if r.Cut == nil {
		r.Cut = &Cutting{Turn: r.Turn, By: d.Principal}
	}
	if d.Undo.beyond(r.Cut.Undo) {
		r.Cut.Undo = d.Undo
	}
	r.Cut.Steps = append(r.Cut.Steps, d.Steps...)
}

// applyInterruptSettled puts the account in the place of what was told of its
// steps' undos one by one.
func applyInterruptSettled(r *Run, e Event, d InterruptSettledData) {
	r.Opening = slices.DeleteFunc(r.Opening, func(it Item) bool { return it.Undo != "" && slices.Contains(d.Steps, it.Undo) })
	r.Opening = append(r.Opening, Item{Kind: ItemOutcome, Seq: e.Seq, Text: d.Account})
	r.Due = true
	if d.RolledBack {
		maps.DeleteFunc(r.Confirmed, func(_ string, c Confirmation) bool { return c.Turn == r.Cut.Turn })
	}
	if r.Cut.Undo != "" {
		r.Before = nil
	}
	r.Cut = nil
	for i := range r.Steps {
		if r.Steps[i].Status != StepRunning {
			r.Steps[i].Stopping = nil
		}
	}
	if r.Cancel == nil && r.Repairs == nil {
		r.Undo = slices.DeleteFunc(r.Undo, func(u Undoing) bool { return u.Stands != "" })
	}
}

// inFlight reports whether a step runs that an interrupt is about: an undo that
// somebody asked for is never cut.
func (r *Run) inFlight() bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Status == StepRunning && s.By != ByUndo })
}

// undoesAtEnd reports whether a cancel that is under way has something undone
// before the run ends.
func (r *Run) undoesAtEnd() bool {
	return r.Cancel != nil && (r.Cancel.Undo != "" || slices.ContainsFunc(r.Steps, func(s Step) bool { return s.told() }))
}

// asked reports whether the undo of a step was asked for, and is not done.
func (r *Run) asked(step string) bool {
	return slices.ContainsFunc(r.Undo, func(u Undoing) bool { return u.Step == step })
}

// account is what the model is told of a turn that was cut short, and the steps
// that it tells of.
func (r *Run) account() (head, text string, steps []string) {
	c := r.Cut
	head = fmt.Sprintf("Turn %d was cut short by a message of %s", c.Turn, c.By.Subject)
	if c.Undo != "" {
		head += ", and what it did was to be undone"
	}
	var lines []string
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.By == ByUndo || s.Kind == KindAsk || r.turnOf(s) != c.Turn && !slices.Contains(c.Steps, s.ID) {
			continue
		}
		steps = append(steps, s.ID)
		lines = append(lines, fmt.Sprintf("step %s, %s: %s", s.ID, s.Tool, r.fate(s)))
	}
	if len(lines) == 0 {
		return head + ".", "It had made no call.", nil
	}
	text = strings.ToUpper(lines[0][:1]) + lines[0][1:]
	for _, l := range lines[1:] {
		text += "; " + l
	}
	return head + ".", text + ".", steps
}

// accountLimit bounds the account of a turn that was cut short, in bytes.
const accountLimit = 4000

// fate is what became of a step, in words for the model.
func (r *Run) fate(s *Step) string {
	switch s.Status {
	case StepDone:
		if s.Key == "" {
			return "done"
		}
		for _, u := range r.Undo {
			switch {
			case u.Step != s.ID:
			case u.Stands != "":
				return "done, and it stands: " + clip(u.Stands, 300)
			case u.As == "":
				return "done; it is being undone"
			default:
				return "done; it is being undone by step " + u.As + ", which " + r.waitsAt(u.As)
			}
		}
		return "done, and it stands"
	case StepUndone:
		return "done, and undone by step " + s.UndoneBy
	case StepAbandoned:
		return "let go while it ran"
	case StepCancelled:
		return "stopped before it happened"
	case StepInDoubt:
		return "nobody knows whether it happened; a person must find out"
	case StepWaiting:
		return "it has not run and " + r.waitsAt(s.ID)
	}
	if s.Reason == "" {
		return string(s.Status)
	}
	return string(s.Status) + ": " + clip(s.Reason, 150)
}

func (r *Run) waitsAt(step string) string {
	if s := r.step(step); s != nil && s.Status == StepInDoubt {
		return "is in doubt: a person must find out"
	}
	if text := r.waitingText(step); text != "" {
		return text
	}
	return "has not ended"
}
