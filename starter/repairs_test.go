package starter_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/starter"
	"interlock/store"
)

// repairs is a store that has runs whose addresses begin as those of a run's repairs.
type repairs struct {
	store.Reader
	t     *testing.T
	asked store.RunFilter
	of    map[string]agent.Repaired // by address
}

func (r *repairs) RunRows(_ context.Context, tenant string, f store.RunFilter) (out []store.RunRow, err error) {
	r.asked = f
	for a := range r.of {
		out = append(out, store.RunRow{Tenant: tenant, Address: a, FirstRunID: "f"})
	}
	return out, nil
}

func (r *repairs) Events(_ context.Context, run store.Chain, _ int64, _ int) ([]agent.Event, error) {
	of := r.of[run.Address]
	j := started(r.t, "f", "", noon)
	j.set(agent.EventStarted, "", agent.StartedData{Agent: "lab", Version: 1, Key: "x", FirstRunID: "f", User: "ann", Rules: agent.Rules, Limits: agent.DefaultLimits(),
		Repair: &agent.Repair{Address: of.Address, FirstRunID: of.FirstRunID, Scope: of.Address + "/" + of.FirstRunID, ID: "u", Reason: "x", State: agent.JSON(`{}`),
			Steps: []agent.RepairStep{{ID: "1.1", Tool: "pay", Compensation: "unpay", Args: agent.JSON(`{}`), Result: agent.JSON(`{}`), Key: "k", Effect: "e", Seq: 7}}}})
	return j.events, nil
}

// Only a run that says itself that it repairs this one counts: keys that are long
// begin alike, and an address may have had several runs.
func TestRepairs(t *testing.T) {
	t.Parallel()
	r := &repairs{t: t, of: map[string]agent.Repaired{
		address + "+undo-1": {Address: address, FirstRunID: "first"},
		address + "+undo-2": {Address: address, FirstRunID: "before"},
		address + "+undo-3": {Address: address + "0", FirstRunID: "first"},
	}}
	run, err := agent.Reduce(started(t, "first", "", noon).events)
	require.NoError(t, err)
	got, err := starter.New(nil, starter.WithReader(r)).Repairs(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, store.RunFilter{Agent: "lab", Under: address + "+undo-", Limit: 20}, r.asked)
	require.Len(t, got, 1)
	require.Equal(t, address+"+undo-1", got[0].Address)
	require.Equal(t, []starter.RepairedStep{{Step: "1.1", Tool: "pay", Status: agent.StepDone}}, got[0].Steps)
	require.Contains(t, got[0].String(), "1.1 pay not yet")
	require.WithinDuration(t, noon, got[0].At, time.Minute)

	_, err = starter.New(nil).Repairs(t.Context(), run)
	require.ErrorContains(t, err, "a starter.WithReader can read them")
}
