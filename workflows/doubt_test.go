package workflows_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/store"
)

var operator = agent.Principal{Subject: "olga", Roles: []string{agent.DefaultOperator}}

// doubtful is a run whose shot is in doubt, asked about at a gate.
func doubtful(t *testing.T) (w *world, address string, gate agent.Gate, shots *atomic.Int64) {
	t.Helper()
	shots = &atomic.Int64{}
	fire := func(_ context.Context, a text) (text, error) {
		if shots.Add(1) == 1 {
			return text{}, errors.New("the line went dead")
		}
		return a, nil
	}
	model := scripted.Func("scripted", func(req llm.Request) llm.Response {
		switch req.View.Turn {
		case 1:
			return call("fire", "1")
		case 2:
			return call("fire", "1") // once more: what becomes of it?
		}
		return toEnd
	})
	w = newWorld(t, model, lab{db: labDB(t), fire: fire}.agent())
	address = w.start("k")
	w.say(address, "fire")
	run := w.until(address, "in doubt", func(r *agent.Run) bool { return waiting("operator")(r) && r.Turn == 1 })
	gate = lastGate(run)
	require.Equal(t, "1.1-doubt", gate.ID)
	require.Equal(t, agent.KindDoubt, gate.Kind)
	require.Contains(t, gate.Policy, "the line went dead")
	eventually(t, "operators find the gate", func() bool {
		rows, err := w.starter.Gates(w.ctx, "acme", store.GateFilter{Role: agent.DefaultOperator, Status: agent.GateOpen})
		return err == nil && len(rows) == 1 && rows[0].Gate.ID == gate.ID
	})
	return w, address, gate, shots
}

func (w *world) resolve(address string, g agent.Gate, v signals.Verdict) agent.Receipt {
	w.t.Helper()
	v.ID, v.Gate, v.Digest, v.Principal, v.Reason = w.id("v"), g.ID, g.Digest, operator, "looked it up"
	r, err := w.starter.Decide(w.ctx, address, v)
	require.NoError(w.t, err)
	require.Equal(w.t, agent.Accepted, r.Status, r.Reason)
	require.Equal(w.t, agent.GateResolved, r.Gate.Status)
	return r
}

func (w *world) settled(address string) (out []store.EffectStatus) {
	w.t.Helper()
	effects, err := w.effects(address)
	require.NoError(w.t, err)
	for _, e := range effects {
		out = append(out, e.Status)
	}
	return out
}

// It happened: the result that the operator gives goes into the state and into
// the ledger, and the same call again stands.
func TestDoubt_Happened(t *testing.T) {
	t.Parallel()
	w, address, gate, shots := doubtful(t)
	w.resolve(address, gate, signals.Verdict{Verdict: agent.Happened, Result: agent.JSON(`{"text":"seen"}`)})
	run := w.finished(address, agent.RunCompleted)
	require.Contains(t, run.State.String(), `"sent":"seen"`)
	require.EqualValues(t, 1, shots.Load())
	require.Equal(t, []store.EffectStatus{store.EffectApplied}, w.settled(address))
}

// It did not happen, and is given up: the same call is a new effect.
func TestDoubt_DidNotHappen(t *testing.T) {
	t.Parallel()
	w, address, gate, shots := doubtful(t)
	w.resolve(address, gate, signals.Verdict{Verdict: agent.DidNotHappen})
	run := w.finished(address, agent.RunCompleted)
	require.Contains(t, run.State.String(), `"sent":"1"`)
	require.EqualValues(t, 2, shots.Load(), "the model called again")
	require.Equal(t, []store.EffectStatus{store.EffectRefused, store.EffectApplied}, w.settled(address))
}

// It did not happen, and is run again by code; the model's call stands then.
func TestDoubt_DidNotHappenAgain(t *testing.T) {
	t.Parallel()
	w, address, gate, shots := doubtful(t)
	w.resolve(address, gate, signals.Verdict{Verdict: agent.DidNotHappen, Again: true})
	run := w.finished(address, agent.RunCompleted)
	require.Contains(t, run.State.String(), `"sent":"1"`)
	require.EqualValues(t, 2, shots.Load())
	require.Equal(t, []store.EffectStatus{store.EffectRefused, store.EffectApplied}, w.settled(address))
}

// A run in doubt that is cancelled asks nobody any more, and says what it left.
func TestDoubt_Cancelled(t *testing.T) {
	t.Parallel()
	w, address, gate, _ := doubtful(t)
	_, err := w.starter.Cancel(w.ctx, address, signals.Cancel{ID: "c", Principal: customer})
	require.NoError(t, err)
	run := w.until(address, "end", ended)
	require.Equal(t, []string{"1.1 fire: in_doubt"}, run.FailedEnd)
	for _, g := range run.Gates {
		require.NotEqual(t, agent.GateOpen, g.Status)
	}
	w.requireJournal(run)
	_, err = w.starter.Decide(w.ctx, address, signals.Verdict{ID: "late", Gate: gate.ID, Digest: gate.Digest, Verdict: agent.Happened,
		Result: agent.JSON(`{"text":"seen"}`), Reason: "late", Principal: operator})
	require.Equal(t, agent.CodeEnded, agent.ErrorCode(err))
}
