package workflows

import (
	"errors"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
	"interlock/signals"
)

// entry is an input on its way to the machine, with its sender's receipt.
type entry struct {
	input   agent.Input
	trace   string
	receipt agent.Receipt
	done    bool
	// signal names the signal that it came by ("message" too for a message that
	// came with the start): nobody is answered, so a refusal is recorded.
	signal string
	cancel bool            // it is Temporal's own
	seal   *signals.Sealed // its token, and what it must say; nil: nothing proves who sends it
}

// inbox holds inputs in the order in which they arrived, without a bound: an
// input is never lost.
type inbox struct {
	entries  []*entry
	channels []channel
}

// channel is one kind of signal.
type channel struct {
	workflow.ReceiveChannel
	name string
	read func(converter.RawValue) (agent.Input, string)
}

func (b *inbox) push(in agent.Input, trace string) *entry {
	e := &entry{input: in, trace: trace}
	b.entries = append(b.entries, e)
	return e
}

// first puts the inputs that a run starts with before all that arrived.
func (b *inbox) first(trace string, inputs ...agent.Input) {
	var entries []*entry
	for _, in := range inputs {
		entries = append(entries, &entry{input: in, trace: trace, signal: signals.NameMessage})
	}
	b.entries = append(entries, b.entries...)
}

// waiting reports whether there is an input to take.
func (b *inbox) waiting() bool {
	for _, c := range b.channels {
		if c.Len() > 0 {
			return true
		}
	}
	return len(b.entries) > 0
}

// pull takes in the signals that have arrived. No coroutine waits for them:
// one that had received a signal and not yet run would lose it at the end.
func (b *inbox) pull(ctx workflow.Context) {
	for _, c := range b.channels {
		for {
			var raw converter.RawValue
			if !c.ReceiveAsync(&raw) {
				break
			}
			e := b.push(c.read(raw))
			e.signal = c.name
			if _, unread := e.input.(agent.Malformed); !unread { // whoever signed it: it is refused as it is
				e.seal = sealOf(ctx, c.name, raw)
			}
		}
	}
}

func (b *inbox) pop() *entry {
	e := b.entries[0]
	if b.entries = b.entries[1:]; len(b.entries) == 0 {
		b.entries = nil // what was taken needs no memory while the run waits
	}
	return e
}

// listen opens the signal channels, in the order in which they are emptied: Temporal
// tells the order of signals of one name only. Of what came in one task, what stops or
// changes the run is taken before a verdict: an approval never starts what a pause, a
// cancel or an amend before it had stopped.
func (b *inbox) listen(ctx workflow.Context) {
	b.channels = []channel{
		listen(ctx, signals.NameMessage, signals.Messages, messageInput),
		listen(ctx, signals.NameResume, signals.Resumes, resumeInput),
		listen(ctx, signals.NamePause, signals.Pauses, pauseInput),
		listen(ctx, signals.NameCancel, signals.Cancels, cancelInput),
		listen(ctx, signals.NameAmend, signals.Amends, amendInput),
		listen(ctx, signals.NameUndo, signals.Undos, undoInput),
		listen(ctx, signals.NameConfirmRuling, signals.ConfirmRulings, confirmInput),
		listen(ctx, signals.NameLiftRuling, signals.LiftRulings, liftInput),
		listen(ctx, signals.NameVerdict, signals.Verdicts, verdictInput),
	}
}

// listen reads one kind of signal. What cannot be read becomes an input too,
// since its sender learns of nothing.
func listen[T any](ctx workflow.Context, name string, d agent.Decoder[T], input func(T) (agent.Input, string)) channel {
	return channel{workflow.GetSignalChannel(ctx, name), name, func(raw converter.RawValue) (agent.Input, string) {
		v, err := decode(d, raw)
		if err != nil {
			return agent.Malformed{Name: name, Reason: err.Error()}, ""
		}
		return input(v)
	}}
}

func messageInput(m signals.Message) (agent.Input, string) {
	return agent.Message{ID: m.ID, Principal: unverified(m.Principal), Text: m.Text, Policy: m.Policy}, m.TraceID
}

func cancelInput(c signals.Cancel) (agent.Input, string) {
	return agent.CancelRun{ID: c.ID, Principal: unverified(c.Principal), Reason: c.Reason, Undo: c.Undo}, c.TraceID
}

func verdictInput(v signals.Verdict) (agent.Input, string) {
	return agent.VerdictGiven{Verdict: agent.Verdict{ID: v.ID, Gate: v.Gate, Digest: v.Digest, Verdict: v.Verdict, Reason: v.Reason, Args: v.Args, Answer: v.Answer, Result: v.Result, Again: v.Again,
		Principal: unverified(v.Principal)}}, v.TraceID
}

func amendInput(a signals.Amend) (agent.Input, string) {
	return agent.AmendRun{ID: a.ID, Principal: unverified(a.Principal), Fields: a.Fields, Reason: a.Reason}, a.TraceID
}

func pauseInput(p signals.Pause) (agent.Input, string) {
	return agent.PauseRun{ID: p.ID, Principal: unverified(p.Principal), Reason: p.Reason}, p.TraceID
}

func resumeInput(r signals.Resume) (agent.Input, string) {
	return agent.ResumeRun{ID: r.ID, Principal: unverified(r.Principal), Reason: r.Reason}, r.TraceID
}

func undoInput(u signals.Undo) (agent.Input, string) {
	return agent.UndoSteps{ID: u.ID, Principal: unverified(u.Principal), Steps: u.Steps, Reason: u.Reason}, u.TraceID
}

func liftInput(r signals.LiftRuling) (agent.Input, string) {
	return agent.LiftRuling{ID: r.ID, Ruling: r.Ruling, Principal: unverified(r.Principal), Reason: r.Reason}, r.TraceID
}

func confirmInput(r signals.ConfirmRuling) (agent.Input, string) {
	return agent.ConfirmRuling{ID: r.ID, Ruling: r.Ruling, Principal: unverified(r.Principal), Reason: r.Reason}, r.TraceID
}

// handle answers updates. A validator refuses what could never be accepted, so
// that nothing of it is written to the history; it changes nothing.
func (b *inbox) handle(ctx workflow.Context, l *loop) error {
	return errors.Join(
		update(ctx, b, l, signals.NameMessage, signals.Messages, messageInput, l.checkMessage),
		update(ctx, b, l, signals.NameCancel, signals.Cancels, cancelInput, func(c signals.Cancel) error { return agent.CheckUndoScope(c.Undo) }),
		update(ctx, b, l, signals.NameVerdict, signals.Verdicts, verdictInput, func(v signals.Verdict) error {
			in, _ := verdictInput(v)
			return agent.CheckVerdict(in.(agent.VerdictGiven).Verdict)
		}),
		update(ctx, b, l, signals.NameAmend, signals.Amends, amendInput, func(a signals.Amend) error { return agent.CheckAmend(a.Fields) }),
		update(ctx, b, l, signals.NamePause, signals.Pauses, pauseInput, func(signals.Pause) error { return nil }),
		update(ctx, b, l, signals.NameResume, signals.Resumes, resumeInput, func(signals.Resume) error { return nil }),
		update(ctx, b, l, signals.NameUndo, signals.Undos, undoInput, func(u signals.Undo) error { return agent.CheckUndo(u.Steps, u.Reason) }),
		update(ctx, b, l, signals.NameLiftRuling, signals.LiftRulings, liftInput, func(r signals.LiftRuling) error { return agent.CheckLift(r.Ruling, r.Reason) }),
		update(ctx, b, l, signals.NameConfirmRuling, signals.ConfirmRulings, confirmInput, func(r signals.ConfirmRuling) error { return agent.CheckConfirm(r.Ruling) }),
		workflow.SetUpdateHandlerWithOptions(ctx, signals.UpdateWait, l.wait, workflow.UpdateHandlerOptions{Validator: l.checkWait}),
	)
}

func update[T any](ctx workflow.Context, b *inbox, l *loop, name string, d agent.Decoder[T], input func(T) (agent.Input, string), check func(T) error) error {
	return workflow.SetUpdateHandlerWithOptions(ctx, name, func(uctx workflow.Context, raw converter.RawValue) (agent.Receipt, error) {
		v, err := decode(d, raw)
		if err != nil {
			return agent.Receipt{}, updateError(err)
		}
		in, trace := input(v)
		e := b.push(in, trace)
		e.seal = sealOf(uctx, name, raw)
		// A cancel through Temporal must not take the answer away.
		uctx, cancel := workflow.NewDisconnectedContext(uctx)
		defer cancel()
		if err := workflow.Await(uctx, func() bool { return e.done }); err != nil {
			return agent.Receipt{}, err
		}
		return e.receipt, nil
	}, workflow.UpdateHandlerOptions{Validator: func(uctx workflow.Context, raw converter.RawValue) error {
		v, err := decode(d, raw)
		if err == nil {
			err = check(v)
		}
		if err != nil {
			return updateError(err)
		}
		return nil
	}})
}

// updateError carries the code as the error's type.
func updateError(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), string(agent.ErrorCode(err)), nil)
}
