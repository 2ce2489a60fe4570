package starter

import (
	"context"
	"slices"

	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// Message tells the run what the user says. The receipt says whether it was
// taken in; a repeat of the id is answered as the first was.
func (s *Starter) Message(ctx context.Context, address string, m signals.Message) (agent.Receipt, error) {
	return s.update(ctx, address, signals.NameMessage, m.ID, m, m.Text)
}

// Cancel ends the run once its running steps have ended.
func (s *Starter) Cancel(ctx context.Context, address string, c signals.Cancel) (agent.Receipt, error) {
	return s.update(ctx, address, signals.NameCancel, c.ID, c, c.Reason)
}

// Decide gives a verdict about a gate as it was shown. The receipt says whether
// it decided, and how the gate stands. A verdict that decided nothing is
// recorded and no error.
func (s *Starter) Decide(ctx context.Context, address string, v signals.Verdict) (agent.Receipt, error) {
	return s.update(ctx, address, signals.NameVerdict, v.ID, v, v.Gate, v.Digest, v.Verdict, v.Reason)
}

// update sends an input and waits for its receipt. A refusal is an error with
// the receipt's code; the receipt is returned with it. content is what makes a
// repeat of the id the same input.
func (s *Starter) update(ctx context.Context, address, name, id string, payload any, content ...any) (agent.Receipt, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	var r agent.Receipt
	if _, _, _, ok := signals.SplitAddress(address); !ok {
		return r, agent.Errorf(agent.CodeInvalid, "%q is no run's address: it is <tenant>/<agent>/<key>", address)
	}
	body, err := agent.Encode(payload)
	if err != nil {
		return r, agent.Errorf(agent.CodeInvalid, "%s: %v", name, err)
	}
	handle, err := s.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: address, UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted,
		// The run tells repeats from other contents by itself; Temporal only
		// must not answer one content with the receipt of another.
		UpdateID: name + ":" + id + ":" + agent.DigestOf(body)[:12], Args: []any{body},
	})
	if err == nil {
		err = handle.Get(ctx, &r)
	}
	if err != nil {
		explained := s.explain(ctx, name, address, err)
		if agent.ErrorCode(explained) == agent.CodeEnded {
			if over, err := s.afterEnd(ctx, address, id, append([]any{name}, content...)); over != nil || err != nil {
				return *over, err
			}
		}
		return r, explained
	}
	if r.Status == agent.Refused {
		return r, agent.Errorf(r.Code, "%s", r.Reason)
	}
	return r, nil
}

// afterEnd finds an input in the journal of a run that has ended: its sender
// repeats it because the first answer was lost. Both results are nil where the
// run never had the id.
func (s *Starter) afterEnd(ctx context.Context, address, id string, content []any) (*agent.Receipt, error) {
	if s.reader == nil {
		return nil, nil
	}
	run, err := s.fromJournal(ctx, address)
	if err != nil || !run.Status.Ended() {
		return nil, nil
	}
	i := slices.IndexFunc(run.Handled, func(h agent.Handled) bool { return h.ID == id })
	if i < 0 {
		return nil, nil
	}
	h := run.Handled[i]
	body, err := agent.Encode(content)
	if err != nil || agent.DigestOf(body) != h.Body {
		return &agent.Receipt{Status: agent.Refused, Code: agent.CodeConflict, Run: run.Status},
			agent.Errorf(agent.CodeConflict, "id %s was used before with another content; the run has ended (%s)", id, run.Status)
	}
	return &agent.Receipt{Status: agent.Repeated, Seq: h.Seq, Run: run.Status}, nil
}

// Get is the run as it stands: from the run itself, and where Temporal has
// forgotten it or no worker answers, from the journal.
func (s *Starter) Get(ctx context.Context, address string) (*agent.Run, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if _, _, _, ok := signals.SplitAddress(address); !ok {
		return nil, agent.Errorf(agent.CodeInvalid, "%q is no run's address: it is <tenant>/<agent>/<key>", address)
	}
	run := &agent.Run{}
	v, err := s.temporal.QueryWorkflow(ctx, address, "", signals.QueryRun)
	if err == nil {
		err = v.Get(run)
	}
	if err == nil {
		return run, nil
	}
	if s.reader != nil {
		if run, err := s.fromJournal(context.WithoutCancel(ctx), address); err == nil {
			return run, nil
		}
	}
	return nil, s.explain(ctx, "get", address, err)
}

func (s *Starter) fromJournal(ctx context.Context, address string) (*agent.Run, error) {
	tenant, _, _, _ := signals.SplitAddress(address)
	events, err := s.reader.Events(ctx, store.Chain{Tenant: tenant, Address: address}, 1, 0)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, agent.Errorf(agent.CodeNotFound, "there is no run %s", address)
	}
	return agent.Reduce(events)
}
