package agent

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// RunSchema is the version of [Run]'s JSON.
const RunSchema = 1

// Reduce makes the run from its events. It needs no definition and runs no
// user code, so any reader of a journal can show the run at any event.
func Reduce(events []Event) (*Run, error) {
	r := &Run{}
	for i, e := range events {
		if e.Seq != r.Seq+1 {
			return nil, Errorf(CodeInvalid, "event %d of the journal has seq %d, not %d", i, e.Seq, r.Seq+1)
		}
		if err := tryApply(r, e); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// tryApply applies an event of a journal. What no machine has written, as in a damaged
// journal, is an error that names the event, never a panic of who reads it.
func tryApply(r *Run, e Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Errorf(CodeInvalid, "event %d (%s) of the journal does not fit what is before it: the journal is damaged", e.Seq, e.Type)
		}
	}()
	apply(r, e)
	return CheckRules(r.Rules)
}

// apply is the only code that changes a run. It is total: an event of a type
// or shape that it does not know changes nothing but the position.
func apply(r *Run, e Event) {
	r.Seq, r.At = e.Seq, e.At
	status, reason := r.Status, r.Reason
	learnt := r.learn(e)
	if f, ok := appliers[e.Type]; ok {
		f.apply(r, e)
	}
	if e.Type == EventStarted {
		learnt = r.learn(e)
	}
	if learnt {
		r.forget()
	}
	if r.restate(); r.Status != status || r.Reason != reason {
		r.Since = e.At
	}
}

// on makes an applier from one that takes the event's data.
func on[T any](f func(r *Run, e Event, d T)) applier {
	return applier{reflect.TypeFor[T](), func(r *Run, e Event) {
		if d, err := decodeData[T](e); err == nil {
			f(r, e, d)
		}
	}}
}

// applier is what an event does to a run, and the type of its data.
type applier struct {
	data  reflect.Type
	apply func(*Run, Event)
}

var appliers = map[EventType]applier{
	EventStarted:          on(applyStarted),
	EventMessage:          on(applyMessage),
	EventTurnStarted:      on(applyTurnStarted),
	EventTurnCut:          on(applyTurnCut),
	EventProposal:         on(applyProposal),
	EventCallAnswered:     on(applyCallAnswered),
	EventReply:            on(applyReply),
	EventStateSet:         on(applyStateSet),
	EventConfirmed:        on(applyConfirmed),
	EventFactRecorded:     on(applyFact),
	EventPhaseEntered:     on(applyPhase),
	EventStepStarted:      on(applyStepStarted),
	EventStepResumed:      on(func(r *Run, e Event, _ struct{}) { r.resume(e) }),
	EventStepDone:         on(applyStepDone),
	EventCommitRefused:    on(applyCommitRefused),
	EventStepSettled:      on(applyStepSettled),
	EventGateOpened:       on(func(r *Run, e Event, d GateOpenedData) { r.openGate(e, d.Gate) }),
	EventGateClosed:       on(applyGateClosed),
	EventVerdict:          on(applyVerdict),
	EventGateCounted:      on(applyGateCounted),
	EventGateEscalated:    on(applyGateEscalated),
	EventGatePending:      on(applyGatePending),
	EventRulingDrafted:    on(func(r *Run, e Event, d RulingDraftedData) { r.rule(e, d.Ruling) }),
	EventRulingConfirmed:  on(applyRulingConfirmed),
	EventRulingLifted:     on(applyRulingLifted),
	EventRulingMade:       on(func(r *Run, e Event, d RulingMadeData) { r.rule(e, d.Ruling) }),
	EventCancelRequested:  on(applyCancel),
	EventTrimmed:          on(applyTrimmed),
	EventPaused:           on(applyPaused),
	EventResumed:          on(applyResumed),
	EventAmended:          on(applyAmended),
	EventUndoRequested:    on(applyUndoRequested),
	EventReminded:         on(applyReminded),
	EventInterrupted:      on(applyInterrupted),
	EventStepStopping:     on(applyStepStopping),
	EventStepBegun:        on(applyStepBegun),
	EventInterruptSettled: on(applyInterruptSettled),
	EventSnapshotLoaded:   on(func(r *Run, _ Event, d SnapshotLoadedData) { r.Rules = max(r.Rules, d.Rules) }),
	EventCompleted:        on(applyEnded(RunCompleted)),
	EventCancelled:        on(applyEnded(RunCancelled)),
	EventFailed:           on(applyEnded(RunFailed)),
}

// restate derives Status and Reason, which say what the run waits for.
func (r *Run) restate() {
	if r.Status.Ended() || r.Status == RunPaused && r.Cancel == nil {
		return
	}
	r.Reason = ""
	switch {
	case r.Cancel != nil && r.undoWaits() && !r.busy():
		r.Status, r.Reason = RunWaiting, "gate"
	case r.Cancel != nil:
		r.Status, r.Reason = RunRunning, "cancelling"
	case r.busy():
		r.Status = RunRunning
	default:
		r.Status, r.Reason = RunWaiting, "user"
		for _, s := range r.Steps {
			if s.Status == StepInDoubt {
				r.Reason = "operator"
			}
		}
		if r.Reason == "user" && slices.ContainsFunc(r.Gates, func(g Gate) bool { return g.Status == GateOpen && g.Kind != KindAsk }) {
			r.Reason = "gate"
		}
	}
}

// busy reports whether a model call or a step runs.
func (r *Run) busy() bool {
	return r.Calling || slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Status == StepRunning })
}

func (r *Run) step(id string) *Step {
	for i := range r.Steps {
		if r.Steps[i].ID == id {
			return &r.Steps[i]
		}
	}
	return nil
}

func (r *Run) gate(id string) *Gate {
	for i := range r.Gates {
		if r.Gates[i].ID == id {
			return &r.Gates[i]
		}
	}
	return nil
}

func (r *Run) lastTurn() *Turn {
	if len(r.Turns) == 0 {
		return &Turn{}
	}
	return &r.Turns[len(r.Turns)-1]
}

// callOf is the call of the latest turn that a step answers.
func (r *Run) callOf(step string) *ProposedCall {
	p := r.lastTurn().Proposal
	if p == nil {
		return nil
	}
	for i := range p.Calls {
		if p.Calls[i].Step == step {
			return &p.Calls[i]
		}
	}
	return nil
}

func applyStarted(r *Run, e Event, d StartedData) {
	*r = Run{V: RunSchema, Rules: d.Rules, Tenant: e.Tenant, Agent: d.Agent, Version: d.Version, Key: d.Key,
		FirstRunID: d.FirstRunID, Fingerprint: d.Fingerprint, Principal: d.Principal, User: d.User, Limits: d.Limits, Sensitive: d.Sensitive, Hidden: d.Hidden,
		ScopeOf: d.Scope, StartedAt: e.At, At: e.At, Seq: e.Seq, NextStep: 1, State: JSON("{}")}
	if d.Repair != nil {
		r.repair(*d.Repair)
	}
}

func applyMessage(r *Run, e Event, d MessageData) {
	r.Opening = append(r.Opening, Item{Kind: ItemMessage, Seq: e.Seq, ID: d.ID, By: d.Principal.Subject, Text: d.Text})
	r.Due, r.Owed = true, e.Seq
	r.Used.SameCall, r.Used.LastCall = 0, ""
	r.handled(e.Seq, d.ID, d.Body, d.Principal, Handled{Took: d.Took})
}

func applyTurnStarted(r *Run, e Event, d TurnStartedData) {
	r.freezeAnswers()
	r.Turn, r.NextStep, r.Calling, r.LastWord, r.Due = e.Turn, 1, true, d.LastWord, false
	r.Turns = append(r.Turns, Turn{N: e.Turn, Seq: e.Seq, At: e.At, Opening: r.Opening})
	r.Opening, r.Before = nil, nil
	r.Used.Turns++
	r.Used.ModelCalls++
}

// freezeAnswers fixes what the next context says of calls that still wait:
// what becomes of them later is an item of its own.
func (r *Run) freezeAnswers() {
	p := r.lastTurn().Proposal
	if p == nil {
		return
	}
	for i := range p.Calls {
		c := &p.Calls[i]
		if c.Step == "" || c.Status != "" {
			continue
		}
		if s := r.step(c.Step); s != nil {
			c.Status, c.Text = string(s.Status), s.Reason
			switch s.Status {
			case StepWaiting:
				c.Text = r.waitingText(c.Step)
			case StepUndone:
				c.Text = "it happened, and was undone by step " + s.UndoneBy
			}
		}
	}
}

func (r *Run) waitingText(id string) string {
	g := r.gate(id)
	if g == nil {
		return ""
	}
	if g.Kind == KindAsk {
		return "asked; the user's next message is the answer"
	}
	who := "a person"
	if g.needs() > 1 {
		who = fmt.Sprintf("%d different persons", g.needs())
	}
	text := fmt.Sprintf("waits at gate %s for %s with role %s", g.ID, who, joinOr(g.Roles))
	if g.ExpiresAt != nil {
		text += " until " + stamp(*g.ExpiresAt)
	}
	return text
}

func applyTurnCut(r *Run, e Event, d TurnCutData) {
	r.Calling = false
	t := r.lastTurn()
	t.Cut = d.Reason
	r.Used.ActiveMS += min(e.At.Sub(t.At).Milliseconds(), cutLimit)
	if r.LastWord {
		r.Spoken = true
	}
}

func applyProposal(r *Run, e Event, d Proposal) {
	r.Calling = false
	t := r.lastTurn()
	t.Proposal = &d
	u := &r.Used.Usage
	u.Input, u.CacheRead, u.CacheWrite = u.Input+d.Usage.Input, u.CacheRead+d.Usage.CacheRead, u.CacheWrite+d.Usage.CacheWrite
	u.Output, u.Reasoning = u.Output+d.Usage.Output, u.Reasoning+d.Usage.Reasoning
	r.Used.ActiveMS += active(d.ActiveMS, e.At.Sub(t.At))
	r.Due = len(d.Calls) > 0 || len(r.Opening) > 0
	for _, c := range d.Calls {
		id := digest([]any{c.Tool, c.Args, c.Raw})[:16]
		if id == r.Used.LastCall {
			r.Used.SameCall++
		} else {
			r.Used.SameCall, r.Used.LastCall = 1, id
		}
	}
	switch {
	case r.LastWord:
		r.Spoken = true
	case d.bad() != "":
		r.Used.Refusals++
		r.outcome(e, "", "Your last answer was not used: "+d.bad()+". Answer again.")
	case len(d.Calls) == 0:
		r.Used.Refusals = 0
		r.answered()
	}
}

// bad says why an answer is no success whatever it holds.
func (p *Proposal) bad() string {
	switch {
	case p.Finish == FinishLength:
		return "it was cut off at the length limit, so nothing of it was done"
	case p.Finish == FinishFiltered:
		return "the provider withheld it, so nothing of it was done"
	case p.Excess > 0:
		return fmt.Sprintf("it made %d calls, at most %d are taken at a time, so none was made", p.Excess, maxCalls)
	case p.Text == "" && len(p.Calls) == 0:
		return "it was empty"
	}
	return ""
}

// answered notes that the messages which the latest turn opened with are.
func (r *Run) answered() {
	if r.lastTurn().Seq > r.Owed {
		r.Owed = 0
	}
}

// outcome adds an item that code has to tell the model.
func (r *Run) outcome(e Event, step, text string) {
	r.Opening = append(r.Opening, Item{Kind: ItemOutcome, Seq: e.Seq, Step: step, Text: text})
	r.Due = true
}

func applyCallAnswered(r *Run, e Event, d CallAnsweredData) {
	p := r.lastTurn().Proposal
	if p == nil {
		return
	}
	for i := range p.Calls {
		if c := &p.Calls[i]; c.ID == d.Call {
			c.Status, c.Text, c.Step, c.Read = d.Status, d.Text, d.Step, d.Read
		}
	}
	if d.Status == string(StepRefused) {
		r.Used.Refusals++
	} else {
		r.Used.Refusals = 0
	}
}

func applyVerdict(r *Run, e Event, d VerdictData) {
	id := d.Verdict.ID
	by := r.Sender(d.Verdict.Principal)
	r.Kept = slices.DeleteFunc(r.Kept, func(v Verdict) bool { return v.ID == id && r.Sender(v.Principal) == by })
	switch d.Judgement {
	case "kept":
		r.Kept = append(r.Kept, d.Verdict)
	case "pending":
		r.Pending = append(r.Pending, d.Verdict)
	}
	if r.FirstReceipt(id, d.Verdict.Principal) == nil {
		r.handled(e.Seq, id, d.Body, d.Verdict.Principal, Handled{Code: d.Code})
	}
}

func applyEnded(status RunStatus) func(*Run, Event, EndedData) {
	return func(r *Run, e Event, d EndedData) {
		r.Status, r.Reason, r.FailedEnd, r.News = status, d.Reason, d.Failed, e.Seq
		r.Calling, r.Due, r.Cancel, r.Cut, r.Owed, r.Undo = false, false, nil, nil, 0, nil
	}
}

func joinOr(names []string) string {
	if len(names) == 0 {
		return "user"
	}
	out := names[0]
	for _, n := range names[1:] {
		out += " or " + n
	}
	return out
}

// active is how long something worked: as it was measured, or as it took.
// Waiting for a provider or a store that is down is not work.
func active(measured int64, took time.Duration) int64 {
	if measured > 0 {
		return min(measured, took.Milliseconds())
	}
	return took.Milliseconds()
}

// stamp is a time as people and models read it: UTC, whole seconds.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
