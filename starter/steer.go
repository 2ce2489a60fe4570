package starter

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// Message tells the run what the user says. The receipt says whether it was
// taken in, and where it takes effect; a repeat of the id is answered as the first
// was. A busy run refuses one whose policy is reject, with CodeConflict.
func (s *Starter) Message(ctx context.Context, address string, m signals.Message) (agent.Receipt, error) {
	if err := errors.Join(agent.CheckText(m.Text, maxMessage), agent.CheckPolicy(m.Policy)); err != nil {
		return agent.Receipt{}, agent.Errorf(agent.CodeInvalid, "%v", err)
	}
	return s.update(ctx, address, input{signals.NameMessage, m.ID, m.Principal, m, m.Content()})
}

// Cancel ends the run once its running steps have ended and what Undo names is
// undone, or known to stand: the end event lists what stands. The receipt comes at
// once; [Starter.Wait] answers with the end.
func (s *Starter) Cancel(ctx context.Context, address string, c signals.Cancel) (agent.Receipt, error) {
	if err := agent.CheckUndoScope(c.Undo); err != nil {
		return agent.Receipt{}, err
	}
	content := []any{c.Reason}
	if c.Undo != "" && c.Undo != agent.UndoNone {
		content = append(content, c.Undo)
	}
	return s.update(ctx, address, input{signals.NameCancel, c.ID, c.Principal, c, content})
}

// Amend sets fields of the run's state. A field that an amend may not set, or a
// value that does not fit it, is refused as a whole.
func (s *Starter) Amend(ctx context.Context, address string, a signals.Amend) (agent.Receipt, error) {
	if err := agent.CheckAmend(a.Fields); err != nil {
		return agent.Receipt{}, err
	}
	fields, err := agent.Encode(a.Fields) // as the run gets it
	if err != nil {
		return agent.Receipt{}, agent.Errorf(agent.CodeInvalid, "the fields of an amend: %w", err)
	}
	return s.update(ctx, address, input{signals.NameAmend, a.ID, a.Principal, a, []any{string(fields), a.Reason}})
}

// Pause stops the run until it is resumed: nothing new starts. A run that is
// paused already answers Repeated.
func (s *Starter) Pause(ctx context.Context, address string, p signals.Pause) (agent.Receipt, error) {
	return s.update(ctx, address, input{signals.NamePause, p.ID, p.Principal, p, []any{p.Reason}})
}

// Resume lets a paused run go on; one that is not paused is CodeConflict.
func (s *Starter) Resume(ctx context.Context, address string, r signals.Resume) (agent.Receipt, error) {
	return s.update(ctx, address, input{signals.NameResume, r.ID, r.Principal, r, []any{r.Reason}})
}

// Decide gives a verdict about a gate as it was shown. The receipt says whether
// it decided, and how the gate stands. A verdict that decided nothing is
// recorded and no error. An edit or an answer that does not fit is CodeInvalid,
// and one that cannot be made now CodeConflict: the gate stays open.
func (s *Starter) Decide(ctx context.Context, address string, v signals.Verdict) (agent.Receipt, error) {
	content, err := contentOf(v)
	if err != nil {
		return agent.Receipt{}, err
	}
	return s.update(ctx, address, input{signals.NameVerdict, v.ID, v.Principal, v, content})
}

// contentOf is what makes a verdict the same when it is sent again, its JSON as
// the run gets it.
func contentOf(v signals.Verdict) ([]any, error) {
	out := agent.Verdict{Gate: v.Gate, Digest: v.Digest, Verdict: v.Verdict, Reason: v.Reason, Again: v.Again}
	if v.Answer != nil {
		answer := *v.Answer
		out.Answer = &answer
	}
	var err error
	as := func(j agent.JSON) agent.JSON {
		if len(j) == 0 || err != nil {
			return nil
		}
		var sent agent.JSON
		if sent, err = agent.Encode(j); err != nil {
			err = agent.Errorf(agent.CodeInvalid, "the verdict is no JSON that is accepted: %w", err)
		}
		return sent
	}
	out.Args, out.Result = as(v.Args), as(v.Result)
	if out.Answer != nil {
		out.Answer.Fields = as(v.Answer.Fields)
	}
	return out.Content(), err
}

// LiftRuling ends a ruling, or drops the draft of one: the same call goes to a
// person again. It needs a role that may decide about the call, or an operator's.
func (s *Starter) LiftRuling(ctx context.Context, address string, r signals.LiftRuling) (agent.Receipt, error) {
	if err := agent.CheckLift(r.Ruling, r.Reason); err != nil {
		return agent.Receipt{}, err
	}
	return s.update(ctx, address, input{signals.NameLiftRuling, r.ID, r.Principal, r, []any{r.Ruling, r.Reason}})
}

// ConfirmRuling makes the draft of a ruling, which the model proposed, binding. It
// needs the same roles as [Starter.LiftRuling]; a draft whose fields have changed
// is CodeConflict.
func (s *Starter) ConfirmRuling(ctx context.Context, address string, r signals.ConfirmRuling) (agent.Receipt, error) {
	if err := agent.CheckConfirm(r.Ruling); err != nil {
		return agent.Receipt{}, err
	}
	return s.update(ctx, address, input{signals.NameConfirmRuling, r.ID, r.Principal, r, []any{r.Ruling, r.Reason}})
}

// maxMessage refuses at once what no run takes; a run's own limit may be lower.
const maxMessage = 64 << 10

// input is what a sender sends to a run. content is what makes a repeat of the
// id the same input.
type input struct {
	name, id string
	who      agent.Principal
	payload  any
	content  []any
}

// check refuses what could never be taken, and encodes the rest.
func (in input) check() (agent.JSON, error) {
	switch {
	case strings.TrimSpace(in.id) == "":
		return nil, agent.Errorf(agent.CodeInvalid, "a %s needs an id, chosen by its sender, so that a repeat is harmless", in.name)
	case in.who.Subject == "":
		return nil, agent.Errorf(agent.CodeInvalid, "a %s names its principal: who sends it", in.name)
	}
	body, err := agent.Encode(in.payload)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalid, "%s: %w", in.name, err)
	}
	return body, nil
}

// updateID lets a retry join the update that is under way. The run tells repeats
// from other contents by itself; Temporal only must not answer one content with
// the receipt of another.
func (in input) updateID(body agent.JSON) string {
	return in.name + ":" + in.id + ":" + agent.DigestOf(body)[:12]
}

// update sends an input and waits for its receipt. A refusal is an error with
// the receipt's code; the receipt is returned with it.
func (s *Starter) update(ctx context.Context, address string, in input) (agent.Receipt, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if _, err := tenantOf(address); err != nil {
		return agent.Receipt{}, err
	}
	body, err := in.check()
	if err != nil {
		return agent.Receipt{}, err
	}
	id := in.updateID(body)
	if body, err = s.signed(ctx, address, "", in, body); err != nil {
		return agent.Receipt{}, err
	}
	r, err := s.send(ctx, address, in.name, id, body)
	if err == nil && stale(r) {
		r, err = s.send(ctx, address, in.name, id+":"+rand.Text(), body)
	}
	if err != nil {
		explained := s.explain(ctx, in.name, address, err)
		switch agent.ErrorCode(explained) {
		case agent.CodeEnded, agent.CodeNotFound:
			return s.afterEnd(ctx, address, in, explained)
		}
		return r, explained
	}
	if r.Status == agent.Refused {
		return r, agent.Errorf(r.Code, "%s", r.Reason)
	}
	return r, nil
}

// stale reports a refusal that may be an old one: the run does not record it,
// but Temporal gives it again to whoever repeats the update's id.
func stale(r agent.Receipt) bool { return r.Status == agent.Refused && r.Code != agent.CodeEnded }

// sendSoon is how soon an update that was not taken is sent again, at first.
const sendSoon = 50 * time.Millisecond

// send sends an update until the run has taken it, as long as ctx lasts.
func (s *Starter) send(ctx context.Context, address, name, id string, body agent.JSON) (agent.Receipt, error) {
	for pause := sendSoon; ; pause = min(2*pause, lookLate) {
		r, err := s.sendOnce(ctx, address, name, id, body)
		if !notTaken(err) || !sleep(ctx, pause) {
			return r, err
		}
	}
}

func (s *Starter) sendOnce(ctx context.Context, address, name, id string, body agent.JSON) (r agent.Receipt, err error) {
	handle, err := s.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: address, UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted, UpdateID: id, Args: []any{body},
	})
	if err == nil {
		err = handle.Get(ctx, &r)
	}
	return r, err
}

// afterEnd answers for a run that has ended. Its sender may be repeating an
// input because the first answer was lost: the journal knows. What the run never
// had is refused with how the run ended.
func (s *Starter) afterEnd(ctx context.Context, address string, in input, explained error) (agent.Receipt, error) {
	if s.reader == nil {
		if status := s.endStatus(ctx, address); status != "" && agent.ErrorCode(explained) == agent.CodeEnded {
			return agent.Receipt{Status: agent.Refused, Code: agent.CodeEnded, Run: status}, ended(in.name, address, status)
		}
		return agent.Receipt{}, explained
	}
	tenant, _ := tenantOf(address)
	run, err := s.fromJournal(ctx, store.Chain{Tenant: tenant, Address: address})
	if err != nil || !run.Status.Ended() {
		return agent.Receipt{}, explained
	}
	if r, err := handledBy(run, in); r != nil {
		return *r, err
	}
	return agent.Receipt{Status: agent.Refused, Code: agent.CodeEnded, Run: run.Status}, ended(in.name, address, run.Status)
}

func ended(what, address string, status agent.RunStatus) error {
	return agent.Errorf(agent.CodeEnded, "%s %s: the run has ended (%s); start a new one under a new key", what, address, status)
}

// handledBy says how an ended run answered an input; nil where it never had its
// id.
func handledBy(run *agent.Run, in input) (*agent.Receipt, error) {
	who := agent.Principal{Subject: in.who.Subject, Tenant: in.who.Tenant}
	h := run.FirstReceipt(in.id, who)
	if h == nil { // the run may have seen a token of theirs
		who.Auth = "token"
		if h = run.FirstReceipt(in.id, who); h == nil {
			return nil, nil
		}
	}
	body, err := agent.Encode(append([]any{in.name}, in.content...))
	if err != nil || agent.DigestOf(body) != h.Body {
		return &agent.Receipt{Status: agent.Refused, Code: agent.CodeConflict, Run: run.Status},
			agent.Errorf(agent.CodeConflict, "id %s was used before with another content; the run has ended (%s)", in.id, run.Status)
	}
	r := h.Receipt(run.Status)
	return &r, nil
}

// endStatus is how Temporal says that a run ended, "" where it does not. It
// needs no worker.
func (s *Starter) endStatus(ctx context.Context, address string) agent.RunStatus {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var end signals.End
	if err := s.temporal.GetWorkflow(ctx, address, "").Get(ctx, &end); err != nil {
		return ""
	}
	return end.Status
}
