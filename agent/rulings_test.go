package agent_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

func (tr *trial) lift(who agent.Principal, ruling, reason string) []agent.Event {
	tr.n++
	return tr.step(agent.LiftRuling{ID: fmt.Sprintf("l%d", tr.n), Ruling: ruling, Principal: who, Reason: reason})
}

func (tr *trial) confirmRuling(who agent.Principal, ruling string) []agent.Event {
	tr.n++
	return tr.step(agent.ConfirmRuling{ID: fmt.Sprintf("l%d", tr.n), Ruling: ruling, Principal: who})
}

func TestRuling_EndsWhenFieldsChange(t *testing.T) {
	tr := bank(t, tellers)
	tr.by(teller("ann"), "1.1", reject("no receipt"))
	tr.model(`pay ` + payArgs(500))
	require.Equal(t, 3, tr.lastView().Turn)
	require.Contains(t, tr.answer("c2_1").Text, "ann rejected this (no receipt); it stays refused while order_id is unchanged")
	tr.model(`pay ` + payArgs(501))
	require.Equal(t, agent.GateOpen, tr.gate("3.1").Status, "it is not about other arguments")
	require.Empty(t, tr.gate("3.1").Rulings)
	tr.step(agent.AmendRun{ID: "a", Principal: agent.Principal{Subject: "desk"}, Fields: agent.JSON(`{"order_id":"8"}`)})
	tr.model(`pay ` + payArgs(500))
	g := tr.gate("4.1")
	require.Equal(t, agent.GateOpen, g.Status)
	require.Equal(t, []string{"ann rejected this on 2026-03-01 09:00: no receipt"}, g.Rulings)
	// It ended for good: the old value coming back does not bring it back.
	tr.step(agent.AmendRun{ID: "b", Principal: agent.Principal{Subject: "desk"}, Fields: agent.JSON(`{"order_id":"7"}`)})
	tr.model(`pay ` + payArgs(500))
	require.Equal(t, agent.GateOpen, tr.gate("5.1").Status)
	require.Len(t, tr.gate("5.1").Rulings, 1)
	// Setting the same value is no change.
	tr.by(teller("ann"), "5.1", reject("still none"))
	tr.message("the same again is a budget's matter")
	tr.step(agent.AmendRun{ID: "c", Principal: agent.Principal{Subject: "desk"}, Fields: agent.JSON(`{"order_id":"7"}`)})
	tr.model(`pay ` + payArgs(500))
	require.Contains(t, tr.answer("c6_1").Text, "ann rejected this (still none)")
	tr.reduces()
}

// A run whose sensitive fields are masked tells as well which rulings bind.
func TestRuling_OfAMaskedRun(t *testing.T) {
	tr := bank(t, tellers)
	tr.by(teller("ann"), "1.1", reject("no receipt"))
	run := *tr.m.Run()
	run.Sensitive = []string{"order_id"}
	masked := run.Masked()
	require.NotEqual(t, run.State, masked.State)
	require.Equal(t, agent.RulingBinds, masked.RulingStatus(masked.Rulings[0]))
	tr.step(agent.AmendRun{ID: "a", Principal: agent.Principal{Subject: "desk"}, Fields: agent.JSON(`{"order_id":"8"}`)})
	require.Equal(t, agent.RulingChanged, tr.m.Run().Masked().RulingStatus(tr.m.Run().Rulings[0]))
}

func TestRuling_Lift(t *testing.T) {
	tr := bank(t, tellers)
	tr.by(teller("ann"), "1.1", reject("no receipt"))
	tr.model()
	for _, c := range []struct {
		who    agent.Principal
		ruling string
		reason string
		code   agent.Code
	}{
		{agent.Principal{Subject: "eve"}, "1.1", "why not", agent.CodeDenied},
		{agent.Principal{Subject: "bob", Roles: []string{"teller"}, Tenant: "other"}, "1.1", "why not", agent.CodeDenied},
		{teller("bob"), "9.9", "why not", agent.CodeNotFound},
		{teller("bob"), "1.1", "", agent.CodeInvalid},
		{agent.Principal{Roles: []string{"teller"}}, "1.1", "x", agent.CodeInvalid},
	} {
		require.Empty(t, tr.lift(c.who, c.ruling, c.reason))
		require.Equal(t, c.code, tr.receipt.Code, tr.receipt.Reason)
	}
	events := tr.lift(teller("bob"), "1.1", "the receipt came")
	require.Equal(t, []agent.EventType{agent.EventRulingLifted}, types(events), "it does not call the model")
	require.Contains(t, tr.cmds, agent.Command(agent.Record{}))
	require.Empty(t, tr.lift(teller("bob"), "1.1", "again"))
	require.Equal(t, agent.CodeConflict, tr.receipt.Code)
	tr.message("try again")
	v := tr.lastView()
	require.True(t, v.Rulings[0].Lifted)
	require.False(t, v.Rulings[0].Binds)
	require.Contains(t, v.Turns[len(v.Turns)-1].Opening[0].Text, "The refusal 1.1 of pay was lifted by bob (the receipt came)")
	tr.model(`pay ` + payArgs(500))
	require.Equal(t, []string{"ann rejected this on 2026-03-01 09:00: no receipt (lifted by bob: the receipt came)"}, tr.gate("3.1").Rulings)
	// A second reject binds anew.
	tr.by(teller("ann"), "3.1", reject("no"))
	tr.model(`pay ` + payArgs(500))
	require.Equal(t, "refused", tr.answer("c4_1").Status)
	tr.lift(agent.Principal{Subject: "ops", Roles: []string{agent.DefaultOperator}}, "3.1", "an operator may too")
	require.Equal(t, agent.Accepted, tr.receipt.Status)
	tr.reduces()
}

// What the model rules out binds nothing until a person confirms it.
func TestRuleOut(t *testing.T) {
	tr := begin(t, bankAgent(tellers), `{"customer_id":"c"}`)
	tr.message("never pay 7")
	tr.model(`set_fields {"fields":{"order_id":"7"},"quote":"7"}`, `rule_out {"tool":"pay","args":`+payArgs(500)+`,"reason":"the user said never"}`)
	require.Equal(t, "drafted as draft-c1_2; it binds nothing until a person confirms it", tr.answer("c1_2").Text)
	require.True(t, tr.lastView().Rulings[0].Draft)
	tr.model(`pay ` + payArgs(500))
	require.Equal(t, agent.GateOpen, tr.gate("2.1").Status)
	require.Empty(t, tr.gate("2.1").Rulings, "a draft is nobody's refusal")
	tr.by(teller("ann"), "2.1", giveBack("wait"))

	require.Empty(t, tr.confirmRuling(agent.Principal{Subject: "u"}, "draft-c1_2"))
	require.Equal(t, agent.CodeDenied, tr.receipt.Code)
	tr.confirmRuling(teller("ann"), "draft-c1_2")
	require.Equal(t, agent.Accepted, tr.receipt.Status)
	require.Equal(t, `pay {"amount":{"currency":"EUR","minor":500},"order_id":"7"} is refused while order_id is unchanged`, tr.receipt.Reason)
	tr.confirmRuling(teller("bob"), "draft-c1_2")
	require.Equal(t, agent.CodeConflict, tr.receipt.Code)
	tr.model(`pay ` + payArgs(500))
	require.Contains(t, tr.answer("c3_1").Text, "ann rejected this (the user said never)")
	tr.reduces()
}

func TestRuleOut_Refused(t *testing.T) {
	tr := begin(t, bankAgent(tellers), `{"customer_id":"c"}`)
	tr.message("go 7")
	tr.model(`rule_out {"tool":"pay","args":{"order_id":7},"reason":"x"}`, `rule_out {"tool":"nothing","args":{},"reason":"x"}`,
		`rule_out {"tool":"move","args":{"to":"nowhere"},"reason":"x"}`, `rule_out {"tool":"pay","args":`+payArgs(1)+`,"reason":" "}`, `rule_out {"tool":"pay"}`)
	for i, says := range []string{"/order_id must be string", "there is no tool nothing", "only a move of this phase that has a gate", "a reason is needed", "/args is missing"} {
		a := tr.answer(fmt.Sprintf("c1_%d", i+1))
		require.Equal(t, "refused", a.Status)
		require.Contains(t, a.Text, says)
	}
	tr.model(`rule_out {"tool":"move","args":{"to":"end"},"reason":"x"}`, `rule_out {"tool":"move","args":{"to":"end"},"reason":"y"}`)
	require.Contains(t, tr.answer("c2_2").Text, "drafted, already as draft-c2_1")
	// Bounded.
	var calls []string
	for i := range 12 {
		calls = append(calls, fmt.Sprintf(`rule_out {"tool":"pay","args":%s,"reason":"x"}`, payArgs(i)))
	}
	tr.model(calls...)
	require.Len(t, tr.m.Run().Rulings, 10)
	require.Contains(t, tr.answer("c3_12").Text, "10 drafts wait for a person already")
	// One that a person drops makes room, and is not drafted again.
	tr.lift(teller("ann"), "draft-c3_1", "no need")
	tr.confirmRuling(teller("ann"), "draft-c3_1")
	require.Contains(t, tr.receipt.Reason, "was dropped by ann")
	tr.model(calls[0], calls[11])
	require.Equal(t, "refused", tr.answer("c4_1").Status)
	require.Equal(t, "done", tr.answer("c4_2").Status)
	// What it was drafted on has changed: it would bind nothing.
	tr.step(agent.AmendRun{ID: "a", Principal: agent.Principal{Subject: "desk"}, Fields: agent.JSON(`{"order_id":"8"}`)})
	tr.step(agent.AmendRun{ID: "b", Principal: agent.Principal{Subject: "desk"}, Fields: agent.JSON(`{"order_id":null}`)})
	tr.confirmRuling(teller("ann"), "draft-c3_2")
	require.Equal(t, agent.CodeConflict, tr.receipt.Code)
	require.Contains(t, tr.receipt.Reason, "order_id changed since")
	// A move, confirmed, is refused.
	tr.confirmRuling(teller("ann"), "draft-c2_1")
	tr.model(`move {"to":"end"}`)
	require.Contains(t, tr.answer("c5_1").Text, "ann rejected this move")
	tr.reduces()
}
