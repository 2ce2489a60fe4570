package signals_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/signals"
)

// What a run answers is what the schemas say: a whole run, read by the strict
// decoder of its type at every turn, is itself.
func TestAnswersHaveTheirSchemas(t *testing.T) {
	def := refund.Agent(&shop.Shop{}, mail.Client{})
	m := agent.NewMachine(def)
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	step := func(in agent.Input) agent.Receipt {
		at = at.Add(time.Second)
		_, receipt := m.Step(at, "t-1", in)
		roundTrip(t, agent.NewDecoder[agent.Receipt](), receipt)
		j, err := agent.Encode(m.Run())
		require.NoError(t, err)
		_, err = agent.NewDecoder[agent.Run]().Decode(j)
		require.NoError(t, err)
		return receipt
	}
	proposes := func(calls ...agent.RawCall) {
		step(agent.Proposed{Turn: m.Run().Turn, Finish: agent.FinishCalls, Model: "m", Calls: calls, Usage: agent.Usage{Input: 9, Output: 1}})
	}
	user, ann := agent.Principal{Subject: "c-7"}, agent.Principal{Subject: "ann", Roles: []string{"refunds"}}

	step(agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Version: 1, Rules: agent.Rules, Limits: def.Limits(), Principal: user, User: "c-7",
		Body: agent.JSON(`{"customer_id":"c-7"}`)})
	step(agent.Message{ID: "m-1", Principal: user, Text: "refund 1042"})
	proposes(agent.RawCall{Tool: "set_fields", Args: `{"fields":{"order_id":"1042"},"quote":"refund 1042"}`}, agent.RawCall{Tool: "find_order", Args: `{"order_id":"1042"}`},
		agent.RawCall{Tool: "record_fact", Args: `{"quote":"refund"}`}, agent.RawCall{Tool: "find_order", Args: `{"order`})
	step(agent.StepFinished{Step: "1.1", Result: agent.JSON(`{"customer_id":"c-7","id":"1042","item":"","status":"paid","total":{"currency":"EUR","minor":8990}}`)})
	proposes(agent.RawCall{Tool: "ask", Args: `{"question":"This one?","fields":["order_id","amount"]}`})
	step(agent.Message{ID: "m-2", Principal: user, Text: "yes"})
	proposes(agent.RawCall{Tool: "confirm", Args: `{"fields":["order_id","amount"]}`}, agent.RawCall{Tool: "move", Args: `{"to":"pay"}`})
	gate := m.Run().Gates[1]
	require.Equal(t, agent.Voided, step(agent.VerdictGiven{Verdict: agent.Verdict{ID: "v-1", Gate: gate.ID, Digest: "another", Verdict: agent.Approve, Principal: ann}}).Status)
	require.Equal(t, agent.Accepted, step(agent.VerdictGiven{Verdict: agent.Verdict{ID: "v-2", Gate: gate.ID, Digest: gate.Digest, Verdict: agent.Reject, Reason: "too late", Principal: ann}}).Status)
	require.Equal(t, agent.Refused, step(agent.Message{ID: "m-2", Principal: user, Text: "another"}).Status)
	step(agent.CancelRun{ID: "c-1", Principal: user, Reason: "enough"})
	require.Equal(t, agent.RunCancelled, m.Run().Status)
	roundTrip(t, agent.NewDecoder[signals.End](), signals.End{Status: m.Run().Status, Phase: m.Run().Phase, Reason: m.Run().Reason, State: m.Run().State})
}
