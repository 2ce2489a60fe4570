package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm/scripted"
)

func TestInbox_Empty(t *testing.T) {
	w := newWorld(t)
	for _, who := range []string{"ann", "oda", "c-017"} {
		page := w.as(who).get("/")
		require.Equal(t, http.StatusOK, page.status)
		require.Contains(t, page.body, "No gate waits for you.")
	}
}

// order is the order of the gates of a page.
func (a answer) order() (keys []string) {
	for _, m := range regexp.MustCompile(`<h2><a href="/runs/pay/([^/]*)/gates`).FindAllStringSubmatch(a.body, -1) {
		keys = append(keys, m[1])
	}
	return keys
}

func TestInbox_WhoseGates(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, smallArgs)
	w.atGate("2", payOptions{roles: []string{"lead"}}, smallArgs)
	asked := w.start(payAgent(payOptions{}), "3", payStart{Customer: "c-017"})
	asked.Says("hello 1042")
	asked.Propose(scripted.Ask("Which order?", "order_id"))
	w.keep(asked)
	doubt := w.atGate("4", payOptions{}, smallArgs)
	doubt.Approve("2.1", "ann", "refunds")
	doubt.Fail("2.1", fmt.Errorf("the line went dead"))
	w.keep(doubt)

	for who, want := range map[string][]string{"ann": {"1"}, "bob": {"1", "2"}, "mail": nil, "oda": {"4"}, "c-017": {"3"}, "c-018": nil, "eve": nil} {
		require.Equal(t, want, w.as(who).get("/").order(), who)
	}
}

func TestInbox_OrderAndFilter(t *testing.T) {
	w := newWorld(t)
	for i, o := range []payOptions{{}, {risk: "more than the limit"}, {roles: []string{"lead", "refunds"}}} {
		run := w.atGate(fmt.Sprint(i), o, smallArgs)
		run.Advance(time.Duration(i) * time.Hour)
		w.keep(run)
	}
	w.now = noon.Add(5 * time.Hour)
	bob := w.as("bob")
	require.Len(t, bob.get("/").order(), 3)
	require.Equal(t, []string{"1"}, bob.get("/?risk=LIMIT").order())
	require.Equal(t, []string{"2"}, bob.get("/?role=lead").order())
	require.Empty(t, bob.get("/?older=24h").order())
	require.Len(t, bob.get("/?older=4h").order(), 3)
	require.Empty(t, bob.get("/?agent=other").order())
	require.Contains(t, bob.get("/?agent=other").body, "Show all")
	require.Contains(t, bob.get("/").body, `<time datetime="2026-03-02T12:00:00Z" title="2026-03-02 12:00:00 UTC">in 19 h</time>`)
	require.Equal(t, http.StatusOK, bob.get("/?page=99&order=%00&older=x").status)
}

func TestInbox_Pages(t *testing.T) {
	w := newWorld(t)
	for i := range 53 {
		w.atGate(fmt.Sprintf("%02d", i), payOptions{}, smallArgs)
	}
	ann := w.as("ann")
	first := ann.get("/")
	require.Len(t, first.order(), 50)
	require.Contains(t, first.body, "53 gates, page 1 of 2")
	second := ann.get("/?page=2")
	require.Equal(t, []string{"50", "51", "52"}, second.order())
}

// Only the list is sent again, and a session that has ended leads to the sign-in
// instead of into the list.
func TestInbox_Fragment(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, smallArgs)
	ann := w.as("ann")
	part := func() answer {
		r := httptest.NewRequest(http.MethodGet, "/?order=oldest", nil)
		r.Header.Set("HX-Request", "true")
		return ann.do(r)
	}
	require.Equal(t, []string{"1"}, part().order())
	require.NotContains(t, part().body, "<html")
	require.True(t, strings.HasPrefix(strings.TrimSpace(part().body), `<div id="list" hx-get="/?order=oldest"`))
	delete(w.people, w.tokens["ann"])
	gone := part()
	require.Equal(t, http.StatusNoContent, gone.status)
	require.Equal(t, "/login?next=%2F%3Forder%3Doldest", gone.header.Get("HX-Redirect"))
}

// Each verdict of several stands or falls by itself.
func TestSeveral_OneOfThemStale(t *testing.T) {
	w := newWorld(t)
	for _, key := range []string{"1", "2", "3"} {
		w.atGate(key, payOptions{}, smallArgs)
	}
	ann := w.as("ann")
	form := with(ann.get("/").form(`name="pick"`), "verdict", "approve")
	form["pick"] = []string{"0", "1", "2"}
	stale := w.runs.all["acme/pay/2"]
	stale.Amend(map[string]any{"order_id": "1043"}) // the gate that was shown is void
	w.keep(stale)
	sent := ann.post("/decide", form)
	require.Equal(t, http.StatusSeeOther, sent.status, sent.body)
	page := ann.get(sent.at)
	require.Contains(t, page.body, "2 of 3 were taken.")
	require.Contains(t, page.body, "the gate was closed before")
	require.Equal(t, "2", page.order()[0], "what needs another look comes first")
	for key, want := range map[string]agent.GateStatus{"1": agent.GateApproved, "2": agent.GateVoid, "3": agent.GateApproved} {
		require.Equal(t, want, w.runs.all["acme/pay/"+key].Gate("2.1").Status, key)
	}

	again := ann.post("/decide", form)
	require.Equal(t, sent.at, again.at, "a double click is answered as the first")
}

func TestSeveral_Reject(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, smallArgs)
	w.atGate("2", payOptions{risk: "high"}, args)
	ann := w.as("ann")
	form := with(ann.get("/").form(`name="pick"`), "verdict", "reject")
	none := ann.post("/decide", form)
	require.Equal(t, http.StatusUnprocessableEntity, none.status)
	form["pick"] = []string{"0", "1"}
	missing := ann.post("/decide", with(form, "why", "wrong amount"))
	require.Equal(t, http.StatusUnprocessableEntity, missing.status)
	require.Equal(t, 2, strings.Count(missing.body, " checked>"), "what was chosen stays chosen")
	// The limit is in bytes, and an input's in characters: what is too long is told
	// before it is sent, and stays as it was written.
	long := ann.post("/decide", with(form, "why", "other", "reason", strings.Repeat("ש", 900)))
	require.Equal(t, http.StatusUnprocessableEntity, long.status)
	require.Contains(t, long.body, "the reason has 1800 bytes, the limit is 1000")
	require.Contains(t, long.body, strings.Repeat("ש", 900))
	require.Equal(t, 2, strings.Count(long.body, " checked>"))
	sent := ann.post("/decide", with(form, "why", "not allowed by policy", "reason", "no more of these"))
	require.Contains(t, ann.get(sent.at).body, "2 of 2 were taken.")
	for _, key := range []string{"1", "2"} {
		require.Equal(t, "not allowed by policy: no more of these", w.runs.all["acme/pay/"+key].Gate("2.1").Reason)
	}
}

// What a row does not show whole is not approved from it.
func TestSeveral_OnTheirOwnPageOnly(t *testing.T) {
	w := newWorld(t)
	w.atGate("risk", payOptions{risk: "high"}, smallArgs)
	w.atGate("long", payOptions{}, strings.Replace(smallArgs, "Zoe", strings.Repeat("Zoe", 200), 1))
	w.atGate("turned", payOptions{}, strings.Replace(smallArgs, "Zoe", "Zoe\u202e", 1))
	ann := w.as("ann")
	page := ann.get("/")
	for _, why := range []string{"it names a risk", "its arguments are too long for this list", "its texts hold characters that turn the direction of text"} {
		require.Contains(t, page.body, why)
	}
	form := with(page.form(`name="pick"`), "verdict", "approve")
	form["pick"] = []string{"0", "1", "2"}
	answer := ann.get(ann.post("/decide", form).at)
	require.Contains(t, answer.body, "0 of 3 were taken.")
	require.Equal(t, 3, strings.Count(answer.body, "on its own page only"))
	for _, run := range w.runs.all {
		require.Equal(t, agent.GateOpen, run.Gate("2.1").Status)
	}
}

func TestSeveral_NotWhole(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, smallArgs)
	ann := w.as("ann")
	form := with(ann.get("/").form(`name="pick"`), "verdict", "approve", "pick", "0")
	for _, bad := range []url.Values{with(form, "digest-0", ""), with(form, "id-0", ""), with(form, "gate-0", "pay"), with(form, "pick", "7")} {
		require.Equal(t, http.StatusUnprocessableEntity, ann.post("/decide", bad).status)
	}
	elsewhere := ann.get(ann.post("/decide", with(form, "gate-0", "pay/../2.1")).at)
	require.Contains(t, elsewhere.body, "There is no such gate")
	require.Equal(t, agent.GateOpen, w.runs.all["acme/pay/1"].Gate("2.1").Status)
}
