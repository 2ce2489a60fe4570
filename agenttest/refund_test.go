package agenttest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/llm/scripted"
)

func eur(minor int64) agent.Money { return agent.Money{Minor: minor, Currency: "EUR"} }

// refundRun is a run of the sample agent with fakes for its tools.
func refundRun(t testing.TB, o agenttest.Options) *agenttest.Run {
	run := o.Start(t, refund.Agent(&shop.Shop{}, mail.Client{}), refund.Start{CustomerID: "c-017"})
	agenttest.Fake(run, "find_order", func(a shop.FindArgs) (shop.Order, error) {
		return shop.Order{ID: a.OrderID, CustomerID: "c-017", Total: eur(89_90)}, nil
	})
	agenttest.Fake(run, "issue_refund", func(a shop.RefundArgs) (shop.Refund, error) {
		return shop.Refund{ID: "r-" + a.OrderID, OrderID: a.OrderID, Amount: a.Amount}, nil
	})
	agenttest.Fake(run, "send_receipt", func(mail.Receipt) (mail.Sent, error) { return mail.Sent{ID: "m-1"}, nil })
	return run
}

// untilGate brings a run to the reviewer's gate 3.1.
func untilGate(t testing.TB, run *agenttest.Run) {
	t.Helper()
	run.Says("refund 1042, it broke")
	run.Propose(scripted.SetFields("refund 1042", scripted.Args{"order_id": "1042"}), scripted.Call("find_order", shop.FindArgs{OrderID: "1042"}))
	run.Propose(scripted.Ask("Refund this?", "order_id", "amount"))
	run.Says("yes, that one")
	run.Propose(scripted.Confirm("order_id", "amount"), scripted.MoveTo("pay"))
	require.Equal(t, agent.GateOpen, run.Gate("3.1").Status)
}

func TestRefund(t *testing.T) {
	run := refundRun(t, agenttest.Options{})
	untilGate(t, run)
	run.Approve("3.1", "ann", "refunds")
	run.Propose(scripted.Finish("It is on its way."))

	var s refund.State
	run.State(&s)
	require.Equal(t, refund.State{CustomerID: "c-017", OrderID: "1042", Amount: eur(89_90), RefundID: "r-1042", Refunded: eur(89_90), ReceiptID: "m-1"}, s)
	require.Equal(t, agent.RunCompleted, run.Status())
	require.Equal(t, []string{"It is on its way."}, run.Replies())
	require.Equal(t, "finish", run.Request().Only)
}

func TestRefund_Expires(t *testing.T) {
	run := refundRun(t, agenttest.Options{})
	untilGate(t, run)
	run.Advance(24*time.Hour - time.Second)
	require.Equal(t, agent.GateOpen, run.Gate("3.1").Status)
	run.Advance(time.Second)
	require.Equal(t, agent.StepExpired, run.Step("3.1").Status)
	require.Equal(t, "Step 3.1, issue_refund: expired: nobody decided until 2026-03-02T09:00:00Z.", run.Request().View.Turns[3].Opening[0].Text)
}
