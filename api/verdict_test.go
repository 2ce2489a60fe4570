package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/api"
	"interlock/llm/scripted"
	"interlock/store"
)

func verdict(g agent.Gate, v agent.VerdictValue, reason string) map[string]any {
	out := map[string]any{"digest": g.Digest, "verdict": v}
	if reason != "" {
		out["reason"] = reason
	}
	return out
}

// Of two verdicts at once one decides, and the other is told who did.
func TestVerdict_AtOnce(t *testing.T) {
	l := newLab(t)
	for i := range 20 {
		path, g := l.atGate(fmt.Sprint("k", i))
		answers := make([]answer, 2)
		var wg sync.WaitGroup
		for j, b := range []map[string]any{verdict(g, agent.Approve, ""), verdict(g, agent.Reject, "no")} {
			wg.Go(func() {
				answers[j] = l.post([]string{"ann", "bob"}[j], path+"/gates/1.1/verdict", fmt.Sprint("v", j), b)
			})
		}
		wg.Wait()
		winner, loser := 0, 1
		if answers[0].status != http.StatusOK {
			winner, loser = 1, 0
		}
		won := into[api.DecidedGate](answers[winner].ok(http.StatusOK))
		p := answers[loser].problem(http.StatusConflict, agent.CodeGateClosed)
		require.Equal(t, won.Receipt.Gate.Status, p.Gate.Status)
		require.Equal(t, []string{"ann", "bob"}[winner], p.Gate.By)
		require.NotNil(t, p.Gate.At)
		// Both repeats answer as the firsts, whatever has become of the gate.
		again := l.post([]string{"ann", "bob"}[loser], path+"/gates/1.1/verdict", fmt.Sprint("v", loser),
			[]map[string]any{verdict(g, agent.Approve, ""), verdict(g, agent.Reject, "no")}[loser])
		require.Equal(t, p.Gate, again.problem(http.StatusConflict, agent.CodeGateClosed).Gate)
		l.post([]string{"ann", "bob"}[winner], path+"/gates/1.1/verdict", fmt.Sprint("v", winner),
			[]map[string]any{verdict(g, agent.Approve, ""), verdict(g, agent.Reject, "no")}[winner]).ok(http.StatusOK)
	}
}

// Anything but a known word, said as it must be, decides nothing.
func TestVerdict_Words(t *testing.T) {
	l := newLab(t)
	path, g := l.atGate("k")
	for i, b := range []string{
		`{}`, `{"digest":"%s"}`, `{"digest":"%s","verdict":null}`, `{"digest":"%s","verdict":"yes"}`, `{"digest":"%s","verdict":"Approve"}`,
		`{"digest":"%s","verdict":""}`, `{"digest":"%s","verdict":true}`, `{"digest":"%s","verdict":["approve"]}`, `{"digest":"%s","Verdict":"approve"}`,
		`{"digest":"%s","verdict":"reject"}`, `{"digest":"%s","verdict":"edit","reason":"x"}`, `{"digest":"%s","verdict":"approve","args":{}}`,
		`{"digest":"","verdict":"approve"}`, `{"verdict":"approve"}`, `{"digest":null,"verdict":"approve"}`, `{"digest":"%s","verdict":"approve","approved":true}`,
		`{"digest":"%s","verdict":"approve","result":1}`, `{"digest":"%s","verdict":"approve","again":true}`, `{"digest":"%s","verdict":"edit","reason":"x","args":null}`,
	} {
		if n := len(b); n > 3 {
			b = sprintf(b, g.Digest)
		}
		l.post("ann", path+"/gates/1.1/verdict", fmt.Sprint("w", i), b).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	}
	for _, b := range []string{`[]`, `"approve"`, `null`, `1`} {
		require.Contains(t, []int{http.StatusUnprocessableEntity, http.StatusBadRequest}, l.post("ann", path+"/gates/1.1/verdict", "w", b).status, b)
	}
	require.Equal(t, agent.GateOpen, into[api.GateLine](l.get("ann", path+"/gates/1.1").ok(200)).Gate.Status)
}

func sprintf(format, digest string) string {
	if !strings.Contains(format, "%s") {
		return format
	}
	return fmt.Sprintf(format, digest)
}

func TestVerdict_Void(t *testing.T) {
	l := newLab(t)
	path, g := l.atGate("k")
	stale := verdict(g, agent.Approve, "")
	stale["digest"] = "0123456789abcdef0123456789abcdef"
	p := l.post("ann", path+"/gates/1.1/verdict", "v1", stale).problem(http.StatusConflict, agent.CodeStale)
	require.Equal(t, agent.GateOpen, p.Gate.Status)
	l.post("ann", path+"/gates/1.1/verdict", "v1", stale).problem(http.StatusConflict, agent.CodeStale)
	l.post("ann", path+"/gates/1.1/verdict", "v1", verdict(g, agent.Approve, "")).problem(http.StatusConflict, agent.CodeConflict)
	l.post("ann", path+"/gates/9.9/verdict", "v2", verdict(g, agent.Approve, "")).problem(http.StatusNotFound, agent.CodeNotFound)
	l.post("nurse", path+"/gates/1.1/verdict", "v3", verdict(g, agent.Approve, "")).problem(http.StatusForbidden, agent.CodeDenied)
	l.post("backend", path+"/gates/1.1/verdict", "v4", verdict(g, agent.Approve, "")).problem(http.StatusForbidden, agent.CodeDenied)
	l.post("cust", path+"/gates/1.1/verdict", "v5", verdict(g, agent.Approve, "")).problem(http.StatusForbidden, agent.CodeDenied)
	answer := verdict(g, agent.GiveAnswer, "")
	answer["answer"] = map[string]any{"confirm": true}
	l.post("ann", path+"/gates/1.1/verdict", "v6", answer).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	l.post("ann", path+"/gates/1.1/verdict", "v7", verdict(g, agent.Approve, "")).ok(http.StatusOK)
	l.fake.propose("acme/desk/k", func(r *agenttest.Run) { r.Done("1.1", paid{"p-1"}) })
	p = l.post("op", path+"/gates/1.1/verdict", "v8", verdict(g, agent.Reject, "late")).problem(http.StatusConflict, agent.CodeGateClosed)
	require.Equal(t, "ann", p.Gate.By)
	require.Contains(t, p.Detail, "ann")
}

// False, 0 and "" are answers; a question that was answered takes no other one.
func TestAnswer_Falsy(t *testing.T) {
	l := newLab(t)
	path, g := l.asking("k", "flag", "port", "word")
	b := verdict(g, agent.GiveAnswer, "")
	b["answer"] = map[string]any{"fields": map[string]any{"flag": false, "port": 0, "word": ""}}
	l.post("other-cust", path+"/gates/1.1/verdict", "a0", b).problem(http.StatusNotFound, agent.CodeNotFound)
	l.post("op", path+"/gates/1.1/verdict", "a0", b).problem(http.StatusForbidden, agent.CodeDenied)
	l.post("cust", path+"/gates/1.1/verdict", "a1", b).ok(http.StatusOK)
	require.Equal(t, agent.GateAnswered, into[api.GateLine](l.get("cust", path+"/gates/1.1").ok(200)).Gate.Status)

	path, g = l.asking("k2", "port")
	b = verdict(g, agent.GiveAnswer, "")
	b["as_user"], b["answer"] = "cust", map[string]any{"fields": map[string]any{"port": int64(9007199254740993)}}
	l.post("backend", path+"/gates/1.1/verdict", "a1", b).ok(http.StatusOK)
	require.Contains(t, l.get("cust", path).ok(200).body, `"port":9007199254740993`)
	require.Contains(t, l.get("cust", path).body, `"auth":"static:backend for cust"`)
}

// Integers of any size go in and come back digit for digit.
func TestEdit_KeepsDigits(t *testing.T) {
	l := newLab(t)
	path, g := l.atGate("k")
	require.Equal(t, `{"amount":9007199254740993,"to":"x"}`, g.Args.String())
	l.post("ann", path+"/gates/1.1/verdict", "e1", sprintf(`{"digest":"%s","verdict":"edit","reason":"less","args":{"to":"<&>","amount":9223372036854775807}}`, g.Digest)).ok(http.StatusOK)
	require.Contains(t, l.get("ann", path).ok(200).body, `"args":{"amount":9223372036854775807,"to":"<&>"}`)
}

// What a gate's texts hide is said beside it.
func TestGate_Misleading(t *testing.T) {
	l := newLab(t)
	path := l.run("k")
	l.post("cust", path+"/messages", "m-1", map[string]string{"text": "pay"}).ok(http.StatusOK)
	l.fake.propose("acme/desk/k", func(r *agenttest.Run) {
		r.Propose(scripted.Raw("pay", `{"amount":1,"to":"gpj\u202eexe.<img src=x onerror=1>"}`))
	})
	line := into[api.GateLine](l.get("ann", path+"/gates/1.1").ok(http.StatusOK))
	require.Equal(t, []string{"characters that turn the direction of text"}, line.Misleading)
	require.Equal(t, `{"amount":1,"to":"gpj`+"\u202e"+`exe.<img src=x onerror=1>"}`, line.Gate.Args.String(), "the arguments stay what they are")
}

// A repeat whose first judgement the journal does not have yet is not taken for one
// that was valid.
func TestVerdict_RepeatBeforeTheJournal(t *testing.T) {
	l := newLab(t, func(c *api.Config) {
		c.Reads = behind{c.Reads}
		c.Limits.Deadline = time.Second
	})
	path, g := l.atGate("k")
	stale := verdict(g, agent.Approve, "")
	stale["digest"] = "0123456789abcdef0123456789abcdef"
	l.post("ann", path+"/gates/1.1/verdict", "v1", stale).problem(http.StatusConflict, agent.CodeStale)
	l.post("ann", path+"/gates/1.1/verdict", "v1", stale).problem(http.StatusServiceUnavailable, agent.CodeUnavailable)
}

// behind is a store whose journal is behind.
type behind struct{ api.Reads }

func (behind) Events(context.Context, store.Chain, int64, int) ([]agent.Event, error) {
	return nil, nil
}
