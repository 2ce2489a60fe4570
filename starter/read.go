package starter

import (
	"context"
	"encoding/json"
	"time"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// queryFor bounds the question to the run itself where the journal can answer
// instead.
const queryFor = 5 * time.Second

// Get is the run as it stands: from the run itself, and where Temporal has
// forgotten it or no worker answers, from the journal.
func (s *Starter) Get(ctx context.Context, address string) (*agent.Run, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	tenant, err := tenantOf(address)
	if err != nil {
		return nil, err
	}
	asking := ctx
	if s.reader != nil {
		var stop context.CancelFunc
		asking, stop = context.WithTimeout(ctx, queryFor)
		defer stop()
	}
	run, err := s.query(asking, address, "")
	if err == nil {
		return run, nil
	}
	if s.reader != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor)
		defer cancel()
		if run, err := s.fromJournal(ctx, store.Chain{Tenant: tenant, Address: address}); err == nil {
			return run, nil
		}
	}
	return nil, s.explain(ctx, "get", address, err)
}

// query asks a run itself. A closed one answers too, as long as Temporal keeps
// it and a worker is up.
func (s *Starter) query(ctx context.Context, address, runID string) (*agent.Run, error) {
	v, err := s.temporal.QueryWorkflow(ctx, address, runID, signals.QueryRun)
	if err != nil {
		return nil, err
	}
	run := &agent.Run{}
	return run, v.Get(run)
}

func (s *Starter) fromJournal(ctx context.Context, chain store.Chain) (*agent.Run, error) {
	events, err := s.reader.Events(ctx, chain, 1, 0)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, agent.Errorf(agent.CodeNotFound, "there is no run %s", chain.Address)
	}
	return agent.Reduce(events)
}

// List is a page of a tenant's runs, newest first: f.After is the Cursor of the
// last row of the page before.
func (s *Starter) List(ctx context.Context, tenant string, f store.RunFilter) ([]store.RunRow, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if err := s.canRead(tenant); err != nil {
		return nil, err
	}
	if f.Address != "" {
		if err := belongs(tenant, f.Address); err != nil {
			return nil, err
		}
	}
	return s.reader.RunRows(ctx, tenant, f)
}

// Gates lists a tenant's gates, oldest first.
func (s *Starter) Gates(ctx context.Context, tenant string, f store.GateFilter) ([]store.GateRow, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if err := s.canRead(tenant); err != nil {
		return nil, err
	}
	if f.Address != "" {
		if err := belongs(tenant, f.Address); err != nil {
			return nil, err
		}
	}
	return s.reader.GateRows(ctx, tenant, f)
}

// Gate is one gate of a run, open or closed, as the store shows it; one that has
// just opened, as the run itself does. CodeNotFound where the run has none of
// that id. Of the runs that followed one another under an address it is the
// newest one's.
func (s *Starter) Gate(ctx context.Context, address, gateID string) (store.GateRow, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	tenant, err := tenantOf(address)
	if err != nil {
		return store.GateRow{}, err
	}
	if err := s.canRead(tenant); err != nil {
		return store.GateRow{}, err
	}
	g, err := s.storedGate(ctx, store.Chain{Tenant: tenant, Address: address}, gateID)
	if err != nil || g != nil {
		return value(g), err
	}
	asking, stop := context.WithTimeout(ctx, queryFor)
	defer stop()
	if run, err := s.query(asking, address, ""); err == nil {
		for _, g := range run.Gates {
			if g.ID == gateID {
				return store.GateRow{Address: address, FirstRunID: run.FirstRunID, Agent: run.Agent, Gate: g}, nil
			}
		}
	}
	return store.GateRow{}, agent.Errorf(agent.CodeNotFound, "run %s has no gate %q; interlock gate list shows those that it has", address, gateID)
}

// storedGate is nil where the store has no such gate.
func (s *Starter) storedGate(ctx context.Context, chain store.Chain, id string) (*store.GateRow, error) {
	row, err := s.reader.RunRow(ctx, chain)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// The open ones first: they are few, and a list is bounded.
	for _, status := range []agent.GateStatus{agent.GateOpen, ""} {
		found, err := s.reader.GateRows(ctx, chain.Tenant, store.GateFilter{Address: chain.Address, Status: status, Limit: maxPage})
		if err != nil {
			return nil, err
		}
		for _, g := range found {
			if g.Gate.ID == id && (g.FirstRunID == "" || g.FirstRunID == row.FirstRunID) {
				return &g, nil
			}
		}
	}
	return nil, nil
}

// maxPage is the longest page that a store gives.
const maxPage = 500

// canRead says what is missing for a call that reads the store.
func (s *Starter) canRead(tenant string) error {
	if err := checkTenant(tenant); err != nil {
		return err
	}
	if s.reader == nil {
		return agent.Errorf(agent.CodeInvalid, "starter.WithReader is needed: this call reads the store")
	}
	return nil
}

func checkTenant(tenant string) error { return signals.CheckAddress(tenant, "a", "k") }

// tenantOf is the tenant of an address.
func tenantOf(address string) (string, error) {
	tenant, _, _, ok := signals.SplitAddress(address)
	if !ok {
		return "", agent.Errorf(agent.CodeInvalid, "%q is no run's address: it is <tenant>/<agent>/<key>", address)
	}
	return tenant, nil
}

func belongs(tenant, address string) error {
	of, err := tenantOf(address)
	if err == nil && of != tenant {
		err = agent.Errorf(agent.CodeInvalid, "%s is no run of tenant %s", address, tenant)
	}
	return err
}

// value is what p points to, or nothing.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// sleep waits, and reports whether the context lasted so long.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// dataOf reads an event's data.
func dataOf[T any](e agent.Event) (d T, err error) {
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return d, agent.Errorf(agent.CodeInternal, "the data of event %d (%s): %w", e.Seq, e.Type, err)
	}
	return d, nil
}
