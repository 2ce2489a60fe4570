package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// No hash tells a value to who has not the salt, and no two events have one hash
// because a part of one field stands in the field beside it.
func TestChain_IsKeyedAndUnambiguous(t *testing.T) {
	e := agent.Event{Seq: 1, At: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), Type: agent.EventMessage, V: 1, Step: "a\nb", Tenant: "c", Data: agent.JSON(`{}`)}
	other := e
	other.Step, other.Tenant = "a", "b\nc"
	require.NotEqual(t, e.Chain("s", ""), other.Chain("s", ""))
	require.NotEqual(t, e.Chain("s", ""), e.Chain("t", ""))
	require.NotEqual(t, e.Chain("s", ""), e.Chain("s", e.Chain("s", "")))
	require.Len(t, e.Chain("s", ""), 64)
}

// The salt stands in the first event, for who verifies; in no run; in no event of a
// run of whose values some are hidden; and it decides no effect's key.
func TestChain_SaltIsShownToNobodyWhoIsShownLess(t *testing.T) {
	const salt = "5a17000000000000000000000000beef"
	def := deskAgent()
	begun := func(salt string) *agent.Machine {
		m := agent.NewMachine(def)
		m.Step(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), "", agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Rules: agent.Rules, Salt: salt,
			Limits: m.Definition().Limits(), User: "u", Body: agent.JSON(`{"customer_id":"c"}`)})
		return m
	}
	m := begun(salt)
	first := m.Batch().Events[0]
	got, err := agent.SaltOf(first)
	require.NoError(t, err)
	require.Equal(t, salt, got)
	require.Equal(t, salt, m.Batch().Salt)
	run, err := agent.Encode(m.Run())
	require.NoError(t, err)
	require.NotContains(t, run.String(), salt)
	require.Equal(t, m.Run().Scope(), begun("other").Run().Scope())

	shown := agent.Redacted(agent.HideAll(), first)
	require.False(t, strings.Contains(shown.Data.String(), salt), "%s", shown.Data)

	m.Ack(1)
	m, err = agent.Restore(m.Definition(), m.Snapshot())
	require.NoError(t, err)
	require.Equal(t, salt, m.Batch().Salt, "it goes on in the snapshot")
}
