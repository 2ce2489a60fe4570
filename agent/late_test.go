package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// What the model is told to have left counts what was granted on top.
func TestView_LeftAfterAGrant(t *testing.T) {
	tr := begin(t, agent.Define(agent.Spec[start, state]{Name: "few", Version: 1, Instructions: "x", Budget: agent.Budget{Turns: 2},
		Init: func(start) (state, error) { return state{}, nil }, Phases: []agent.Phase[state]{{Name: "a", Moves: []agent.Move[state]{{To: "end"}}}, {Name: "end", Final: true}}}), `{"customer_id":"c"}`)
	tr.message("one")
	tr.model()
	tr.message("two")
	tr.model()
	tr.message("three")
	require.Equal(t, agent.RunPaused, tr.m.Run().Status)
	tr.step(agent.ResumeRun{ID: "r", Principal: agent.Principal{Subject: "ops"}})
	require.Equal(t, 1, *tr.lastView().Left.Turns, "of two that were granted one is under way")
	require.Equal(t, 3, tr.m.Run().Turn)
}

// The approvals of a quorum that came while a message was unanswered keep their recall
// window: it begins when the last of them decides.
func TestTakeBack_OfAQuorumThatWasDeferred(t *testing.T) {
	pay := tool.Keyed("pay", keyed[mail, sent], func(*state, mail, sent) error { return nil }).
		Gate(tool.Gate[state, mail]{Roles: []string{"boss"}, Quorum: 2, TakeBack: time.Minute})
	tr := begin(t, agent.Define(agent.Spec[start, state]{Name: "two", Version: 1, Instructions: "x", Init: func(start) (state, error) { return state{}, nil },
		Phases: []agent.Phase[state]{{Name: "a", Tools: []agent.Tool[state]{pay}, Moves: []agent.Move[state]{{To: "end"}}}, {Name: "end", Final: true}}}), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`pay {"refund_id":"1"}`)
	tr.message("wait") // unanswered
	for _, who := range []string{"ann", "bob"} {
		tr.by(agent.Principal{Subject: who, Roles: []string{"boss"}}, "1.1", agent.Verdict{Verdict: agent.Approve})
		require.Equal(t, agent.KeptBack, tr.receipt.Status, tr.receipt.Reason)
	}
	tr.now = tr.now.Add(10 * time.Minute)
	tr.model()
	require.Equal(t, agent.StepWaiting, tr.stepOf("1.1").Status, "the second approval may still be recalled")
	require.NotNil(t, tr.gate("1.1").Pending)
	require.True(t, tr.gate("1.1").Pending.Until.After(tr.now.Add(30*time.Second)))
	tr.by(agent.Principal{Subject: "bob", Roles: []string{"boss"}}, "1.1", agent.Verdict{Verdict: agent.TakeBack})
	require.Equal(t, agent.Accepted, tr.receipt.Status, tr.receipt.Reason)
	require.Nil(t, tr.gate("1.1").Pending)
	tr.reduces()
}
