package web_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api/web"
	"interlock/llm/scripted"
)

// No page shows a sensitive value, in whatever form, but the gate's own page, its edit
// and the inbox to who decides about it. A page that is not here fails the test.
func TestRedaction_EveryPage(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{title: "Pay to card 4111-1111", risk: "card 41111111"}, strings.Replace(smallArgs, "DE00", "4111 1111", 1))
	_, err := w.runs.send("acme/pay/1", agent.VerdictGiven{Verdict: agent.Verdict{ID: "v", Gate: "2.1", Digest: run.Run().Gates[0].Digest, Verdict: agent.Reject,
		Reason: "not to 4111 1111", Principal: agent.Principal{Subject: "ann", Tenant: "acme", Roles: []string{"refunds"}}}})
	require.NoError(t, err)
	run.Says("my card is 4111 1111")
	run.Propose(scripted.Raw("pay", strings.Replace(smallArgs, `"account":1`, `"account":41111111`, 1)), scripted.Say("4111 1111, then"))
	w.keep(run)
	gates := run.Run().Gates
	gate := gates[len(gates)-1]
	require.Equal(t, agent.GateOpen, gate.Status)
	pages := map[string][]string{
		"/{$}": {"/"}, "/decided": {"/decided"}, "/runs": {"/runs", "/runs?agent=pay&key=1"}, "/ops": {"/ops"}, "/absences": {"/absences"},
		"/runs/{agent}/{key}":              {"/runs/pay/1", "/runs/pay/1?seq=9", "/runs/pay/1?turn=2", "/runs/pay/1?turn=3", "/runs/pay/1?from=1"},
		"/runs/{agent}/{key}/gates/{gate}": {"/runs/pay/1/gates/" + gate.ID, "/runs/pay/1/gates/2.1"}, "/runs/{agent}/{key}/gates/{gate}/edit": {"/runs/pay/1/gates/" + gate.ID + "/edit"},
		"/runs/{agent}/{key}/export": {"/runs/pay/1/export"}, "/runs/{agent}/{key}/cancel": {"/runs/pay/1/cancel"},
		"/live/inbox": nil, "/live/runs/{agent}/{key}": nil, // TestLive_Masked
	}
	whole := map[string]bool{"/": true, "/runs/pay/1/gates/" + gate.ID: true, "/runs/pay/1/gates/" + gate.ID + "/edit": true}
	seen := 0
	for _, pattern := range web.Patterns() {
		path, reads := strings.CutPrefix(pattern, "GET ")
		if !reads {
			continue
		}
		all, known := pages[path]
		require.True(t, known, "say what page %s shows, so that it is looked at", path)
		for _, page := range all {
			for _, who := range []string{"ann", "bob", "mail", "oda", "c-017", "c-018"} {
				body := w.as(who).get(page).body
				if (who == "ann" || who == "bob") && whole[page] {
					seen += strings.Count(body, "41111111")
					continue
				}
				for _, form := range []string{"4111 1111", "41111111", "4111-1111"} {
					require.NotContains(t, body, form, "%s as %s", page, who)
				}
			}
		}
	}
	require.NotZero(t, seen, "who decides is shown the gate")
	for _, form := range []string{"4111 1111", "41111111", "4111-1111"} { // an id may have its last digits by chance
		require.NotContains(t, strings.Join(w.audit.all, ""), form)
	}
}
