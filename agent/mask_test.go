package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// Sensitive fields are masked for people, in the run and in what sets them, and
// stay as they are in the run itself.
func TestMasked(t *testing.T) {
	def := deskAgent()
	m := agent.NewMachine(def)
	m.Step(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), "", agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Rules: agent.Rules, Limits: def.Limits(),
		Principal: agent.Principal{Subject: "u"}, User: "u", Body: agent.JSON(`{"customer_id":"c-1"}`)})
	run := m.Run()
	require.Equal(t, []string{"secret"}, run.Sensitive)
	require.Contains(t, run.State.String(), `"secret":"c-1"`)
	require.Contains(t, run.Masked().State.String(), `"secret":"(masked)"`)
	require.Contains(t, run.Masked().State.String(), `"customer_id":"c-1"`)
	require.Contains(t, run.State.String(), `"secret":"c-1"`, "the run itself stays")
	for _, e := range m.Batch().Events {
		require.NotContains(t, e.Masked(run.Sensitive).Data.String(), `"secret":"c-1"`, e.Type)
		require.Equal(t, e, e.Masked(nil))
	}
}

type cardState struct {
	Customer string `json:"customer" set:"start"`
	Card     card   `json:"card"     set:"tool" sensitive:"true"`
	IBAN     string `json:"iban"     set:"user" sensitive:"true"`
	Sure     bool   `json:"sure"     set:"tool" sensitive:"true"`
}
type card struct {
	Number string `json:"number"`
	Month  int    `json:"month"`
}
type found struct {
	Cards []card `json:"cards"`
	Open  bool   `json:"open"`
}
type payBy struct {
	Number string            `json:"number"`
	Notes  map[string]string `json:"notes"`
}

func cardAgent() *agent.Definition {
	find := tool.ReadOnly("find", none[start, found], func(s *cardState, _ start, f found) error {
		s.Card, s.Sure = f.Cards[0], true
		return nil
	})
	pay := tool.Keyed("pay", keyed[payBy, sent], func(*cardState, payBy, sent) error { return nil }).
		Gate(tool.Gate[cardState, payBy]{Roles: []string{"boss"}, Edit: []string{agent.EveryArgument}, Reads: []string{"card", "customer"}})
	return agent.Define(agent.Spec[start, cardState]{Name: "card", Version: 1, Instructions: "Pay.",
		Init:   func(in start) (cardState, error) { return cardState{Customer: in.CustomerID}, nil },
		Phases: []agent.Phase[cardState]{{Name: "work", Tools: []agent.Tool[cardState]{find, pay}, Moves: []agent.Move[cardState]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// Where the value of a sensitive field stands as a value of its own, people are not
// shown it: in a result before it is in the state, in arguments, in proposals, at
// gates, in an edit, in an answer, and in what a rollback would go back to. What
// decides, and what the tools and the journal have, is the value itself.
func TestMasked_WhereverItStands(t *testing.T) {
	const number, iban = "4111 1111 1111", "DE02120300000000202051"
	tr := begin(t, cardAgent(), `{"customer_id":"c-1"}`)
	tr.message("pay by card, or from " + iban)
	tr.model(`find {"customer_id":"c-1"}`, `set_fields {"fields":{"iban":"`+iban+`"},"quote":"from `+iban+`"}`)
	tr.done("1.1", `{"cards":[{"number":"`+number+`","month":3}],"open":true}`)
	tr.model(`pay {"number":"` + number + `","notes":{"a/b~c":"` + iban + `","month":"3"}}`)
	gate := tr.gate("2.1")
	tr.by(agent.Principal{Subject: "kim", Roles: []string{"boss"}}, "2.1", agent.Verdict{Verdict: agent.Edit, Reason: "another note", Args: agent.JSON(`{"number":"` + number + `","notes":{}}`)})
	tr.message("stop")

	run := tr.m.Run()
	require.Contains(t, gate.Args.String(), number)
	require.Contains(t, gate.Shown["card"].String(), number, "who decides is shown it")
	require.Contains(t, run.Steps[1].Args.String(), number, "the run itself stays")
	shown, err := json.Marshal(run.Masked())
	require.NoError(t, err)
	require.NotContains(t, string(shown), number)
	require.NotContains(t, strings.ReplaceAll(string(shown), "from "+iban, ""), iban, "but in what the user wrote")
	require.JSONEq(t, `{"cards":["(masked)"],"open":true}`, run.Masked().Steps[0].Result.String(), "what many values equal by accident is not taken for it")
	require.JSONEq(t, `{"number":"(masked)","notes":{"a/b~c":"(masked)","month":"3"}}`, run.Masked().Steps[1].Args.String())
	kinds := map[agent.EventType]bool{}
	for _, e := range tr.m.Batch().Events {
		text := e.Masked(run.Sensitive).Data.String()
		require.NotContains(t, text, number, e.Type)
		require.NotContains(t, strings.ReplaceAll(text, "from "+iban, ""), iban, e.Type)
		kinds[e.Type] = kinds[e.Type] || text != e.Data.String()
	}
	for _, masked := range []agent.EventType{agent.EventStateSet, agent.EventProposal, agent.EventStepDone, agent.EventStepStarted, agent.EventGateOpened, agent.EventVerdict} {
		require.True(t, kinds[masked], masked)
	}
	tr.reduces()
}
