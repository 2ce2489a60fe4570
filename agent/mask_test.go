package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// Sensitive fields are masked for people, in the run and in what sets them, and
// stay as they are in the run itself.
func TestMasked(t *testing.T) {
	def := deskAgent()
	m := agent.NewMachine(def)
	m.Step(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), "", agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Rules: agent.Rules, Limits: def.Limits(),
		Principal: agent.Principal{Subject: "u"}, User: "u", Body: agent.JSON(`{"customer_id":"c-1"}`)})
	run := m.Run()
	require.Equal(t, []string{"secret"}, run.Sensitive)
	require.Contains(t, run.State.String(), `"secret":"c-1"`)
	require.Contains(t, run.Masked().State.String(), `"secret":"(masked)"`)
	require.Contains(t, run.Masked().State.String(), `"customer_id":"c-1"`)
	require.Contains(t, run.State.String(), `"secret":"c-1"`, "the run itself stays")
	for _, e := range m.Batch().Events {
		require.NotContains(t, e.Masked(run.Sensitive).Data.String(), `"secret":"c-1"`, e.Type)
		require.Equal(t, e, e.Masked(nil))
	}
}
