package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// rollback checks a turn that was rolled back: nothing that it did stands, no yes
// that it took counts, and each field and the phase are what they were when it
// began, but for what others have set since. Mutations: return "" from stillStands;
// note a field again where it is noted; keep the confirmations in applyInterruptSettled.
func (w *watcher) rollback(e agent.Event) {
	if e.Type != agent.EventInterruptSettled || !data[agent.InterruptSettledData](e).RolledBack {
		return
	}
	at := len(w.events)
	began := at - 1
	for began > 0 && w.events[began].Type != agent.EventTurnStarted {
		began--
	}
	before, err := agent.Reduce(w.events[:began+1])
	require.NoError(w.t, err)
	after, err := agent.Reduce(w.events[:at])
	require.NoError(w.t, err)
	others, moved := map[string]bool{}, false
	for _, c := range w.events[began+1 : at] {
		foreign := c.Step != "" && !w.ofTurn(after, c.Step, e.Turn)
		switch c.Type {
		case agent.EventAmended:
			for _, f := range data[agent.AmendedData](c).Fields {
				others[f] = true
			}
		case agent.EventStateSet:
			d := data[agent.StateSetData](c)
			for _, f := range append(d.Fields, d.Reset...) {
				others[f] = others[f] || foreign || d.By != "" || d.Source == agent.SourceAmend
			}
		case agent.EventPhaseEntered:
			d := data[agent.PhaseEnteredData](c)
			moved = moved || d.Step != "" && !w.ofTurn(after, d.Step, e.Turn)
		}
	}
	was, is := fieldsOf(w, before.State), fieldsOf(w, after.State)
	for f := range was {
		if !others[f] {
			require.Equal(w.t, was[f].String(), is[f].String(), "field %s after the rollback of turn %d", f, e.Turn)
		}
	}
	if !moved {
		require.Equal(w.t, before.Phase, after.Phase)
		require.Equal(w.t, before.PhaseSeq, after.PhaseSeq)
	}
	for f, c := range after.Confirmed {
		require.NotEqual(w.t, e.Turn, c.Turn, "the yes to %s", f)
	}
	for _, s := range after.Steps {
		if s.Turn == e.Turn && s.Key != "" && s.Undoes == "" {
			require.NotContains(w.t, []agent.StepStatus{agent.StepDone, agent.StepInDoubt}, s.Status, "step %s", s.ID)
		}
	}
}

// ofTurn reports whether a step, or what it undoes, was begun in a turn.
func (w *watcher) ofTurn(r *agent.Run, step string, turn int) bool {
	for _, s := range r.Steps {
		if s.ID == step && s.Undoes != "" {
			step = s.Undoes
		}
	}
	return strings.HasPrefix(step, fmt.Sprintf("%d.", turn))
}

func fieldsOf(w *watcher, state agent.JSON) map[string]agent.JSON {
	var out map[string]agent.JSON
	require.NoError(w.t, json.Unmarshal(state, &out))
	return out
}
