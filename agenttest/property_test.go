package agenttest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/tool"
)

// anything is a model that proposes whatever it is dealt.
var anything = rapid.Custom(func(t *rapid.T) llm.Response {
	order := rapid.SampledFrom([]string{"1042", "1043", ""}).Draw(t, "order")
	parts := []llm.Response{
		scripted.Say("hm \"\n"), scripted.SetFields(order, scripted.Args{"order_id": order}), scripted.Call("find_order", shop.FindArgs{OrderID: order}),
		scripted.Ask("This?", "order_id", "amount"), scripted.Confirm("order_id", "amount"), scripted.MoveTo("pay"), scripted.MoveTo("collect"),
		scripted.MoveTo("declined"), scripted.Raw("find_order", "{"), scripted.RecordFact("yes"), scripted.Finish("bye"),
		scripted.Withdraw(fmt.Sprintf("%d.1", rapid.IntRange(1, 9).Draw(t, "turn")), "why"), scripted.Call("issue_refund", nil),
	}
	return scripted.Then(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 4).Draw(t, "parts")...)
})

// act does one thing that can be done to a run.
func act(t *rapid.T, run *agenttest.Run) {
	r := run.Run()
	if r.Calling && rapid.IntRange(0, 4).Draw(t, "answer") > 0 {
		if rapid.IntRange(0, 9).Draw(t, "fails") == 0 {
			run.ProposeFails("context too long")
		} else {
			run.Propose(anything.Draw(t, "answer"))
		}
		return
	}
	for _, s := range r.Steps {
		if s.Status == agent.StepRunning && rapid.Bool().Draw(t, "end of "+s.ID) {
			end(t, run, s)
			return
		}
	}
	kim := agent.Principal{Subject: "kim", Roles: []string{rapid.SampledFrom([]string{"refunds", "support", agent.DefaultOperator}).Draw(t, "role")}}
	switch rapid.IntRange(0, 8).Draw(t, "act") {
	case 0, 1, 2:
		policy := rapid.SampledFrom([]agent.MessagePolicy{"", "", agent.MessageReject, agent.MessageInterrupt, agent.MessageRollback}).Draw(t, "policy")
		run.Interrupts(rapid.SampledFrom([]string{"yes", "1042", "1043, please", "\u00e4 <\"'>\n\n----\nstate"}).Draw(t, "text"), policy)
	case 3:
		run.Advance(time.Duration(rapid.IntRange(0, 20).Draw(t, "hours")) * time.Hour)
	case 4:
		run.Pause("look")
	case 5:
		run.Resume()
	case 6:
		run.Amend(map[string]any{"order_id": rapid.SampledFrom([]string{"1042", "1043", ""}).Draw(t, "amended")})
	case 7, 8:
		if n := len(r.Gates); n > 0 {
			v := agent.Verdict{Gate: rapid.SampledFrom(r.Gates).Draw(t, "gate").ID, Principal: kim, Reason: "so",
				Verdict: rapid.SampledFrom([]agent.VerdictValue{agent.Approve, agent.Reject, agent.Happened, agent.DidNotHappen}).Draw(t, "verdict")}
			switch v.Verdict {
			case agent.Happened:
				v.Result = agent.JSON(`{"id":"found"}`)
			case agent.DidNotHappen:
				v.Again = rapid.Bool().Draw(t, "again")
			}
			run.Decide(v)
		}
	}
}

func end(t *rapid.T, run *agenttest.Run, s agent.Step) {
	err := rapid.SampledFrom([]error{nil, nil, nil, errors.New("down"), tool.Refused(errors.New("no")), agenttest.Unknown(errors.New("lost"))}).Draw(t, "error")
	if err != nil {
		run.Fail(s.ID, err)
		return
	}
	switch s.Tool {
	case "find_order":
		run.Done(s.ID, shop.Order{ID: "1042", Total: eur(89_90)})
	case "issue_refund":
		run.Done(s.ID, shop.Refund{ID: "r"})
	default:
		run.Done(s.ID, mail.Sent{ID: "m"})
	}
}

// Whatever happens to a run: its checks pass, and its export gives it again.
func TestAnyRunExports(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		run := agenttest.Start(t, refundAgent(), refund.Start{CustomerID: "c-017"})
		for range rapid.IntRange(1, 25).Draw(rt, "acts") {
			if run.Status().Ended() {
				break
			}
			act(rt, run)
		}
		if rapid.IntRange(0, 4).Draw(rt, "cancelled") == 0 {
			run.CancelUndoing(rapid.SampledFrom([]agent.UndoScope{"", agent.UndoTurn, agent.UndoRun}).Draw(rt, "undo"), "the end")
		}
		script, err := agenttest.Export(run.Events())
		require.NoError(t, err)
		played, again := agenttest.Play(t, refundAgent(), script)
		if string(script) != string(played) || !same(run.Events(), again.Events()) {
			rt.Fatalf("exported:\n%s\n\nplayed:\n%s", script, played)
		}
	})
}

// same compares events, but for the digest of what a verdict that decided nothing had
// brought: that is in no journal, so no script can tell it.
func same(a, b []agent.Event) bool {
	return slices.EqualFunc(a, b, func(x, y agent.Event) bool { return told(x).Chain("", "") == told(y).Chain("", "") })
}

func told(e agent.Event) agent.Event {
	var d agent.VerdictData
	if e.Type != agent.EventVerdict || json.Unmarshal(e.Data, &d) != nil || d.Judgement != "void" {
		return e
	}
	d.Body = ""
	e.Data, _ = agent.Encode(d)
	return e
}

func BenchmarkRefund(b *testing.B) {
	for b.Loop() {
		run := refundRun(b, agenttest.Options{})
		untilGate(b, run)
		run.Approve("3.1", "ann", "refunds")
		run.Propose(scripted.Finish("It is on its way."))
	}
}
