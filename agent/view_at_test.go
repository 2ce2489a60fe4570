package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// The journal says no more of secrets than the model was told, and owns up to what
// it does not know.
func TestViewAt(t *testing.T) {
	def := agent.Define(agent.Spec[start, secrets]{Name: "s", Version: 1, Instructions: "x",
		Init: func(start) (secrets, error) {
			return secrets{Public: "open", Pin: "S3CRET-1", Token: "H1DDEN-1"}, nil
		},
		Phases: []agent.Phase[secrets]{{Name: "work", Moves: []agent.Move[secrets]{{To: "end"}}}, {Name: "end", Final: true}}})
	for _, rules := range []int{2, 3} {
		tr := begin(t, def, `{"customer_id":"c"}`)
		events := tr.m.Batch().Events
		if rules < 3 {
			tr.m = agent.NewMachine(def)
			events = tr.step(agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Rules: rules, Limits: def.Limits(), User: "u", Body: agent.JSON(`{"customer_id":"c"}`)})
		}
		_, err := agent.ViewAt(events, 1)
		if len(tr.views) == 0 {
			require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err))
			events = append(events, tr.message("go")...)
			_, err = agent.ViewAt(events, 1)
		}
		if rules < 3 {
			require.Equal(t, agent.CodeConflict, agent.ErrorCode(err))
			require.NotContains(t, string(events[0].Data), "hidden", "older runs begin as they did")
			continue
		}
		require.NoError(t, err)
		view, err := agent.ViewAt(events, 1)
		require.NoError(t, err)
		require.Equal(t, tr.views[0], view)
		require.JSONEq(t, `{"public":"open","pin":"(masked)","note":""}`, view.State.String())
	}
	_, err := agent.ViewAt(nil, 1)
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err))
}
