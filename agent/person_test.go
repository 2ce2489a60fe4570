package agent_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"ann", "Ann", "ann smith", "auth0|507f", "ann@acme.test", "svc:refund/worker", "José", "محمد", "山田"} {
		require.NoError(t, agent.CheckName("subject", name), name)
	}
	for _, name := range []string{"", " ann", "ann ", "ann  smith", "ann\u200b", "a\u200dnn", "ann\u202e", "ann\u00ad", "ann\u00a0smith", "Jose\u0301", "\uff41nn", "a\x00nn", "a\nnn", "a\xffnn"} {
		err := agent.CheckName("subject", name)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%+q", name)
	}
	require.ErrorContains(t, agent.CheckName("subject", "Jose\u0301"), `give it as "Jos\u00e9"`)
}

// However their name is cased, one person is one of a quorum, and whoever asked is not
// another one.
func TestPersons_AreCountedOnce(t *testing.T) {
	tr := bank(t, bankPolicy{roles: []string{"teller"}, quorum: 2})
	tr.by(teller("ann"), "1.1", approve())
	tr.by(teller("Ann"), "1.1", approve())
	require.Equal(t, agent.CodeConflict, tr.receipt.Code, tr.receipt.Reason)
	tr.by(teller("ann\u200b"), "1.1", approve())
	require.Equal(t, agent.Refused, tr.receipt.Status)
	require.Contains(t, tr.receipt.Reason, "nobody can see")
	require.Empty(t, tr.started())

	tr = bank(t, bankPolicy{roles: []string{"teller"}, distinct: true})
	asker := tr.gate("1.1").Askers[0]
	tr.by(teller(string(asker[0]-'a'+'A')+asker[1:]), "1.1", approve())
	require.Equal(t, agent.CodeDenied, tr.receipt.Code, tr.receipt.Reason)
	require.Empty(t, tr.started())
}

type reviewed struct {
	Limit int64  `json:"limit" set:"reviewer"`
	Note  string `json:"note" set:"reviewer,system"`
}

func reviewedAgent(signed bool) *agent.Definition {
	return agent.Define(agent.Spec[start, reviewed]{Name: "reviewed", Version: 1, Instructions: "x", Signed: signed,
		Init: func(start) (reviewed, error) { return reviewed{}, nil },
		Phases: []agent.Phase[reviewed]{
			{Name: "work", Moves: []agent.Move[reviewed]{{To: "end", Gate: &agent.MoveGate[reviewed]{Roles: []string{"boss"}}}}},
			{Name: "end", Final: true}}})
}

// A field that reviewers set is set by somebody with a role of one of the gates.
func TestAmend_ReviewersField(t *testing.T) {
	tr := begin(t, reviewedAgent(false), `{"customer_id":"c"}`)
	amend := func(who agent.Principal, fields string) agent.Receipt {
		tr.step(agent.AmendRun{ID: unique(tr, "a"), Principal: who, Fields: agent.JSON(fields)})
		return tr.receipt
	}
	r := amend(agent.Principal{Subject: "backend"}, `{"limit":5}`)
	require.Equal(t, agent.CodeDenied, r.Code)
	require.Contains(t, r.Reason, "a role of one of this agent's gates (boss)")
	require.Equal(t, agent.Accepted, amend(agent.Principal{Subject: "backend"}, `{"note":"x"}`).Status)
	require.Equal(t, agent.Accepted, amend(agent.Principal{Subject: "kim", Roles: []string{"boss"}}, `{"limit":5}`).Status)
	require.Contains(t, tr.m.Run().State.String(), `"limit":5`)
}

// A signed agent is steered by nobody who proves nothing; the user may still write.
func TestSigned_EveryInputThatSteers(t *testing.T) {
	tr := begin(t, reviewedAgent(true), `{"customer_id":"c"}`)
	boss := agent.Principal{Subject: "kim", Roles: []string{"boss"}}
	inputs := func(who agent.Principal) []agent.Input {
		return []agent.Input{
			agent.AmendRun{ID: unique(tr, "a"), Principal: who, Fields: agent.JSON(`{"note":"x"}`)},
			agent.UndoSteps{ID: unique(tr, "u"), Principal: who, Steps: []string{"1.1"}, Reason: "so"},
			agent.LiftRuling{ID: unique(tr, "l"), Principal: who, Ruling: "1.1", Reason: "so"},
			agent.ConfirmRuling{ID: unique(tr, "c"), Principal: who, Ruling: "draft-1", Reason: "so"},
			agent.PauseRun{ID: unique(tr, "p"), Principal: who},
			agent.ResumeRun{ID: unique(tr, "r"), Principal: who},
			agent.CancelRun{ID: unique(tr, "x"), Principal: who},
		}
	}
	for _, in := range inputs(boss) {
		tr.step(in)
		require.Equal(t, agent.CodeDenied, tr.receipt.Code, "%T", in)
		require.Contains(t, tr.receipt.Reason, "nothing proves who sent this one", "%T", in)
	}
	tr.message("hello")
	require.Equal(t, agent.Accepted, tr.receipt.Status)
	boss.Auth = "https://login.acme"
	for _, in := range inputs(boss) {
		tr.step(in)
		require.NotEqual(t, agent.CodeDenied, tr.receipt.Code, "%T", in)
	}
	require.Equal(t, agent.RunCancelled, tr.m.Run().Status)
	tr.reduces()
}

func unique(tr *trial, prefix string) string {
	tr.n++
	return fmt.Sprintf("%s%d", prefix, tr.n)
}
