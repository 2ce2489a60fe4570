package effecttest

import (
	"context"

	"interlock/activities"
	"interlock/agent"
	"interlock/store"
	"interlock/tool"
)

// StoreLedger is a store's ledger, as a worker uses it. Open the store with the
// clock that [Options.Ledger] is given.
func StoreLedger(s store.Ledger) tool.Ledger { return stored{s} }

// stored serves tasks of any run, where a worker's ledger is bound to one.
type stored struct{ store store.Ledger }

func (l stored) of(t agent.Task) tool.Ledger {
	return activities.Ledger(l.store, store.RunRef{Tenant: t.Tenant, Address: t.Scope})
}

func (l stored) Claim(ctx context.Context, t agent.Task, by tool.Terms) (tool.Row, error) {
	return l.of(t).Claim(ctx, t, by)
}

func (l stored) Fence(ctx context.Context, t agent.Task, reason string) (tool.Row, error) {
	return l.of(t).Fence(ctx, t, reason)
}

func (l stored) Settle(ctx context.Context, t agent.Task, s tool.Settlement) error {
	return l.of(t).Settle(ctx, t, s)
}

func (l stored) Unknown(ctx context.Context, t agent.Task, attempt int, reason string) (tool.Row, error) {
	return l.of(t).Unknown(ctx, t, attempt, reason)
}

func (l stored) Release(ctx context.Context, t agent.Task, first, last int) (tool.Row, error) {
	return l.of(t).Release(ctx, t, first, last)
}

func (l stored) Undone(ctx context.Context, t agent.Task, by string) error {
	return l.of(t).Undone(ctx, t, by)
}

func (l stored) Row(ctx context.Context, t agent.Task) (*tool.Row, error) { return l.of(t).Row(ctx, t) }
