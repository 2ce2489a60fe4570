package api_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/llm/scripted"
	"interlock/store"
)

// marked is the value of the lab's sensitive field.
const marked = "S3CRET"

// marking brings a run into all situations, with the marked value wherever one can write:
// a message, a call, a ruling, a refused call, an open gate, a tool's error, an effect.
func marking(l *lab) string {
	l.t.Helper()
	path, g := l.atGate("k")
	l.post("ann", path+"/gates/"+g.ID+"/verdict", "v-1", map[string]any{"digest": g.Digest, "verdict": "reject", "reason": "not to " + marked}).ok(http.StatusOK)
	l.post("cust", path+"/messages", "m-2", map[string]string{"text": "my pin is " + marked}).ok(http.StatusOK)
	l.fake.propose("acme/desk/k", func(r *agenttest.Run) {
		r.Propose(scripted.Raw("pay", `{"amount":`+marked+`}`), scripted.Raw("pay", `{"amount":7,"to":"`+marked+`"}`), scripted.Say("I pay "+marked))
	})
	ctx := context.Background()
	claim := store.Claim{Tenant: "acme", Key: "key-1", Address: "acme/desk/k", Scope: "s", Agent: "desk", Version: 1, Tool: "pay", Kind: agent.Keyed,
		Step: "1.1", Args: agent.JSON(`{"to":"` + marked + `"}`), Attempt: time.Minute, Branch: "b"}
	_, _, err := l.store.Claim(ctx, claim)
	require.NoError(l.t, err)
	require.NoError(l.t, l.store.MarkDoubt(ctx, "acme", "key-1", "the answer was "+marked))
	return path
}

// openGate is the gate that waits.
func openGate(l *lab) agent.Gate {
	run, err := l.fake.Get(context.Background(), "acme/desk/k")
	require.NoError(l.t, err)
	for _, g := range run.Gates {
		if g.Status == agent.GateOpen {
			return g
		}
	}
	l.t.Fatal("no gate is open")
	return agent.Gate{}
}

// Whoever reads by whatever route sees no sensitive value, but for who decides about a
// gate: they see that gate. A route that is not here fails the test until it is.
func TestRedaction_EveryRoute(t *testing.T) {
	l := newLab(t)
	marking(l)
	gate := openGate(l)
	require.Contains(t, gate.Args.String(), marked)
	reads := map[string]string{"list-gates": "?status=any", "get-state": "?seq=12", "get-context": "?turn=2", "wait-run": "?after=0", "list-events": "?page_size=200"}
	deciders := map[string]bool{"ann": true, "op": true}
	acts := map[string]any{"message-run": map[string]string{"text": "again"}, "decide-gate": map[string]any{"digest": "none", "verdict": "approve"},
		"cancel-run": nil, "amend-run": map[string]any{"fields": map[string]any{"port": 1}, "reason": "x"}, "pause-run": map[string]string{"reason": "x"},
		"resume-run": map[string]string{}, "undo-run": map[string]any{"steps": []string{"1.1"}, "reason": "x"}, "lift-ruling": map[string]string{"reason": "x"},
		"confirm-ruling": map[string]string{}, "resolve-effect": map[string]any{"happened": false, "reason": "x"},
		"start-run": map[string]any{"agent": "desk", "key": "k", "user": "cust", "body": map[string]string{"customer_id": "c-1"}}, "converse": map[string]string{"text": "hi"},
		"assign-gate": map[string]any{}, "unassign-gate": nil, "set-absence": nil, "end-absence": nil}
	seen := 0
	for _, r := range l.server.Routes() {
		path := strings.NewReplacer("{agent}", "desk", "{key}", "k", "{gate}", gate.ID, "{ruling}", "1.1").Replace(r.Path)
		if strings.HasPrefix(r.Path, "/v1/effects/") {
			path = strings.Replace(r.Path, "{key}", "key-1", 1)
		}
		for _, who := range []string{"cust", "other-cust", "backend", "nurse", "ann", "op"} {
			var body string
			switch {
			case r.Stream:
				body = streamed(t, l, who, path)
			case r.Method == http.MethodGet:
				body = l.get(who, path+reads[r.ID]).body
			case r.ID == "cancel-run": // it would end what the others look at
				continue
			default:
				body = l.post(who, path, "w-"+r.ID+who, acts[r.ID]).body
			}
			whole := deciders[who] && (r.ID == "get-gate" || r.ID == "list-gates")
			if whole {
				require.Contains(t, body, marked, "%s decides: %s", who, r.ID)
				seen++
				continue
			}
			require.NotContains(t, body, marked, "%s as %s", r.ID, who)
		}
	}
	require.Equal(t, 4, seen)
	require.NotContains(t, l.log.String(), marked)
	for _, r := range l.server.Routes() {
		_, known := acts[r.ID]
		require.True(t, r.Method == http.MethodGet || known, "say what %s is sent, so that its answer is looked at", r.ID)
	}
}

// streamed is what a stream says until it is silent.
func streamed(t *testing.T, l *lab, who, path string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.http.URL+path, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+l.tokens[who])
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	var all strings.Builder
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
	}
	if res.StatusCode == http.StatusOK && strings.HasSuffix(path, "/k/stream") {
		require.Contains(t, all.String(), "gate_opened", "the stream has come to the open gate")
	}
	return all.String()
}
