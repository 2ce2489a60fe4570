package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// The journal says no more of secrets than the model was told.
func TestViewAt(t *testing.T) {
	def := agent.Define(agent.Spec[start, secrets]{Name: "s", Version: 1, Instructions: "x",
		Init: func(start) (secrets, error) {
			return secrets{Public: "open", Pin: "S3CRET-1", Token: "H1DDEN-1"}, nil
		},
		Phases: []agent.Phase[secrets]{{Name: "work", Moves: []agent.Move[secrets]{{To: "end"}}}, {Name: "end", Final: true}}})
	tr := begin(t, def, `{"customer_id":"c"}`)
	events := tr.m.Batch().Events
	_, err := agent.ViewAt(events, 1)
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err))
	events = append(events, tr.message("go")...)
	view, err := agent.ViewAt(events, 1)
	require.NoError(t, err)
	require.Equal(t, tr.views[0], view)
	require.JSONEq(t, `{"public":"open","pin":"(masked)","note":""}`, view.State.String())
	_, err = agent.ViewAt(nil, 1)
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err))
}
