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
