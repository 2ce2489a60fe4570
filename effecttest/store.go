package effecttest

import (
	"context"

	"interlock/agent"
	"interlock/store"
	"interlock/tool"
)

// StoreLedger is a store's ledger. Open the store with the clock that
// [Options.Ledger] is given.
func StoreLedger(s store.Ledger) tool.Ledger { return stored{s} }

// stored maps as a worker does.
type stored struct{ store store.Ledger }

func (l stored) Claim(ctx context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	e, fresh, err := l.store.Claim(ctx, store.Claim{Tenant: t.Tenant, Key: t.Key, Address: t.Scope, Scope: t.Scope, Agent: t.Agent,
		Version: t.Version, Tool: t.Tool, Kind: t.Effect, Step: t.Step, Ordinal: t.Ordinal, Args: t.Args,
		Attempt: by.Attempt, Exclusive: by.Exclusive, Grace: by.Grace})
	if err != nil {
		return tool.Row{}, err
	}
	row := rowOf(e)
	if row.Wait == 0 { // this attempt is counted, and is no earlier one
		row.Open = !fresh && e.Attempts-1 > e.Released
	}
	return row, nil
}

func (l stored) Settle(ctx context.Context, t agent.Task, s tool.Settlement) error {
	o := store.Outcome{Status: store.EffectApplied, Result: s.Result.Stored(), Whole: s.Result.Whole}
	if s.Refused != "" {
		o = store.Outcome{Status: store.EffectRefused, Reason: s.Refused}
	}
	return l.store.Settle(ctx, t.Tenant, t.Key, o)
}

func (l stored) Unknown(ctx context.Context, t agent.Task, reason string) error {
	return l.store.MarkUnknown(ctx, t.Tenant, t.Key, reason)
}

func (l stored) Release(ctx context.Context, t agent.Task) error {
	return l.store.Release(ctx, t.Tenant, t.Key)
}

func (l stored) Row(ctx context.Context, t agent.Task) (*tool.Row, error) {
	e, err := l.store.Effect(ctx, t.Tenant, t.Key)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	row := rowOf(e)
	return &row, nil
}

func rowOf(e store.Effect) tool.Row {
	row := tool.Row{Open: e.Open(), Wait: e.Wait}
	switch e.Status {
	case store.EffectRefused:
		row.Settled = &tool.Settlement{Refused: e.Reason}
	case store.EffectApplied:
		row.Settled = &tool.Settlement{Result: tool.FromStored(e.Result, e.Whole)}
	}
	return row
}
