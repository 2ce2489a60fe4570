package workflows_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/tool"
)

// What was approved has run, and the model cannot be reached: the same approval
// again is known, another one decides nothing, and only the model is asked again.
func TestVerdicts_RepeatedWhileTheModelIsDown(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	model := watch(turns(call("pay", "1"), scripted.Say("Paid."), scripted.Say("Paid.")).(*scripted.Model).Failing(func(llm.Request) error {
		if down.Load() {
			return &llm.Error{Kind: llm.KindUnavailable, Message: "500"}
		}
		return nil
	}))
	db := labDB(t)
	w := newWorld(t, model, lab{db: db, gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}}, limits: agent.Limits{Outage: 3 * time.Second}}.agent())
	address := w.start("k")
	w.say(address, "pay")
	gate := lastGate(w.until(address, "gate", waiting("gate")))
	down.Store(true)
	v := w.verdict(gate, agent.Approve, "")
	_, err := w.starter.Decide(w.ctx, address, v)
	require.NoError(t, err)
	run := w.until(address, "pause", paused)
	require.Contains(t, run.Reason, "model: ")
	require.Equal(t, 1, payments(t, db))
	w.signal(address, signals.NameVerdict, v)
	r, err := w.starter.Decide(w.ctx, address, v)
	require.NoError(t, err)
	require.Equal(t, agent.GateApproved, r.Gate.Status)
	other := w.verdict(gate, agent.Approve, "")
	r, err = w.starter.Decide(w.ctx, address, other)
	require.NoError(t, err)
	require.Equal(t, agent.CodeGateClosed, r.Code, "%s", r.Reason)
	require.Equal(t, ann.Subject, r.Gate.By)
	down.Store(false)
	_, err = w.starter.Resume(w.ctx, address, signals.Resume{ID: "r", Principal: ops})
	require.NoError(t, err)
	run = w.until(address, "the answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Reply != nil })
	require.Equal(t, agent.StepDone, run.Steps[0].Status)
	require.Len(t, run.Steps, 1)
	require.Equal(t, 1, payments(t, db))
	w.cancelled(address)
	require.Len(t, recorded[agent.VerdictData](w, address, agent.EventVerdict), 2)
}

// Who decides about a run that was terminated is told that it is closed.
func TestVerdicts_RunClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, turns(call("pay", "1")), lab{db: labDB(t), gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}}}.agent())
	address := w.start("k")
	w.say(address, "pay")
	gate := lastGate(w.until(address, "gate", waiting("gate")))
	w.quiet(address)
	require.NoError(t, temporalClient.TerminateWorkflow(w.ctx, address, "", "by hand"))
	for name, s := range starters {
		_, err := s(w).Decide(w.ctx, address, w.verdict(gate, agent.Approve, ""))
		require.Equal(t, agent.CodeEnded, agent.ErrorCode(err), "%s: %v", name, err)
	}
}
