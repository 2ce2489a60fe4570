package agenttest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
)

// Says is a message of the user that the run serves.
func (r *Run) Says(text string) agent.Receipt {
	r.t.Helper()
	return r.Input(agent.Message{ID: r.id(), Principal: agent.Principal{Subject: r.Run().User}, Text: text})
}

// Interrupts is a message of the user with a policy of its own: it matters while a
// model call or a step runs.
func (r *Run) Interrupts(text string, policy agent.MessagePolicy) agent.Receipt {
	r.t.Helper()
	return r.Input(agent.Message{ID: r.id(), Principal: agent.Principal{Subject: r.Run().User}, Text: text, Policy: policy})
}

// Propose answers the model call that waits: one proposal of all the parts. It
// fails the test where no call waits.
func (r *Run) Propose(parts ...llm.Response) {
	r.t.Helper()
	call := r.waitingCall("Propose")
	one := scripted.Then(parts...)
	r.answer(call, scripted.Func("scripted", func(llm.Request) llm.Response { return one }))
	r.drive()
}

// ProposeFails ends the model call that waits without an answer, for good: the
// run pauses.
func (r *Run) ProposeFails(reason string) {
	r.t.Helper()
	call := r.waitingCall("ProposeFails")
	r.carried(call.standing)
	r.push(agent.ProposalFailed{Turn: call.view.Turn, Reason: reason})
	r.drive()
}

// Done ends a step that runs: it happened, with this result of the tool. It
// fails the test where the step does not wait, or the result is no value of the
// tool's result type and no [agent.JSON].
func (r *Run) Done(step string, result any) {
	r.t.Helper()
	s := r.heldStep("Done", step)
	j, isJSON := result.(agent.JSON)
	if !isJSON {
		r.checkType(s.task.Tool, "result", result)
		var err error
		if j, err = agent.Encode(result); err != nil {
			r.t.Fatalf("agenttest: the result of step %s is no JSON that is accepted: %v", step, err)
		}
	}
	r.finish(s, r.shadow(s.task.Tool, func(agent.JSON) (agent.JSON, error) { return j, nil }), 1)
	r.drive()
}

// Fail ends a step that runs with an error of its tool, for good: what
// [tool.Refused] and [tool.NotApplied] made did not happen. Of any other error it
// depends on the effect: what reads or is rolled back did not happen, else the
// step is in doubt, as it is where a tool's time is up. [Unknown] makes an error
// of which nobody knows, whatever the effect.
func (r *Run) Fail(step string, err error) {
	r.t.Helper()
	s := r.heldStep("Fail", step)
	r.finish(s, r.shadow(s.task.Tool, func(agent.JSON) (agent.JSON, error) { return nil, err }), 1)
	r.drive()
}

// Stops ends a step that was told to stop: it had not begun, and never happens. It
// fails the test where the step was not told.
func (r *Run) Stops(step string) {
	r.t.Helper()
	s := r.heldStep("Stops", step)
	if r.Step(step).Stopping == nil {
		r.t.Fatalf("agenttest: Stops: step %s was not told to stop", step)
	}
	r.lookups = append(r.lookups, s.lookups...)
	r.fence(s.task)
	r.drive()
}

// Approve lets a gate's call run, as a person with these roles.
func (r *Run) Approve(gate, subject string, roles ...string) agent.Receipt {
	r.t.Helper()
	return r.Decide(agent.Verdict{Gate: gate, Verdict: agent.Approve, Principal: agent.Principal{Subject: subject, Roles: roles}})
}

// Reject refuses a gate's call, as a person with these roles.
func (r *Run) Reject(gate, reason, subject string, roles ...string) agent.Receipt {
	r.t.Helper()
	return r.Decide(agent.Verdict{Gate: gate, Verdict: agent.Reject, Reason: reason, Principal: agent.Principal{Subject: subject, Roles: roles}})
}

// Return gives a gate's call back with a note: it does not run, and nothing is
// remembered against it.
func (r *Run) Return(gate, note, subject string, roles ...string) agent.Receipt {
	r.t.Helper()
	return r.Decide(agent.Verdict{Gate: gate, Verdict: agent.Return, Reason: note, Principal: agent.Principal{Subject: subject, Roles: roles}})
}

// Edit puts a call of the same tool with other arguments into the place of the one
// that a gate shows. args are those of the tool, or an [agent.JSON].
func (r *Run) Edit(gate string, args any, reason, subject string, roles ...string) agent.Receipt {
	r.t.Helper()
	j, err := agent.Encode(args)
	if err != nil {
		r.t.Fatalf("agenttest: the arguments are no JSON that is accepted: %v", err)
	}
	return r.Decide(agent.Verdict{Gate: gate, Verdict: agent.Edit, Args: j, Reason: reason, Principal: agent.Principal{Subject: subject, Roles: roles}})
}

// Answers is the user's answer to a question of the run; see [agent.Answer].
func (r *Run) Answers(gate string, a agent.Answer) agent.Receipt {
	r.t.Helper()
	return r.Decide(agent.Verdict{Gate: gate, Verdict: agent.GiveAnswer, Answer: &a, Principal: agent.Principal{Subject: r.Run().User}})
}

// LiftRuling ends a ruling, as a person with these roles.
func (r *Run) LiftRuling(ruling, reason, subject string, roles ...string) agent.Receipt {
	r.t.Helper()
	return r.Input(agent.LiftRuling{ID: r.id(), Ruling: ruling, Reason: reason, Principal: agent.Principal{Subject: subject, Roles: roles}})
}

// ConfirmRuling makes a draft of the model's binding, as a person with these roles.
func (r *Run) ConfirmRuling(ruling, subject string, roles ...string) agent.Receipt {
	r.t.Helper()
	return r.Input(agent.ConfirmRuling{ID: r.id(), Ruling: ruling, Principal: agent.Principal{Subject: subject, Roles: roles}})
}

// Decide is any verdict. Without an id it gets one, without a digest that of its
// gate as it stands.
func (r *Run) Decide(v agent.Verdict) agent.Receipt {
	r.t.Helper()
	if v.ID == "" {
		v.ID = r.id()
	}
	if v.Digest == "" {
		v.Digest = r.Gate(v.Gate).Digest
	}
	return r.Input(agent.VerdictGiven{Verdict: v})
}

// Amend sets fields from outside, as a product backend does.
func (r *Run) Amend(fields map[string]any) agent.Receipt {
	r.t.Helper()
	j, err := agent.Encode(fields)
	if err != nil {
		r.t.Fatalf("agenttest: the fields are no JSON that is accepted: %v", err)
	}
	return r.Input(agent.AmendRun{ID: r.id(), Principal: agent.Principal{Subject: "backend"}, Fields: j})
}

// Undo asks that steps which happened be undone, the last first.
func (r *Run) Undo(reason string, steps ...string) agent.Receipt {
	r.t.Helper()
	return r.Input(agent.UndoSteps{ID: r.id(), Principal: agent.Principal{Subject: "operator"}, Steps: steps, Reason: reason})
}

// Repair starts a run that undoes steps of this one, which has ended. It has the
// same ledger, fakes and clock. It fails the test where a step cannot be undone.
func (r *Run) Repair(reason string, steps ...string) *Run {
	r.t.Helper()
	if !r.Status().Ended() {
		r.t.Fatalf("agenttest: Repair: the run has not ended, use Undo: %s", r.stands())
	}
	p, err := agent.RepairOf(r.events, agent.UndoSteps{ID: r.id(), Steps: steps, Reason: reason})
	if err != nil {
		r.t.Fatalf("agenttest: Repair: %v", err)
	}
	out := Options{Now: r.now, Ledger: r.ledger}.newRun(r.t, r.def)
	maps.Copy(out.runners, r.runners)
	in := out.started()
	in.Tenant, in.Key, in.User, in.Principal, in.Repair = r.Run().Tenant, r.Run().Key+"+undo", r.Run().User, agent.Principal{Subject: "operator"}, p
	in.FirstRunID = "first-" + in.Key
	out.Input(in)
	return out
}

// Pause stops the run until it is resumed.
func (r *Run) Pause(reason string) agent.Receipt {
	r.t.Helper()
	return r.Input(agent.PauseRun{ID: r.id(), Principal: agent.Principal{Subject: "operator"}, Reason: reason})
}

// Resume lets a paused run go on.
func (r *Run) Resume() agent.Receipt {
	r.t.Helper()
	return r.Input(agent.ResumeRun{ID: r.id(), Principal: agent.Principal{Subject: "operator"}})
}

// Cancel asks for the end of the run.
func (r *Run) Cancel(reason string) agent.Receipt {
	r.t.Helper()
	return r.Input(agent.CancelRun{ID: r.id(), Principal: agent.Principal{Subject: "operator"}, Reason: reason})
}

// CancelUndoing asks for the end of the run, and that what the latest turn or the
// whole run did is undone before.
func (r *Run) CancelUndoing(undo agent.UndoScope, reason string) agent.Receipt {
	r.t.Helper()
	return r.Input(agent.CancelRun{ID: r.id(), Principal: agent.Principal{Subject: "operator"}, Reason: reason, Undo: undo})
}

// Advance moves the clock. Gates whose time comes meanwhile expire one after the
// other, each at its time; so are users reminded, and runs closed, that are idle.
func (r *Run) Advance(d time.Duration) {
	r.t.Helper()
	if d < 0 {
		r.t.Fatalf("agenttest: Advance(%s): the clock cannot go back", d)
	}
	to := r.now.Add(d)
	for {
		gate := r.nextTimer(to)
		if gate == "" {
			break
		}
		if at := r.timers[gate]; at.After(r.now) {
			r.now = at
		}
		delete(r.timers, gate)
		if gate == idleTimer {
			r.Input(agent.IdleTimerFired{})
		} else {
			r.Input(agent.GateTimerFired{Gate: gate})
		}
	}
	r.now = to
}

// nextTimer is the gate whose timer fires first, "" where none does by then.
func (r *Run) nextTimer(by time.Time) string {
	first := ""
	for _, gate := range sorted(r.timers) {
		at := r.timers[gate]
		if !at.After(by) && (first == "" || at.Before(r.timers[first])) {
			first = gate
		}
	}
	return first
}

// Input is any input. Of one that arrives while a fake or a model runs, the
// receipt is empty: the run takes it before the result.
func (r *Run) Input(in agent.Input) agent.Receipt {
	r.t.Helper()
	e := r.push(in)
	r.drive()
	return e.receipt
}

// id is a new id for a sender's input.
func (r *Run) id() string {
	r.inputs++
	return fmt.Sprintf("i%d", r.inputs)
}

func (r *Run) waitingCall(what string) *modelCall {
	r.t.Helper()
	if r.open == nil {
		r.t.Fatalf("agenttest: %s: the model is not called now: %s", what, r.stands())
	}
	call := r.open
	r.open = nil
	return call
}

func (r *Run) heldStep(what, id string) *stepRun {
	r.t.Helper()
	i := slices.IndexFunc(r.held, func(s *stepRun) bool { return s.task.Step == id })
	if i < 0 {
		r.t.Fatalf("agenttest: %s: step %s does not run: %s", what, id, r.stands())
	}
	s := r.held[i]
	r.held = slices.Delete(r.held, i, i+1)
	return s
}

// stands says what the run waits for, for a message.
func (r *Run) stands() string {
	run := r.Run()
	text := fmt.Sprintf("the run is %s", run.Status)
	if run.Reason != "" {
		text += " (" + run.Reason + ")"
	}
	text += " in phase " + run.Phase
	if r.open != nil {
		text += fmt.Sprintf("; the model call of turn %d waits for Propose", r.open.view.Turn)
	}
	for _, s := range r.held {
		text += fmt.Sprintf("; step %s, %s, waits for Done or Fail", s.task.Step, s.task.Tool)
	}
	for _, g := range run.Gates {
		if g.Status == agent.GateOpen {
			text += fmt.Sprintf("; gate %s is open: %s", g.ID, g.Title)
		}
	}
	return text
}

// answer takes a model's answer as the activity does.
func (r *Run) answer(call *modelCall, model llm.Model) {
	r.t.Helper()
	res, err := model.Generate(context.Background(), call.request)
	r.carried(call.standing)
	if err != nil {
		r.push(agent.ProposalFailed{Turn: call.view.Turn, Reason: err.Error()})
		return
	}
	r.push(agent.Proposed{Turn: call.view.Turn, Text: res.Text, Calls: res.Calls, Finish: res.Finish, Model: res.Model,
		Instructions: r.def.InstructionsDigest(), Usage: res.Usage, Opaque: res.Opaque})
}
