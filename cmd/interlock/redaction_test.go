package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/llm/scripted"
	"interlock/store"
	"interlock/tool"
)

type cardStart struct {
	Card string `json:"card_number"`
}
type cardState struct {
	Card string `json:"card" set:"start" sensitive:"true"`
	Paid string `json:"paid" set:"tool"`
}
type cardPay struct {
	To string `json:"to"`
}

func cardAgent() *agent.Definition {
	pay := tool.Keyed("pay", func(context.Context, tool.Key, cardPay) (cardPay, error) { return cardPay{}, nil },
		func(s *cardState, _ cardPay, r cardPay) error { s.Paid = r.To; return nil }).
		Gate(tool.Gate[cardState, cardPay]{Roles: []string{"refunds"}, Reads: []string{"card"}, Title: func(_ agent.Situation[cardState], a cardPay) string { return "pay to " + a.To }})
	return agent.Define(agent.Spec[cardStart, cardState]{Name: "card", Version: 1, Instructions: "x",
		Init:   func(in cardStart) (cardState, error) { return cardState{Card: in.Card}, nil },
		Phases: []agent.Phase[cardState]{{Name: "work", Tools: []agent.Tool[cardState]{pay}, Moves: []agent.Move[cardState]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// No command that reads shows a sensitive value, unless it is told to. A command with a
// form of output that is not here fails the test.
func TestRedaction_EveryCommand(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	const card, address = "4111 1111 1111", "acme/card/marked"
	run := agenttest.Options{Tenant: "acme", Key: "marked", User: "cust"}.Start(t, cardAgent(), cardStart{card})
	run.Says("my card is " + card)
	run.Propose(scripted.Raw("pay", `{"to":"`+card+`"}`))
	reject := agent.Verdict{ID: "v", Gate: "1.1", Digest: run.Run().Gates[0].Digest, Verdict: agent.Reject, Reason: "not to " + card,
		Principal: agent.Principal{Subject: "ann", Tenant: "acme", Roles: []string{"refunds"}}}
	run.Input(agent.VerdictGiven{Verdict: reject})
	run.Says("or to 4111-1111-1111")
	run.Propose(scripted.Raw("pay", `{"to":"x 411111111111"}`))
	run.Input(agent.CancelRun{ID: "c", Principal: agent.Principal{Subject: "oda"}, Reason: "leaked " + card})
	b := agent.Batch{First: 1, Events: run.Events(), Head: agent.Head{Status: run.Run().Status, Reason: run.Run().Reason, Phase: run.Run().Phase, Turn: run.Run().Turn}}
	require.NoError(t, w.store.Append(ctx, store.RunRef{Tenant: "acme", Address: address, FirstRunID: run.Run().FirstRunID, Branch: "b"}, b))
	_, _, err := w.store.Claim(ctx, store.Claim{Tenant: "acme", Key: "card-effect", Address: address, Scope: run.Run().Scope(), Agent: "card", Version: 1, Tool: "pay",
		Kind: agent.Keyed, Step: "1.1", Args: agent.JSON(`{"to":"` + card + `"}`), Attempt: time.Hour, Branch: "b"})
	require.NoError(t, err)
	gate := run.Run().Gates[len(run.Run().Gates)-1].ID

	reads := map[string][]string{
		"run get": {address}, "run why": {address}, "run list": {}, "run watch": {address}, "gate list": {"--status", "any"}, "gate show": {address, gate},
		"ruling list": {address}, "ledger list": {}, "ledger show": {"card-effect"},
	}
	shows := map[string]bool{}
	for name, args := range reads {
		for _, form := range []string{"text", "json", "jsonl"} {
			r := w.command().run(t, append(append(strings.Fields(name), args...), "-o", form)...)
			for _, marked := range []string{card, "411111111111", "4111-1111-1111"} {
				require.NotContains(t, r.out+r.err, marked, "%s -o %s", name, form)
			}
			shows[name] = shows[name] || strings.Contains(r.out, "marked")
		}
		require.True(t, shows[name], "%s shows the run", name)
	}
	require.NotContains(t, w.do(t, "run", "export", address, "--journal", "-"), card)
	for _, whole := range [][]string{{"gate", "show", address, gate}, {"ledger", "show", "card-effect"}, {"run", "get", address}, {"run", "export", address, "--journal", "-"}} {
		require.Regexp(t, "4111 ?1111 ?1111", w.do(t, append(whole, "--unmask")...), whole)
	}

	others := strings.Fields(`demo dev worker serve migrate store config version check try key access notice hold effects step
		run:start run:message run:cancel run:pause run:resume run:amend run:export ruling:lift ruling:confirm ledger:resolve ledger:sweep`)
	var walk func(c *cobra.Command, path string)
	walk = func(c *cobra.Command, path string) {
		for _, sub := range c.Commands() {
			name := strings.TrimSpace(path + " " + sub.Name())
			walk(sub, name)
			if sub.Flags().Lookup("output") == nil || reads[name] != nil {
				continue
			}
			first, _, _ := strings.Cut(name, " ")
			known := false
			for _, o := range others {
				known = known || o == first || o == strings.ReplaceAll(name, " ", ":")
			}
			require.True(t, known || first == "gate", "say what `%s` shows, so that it is looked at", name)
		}
	}
	walk((&app{in: strings.NewReader(""), out: &safe{}, err: &safe{}}).command(), "")
}
