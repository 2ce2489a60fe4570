package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/starter"
)

// A message and a cancel say where they take effect, and run why what is waited for.
func TestRun_MessageAndCancelWithChoices(t *testing.T) {
	w := newWorld(t)
	address := w.atGate(t, "cut")
	why := decoded[starter.Why](t, w, "run", "why", address)
	require.Len(t, why.Waits, 1)
	require.Equal(t, agent.WaitsGate, why.Waits[0].For)
	require.Equal(t, []string{"refunds"}, why.Waits[0].Who)
	require.Equal(t, "it expires, and is not done", why.Waits[0].Then)
	text := w.do(t, "run", "why", address)
	require.Contains(t, text, "waits for gate  Refund 89.90 EUR for order 1042 (gate 3.1)  for refunds  since ")
	require.Contains(t, w.do(t, "run", "get", address), "waits for gate  ")

	got := decoded[sent](t, w, "run", "message", address, "hm", "--policy", "interrupt", "--as", "c-017", "--wait")
	require.Equal(t, agent.Accepted, got.Receipt.Status)
	require.Equal(t, agent.TookNow, got.Receipt.Took.How, "a run that waits is not busy")
	out := w.do(t, "run", "cancel", address, "--undo", "run", "--reason", "enough", "--as", "ann", "--wait")
	require.Contains(t, out, "cancelled")
	require.Contains(t, w.do(t, "run", "watch", address), "asked to cancel, and to undo what the run did: enough")
}
