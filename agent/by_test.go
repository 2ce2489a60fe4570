package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// Whatever somebody sends can be taken as proven.
func TestBy(t *testing.T) {
	who := agent.Principal{Subject: "ann", Auth: "issuer"}
	for _, in := range []agent.Input{agent.Message{}, agent.VerdictGiven{}, agent.CancelRun{}, agent.AmendRun{}, agent.PauseRun{}, agent.ResumeRun{},
		agent.UndoSteps{}, agent.LiftRuling{}, agent.ConfirmRuling{}} {
		require.NotEqual(t, in, agent.By(in, who))
	}
	require.True(t, agent.By(agent.VerdictGiven{}, who).(agent.VerdictGiven).Verdict.Verified)
	require.Panics(t, func() { agent.By(agent.SnapshotLoaded{}, who) })
}
