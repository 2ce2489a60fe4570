package agent_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// till pays what the user said yes to, whatever the phase allows: the model may call it
// at any time, and a reviewer decides about some.
func till(t *testing.T) *agent.Definition {
	t.Helper()
	pay := tool.Keyed("pay", keyed[refundArgs, refund], func(s *state, _ refundArgs, r refund) error { s.RefundID = r.ID; return nil }).
		Confirmed("order_id", "amount").
		Gate(tool.Gate[state, refundArgs]{Roles: []string{"boss"}, Reads: []string{"order_id", "amount"},
			When: func(_ agent.Situation[state], a refundArgs) bool { return a.Amount.Minor > 50_00 }})
	pay.Undo(tool.Keyed("unpay", keyed[tool.Done[refundArgs, refund], sent], func(s *state, _ tool.Done[refundArgs, refund], _ sent) error {
		s.RefundID = ""
		return nil
	}))
	return agent.Define(agent.Spec[start, state]{Name: "till", Version: 1, Instructions: "x",
		Init: func(in start) (state, error) { return state{CustomerID: in.CustomerID}, nil },
		Phases: []agent.Phase[state]{
			{Name: "work", Tools: []agent.Tool[state]{findTool(), pay}, Moves: []agent.Move[state]{
				{To: "clicked", When: func(s agent.Situation[state]) error { return s.Answered("order_id", "amount") }}, {To: "end"}}},
			{Name: "clicked", Moves: []agent.Move[state]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// shownTo is a run that has shown an order and its amount.
func shownTo(t *testing.T, minor string) (tr *trial, gate string) {
	t.Helper()
	tr = begin(t, till(t), `{"customer_id":"c"}`)
	tr.message("refund 77")
	tr.model(`set_fields {"fields":{"order_id":"77"},"quote":"77"}`, `find_order {"order_id":"77"}`)
	tr.done("1.1", `{"id":"77","total":{"minor":`+minor+`,"currency":"EUR"}}`)
	tr.model(`ask {"question":"This one?","fields":["order_id","amount"]}`)
	return tr, "2.1"
}

func call77(minor string) string {
	return `pay {"order_id":"77","amount":{"minor":` + minor + `,"currency":"EUR"}}`
}

// answerOf is a call's answer, whether the model has seen it yet or not.
func answerOf(tr *trial, call string) agent.ProposedCall {
	for _, turn := range tr.m.Run().Turns {
		if turn.Proposal == nil {
			continue
		}
		for _, c := range turn.Proposal.Calls {
			if c.ID == call {
				return c
			}
		}
	}
	tr.t.Fatalf("there is no call %s", call)
	return agent.ProposedCall{}
}

const yes77 = `confirm {"fields":["order_id","amount"]}`

// said has the user answer and the model take that for a yes.
func said(t *testing.T, minor, text string) *trial {
	t.Helper()
	tr, _ := shownTo(t, minor)
	tr.message(text)
	tr.model(yes77)
	return tr
}

// The whole message that closed the ask is recorded: the model can choose no words of it.
func TestYes_IsTheWholeMessageThatClosedTheAsk(t *testing.T) {
	tr := said(t, "1000", "my wife said yes, I say no")
	for _, f := range []string{"order_id", "amount"} {
		require.Equal(t, "my wife said yes, I say no", tr.m.Run().Confirmed[f].Quote)
		require.Equal(t, agent.SaidYes, tr.m.Run().Confirmed[f].How)
	}
	tr, _ = shownTo(t, "1000")
	tr.message("No, stop.")
	tr.model(`confirm {"fields":["order_id","amount"],"quote":"."}`)
	require.Contains(t, answerOf(tr, "c3_1").Text, "/quote does not exist")
	tr.reduces()
}

// Before the user has answered, and after they have written again, there is no yes.
func TestYes_OfNoOtherMessage(t *testing.T) {
	tr := begin(t, till(t), `{"customer_id":"c"}`)
	tr.message("yes, refund 77")
	tr.model(`set_fields {"fields":{"order_id":"77"},"quote":"77"}`, `ask {"question":"?","fields":["order_id"]}`, `confirm {"fields":["order_id"]}`)
	require.Contains(t, answerOf(tr, "c1_3").Text, "no message of the user's has answered")
	tr.message("yes")
	tr.model()
	tr.message("No, stop!")
	tr.model(`confirm {"fields":["order_id"]}`)
	require.Contains(t, answerOf(tr, "c3_1").Text, "has written again")
	require.Empty(t, tr.m.Run().Confirmed)
}

// A structured no voids the showing, and the yes before it with the call that rests on it.
func TestYes_VoidedByANo(t *testing.T) {
	tr, gate := shownTo(t, "1000")
	tr.by(run7, gate, answers(&no, ""))
	tr.message("Where are you located?")
	tr.model(yes77, call77("1000"))
	require.Empty(t, tr.m.Run().Confirmed)
	require.Empty(t, tr.m.Run().Shown)
	require.Equal(t, "refused", answerOf(tr, "c3_1").Status)
	require.Equal(t, "refused", answerOf(tr, "c3_2").Status)

	tr = said(t, "9000", "yes")
	tr.model(call77("9000"))
	require.Equal(t, agent.GateOpen, tr.gate("4.1").Status)
	tr.message("hm")
	tr.model(`ask {"question":"Still?","fields":["order_id","amount"]}`)
	tr.by(run7, "5.1", answers(&no, ""))
	require.Equal(t, agent.GateVoid, tr.gate("4.1").Status)
	tr.reduces()
}

// Any change of a value voids all that was shown with it, for good, also when the old
// value returns; setting the same value is no change.
func TestYes_VoidedByAnyChange(t *testing.T) {
	tr := said(t, "1000", "yes, 77")
	tr.model(`set_fields {"fields":{"order_id":"77"},"quote":"77"}`)
	require.Len(t, tr.m.Run().Confirmed, 2, "the same value is no change")
	tr.model()
	tr.message("no, 78")
	tr.model(`set_fields {"fields":{"order_id":"78"},"quote":"78"}`)
	require.Empty(t, tr.m.Run().Confirmed)
	require.Empty(t, tr.m.Run().Shown)
	tr.model()
	tr.message("sorry, 77")
	tr.model(`set_fields {"fields":{"order_id":"77"},"quote":"77"}`, `find_order {"order_id":"77"}`, yes77)
	require.Empty(t, tr.m.Run().Confirmed)

	// The amount alone changes: the yes to the order is void too.
	tr = said(t, "1000", "yes")
	tr.model(`find_order {"order_id":"77"}`)
	tr.done("4.1", `{"id":"77","total":{"minor":2000,"currency":"EUR"}}`)
	require.Empty(t, tr.m.Run().Confirmed)
}

// A tool that names a confirmation is refused without it, whatever the phase allows, and
// with another value.
func TestYes_NeededByTheTool(t *testing.T) {
	tr, _ := shownTo(t, "1000")
	tr.message("yes")
	tr.model(call77("1000"), yes77, call77("2000"), `pay {"order_id":"78","amount":{"minor":1000,"currency":"EUR"}}`, call77("1000"))
	require.Contains(t, answerOf(tr, "c3_1").Text, "needs the user's yes to order_id")
	require.Contains(t, answerOf(tr, "c3_3").Text, "the user said yes to amount as")
	require.Contains(t, answerOf(tr, "c3_4").Text, `the user said yes to order_id as "77"`)
	require.Equal(t, agent.StepRunning, tr.m.Run().Steps[len(tr.m.Run().Steps)-1].Status)
	require.Equal(t, "3.1", tr.m.Run().Confirmed["amount"].Step)
	tr.reduces()
}

// A yes is used once: reserved while the step is open, spent when it is done; what stands
// needs none, and what was undone is never paid again on the old yes.
func TestYes_UsedOnce(t *testing.T) {
	tr := said(t, "1000", "yes")
	tr.model(call77("1000"))
	tr.done("4.1", `{"id":"r-1"}`)
	require.Empty(t, tr.m.Run().Confirmed)
	require.Empty(t, tr.m.Run().Shown)
	tr.model(call77("1000"), yes77)
	require.Contains(t, answerOf(tr, "c5_1").Text, "this happened already, as step 4.1")
	require.Contains(t, answerOf(tr, "c5_2").Text, "was not shown")
	tr.model()
	tr.step(agent.UndoSteps{ID: "undo", Principal: agent.Principal{Subject: "op", Roles: []string{"operator"}}, Steps: []string{"4.1"}, Reason: "wrong"})
	undo := tr.m.Run().Steps[len(tr.m.Run().Steps)-1]
	require.Equal(t, agent.ByUndo, undo.By)
	tr.done(undo.ID, `{"id":"u"}`)
	tr.message("so?")
	turn := tr.m.Run().Turn
	tr.model(call77("1000"), yes77)
	require.Equal(t, "refused", answerOf(tr, fmt.Sprintf("c%d_1", turn)).Status)
	require.Equal(t, "refused", answerOf(tr, fmt.Sprintf("c%d_2", turn)).Status)
	tr.reduces()
}

// It is free again when the step ends without its effect, and spent when nobody knows.
func TestYes_FreeOrSpent(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(tr *trial)
		free bool
	}{
		{"rejected", func(tr *trial) { tr.verdict("4.1", agent.Reject, "no") }, true},
		{"returned", func(tr *trial) { tr.verdict("4.1", agent.Return, "look again") }, true},
		{"withdrawn", func(tr *trial) { tr.message("wait"); tr.model(`withdraw {"step":"4.1"}`) }, true},
		{"refused", func(tr *trial) {
			tr.verdict("4.1", agent.Approve, "")
			tr.step(agent.StepNotApplied{Step: "4.1", Reason: "no"})
		}, true},
		{"in doubt", func(tr *trial) {
			tr.verdict("4.1", agent.Approve, "")
			tr.step(agent.StepUnknown{Step: "4.1", Reason: "?"})
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := said(t, "9000", "yes")
			tr.model(call77("9000"))
			require.Equal(t, "4.1", tr.m.Run().Confirmed["order_id"].Step)
			c.end(tr)
			yes, there := tr.m.Run().Confirmed["order_id"]
			require.Equal(t, c.free, there)
			require.Empty(t, yes.Step)
			tr.reduces()
		})
	}
}

// Words that a model reads as a yes are no click.
func TestYes_Answered(t *testing.T) {
	tr := said(t, "1000", "yes")
	tr.model(`move {"to":"clicked"}`)
	require.Contains(t, answerOf(tr, "c4_1").Text, "confirmed in words only")
	tr, gate := shownTo(t, "1000")
	tr.by(run7, gate, answers(&yes, ""))
	tr.model(`move {"to":"clicked"}`)
	require.Equal(t, "clicked", tr.m.Run().Phase)
}
