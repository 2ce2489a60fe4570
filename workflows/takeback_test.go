package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
	"interlock/tool"
)

// A verdict takes effect by its timer, also when the worker was away meanwhile; one
// that was taken back never does.
func TestTakeBack_OnAServer(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	w := newWorld(t, turns(call("pay", "1"), toEnd), lab{db: db, gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}, TakeBack: 2 * time.Second}}.agent())
	address := w.start("k")
	w.say(address, "go")
	gate := lastGate(w.until(address, "the gate", waiting("gate")))
	ann := named("ann")
	require.Equal(t, agent.KeptBack, w.as(ann, address, gate, w.verdict(gate, agent.Approve, "")).Status)
	eventually(t, "lists show the verdict that waits", func() bool {
		rows := w.gateRows(store.GateFilter{Address: address})
		return len(rows) == 1 && rows[0].Gate.Pending != nil
	})
	require.Equal(t, agent.Accepted, w.as(ann, address, gate, w.verdict(gate, agent.TakeBack, "")).Status)
	require.Equal(t, agent.Voided, w.as(named("bob"), address, gate, w.verdict(gate, agent.TakeBack, "")).Status)
	require.Equal(t, agent.KeptBack, w.as(named("bob"), address, gate, w.verdict(gate, agent.Approve, "")).Status)
	w.stop()
	w.serve(w.config.Model, w.agents...)
	run := w.finished(address, agent.RunCompleted)
	require.Equal(t, 1, payments(t, db))
	require.Equal(t, "bob", run.Gates[0].By.Subject)
	pending := recorded[agent.GatePendingData](w, address, agent.EventGatePending)
	require.Len(t, pending, 4, "set, taken back, set, over")
}
