package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// Who gets a verdict back that decided nothing is told what kind of reason it was,
// and so is who reads the journal later.
func TestVoid_Codes(t *testing.T) {
	pay := tool.Keyed("pay", keyed[mail, sent], func(*secrets, mail, sent) error { return nil }).
		Gate(tool.Gate[secrets, mail]{Roles: []string{"boss"}, Quorum: 2})
	def := agent.Define(agent.Spec[start, secrets]{Name: "s", Version: 1, Instructions: "x", Init: func(start) (secrets, error) { return secrets{}, nil },
		Phases: []agent.Phase[secrets]{{Name: "work", Tools: []agent.Tool[secrets]{pay}, Moves: []agent.Move[secrets]{{To: "end"}}}, {Name: "end", Final: true}}})
	tr := begin(t, def, `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`pay {"refund_id":"a"}`)
	g := tr.gate("1.1")
	good := agent.Verdict{Gate: g.ID, Digest: g.Digest, Verdict: agent.Approve, Principal: agent.Principal{Subject: "kim", Roles: []string{"boss"}}}
	void := func(id string, want agent.Code, change func(*agent.Verdict)) {
		v := good
		v.ID = id
		change(&v)
		events := tr.step(agent.VerdictGiven{Verdict: v})
		require.Equal(t, agent.Voided, tr.receipt.Status, id)
		require.Equal(t, want, tr.receipt.Code, id)
		require.Contains(t, events[0].Data.String(), `"code":"`+string(want)+`"`, id)
	}
	void("x1", agent.CodeNotFound, func(v *agent.Verdict) { v.Gate = "9.9" })
	void("x2", agent.CodeStale, func(v *agent.Verdict) { v.Digest = "other" })
	void("x3", agent.CodeDenied, func(v *agent.Verdict) { v.Principal.Roles = nil })
	void("x4", agent.CodeInvalid, func(v *agent.Verdict) { v.Verdict, v.Answer = agent.GiveAnswer, &agent.Answer{Confirm: new(bool)} })
	good.ID = "x5"
	tr.step(agent.VerdictGiven{Verdict: good})
	require.Equal(t, agent.Accepted, tr.receipt.Status)
	void("x6", agent.CodeConflict, func(*agent.Verdict) {})
	tr.verdict("1.1", agent.Reject, "no")
	void("x7", agent.CodeGateClosed, func(*agent.Verdict) {})
	require.NotNil(t, tr.receipt.Gate.At)
}

// An undo that waits at its gate is no answer to a message: a verdict that is kept
// until the message is answered is kept on, and the model can still withdraw its call.
func TestVerdict_KeptWhileAnUndoOpensItsGate(t *testing.T) {
	tr := begin(t, deskAgent(), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(charge(78))
	tr.done("1.1", `{"id":"r"}`)
	tr.model(`risky {"order_id":"77","amount":{"minor":50,"currency":"EUR"}}`)
	tr.message("no, stop that")
	tr.verdict("2.1", agent.Approve, "")
	require.Equal(t, agent.KeptBack, tr.receipt.Status)
	require.Equal(t, agent.Accepted, tr.undo("1.1").Status)
	require.Equal(t, agent.GateOpen, tr.gate("3.1").Status, "the undo waits for a person")
	require.Empty(t, tr.started(), "the message is not answered")
	require.Equal(t, agent.GateOpen, tr.gate("2.1").Status)
	tr.model(`withdraw {"step":"2.1"}`)
	require.Equal(t, agent.GateWithdrawn, tr.gate("2.1").Status)
	tr.model()
	require.Empty(t, tr.m.Run().Kept, "judged after the answer")
	tr.reduces()
}
