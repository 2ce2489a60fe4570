package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

// worked is a world with something on every part of the operators' page.
func worked(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	ctx := t.Context()
	w.atGate("waits", payOptions{}, smallArgs)
	doubt := w.atGate("doubt", payOptions{}, smallArgs)
	doubt.Approve("2.1", "ann", "refunds")
	doubt.Fail("2.1", errLine)
	w.keep(doubt)
	w.atGate("paused", payOptions{}, smallArgs)
	_, err := w.runs.send("acme/pay/paused", agent.PauseRun{ID: "p", Principal: agent.Principal{Subject: "oda"}, Reason: "day off: nobody is in"})
	require.NoError(t, err)
	for i, tenant := range []string{"acme", "acme", "other"} {
		require.NoError(t, w.store.Bury(ctx, store.DeadNotice{Tenant: tenant, ID: fmt.Sprint("notice-", i), Target: "crm", Kind: "gate.opened", Address: tenant + "/pay/waits",
			Notice: agent.JSON(`{}`), Reason: "500 <script> from the target", BuriedAt: noon}))
	}
	_, err = w.store.Hold(ctx, store.Hold{Tenant: "acme", Agent: "pay", By: "oda", Reason: "the bank is down"})
	require.NoError(t, err)
	for i := range 30 {
		_, err = w.store.RecordModelCall(ctx, store.ModelCall{Tenant: "acme", Key: fmt.Sprint(i), Address: "acme/pay/1", Turn: 1, Model: []string{"small", "large"}[i%2], Instructions: "x",
			Usage: agent.Usage{Input: int64(1000 * i), CacheRead: 500, Output: int64(100 + 30*i)}, Answer: agent.JSON(`{}`), At: w.now.Add(-time.Duration(i*i/2) * 20 * time.Minute)})
		require.NoError(t, err)
	}
	return w
}

func TestOps(t *testing.T) {
	w := worked(t)
	for _, who := range []string{"ann", "c-017"} {
		require.Equal(t, http.StatusForbidden, w.as(who).get("/ops").status)
		require.NotContains(t, w.as(who).get("/").body, `href="/ops"`)
		require.Equal(t, http.StatusForbidden, w.as(who).post("/ops/notices/drop", url.Values{"notice": {"notice-0"}, "target": {"crm"}}).status)
	}
	oda := w.as("oda")
	page := oda.get("/ops")
	require.Equal(t, http.StatusOK, page.status)
	for _, text := range []string{`href="/runs?status=waiting"><span class="big">2</span>`, `href="/runs?reason=asked&#43;by&#43;oda&amp;status=paused"`, "Did pay happen?", `/gates/2.1-doubt`,
		"500 &lt;script&gt; from the target", "agent pay", "the bank is down", "version 1", "small", "large", "<title>", "<desc"} {
		require.Contains(t, page.body, text)
	}
	require.NotContains(t, page.body, "cannot be read")
	require.Contains(t, oda.get("/runs?reason=asked+by+oda&status=paused").body, "/runs/pay/paused")
	require.NotContains(t, oda.get("/runs?reason=asked+by+oda&status=paused").body, "/runs/pay/waits")
	require.NotContains(t, w.as("eve").get("/ops").body, "the bank is down")
}

// The pictures and the tables beside them say the same.
func TestOps_Spent(t *testing.T) {
	w := newWorld(t)
	call := func(key string, at time.Time, tokens int64) {
		_, err := w.store.RecordModelCall(t.Context(), store.ModelCall{Tenant: "acme", Key: key, Address: "acme/pay/1", Turn: 1, Model: "m", Instructions: "x",
			Usage: agent.Usage{Input: tokens}, Answer: agent.JSON(`{}`), At: at})
		require.NoError(t, err)
	}
	call("1", w.now, 1_000_000)
	call("2", w.now.Add(-time.Hour), 500_000)
	call("3", w.now.Add(-6*24*time.Hour), 7)
	call("4", w.now.Add(-8*24*time.Hour), 999)
	page := w.as("oda").get("/ops")
	for _, text := range []string{"at most 1,000,000", "Tokens by hour: 1,500,000 in all, at most 1,000,000, at 12:00", "Model calls by day: 3 in all, at most 2, at Sun 1 Mar",
		`height="96"><title>12:00: 1,000,000</title>`, `height="48"><title>11:00: 500,000</title>`, "<td>1,500,007</td>"} {
		require.Contains(t, page.body, text)
	}
	require.NotContains(t, page.body, "999")
}

// A dead notice is told again, or dropped; another tenant's is none.
func TestOps_DeadNotices(t *testing.T) {
	w := worked(t)
	oda := w.as("oda")
	form := oda.get("/ops").form(`/ops/notices/retry`)
	require.Equal(t, "notice-0", form.Get("notice"))
	done := oda.post("/ops/notices/retry", form)
	require.Equal(t, "/ops?done=retry#dead", done.at)
	require.Equal(t, []string{"notice-0 for crm by oda"}, w.runs.told)
	require.Contains(t, oda.get("/ops?done=retry").body, "A worker tells the notice again.")
	require.Equal(t, "/ops?done=drop#dead", oda.post("/ops/notices/drop", form).at)
	require.Contains(t, w.audit.last("notice notice-0 for crm drop"), `"outcome":"ok"`)
	require.NotContains(t, oda.get("/ops").body, "notice-0")
	require.Equal(t, http.StatusConflict, oda.post("/ops/notices/drop", form).status)
	require.Equal(t, http.StatusConflict, oda.post("/ops/notices/retry", form).status)
	require.Equal(t, http.StatusNotFound, oda.post("/ops/notices/drop", with(form, "notice", "notice-2")).status, "another tenant's")
	require.Equal(t, http.StatusUnprocessableEntity, oda.post("/ops/notices/drop", nil).status)
}

// What can be read is shown where something cannot.
func TestOps_StoreDown(t *testing.T) {
	w := worked(t)
	w.reading.down = agent.Errorf(agent.CodeUnavailable, "the disk is away")
	page := w.as("oda").get("/ops")
	require.Equal(t, http.StatusOK, page.status)
	require.Contains(t, page.body, "the steps in doubt cannot be read just now")
	require.Contains(t, page.body, "the bank is down")
}
