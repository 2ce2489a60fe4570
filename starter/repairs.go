package starter

import (
	"context"
	"strings"
	"time"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// Repair is a run that undoes steps of one that has ended. In the journal of the
// ended run they are done, and stay so: what became of them is in the repair's.
type Repair struct {
	Address string          `json:"address"`
	Status  agent.RunStatus `json:"status"`
	Reason  string          `json:"reason,omitempty"` // what it waits for
	At      time.Time       `json:"at"`               // its last event
	Steps   []RepairedStep  `json:"steps"`
}

// RepairedStep is a step of the ended run. One whose status is not undone stands, or
// nobody knows yet.
type RepairedStep struct {
	Step   string           `json:"step"`
	Tool   string           `json:"tool"`
	Status agent.StepStatus `json:"status"`
}

// String says in words what became of the steps.
func (r Repair) String() string {
	told := make([]string, len(r.Steps))
	for i, s := range r.Steps {
		word := "not yet"
		switch {
		case s.Status == agent.StepUndone:
			word = "undone"
		case r.Status.Ended():
			word = "stands"
		}
		told[i] = s.Step + " " + s.Tool + " " + word
	}
	return "by " + r.Address + ", " + state(r.Status, r.Reason) + ": " + strings.Join(told, ", ")
}

// mostRepairs of one run are told of, the newest.
const mostRepairs = 20

// Repairs are the runs that undo steps of one that has ended, newest first and at most
// 20, from the store: that needs [WithReader].
func (s *Starter) Repairs(ctx context.Context, run *agent.Run) ([]Repair, error) {
	if s.reader == nil {
		return nil, agent.Errorf(agent.CodeInvalid, "the repairs of %s are in the store: a starter.WithReader can read them", run.Address())
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return s.repairsOf(ctx, run)
}

// repairsOf reads the repairs of a run, newest first.
func (s *Starter) repairsOf(ctx context.Context, run *agent.Run) (out []Repair, err error) {
	under := run.Tenant + "/" + run.Agent + "/" + signals.RepairsUnder(run.Key)
	rows, err := s.reader.RunRows(ctx, run.Tenant, store.RunFilter{Agent: run.Agent, Under: under, Limit: mostRepairs})
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		repair, err := s.fromJournal(ctx, store.Chain{Tenant: row.Tenant, Address: row.Address, FirstRunID: row.FirstRunID})
		if err != nil {
			return nil, err
		}
		// The address of another run may begin alike, and an address may have had
		// several runs.
		if repair.Repairs == nil || *repair.Repairs != (agent.Repaired{Address: run.Address(), FirstRunID: run.FirstRunID}) {
			continue
		}
		one := Repair{Address: row.Address, Status: repair.Status, Reason: repair.Reason, At: repair.At}
		for _, s := range repair.Steps {
			if s.Undoes == "" {
				one.Steps = append(one.Steps, RepairedStep{s.ID, s.Tool, s.Status})
			}
		}
		out = append(out, one)
	}
	return out, nil
}
