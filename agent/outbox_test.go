package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// However much is sent while the journal takes nothing, what one activity carries is
// bounded, the batches are one chain, and each says where the run stood at its end.
func TestOutbox_EveryBatchIsBounded(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.m.Run().Limits.State = agent.DefaultLimits().State
	limit := tr.m.Run().Limits.Batch
	for i := range 50 {
		tr.step(agent.VerdictGiven{Verdict: agent.Verdict{ID: fmt.Sprint("v", i), Gate: "9.9", Digest: "d", Verdict: agent.Edit, Reason: "other",
			Args: agent.JSON(`{"x":"` + strings.Repeat("a", 60_000) + `"}`), Principal: agent.Principal{Subject: "kim"}}})
	}
	for i := range 2000 {
		tr.step(agent.Malformed{Name: "verdict", Reason: fmt.Sprint(i, strings.Repeat("b", 5000))})
	}
	all := tr.m.Batch()
	bytes, before, salt := 0, "", all.Salt
	n := 0
	for tr.m.Unacknowledged() {
		b := tr.m.NextBatch()
		text, err := agent.Encode(b)
		require.NoError(t, err)
		require.LessOrEqual(t, len(text), limit+1024)
		require.Equal(t, before, b.Before)
		for _, e := range b.Events {
			before = e.Chain(salt, before)
			n++
		}
		run, err := agent.Reduce(all.Events[:n])
		require.NoError(t, err)
		require.Equal(t, agent.Head{Status: run.Status, Reason: run.Reason, Phase: run.Phase, Turn: run.Turn}, b.Head)
		require.Equal(t, b.Last() == all.Last(), tr.m.FitsBatch())
		bytes += len(text)
		tr.m.Ack(b.Last())
	}
	require.Equal(t, len(all.Events), n, "nothing is lost")
	require.Greater(t, bytes, 10*limit)
}

// What a void verdict brought is not kept; a repeat is known all the same.
func TestVerdict_VoidIsRecordedWithoutItsArguments(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.m.Run().Limits.State = agent.DefaultLimits().State
	v := agent.VerdictGiven{Verdict: agent.Verdict{ID: "v", Gate: "9.9", Digest: "d", Verdict: agent.Edit, Reason: "other",
		Args: agent.JSON(`{"x":"` + strings.Repeat("a", 60_000) + `"}`), Principal: agent.Principal{Subject: "kim"}}}
	events := tr.step(v)
	require.Len(t, events, 1)
	require.Equal(t, agent.EventVerdict, events[0].Type)
	require.Less(t, len(events[0].Data), 1000)
	require.Empty(t, tr.step(v))
}

// A trace id decides nothing and stands in every event: 32 hex digits, or none.
func TestTraceID_Is32HexDigitsOrNone(t *testing.T) {
	const good = "4bf92f3577b34da6a3ce929d0e0e4736"
	for id, want := range map[string]string{good: good, "": "", strings.Repeat("a", 700_000): "", strings.ToUpper(good): "", good[1:] + "\n": ""} {
		def := deskAgent()
		m := agent.NewMachine(def)
		m.Step(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), id, agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Rules: agent.Rules,
			Limits: def.Limits(), User: "u", Body: agent.JSON(`{"customer_id":"c"}`)})
		for _, e := range m.Batch().Events {
			require.Equal(t, want, e.TraceID)
		}
	}
}

// The end of an effect is recorded though nothing else is launched: the run is
// paused, or a step beside it still runs. Not so what only reads.
func TestEffect_EndIsRecordedAtOnce(t *testing.T) {
	records := func(tr *trial, in agent.Input) int {
		n := 0
		commands, _ := tr.m.Step(tr.now, "", in)
		for _, c := range commands {
			if _, ok := c.(agent.Record); ok {
				n++
			}
		}
		return n
	}
	begun := func() *trial {
		tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
		tr.message("go")
		tr.model(`charge {"order_id":"77","amount":{"minor":5,"currency":"EUR"}}`, `find_order {"order_id":"77"}`)
		return tr
	}
	tr := begun()
	require.Equal(t, 1, records(tr, agent.StepFinished{Step: "1.1", Result: agent.JSON(`{"id":"r-1"}`)}), "beside a step that runs")
	tr = begun()
	require.Zero(t, records(tr, agent.StepFinished{Step: "1.2", Result: agent.JSON(`{"id":"77","total":{"minor":5,"currency":"EUR"}}`)}), "it only reads")
	tr.step(agent.PauseRun{ID: "p", Principal: agent.Principal{Subject: "ops"}})
	require.Equal(t, 1, records(tr, agent.StepFinished{Step: "1.1", Result: agent.JSON(`{"id":"r-1"}`)}), "while the run is paused")
	tr = begun()
	require.Equal(t, 1, records(tr, agent.StepNotApplied{Step: "1.1", Reason: "down"}), "that it did not happen too")
}
