package api_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/api"
	"interlock/llm/scripted"
	"interlock/starter"
	"interlock/store"
)

// Each act reaches the run as what it is, by whom it is, and a repeat changes nothing.
func TestSteering(t *testing.T) {
	l := newLab(t)
	path, _ := l.atGate("k")
	run := func() api.ShownRun { return into[api.ShownRun](l.get("op", path).ok(http.StatusOK)) }
	sent := func(as, what, id string, b any) agent.Receipt {
		return into[api.SentInput](l.post(as, path+"/"+what, id, b).ok(http.StatusOK)).Receipt
	}
	require.Equal(t, agent.Accepted, sent("op", "pause", "p-1", nil).Status)
	require.Equal(t, agent.RunPaused, run().Status)
	require.Equal(t, agent.Repeated, sent("op", "pause", "p-1", nil).Status)
	require.Equal(t, agent.Accepted, sent("op", "resume", "p-2", map[string]string{"reason": "fine"}).Status)
	l.post("op", path+"/resume", "p-3", nil).problem(http.StatusConflict, agent.CodeConflict)

	sent("backend", "amend", "a-1", `{"fields":{"port":9007199254740993},"reason":"moved"}`)
	require.Contains(t, run().State.String(), `"port":9007199254740993`)
	require.Equal(t, "backend", run().Provenance["port"].By)
	l.post("backend", path+"/amend", "a-2", `{"fields":{"paid":"x"}}`).problem(http.StatusForbidden, agent.CodeDenied)
	l.post("backend", path+"/amend", "a-2", `{"fields":7}`).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	l.post("op", path+"/undo", "u-1", `{"steps":["1.1"],"reason":"x"}`).problem(http.StatusConflict, agent.CodeConflict)
	absent := l.post("op", path+"/undo", "u-2", `{"steps":["9.9"],"reason":"x"}`).problem(http.StatusNotFound, agent.CodeNotFound)
	require.Contains(t, absent.Detail, "step 9.9 cannot be undone: the run has no such step", "the run may be seen: which part of it is absent is told")
	l.post("cust", path+"/cancel", "c-0", `{"undo":"run"}`).problem(http.StatusForbidden, agent.CodeDenied)
	sent("cust", "cancel", "c-1", `{"undo":"turn","reason":"changed my mind"}`)
	require.Equal(t, agent.RunCancelled, run().Status)
	l.post("cust", path+"/messages", "m-9", `{"text":"hello?"}`).problem(http.StatusConflict, agent.CodeEnded)
	require.Equal(t, agent.Repeated, sent("cust", "cancel", "c-1", `{"undo":"turn","reason":"changed my mind"}`).Status)
}

func TestRulings(t *testing.T) {
	l := newLab(t)
	path, g := l.atGate("k")
	l.post("ann", path+"/gates/1.1/verdict", "v1", verdict(g, agent.Reject, "no receipt")).ok(http.StatusOK)
	list := func() []api.RulingLine {
		return into[api.RulingList](l.get("ann", path+"/rulings").ok(http.StatusOK)).Rulings
	}
	require.Len(t, list(), 1)
	require.Equal(t, agent.RulingBinds, list()[0].Status)
	l.post("nurse", path+"/rulings/1.1/lift", "l-1", `{"reason":"x"}`).problem(http.StatusForbidden, agent.CodeDenied)
	l.post("ann", path+"/rulings/1.1/lift", "l-2", `{}`).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	absent := l.post("ann", path+"/rulings/9.9/lift", "l-3", `{"reason":"x"}`).problem(http.StatusNotFound, agent.CodeNotFound)
	require.Contains(t, absent.Detail, "the run has no ruling 9.9; it has: 1.1")
	l.post("ann", path+"/rulings/1.1/lift", "l-4", `{"reason":"a photo came"}`).ok(http.StatusOK)
	require.Equal(t, agent.RulingLifted, list()[0].Status)
	l.fake.propose("acme/desk/k", func(r *agenttest.Run) {
		r.Propose(scripted.Raw("rule_out", `{"tool":"pay","args":{"amount":2,"to":"y"},"reason":"the user said so"}`))
	})
	require.Equal(t, agent.RulingDraft, list()[1].Status)
	l.post("ann", path+"/rulings/"+list()[1].ID+"/confirm", "l-5", nil).ok(http.StatusOK)
	require.Equal(t, agent.RulingBinds, list()[1].Status)
}

// A session's messages land in its run; a user who is spoken for reaches no run of
// somebody else's.
func TestConverse(t *testing.T) {
	l := newLab(t)
	say := func(key, id, user string) answer {
		return l.post("backend", "/v1/sessions/desk/"+key+"/messages", id, map[string]any{"text": "hi", "as_user": user, "body": map[string]string{"customer_id": "c"}})
	}
	first := into[starter.Conversed](say("s", "m-1", "cust").ok(http.StatusOK))
	require.True(t, first.New)
	second := into[starter.Conversed](say("s", "m-1", "cust").ok(http.StatusOK))
	require.Equal(t, agent.Repeated, second.Receipt.Status)
	say("s", "m-2", "other-cust").problem(http.StatusNotFound, agent.CodeNotFound)
	require.Equal(t, "cust", into[api.ShownRun](l.get("ann", "/v1/runs/desk/s").ok(200)).User)
	say("a%20b", "m-1", "cust").problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	l.post("backend", "/v1/sessions/dask/s/messages", "m", `{"text":"hi"}`).problem(http.StatusUnprocessableEntity, "unknown_agent")
}

func TestEffects(t *testing.T) {
	l := newLab(t)
	ctx := context.Background()
	l.run("k")
	for i := range 3 {
		key := fmt.Sprint("key-", i)
		_, _, err := l.store.Claim(ctx, store.Claim{Tenant: "acme", Key: key, Address: "acme/desk/k", Scope: "s", Agent: "desk", Version: 1, Tool: "pay", Kind: agent.Keyed,
			Step: "1.1", Args: agent.JSON(`{"amount":9007199254740993}`), Attempt: time.Minute, Branch: "b"})
		require.NoError(t, err)
		if i > 0 {
			require.NoError(t, l.store.MarkDoubt(ctx, "acme", key, "the worker died"))
		}
	}
	var keys []string
	for token := ""; ; {
		page := into[api.EffectPage](l.get("op", "/v1/effects?state=in_doubt&page_size=1&page_token="+token).ok(http.StatusOK))
		for _, e := range page.Effects {
			keys = append(keys, e.Key)
			require.Equal(t, `{"amount":9007199254740993}`, e.Args.String())
			require.NotNil(t, e.DoubtAt)
		}
		if token = page.Next; token == "" {
			break
		}
	}
	require.Equal(t, []string{"key-1", "key-2"}, keys)
	require.Empty(t, into[api.EffectPage](l.get("evil", "/v1/effects").ok(http.StatusOK)).Effects)
	resolve := `{"happened":true,"result":{"id":"p"},"reason":"seen in the list"}`
	l.post("evil", "/v1/effects/key-1/resolve", "r", resolve).problem(http.StatusNotFound, agent.CodeNotFound)
	l.post("op", "/v1/effects/none/resolve", "r", resolve).problem(http.StatusNotFound, agent.CodeNotFound)
	l.post("op", "/v1/effects/key-1/resolve", "r", `{"result":1,"reason":"x"}`).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	l.post("op", "/v1/effects/key-1/resolve", "r", resolve).problem(http.StatusConflict, agent.CodeConflict)
	require.Equal(t, []string{"key-1", "op"}, []string{l.fake.resolved.Key, l.fake.resolved.Principal.Subject})
}

// Gates are listed a page at a time.
func TestGates_Pages(t *testing.T) {
	l := newLab(t)
	for i := range 3 {
		l.atGate(fmt.Sprint("k", i))
	}
	var keys []string
	for token := ""; ; {
		page := into[api.GatePage](l.get("ann", "/v1/gates?role=refunds&agent=desk&page_size=2&page_token="+token).ok(http.StatusOK))
		for _, g := range page.Gates {
			keys = append(keys, g.Key)
		}
		if token = page.Next; token == "" {
			break
		}
	}
	require.ElementsMatch(t, []string{"k0", "k1", "k2"}, keys)
	require.Empty(t, into[api.GatePage](l.get("ann", "/v1/gates?role=nurses").ok(http.StatusOK)).Gates)
	require.Empty(t, into[api.GatePage](l.get("ann", "/v1/gates?status=approved").ok(http.StatusOK)).Gates)
	require.Len(t, into[api.GatePage](l.get("ann", "/v1/gates?older_than=4h&status=any").ok(http.StatusOK)).Gates, 3, "the lab's clock stands months ago")
	for _, wrong := range []string{"older_than=x", "older_than=-1h", "status=closed", "page_token=zzz"} {
		l.get("ann", "/v1/gates?"+wrong).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	}
}
