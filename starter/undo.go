package starter

import (
	"context"
	"slices"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// Undone is what became of a request to undo steps.
type Undone struct {
	Receipt agent.Receipt `json:"receipt"`
	// Repair is the run that undoes the steps, where theirs has ended; nil where it
	// does so itself. How it ends says what stands.
	Repair *Started `json:"repair,omitempty"`
}

// Undo asks that steps which happened be undone, one after the other, the last
// first: all of them, or none where one cannot be. An undo is the step of another
// tool, with its own effect and gate; what it cannot undo stands, and the model is
// told in its next turn.
//
// Where the run has ended, a linked repair run does it, which this call starts
// from the run's journal: that needs [WithReader]. The same steps are the same
// repair run, whenever they are named again; an effect is undone once, however
// many repairs there are.
func (s *Starter) Undo(ctx context.Context, address string, in signals.Undo) (Undone, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if err := agent.CheckUndo(in.Steps, in.Reason); err != nil {
		return Undone{}, err
	}
	r, err := s.update(ctx, address, undoInput(in))
	if !s.mayHaveEnded(r, err) {
		return Undone{Receipt: r}, err
	}
	if r.Run.Ended() { // its last events are recorded by then
		_ = s.temporal.GetWorkflow(ctx, address, "").Get(ctx, nil)
	}
	out, repairErr := s.repair(ctx, address, in)
	if repairErr == errNotEnded {
		return Undone{Receipt: r}, err
	}
	return out, repairErr
}

// mayHaveEnded reports an answer that an ended run gives, and not a living one that
// is about to end or has no such step.
func (s *Starter) mayHaveEnded(r agent.Receipt, err error) bool {
	switch agent.ErrorCode(err) {
	case agent.CodeEnded:
		return r.Run == "" || r.Run.Ended()
	case agent.CodeNotFound:
		return s.reader != nil && (r.Run == "" || r.Run.Ended())
	}
	return false
}

func undoInput(in signals.Undo) input {
	return input{signals.NameUndo, in.ID, in.Principal, in, []any{slices.Sorted(slices.Values(in.Steps)), in.Reason}}
}

// errNotEnded says that a repair has nothing to do: the run itself answers.
var errNotEnded = agent.Errorf(agent.CodeConflict, "the run has not ended")

// repair starts the run that undoes steps of one that has ended, or finds it.
func (s *Starter) repair(ctx context.Context, address string, in signals.Undo) (Undone, error) {
	if s.reader == nil {
		return Undone{}, agent.Errorf(agent.CodeInvalid, "undo %s: the run has ended, and its steps are in its journal: a starter.WithReader can undo them", address)
	}
	tenant, _, key, _ := signals.SplitAddress(address)
	events, err := s.reader.Events(ctx, store.Chain{Tenant: tenant, Address: address}, 1, 0)
	if err != nil {
		return Undone{}, err
	}
	if len(events) == 0 {
		return Undone{}, errNotEnded
	}
	run, err := agent.Reduce(events)
	if err != nil {
		return Undone{}, err
	}
	if !run.Status.Ended() && !s.closed(ctx, address, run.FirstRunID) {
		return Undone{}, errNotEnded
	}
	p, err := agent.RepairOf(events, agent.UndoSteps{ID: in.ID, Principal: in.Principal, Steps: in.Steps, Reason: in.Reason})
	if err != nil {
		return Undone{Receipt: agent.Receipt{Status: agent.Refused, Code: agent.ErrorCode(err), Reason: err.Error(), Run: run.Status}}, err
	}
	start := signals.Start{ID: in.ID, Agent: run.Agent, Version: run.Version, Tenant: tenant, Key: signals.RepairKey(key, run.FirstRunID, in.Steps),
		Principal: in.Principal, User: run.User, TraceID: in.TraceID, Repair: p}
	if err := signals.CheckStart(start); err != nil {
		return Undone{}, err
	}
	started, err := s.begin(ctx, start)
	if err != nil {
		return Undone{}, err
	}
	out := Undone{Receipt: agent.Receipt{Status: agent.Accepted, Run: agent.RunRunning}, Repair: &started}
	if !started.New {
		out.Receipt = agent.Receipt{Status: agent.Repeated, Run: agent.RunRunning}
		if row, err := s.reader.RunRow(ctx, store.Chain{Tenant: tenant, Address: started.Address}); err == nil {
			out.Receipt.Run = row.Head.Status
		}
	}
	return out, nil
}

// closed reports that Temporal has closed a run which could not say so itself.
func (s *Starter) closed(ctx context.Context, address, firstRunID string) bool {
	d := s.describe(ctx, address)
	return d.known() && !d.running() && d.firstRunID == firstRunID
}
