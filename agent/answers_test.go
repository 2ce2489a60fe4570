package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

var run7 = agent.Principal{Subject: "u"} // the run's user

func answers(confirm *bool, fields string) agent.Verdict {
	return agent.Verdict{Verdict: agent.GiveAnswer, Answer: &agent.Answer{Confirm: confirm, Fields: agent.JSON(fields)}}
}

var yes, no = true, false

// asked begins a run that asks for the order, which is set, and the port, which is
// not.
func asked(t *testing.T) *trial {
	tr := begin(t, bankAgent(tellers), `{"customer_id":"c"}`)
	tr.message("pay 7")
	tr.model(`set_fields {"fields":{"order_id":"7"},"quote":"7"}`, `ask {"question":"This order, and which port?","fields":["order_id","port"]}`)
	g := tr.gate("1.1")
	require.Equal(t, agent.KindAsk, g.Kind)
	require.Equal(t, []string{"order_id"}, g.Reads, "what has no value is not shown")
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"properties":{"order_id":{"type":"string"},"port":{"type":"integer"}}}`, g.Schema.String())
	return tr
}

func TestAnswer(t *testing.T) {
	tr := asked(t)
	events := tr.by(run7, "1.1", answers(&yes, `{"port":8080}`))
	require.Equal(t, []agent.EventType{agent.EventVerdict, agent.EventGateClosed, agent.EventConfirmed, agent.EventStateSet, agent.EventStepSettled,
		agent.EventTurnStarted}, types(events))
	require.Equal(t, agent.GateAnswered, tr.gate("1.1").Status)
	require.Contains(t, tr.m.Run().Confirmed, "order_id")
	require.NotContains(t, tr.m.Run().Confirmed, "port")
	require.JSONEq(t, `{"order_id":"7","port":8080,"note":"","paid":""}`, tr.m.Run().State.String())
	p := tr.m.Run().Provenance["port"]
	require.Equal(t, "user", p.Source)
	require.Equal(t, "u", p.By)
	last := tr.lastView().Turns[len(tr.lastView().Turns)-1]
	require.Equal(t, `The question of step 1.1 was answered by u: yes to order_id; set {"port":8080}.`, last.Opening[0].Text)
	tr.reduces()

	// The yes is bound to the value: a change voids it.
	tr.model()
	tr.step(agent.AmendRun{ID: "a", Principal: agent.Principal{Subject: "desk"}, Fields: agent.JSON(`{"order_id":"8"}`)})
	require.Empty(t, tr.m.Run().Confirmed)
}

// A no is told, and binds nothing.
func TestAnswer_No(t *testing.T) {
	tr := asked(t)
	v := answers(&no, "")
	v.Reason = "the other lamp"
	tr.by(run7, "1.1", v)
	require.Empty(t, tr.m.Run().Confirmed)
	require.Empty(t, tr.m.Run().Rulings)
	last := tr.lastView().Turns[len(tr.lastView().Turns)-1]
	require.Equal(t, `The question of step 1.1 was answered by u: no to the values shown. u adds: the other lamp.`, last.Opening[0].Text)
	tr.model(`confirm {"fields":["order_id"]}`)
	require.Equal(t, "refused", tr.answer("c2_1").Status)
}

// Answers of nought, no and nothing are answers.
func TestAnswer_Falsy(t *testing.T) {
	tr := asked(t)
	tr.by(run7, "1.1", answers(nil, `{"port":0,"order_id":""}`))
	require.Equal(t, agent.Accepted, tr.receipt.Status)
	require.Equal(t, agent.GateAnswered, tr.gate("1.1").Status)
	require.JSONEq(t, `{"order_id":"","port":0,"note":"","paid":""}`, tr.m.Run().State.String())
	tr.reduces()
}

// Asked until the answer fits: what does not is refused with what is wrong.
func TestAnswer_Refused(t *testing.T) {
	tr := asked(t)
	refused := func(v agent.Verdict, says string) {
		t.Helper()
		require.Empty(t, tr.by(run7, "1.1", v))
		require.Equal(t, agent.Refused, tr.receipt.Status)
		require.Contains(t, tr.receipt.Reason, says)
		require.Equal(t, agent.GateOpen, tr.gate("1.1").Status)
	}
	refused(answers(nil, ""), "an answer has confirm")
	refused(answers(nil, `{}`), "are an object")
	refused(answers(nil, `[]`), "are an object")
	refused(answers(nil, `{"port":"abc"}`), "/port")
	refused(answers(nil, `{"port":8.5}`), "8.5")
	refused(answers(nil, `{"port":9223372036854775808}`), "does not fit")
	refused(answers(nil, `{"port":null}`), "port needs a value")
	refused(answers(nil, `{"note":"x"}`), "gate 1.1 does not ask for note; an answer may set: order_id, port")
	refused(answers(&yes, `{"order_id":"8"}`), "confirms order_id as shown and changes it")
	refused(agent.Verdict{Verdict: agent.GiveAnswer}, "an answer has confirm")
	refused(agent.Verdict{Verdict: agent.Approve, Answer: &agent.Answer{Confirm: &yes}}, "only the verdict answer has an answer")
	tr.by(run7, "1.1", answers(nil, `{"port":9007199254740993}`))
	require.Contains(t, tr.m.Run().State.String(), "9007199254740993")

	// Without values shown there is nothing to confirm.
	tr.model(`ask {"question":"Sure?"}`)
	tr.by(run7, "2.1", answers(&yes, ""))
	require.Contains(t, tr.receipt.Reason, "shows no values that could be confirmed")
	tr.by(run7, "2.1", answers(nil, `{"port":1}`))
	require.Contains(t, tr.receipt.Reason, "an answer may set: none")
	tr.reduces()
}

// Only the run's user answers, and only a question.
func TestAnswer_Void(t *testing.T) {
	tr := asked(t)
	voided := func(who agent.Principal, gate string, v agent.Verdict, says string) {
		t.Helper()
		tr.by(who, gate, v)
		require.Equal(t, agent.Voided, tr.receipt.Status)
		require.Contains(t, tr.receipt.Reason, says)
	}
	voided(teller("ann"), "1.1", answers(&yes, ""), "only u, whom the run serves, answers")
	voided(agent.Principal{Subject: "u", Tenant: "other"}, "1.1", answers(&yes, ""), "another tenant")
	voided(run7, "1.1", approve(), "answers it by a message or by answer")
	stale := answers(&yes, "")
	stale.Digest = "0123"
	voided(run7, "1.1", stale, "the digest is not that of gate")
	// A message answers it too, and comes first.
	tr.message("yes")
	voided(run7, "1.1", answers(&no, ""), "closed as answered by u")
	require.Empty(t, tr.m.Run().Confirmed, "the model interprets a message")
	tr.model(`pay ` + payArgs(500))
	voided(run7, "2.1", answers(&yes, ""), "is no question")
	// A change of what it shows voids the question, and its answer.
	tr = asked(t)
	tr.step(agent.AmendRun{ID: "a", Principal: agent.Principal{Subject: "desk"}, Fields: agent.JSON(`{"order_id":"8"}`)})
	voided(run7, "1.1", answers(&yes, ""), "closed as void")
	require.Empty(t, tr.m.Run().Confirmed)
	tr.reduces()
}

// Of two questions each gets its own answer, in whatever order they come.
func TestAnswer_TwoQuestions(t *testing.T) {
	tr := begin(t, bankAgent(tellers), `{"customer_id":"c"}`)
	tr.message("pay 7")
	tr.model(`ask {"question":"Which order?","fields":["order_id"]}`, `ask {"question":"Which port?","fields":["port"]}`)
	first := tr.gate("1.1")
	tr.by(run7, "1.2", answers(nil, `{"port":0}`))
	require.Equal(t, agent.Accepted, tr.receipt.Status)
	require.Equal(t, agent.GateOpen, tr.gate("1.1").Status)
	require.Equal(t, 1, tr.m.Run().Turn, "the other one still waits")
	stale := answers(nil, `{"order_id":"8"}`)
	stale.Digest = first.Digest
	tr.by(run7, "1.2", stale)
	require.Equal(t, agent.Voided, tr.receipt.Status)
	tr.redeployed(bankAgent(tellers)) // as after a reload
	tr.by(run7, "1.1", answers(nil, `{"order_id":"8"}`))
	require.Equal(t, 2, tr.lastView().Turn)
	require.JSONEq(t, `{"order_id":"8","port":0,"note":"","paid":""}`, tr.m.Run().State.String())
	tr.reduces()
}
