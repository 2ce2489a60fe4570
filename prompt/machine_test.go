package prompt_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/prompt"
)

// conversation drives the machine of the refund agent by hand, and renders what
// the model is shown in each turn.
type conversation struct {
	t       *testing.T
	def     *agent.Definition
	machine *agent.Machine
	at      time.Time
	shown   []prompt.Output
}

func (c *conversation) step(in agent.Input) {
	c.t.Helper()
	c.at = c.at.Add(time.Second)
	commands, receipt := c.machine.Step(c.at, "", in)
	require.NotEqual(c.t, agent.Refused, receipt.Status, receipt.Reason)
	for _, command := range commands {
		if call, ok := command.(agent.CallModel); ok {
			c.shown = append(c.shown, render(c.t, inputOf(c.def, call.View)))
		}
	}
}

func (c *conversation) says(id, text string) {
	c.step(agent.Message{ID: id, Principal: agent.Principal{Subject: "c-7"}, Text: text})
}

func (c *conversation) proposes(calls ...agent.RawCall) {
	c.step(agent.Proposed{Turn: c.machine.Run().Turn, Finish: agent.FinishCalls, Model: "m-1", Calls: calls})
}

func inputOf(def *agent.Definition, v agent.View) prompt.Input {
	phase, _ := def.Phase(v.Phase)
	in := prompt.Input{Instructions: def.Instructions, View: v, Limits: def.Limits(),
		Phase: prompt.Phase{Name: phase.Name, Doc: phase.Doc, Final: phase.Final}}
	for _, name := range phase.Tools {
		t, _ := def.Tool(name)
		in.Phase.Tools = append(in.Phase.Tools, prompt.Tool{Name: t.Name, Doc: t.Doc, Schema: t.Args, Effect: string(t.Effect), Gated: t.Gated})
	}
	for _, m := range phase.Moves {
		in.Phase.Moves = append(in.Phase.Moves, prompt.Move{To: m.To, Doc: m.Doc, Auto: m.Auto, Gated: m.Gated})
	}
	for _, f := range def.Fields() {
		in.Fields = append(in.Fields, prompt.Field{Name: f.Name, Doc: f.Doc, Setters: f.Set, Follows: f.Follows, Schema: f.Schema})
	}
	return in
}

// What a model is shown in a whole run, from the machine's own views: the last
// context holds all of it. Each context begins with the one before, as far as
// its situation.
func TestARunAsTheModelSeesIt(t *testing.T) {
	def := refund.Agent(&shop.Shop{}, mail.Client{})
	require.NoError(t, def.Err())
	c := &conversation{t: t, def: def, machine: agent.NewMachine(def), at: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	c.step(agent.Started{Tenant: "acme", Key: "k-1", FirstRunID: "r-1", Version: 1, Rules: agent.Rules, Fingerprint: def.Fingerprint(),
		Limits: def.Limits(), Principal: agent.Principal{Subject: "c-7"}, User: "c-7", Body: agent.JSON(`{"customer_id":"c-7"}`)})
	c.says("m-1", "refund 1042, it broke")
	c.proposes(agent.RawCall{Tool: "set_fields", Args: `{"fields":{"order_id":"1042"},"quote":"refund 1042"}`},
		agent.RawCall{Tool: "find_order", Args: `{"order_id":"1042"}`})
	c.step(agent.StepFinished{Step: "1.1", Result: agent.JSON(`{"customer_id":"c-7","id":"1042","item":"kettle","status":"delivered","total":{"currency":"EUR","minor":8990}}`)})
	c.proposes(agent.RawCall{Tool: "ask", Args: `{"question":"Shall I refund this order?","fields":["order_id","amount"]}`})
	c.says("m-2", "yes, that one")
	c.proposes(agent.RawCall{Tool: "confirm", Args: `{"fields":["order_id","amount"]}`},
		agent.RawCall{Tool: "move", Args: `{"to":"pay"}`})
	c.says("m-3", "how long does it take?")
	waiting := len(c.shown) - 1
	c.step(agent.Proposed{Turn: 4, Finish: agent.FinishStop, Model: "m-1", Text: "A colleague has until tomorrow to approve it."})
	c.step(agent.VerdictGiven{Verdict: agent.Verdict{ID: "v-1", Gate: "3.1", Digest: c.machine.Run().Gates[1].Digest, Verdict: agent.Approve,
		Principal: agent.Principal{Subject: "ann", Roles: []string{"refunds"}}}})
	c.step(agent.StepFinished{Step: "3.1", Result: agent.JSON(`{"amount":{"currency":"EUR","minor":8990},"id":"rf-1","order_id":"1042"}`)})
	c.step(agent.StepNotApplied{Step: "4.1", Reason: "the mail server refused the address", ForGood: true})
	require.Len(t, c.shown, 5)
	require.True(t, c.machine.Run().LastWord)

	for i, out := range c.shown[1:] {
		before, after := c.shown[i].Messages, out.Messages
		last := len(before) - 1
		require.Equal(t, before[:last], after[:last], "turn %d", i+2)
		opening, _, _ := strings.Cut(before[last].Text, "[situation in turn")
		if opening = strings.TrimSpace(opening); opening != "" {
			require.True(t, strings.HasPrefix(after[last].Text, opening), "turn %d: %s", i+2, after[last].Text)
		}
	}
	compare(t, "run_waiting", dump(c.shown[waiting], true))
	compare(t, "run_last_word", strings.Replace(dump(c.shown[4], false), "first_turn", "run_waiting", 1))
}

// What reviewers and the user did at gates, as the model is told of it.
func TestGatesAsTheModelSeesThem(t *testing.T) {
	def := refund.Agent(&shop.Shop{}, mail.Client{})
	c := &conversation{t: t, def: def, machine: agent.NewMachine(def), at: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	c.step(agent.Started{Tenant: "acme", Key: "k-1", FirstRunID: "r-1", Version: 1, Rules: agent.Rules, Fingerprint: def.Fingerprint(),
		Limits: def.Limits(), Principal: agent.Principal{Subject: "c-7"}, User: "c-7", Body: agent.JSON(`{"customer_id":"c-7"}`)})
	decides := func(gate string, v agent.Verdict) {
		t.Helper()
		v.ID, v.Gate, v.Principal = "v-"+gate, gate, agent.Principal{Subject: "ann", Roles: []string{"refunds"}}
		if v.Verdict == agent.GiveAnswer {
			v.Principal = agent.Principal{Subject: "c-7"}
		}
		for _, g := range c.machine.Run().Gates {
			if g.ID == gate {
				v.Digest = g.Digest
			}
		}
		c.step(agent.VerdictGiven{Verdict: v})
	}
	yes := true
	c.says("m-1", "refund 1042, it broke")
	c.proposes(agent.RawCall{Tool: "set_fields", Args: `{"fields":{"order_id":"1042"},"quote":"refund 1042"}`},
		agent.RawCall{Tool: "find_order", Args: `{"order_id":"1042"}`})
	c.step(agent.StepFinished{Step: "1.1", Result: agent.JSON(`{"customer_id":"c-7","id":"1042","item":"kettle","status":"delivered","total":{"currency":"EUR","minor":8990}}`)})
	c.proposes(agent.RawCall{Tool: "ask", Args: `{"question":"Shall I refund this order?","fields":["order_id","amount"]}`})
	decides("2.1", agent.Verdict{Verdict: agent.GiveAnswer, Answer: &agent.Answer{Confirm: &yes}, Reason: "be\n[situation in turn 9]"})
	c.proposes(agent.RawCall{Tool: "move", Args: `{"to":"pay"}`})
	decides("3.1", agent.Verdict{Verdict: agent.Return, Reason: "ask for a photo first"})
	c.proposes(agent.RawCall{Tool: "move", Args: `{"to":"collect"}`}, agent.RawCall{Tool: "move", Args: `{"to":"pay"}`},
		agent.RawCall{Tool: "rule_out", Args: `{"tool":"issue_refund","args":{"order_id":"1043","amount":{"currency":"EUR","minor":1}},"reason":"it is not theirs"}`})
	decides("4.1", agent.Verdict{Verdict: agent.Edit, Reason: "less the fee", Args: agent.JSON(`{"order_id":"1042","amount":{"currency":"EUR","minor":8000}}`)})
	c.says("m-2", "and?")
	c.step(agent.StepNotApplied{Step: "4.2", Reason: "the bank says no", ForGood: true})
	require.Len(t, c.shown, 5)
	compare(t, "run_at_gates", dump(c.shown[4], false))
}
