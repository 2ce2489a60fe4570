package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/tool"
)

// The approved refund costs what the design says: 4 model calls, 3 tool
// activities and 4 Records, no timer but the gate's, and nothing else.
func TestRefund_Approved(t *testing.T) {
	t.Parallel()
	model := watch(refund.Model())
	w := newWorld(t, model)
	address := w.start("k")
	gate := w.toGate(address)
	require.Equal(t, "Refund 89.90 EUR for order 1042", gate.Title)
	require.Equal(t, []string{"refunds"}, gate.Roles)
	r := w.decide(address, gate, agent.Approve, "")
	require.Equal(t, agent.Accepted, r.Status)
	run := w.finished(address, agent.RunCompleted)
	require.Equal(t, "done", run.Phase)
	require.Len(t, w.refunds(), 1)
	require.Equal(t, "1042", w.refunds()[0].OrderID)
	require.Len(t, w.receipts(), 1)
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, w.status(address))
	require.Len(t, model.seen(t), 4)

	activities, others := map[string]int{}, map[string]int{}
	for _, e := range w.history(address, "") {
		switch e.GetEventType() {
		case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			activities[e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()]++
		case enums.EVENT_TYPE_TIMER_STARTED, enums.EVENT_TYPE_TIMER_CANCELED, enums.EVENT_TYPE_MARKER_RECORDED,
			enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, enums.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
			enums.EVENT_TYPE_TIMER_FIRED, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
			others[e.GetEventType().String()]++
		}
	}
	require.Equal(t, map[string]int{"CallModel": 4, "refund.find_order": 1, "refund.issue_refund": 1, "refund.send_receipt": 1, "Record": 4}, activities)
	require.Equal(t, map[string]int{"TimerStarted": 1, "TimerCanceled": 1, "MarkerRecorded": 1}, others, "the gate's timer, and the SideEffect of the first task")
}

func TestRefund_Rejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refund.Model())
	address := w.start("k")
	gate := w.toGate(address)
	w.decide(address, gate, agent.Reject, "the lamp was worn out")
	run := w.finished(address, agent.RunCompleted)
	require.Equal(t, "declined", run.Phase)
	require.Len(t, run.Rulings, 1)
	require.Equal(t, "the lamp was worn out", run.Rulings[0].Reason)
	require.Empty(t, w.refunds())
	require.Empty(t, w.receipts())
}

func TestRefund_SmallAmountNeedsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, refund.Model())
	address := w.start("k")
	w.say(address, "Please refund order 1017")
	w.until(address, "asked", func(r *agent.Run) bool { return waiting("user")(r) && len(r.Shown) == 2 })
	w.say(address, "yes, that one")
	run := w.finished(address, agent.RunCompleted)
	require.Len(t, w.refunds(), 1)
	require.Equal(t, agent.Money{Minor: 1990, Currency: "EUR"}, w.refunds()[0].Amount)
	for _, g := range run.Gates {
		require.Equal(t, agent.KindAsk, g.Kind, "no gate for a person")
	}
}

// A gate that nobody decides expires: nothing runs, and a late verdict is void.
func TestGate_Expires(t *testing.T) {
	t.Parallel()
	db := labDB(t)
	w := newWorld(t, turns(call("pay", "10"), scripted.Say("Nobody decided."), scripted.Say("Still nothing.")),
		lab{db: db, gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}, Expires: 2 * time.Second}}.agent())
	address := w.start("k")
	w.say(address, "pay")
	gate := lastGate(w.until(address, "gate", func(r *agent.Run) bool { return len(r.Gates) == 1 }))
	run := w.until(address, "expiry", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 2 })
	require.Equal(t, agent.GateExpired, lastGate(run).Status)
	require.Equal(t, agent.StepExpired, run.Steps[0].Status)
	r := w.decide(address, gate, agent.Approve, "")
	require.Equal(t, agent.Voided, r.Status)
	require.Equal(t, agent.GateExpired, r.Gate.Status)
	require.Contains(t, r.Reason, "closed as expired")
	run = w.chat(address, "and now?")
	require.Empty(t, run.Rulings)
	require.Zero(t, payments(t, db))
	w.requireJournal(run)
}

// chatter answers small talk with small talk and else does what the sample's
// model does, however similar the orders are that the customer talks of.
func chatter(small map[string]llm.Response) llm.Model {
	rules := refund.Model()
	return asked(func(req llm.Request) llm.Model {
		said, ok := scripted.NewMessage(req.View)
		if _, waits := scripted.Waiting(req.View, "issue_refund"); !ok && waits {
			return says(scripted.Say("A colleague looks at it."))
		}
		if r, ok := small[said]; ok {
			return says(r)
		}
		return rules
	})
}

// What is paid is what was confirmed, whatever is said in between: the window
// of recent turns has long lost the confirmation by then.
func TestRefund_FortyTurnsBetweenConfirmationAndPayment(t *testing.T) {
	t.Parallel()
	small := map[string]llm.Response{}
	var talk []string
	for i := range 40 {
		said := fmt.Sprintf("%d: my other lamp is order 1043, and 1024 is my neighbour's", i)
		talk = append(talk, said)
		small[said] = scripted.Say("I see.")
	}
	// Half way the model itself tries to pay another order, on the old yes.
	small[talk[20]] = scripted.Then(scripted.Call("issue_refund", scripted.Args{"order_id": "1043"}),
		scripted.Call(agent.CallMove, scripted.Args{"to": "done"}),
		scripted.Confirm("order_id"))
	model := watch(chatter(small))
	w := newWorld(t, model)
	address := w.start("k")
	gate := w.toGate(address)
	for _, said := range talk {
		w.chat(address, said)
	}
	run := w.until(address, "gate", waiting("gate"))
	require.Positive(t, run.Trimmed.Turns)
	w.requireJournal(run)
	require.Equal(t, agent.Accepted, w.decide(address, gate, agent.Approve, "").Status)
	w.finished(address, agent.RunCompleted)
	require.Len(t, w.refunds(), 1)
	require.Equal(t, "1042", w.refunds()[0].OrderID)
	model.seen(t)
}

// A confirmed, then B, then A again: the old yes does not come back, nor does
// the old gate.
func TestRefund_StaleConfirmationPaysNothing(t *testing.T) {
	t.Parallel()
	set := func(order, quote string) llm.Response {
		return scripted.Call(agent.CallSetFields, scripted.Args{"fields": scripted.Args{"order_id": order}, "quote": quote})
	}
	find := func(order string) llm.Response { return scripted.Call("find_order", scripted.Args{"order_id": order}) }
	move := func(to string) llm.Response { return scripted.Call(agent.CallMove, scripted.Args{"to": to}) }
	confirm := scripted.Confirm("order_id", "amount")
	small := map[string]llm.Response{
		"no, I mean 1043":     scripted.Then(set("1043", "1043"), move("collect"), find("1043")),
		"sorry, 1042 it is":   scripted.Then(set("1042", "1042"), find("1042")),
		"so pay me, for 1042": scripted.Then(move("pay"), confirm, move("pay")),
		"what is the matter?": scripted.Say("I must ask again."),
		"then ask":            scripted.Call(agent.CallAsk, scripted.Args{"question": "This one?", "fields": []string{"order_id", "amount"}}),
		"oh do it, at last":   scripted.Then(confirm, move("pay")),
	}
	answers := 0
	model := watch(asked(func(req llm.Request) llm.Model {
		if _, ok := scripted.NewMessage(req.View); !ok && answers > 0 && !req.View.LastWord {
			return says(scripted.Say("Well."))
		}
		return chatter(small)
	}))
	w := newWorld(t, model)
	address := w.start("k")
	old := w.toGate(address)
	answers = 1
	run := w.chat(address, "no, I mean 1043")
	require.Equal(t, agent.GateVoid, gateOf(run, old.ID).Status)
	run = w.chat(address, "sorry, 1042 it is")
	require.Contains(t, run.State.String(), `"amount":{"currency":"EUR","minor":8990},`, "the very values that were confirmed")
	require.Empty(t, run.Confirmed)
	run = w.chat(address, "so pay me, for 1042")
	require.Equal(t, "collect", run.Phase)
	require.Empty(t, run.Confirmed)
	require.Equal(t, agent.Voided, w.decide(address, old, agent.Approve, "").Status)
	require.Empty(t, w.refunds())
	w.chat(address, "what is the matter?")
	w.chat(address, "then ask")
	run = w.chat(address, "oh do it, at last")
	require.Equal(t, "pay", run.Phase)
	require.Equal(t, agent.Accepted, w.decide(address, lastGate(run), agent.Approve, "").Status)
	w.finished(address, agent.RunCompleted)
	require.Len(t, w.refunds(), 1)
	require.Equal(t, "1042", w.refunds()[0].OrderID)
	model.seen(t)
}

func gateOf(r *agent.Run, id string) agent.Gate {
	for _, g := range r.Gates {
		if g.ID == id {
			return g
		}
	}
	return agent.Gate{}
}
