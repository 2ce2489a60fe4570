package agent_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// A damaged journal is an error that names the event, or a run; never a panic.
func TestReduce_DamagedJournals(t *testing.T) {
	tr := held(t, seats(same, agent.Limits{}))
	tr.model(`move {"to":"choose"}`)
	release := tr.task("release").Step
	tr.step(agent.Message{ID: "stop", Principal: agent.Principal{Subject: "u"}, Text: "no", Policy: agent.MessageRollback})
	tr.done(release, `{"id":"rel"}`)
	tr.cancel(agent.UndoRun)
	whole := tr.m.Batch().Events
	require.True(t, slices.ContainsFunc(whole, func(e agent.Event) bool { return e.Type == agent.EventInterruptSettled }))
	failed := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		events := slices.Clone(whole)
		for range 1 + rng.IntN(4) {
			i, j := rng.IntN(len(events)), rng.IntN(len(events))
			switch rng.IntN(5) {
			case 0:
				events[i], events[j] = events[j], events[i]
			case 1:
				events = slices.Delete(events, i, i+1)
			case 2:
				events = slices.Insert(events, i, events[j])
			case 3:
				events[i].Data = events[j].Data
			case 4:
				events[i].Type, events[i].Step = events[j].Type, "9.9"
			}
		}
		for n := range events {
			events[n].Seq = int64(n + 1)
		}
		if _, err := agent.Reduce(events); err != nil {
			failed++
			require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "seed %d", seed)
			require.ErrorContains(t, err, "event ", "seed %d", seed)
		}
		_, _ = agent.RepairOf(events, agent.UndoSteps{ID: "u", Steps: []string{"1.1"}, Reason: "x"})
	}
	require.Positive(t, failed, "the events that once made readers panic are among them")
	_, err := agent.Reduce([]agent.Event{{Seq: 1, Type: agent.EventStarted, Data: agent.JSON(`{"rules":99}`)}})
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err))
}
