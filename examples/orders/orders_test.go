package orders_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders"
	"interlock/agent"
	"interlock/agenttest"
	"interlock/llm/scripted"
	"interlock/tool"
)

// noShop is never called: the tools are fakes.
type noShop struct{ orders.Shop }

// start starts a run whose tools are fakes: a change costs as much as fee says.
func start(t *testing.T, def *agent.Definition, fee int64) *agenttest.Run {
	run := agenttest.Start(t, def, orders.Start{CustomerID: "c-1"})
	agenttest.Fake(run, "check_day", func(w orders.Wish) (orders.Quote, error) {
		if w.Day == "2026-04-05" {
			return orders.Quote{}, tool.Refused(errors.New("nobody delivers on a Sunday"))
		}
		return orders.Quote{Fee: agent.Money{Minor: fee, Currency: "EUR"}}, nil
	})
	agenttest.Fake(run, "change_day", func(c orders.Change) (orders.Changed, error) { return orders.Changed{ID: "ch-" + c.OrderID}, nil })
	agenttest.Fake(run, "notify", func(orders.Notice) (orders.Notified, error) { return orders.Notified{ID: "n-1"}, nil })
	return run
}

// ask brings a run to the question about order 77 and a day.
func ask(run *agenttest.Run, day string) {
	run.Says("Please bring order 77 on Friday")
	run.Propose(scripted.SetFields("order 77", scripted.Args{"order_id": "77"}), scripted.SetFields("", scripted.Args{"day": day}),
		scripted.Call("check_day", orders.Wish{OrderID: "77", Day: day}))
	run.Propose(scripted.Ask("Shall I move it?", "order_id", "day", "fee"))
}

// agree has the customer say yes.
func agree(run *agenttest.Run) {
	run.Says("yes please")
	run.Propose(scripted.Confirm("order_id", "day", "fee"), scripted.MoveTo("change"))
}

func TestChangeDay(t *testing.T) {
	run := start(t, orders.Agent(noShop{}), 4_90)
	ask(run, "2026-04-03")
	agree(run)
	run.Propose(scripted.Say("It is moved."))

	require.Equal(t, agent.RunCompleted, run.Status())
	require.Equal(t, []string{"It is moved.", "Order 77 comes on 2026-04-03. The change costs 4.90 EUR."}, run.Replies())
	var s orders.State
	run.State(&s)
	require.Equal(t, "ch-77", s.ChangeID)
	require.Equal(t, "n-1", s.NoticeID)
}

func TestAboveTheLimitADispatcherDecides(t *testing.T) {
	run := start(t, orders.Agent(noShop{}), 25_00)
	ask(run, "2026-04-03")
	agree(run)
	require.Equal(t, "Move order 77 to 2026-04-03 for 25.00 EUR", run.Gate("3.1").Title)

	run.Reject("3.1", "the van is full", "dana", "dispatch")
	run.Propose(scripted.Say("The van is full that day. Another one?"), scripted.MoveTo("agree"))
	require.Equal(t, agent.StepRejected, run.Step("3.1").Status)
	require.Equal(t, "agree", run.Phase())

	// The same again is refused by code, without asking the dispatcher twice.
	run.Propose(scripted.MoveTo("change"))
	require.Contains(t, run.Step("5.1").Reason, "dana rejected this (the van is full)")
}

// What a dispatcher has edited is what the customer is told and mailed.
func TestAnEditIsWhatTheCustomerIsTold(t *testing.T) {
	run := start(t, orders.Agent(noShop{}), 25_00)
	var mailed orders.Notice
	agenttest.Fake(run, "notify", func(n orders.Notice) (orders.Notified, error) { mailed = n; return orders.Notified{ID: "n-1"}, nil })
	ask(run, "2026-04-03")
	agree(run)
	run.Edit("3.1", orders.Change{OrderID: "77", Day: "2026-04-04", Fee: agent.Money{Minor: 5_00, Currency: "EUR"}}, "the van is full on Friday", "dana", "dispatch")
	require.Equal(t, []string{"Order 77 comes on 2026-04-04. The change costs 5.00 EUR."}, run.Replies())
	require.Equal(t, "2026-04-04", mailed.Day)
	require.Equal(t, "77", mailed.OrderID)
}

func TestNobodyDecidesInTime(t *testing.T) {
	run := start(t, orders.Agent(noShop{}), 25_00)
	ask(run, "2026-04-03")
	agree(run)
	run.Advance(4 * time.Hour)
	require.Equal(t, agent.StepExpired, run.Step("3.1").Status)
}

func TestCustomerChangesTheirMind(t *testing.T) {
	run := start(t, orders.Agent(noShop{}), 25_00)
	ask(run, "2026-04-03")
	agree(run)
	run.Says("no, wait: Saturday")
	run.Propose(scripted.SetFields("", scripted.Args{"day": "2026-04-04"}), scripted.MoveTo("agree"))

	require.Equal(t, agent.GateVoid, run.Gate("3.1").Status, "what the dispatcher was shown has changed")
	run.Propose(scripted.MoveTo("change"))
	status, why := run.Answer("move")
	require.Equal(t, "refused", status)
	require.Contains(t, why, "is not confirmed")
}

func TestToolRefuses(t *testing.T) {
	run := start(t, orders.Agent(noShop{}), 4_90)
	ask(run, "2026-04-05") // a Sunday; and a question about a fee that is not known
	require.Equal(t, agent.StepRefused, run.Step("1.1").Status)
	_, why := run.Answer("ask")
	require.Equal(t, "fee has no value that could be shown", why)
}

func TestResultForAnotherOrderIsNotTaken(t *testing.T) {
	run := start(t, orders.Agent(noShop{}), 4_90)
	run.Says("Please bring order 77 on Friday")
	run.Propose(scripted.SetFields("order 77", scripted.Args{"order_id": "77"}), scripted.Call("check_day", orders.Wish{OrderID: "78", Day: "2026-04-03"}))
	require.Equal(t, agent.StepDone, run.Step("1.1").Status)
	require.Contains(t, run.Step("1.1").Reason, `checked were order "78"`)
	var s orders.State
	run.State(&s)
	require.Zero(t, s.Fee)
}

func TestWhatHasShippedStays(t *testing.T) {
	run := start(t, orders.Agent(noShop{}), 25_00)
	ask(run, "2026-04-03")
	agree(run)
	run.Amend(map[string]any{"shipped": true}) // the warehouse says so
	require.Equal(t, agent.GateVoid, run.Gate("3.1").Status)
	run.Propose(scripted.MoveTo("agree"))
	run.Propose(scripted.MoveTo("change"))
	_, why := run.Answer("move")
	require.Contains(t, why, "the parcel has left")
}

func TestV2_AnOldFeeDoesNotCount(t *testing.T) {
	for version, phase := range map[*agent.Definition]string{orders.Agent(noShop{}): "change", orders.AgentV2(noShop{}): "agree"} {
		run := start(t, version, 4_90)
		ask(run, "2026-04-03")
		run.Advance(time.Hour)
		agree(run)
		require.Equal(t, phase, run.Phase())
	}
}

// Whole runs as text: testdata/scripts holds inputs and what must come of them. A
// run is of one version.
func TestScripts(t *testing.T) {
	agenttest.Script(t, orders.Agent(noShop{}), "testdata/scripts/*.txt")
	agenttest.Script(t, orders.AgentV2(noShop{}), "testdata/scripts/v2/*.txt")
}
