package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

func judged(t *testing.T, by func(w *world, r *run)) []violation {
	t.Helper()
	w := &world{kind: sqliteKind}
	w.injector = newInjector(w, 1, nil)
	by(w, &run{id: "r", address: signals.Address(tenant, agentName, "r")})
	return w.violations
}

// What happened, and what the run and the ledger know.
func TestVerify_Effect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool  string
		n     int
		steps []agent.StepStatus
		kind  string // "" where all is well
	}{
		"as it should be":               {send, 1, []agent.StepStatus{agent.StepDone}, ""},
		"refused, then done":            {order, 1, []agent.StepStatus{agent.StepRefused, agent.StepDone}, ""},
		"twice":                         {send, 2, []agent.StepStatus{agent.StepDone}, repeated},
		"twice, and known":              {fire, 2, []agent.StepStatus{agent.StepDone, agent.StepDone}, repeated},
		"done, but it never happened":   {pay, 0, []agent.StepStatus{agent.StepDone}, lost},
		"it happened, but is unknown":   {book, 1, []agent.StepStatus{agent.StepFailed}, lost},
		"it happened, still in doubt":   {fire, 1, []agent.StepStatus{agent.StepInDoubt}, lost},
		"given up":                      {fire, 0, []agent.StepStatus{agent.StepFailed}, ""},
		"given up, though it must be":   {send, 0, []agent.StepStatus{agent.StepFailed}, lost},
		"never called":                  {fire, 0, nil, lost},
		"it has not happened, in doubt": {fire, 0, []agent.StepStatus{agent.StepInDoubt}, lost},
	} {
		var steps []*step
		for _, s := range c.steps {
			steps = append(steps, &step{id: "1.1", tool: c.tool, key: "k", status: s})
		}
		requireKind(t, name, c.kind, judged(t, func(w *world, r *run) { w.verifyEffect(r, c.tool, c.n, steps) }))
	}
}

func TestVerify_Ledger(t *testing.T) {
	t.Parallel()
	row := func(s store.EffectStatus) store.Effect {
		return store.Effect{Claim: store.Claim{Tool: send}, Outcome: store.Outcome{Status: s}}
	}
	for name, c := range map[string]struct {
		n    int
		rows []store.Effect
		kind string
	}{
		"as it should be":       {1, []store.Effect{row(store.EffectRefused), row(store.EffectApplied)}, ""},
		"no row":                {1, nil, lost},
		"applied, but it never": {0, []store.Effect{row(store.EffectApplied)}, lost},
		"not settled":           {1, []store.Effect{row(store.EffectClaimed)}, lost},
	} {
		requireKind(t, name, c.kind, judged(t, func(w *world, r *run) { w.verifyLedger(r, send, c.n, c.rows) }))
	}
}

// An operator must have been asked where nobody else could know.
func TestVerify_Doubts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mark  mark
		asked bool
		kind  string
	}{
		"asked":                {mark{killed, toSettle, true}, true, ""},
		"not asked":            {mark{killed, toSettle, true}, false, lost},
		"not begun, not asked": {mark{killed, toEffect, true}, false, lost},
		"it had been settled":  {mark{killed, toAnswer, true}, false, ""},
		"it goes on later":     {mark{stopped, toSettle, true}, false, ""},
		"not aimed at it":      {mark{killed, toSettle, false}, false, ""},
	} {
		requireKind(t, name, c.kind, judged(t, func(w *world, r *run) {
			p := place{r.address, agent.Once, "1.1"}
			w.injector.marks[p] = append(w.injector.marks[p], c.mark)
			w.verifyDoubts(r, []*step{{id: "1.1", tool: fire, doubted: c.asked}})
		}))
	}
}

func requireKind(t *testing.T, name, kind string, got []violation) {
	t.Helper()
	if kind == "" {
		require.Empty(t, got, name)
		return
	}
	require.Len(t, got, 1, name)
	require.Equal(t, kind, got[0].Kind, name)
}
