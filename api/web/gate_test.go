package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

func TestGate_Approve(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, args)
	ann := w.as("ann")
	page := ann.get(path("1", "2.1"))
	require.Equal(t, http.StatusOK, page.status, page.body)
	for _, text := range []string{"Interlock will run pay of agent pay for c-017.", "9007199254740993", "9223372036854775807", "a payment needs a colleague&#39;s approval",
		"&#34;a&lt;b&#34;: &#34;c&amp;d&#34;", "it broke", "turn 1", "role refunds", "2026-03-02 12:00:00 UTC", "Expiry never approves", "in the user&#39;s own words"} {
		require.Contains(t, page.body, text)
	}
	form := with(page.form(`value="approve"`), "verdict", "approve")
	first := ann.post(path("1", "2.1")+"/verdict", form)
	require.Equal(t, http.StatusSeeOther, first.status, first.body)
	require.Equal(t, agent.GateApproved, run.Gate("2.1").Status)
	require.Equal(t, args, run.Step("2.1").Args.String())
	after := ann.get(first.at)
	require.Contains(t, after.body, "decided by ann (refunds), unverified: approved")
	require.NotContains(t, after.body, `value="approve"`)

	events := len(run.Events())
	require.Equal(t, first.at, ann.post(path("1", "2.1")+"/verdict", form).at, "a double click is one verdict")
	require.Len(t, run.Events(), events)
	require.Contains(t, w.audit.last("acme/pay/1#2.1 approve"), `"subject":"ann"`)
	require.Len(t, w.audit.of(`"act":"verdict"`), 2, "a line for each time that it was sent")

	late := w.as("bob").post(path("1", "2.1")+"/verdict", with(form, "id", "another"))
	require.Equal(t, http.StatusConflict, late.status)
	require.Contains(t, late.body, "decided by ann (refunds), unverified: approved, at 2026-03-01 12:00:00 UTC")
}

// The journal may not have yet what was decided a moment ago.
func TestGate_ApproveWhileTheJournalLags(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, args)
	w.runs.lag = true
	ann := w.as("ann")
	form := with(ann.get(path("1", "2.1")).form(`value="approve"`), "verdict", "approve")
	after := ann.get(ann.post(path("1", "2.1")+"/verdict", form).at)
	require.Contains(t, after.body, "decided by ann")
	require.NotContains(t, after.body, `value="approve"`)
}

func TestGate_RejectAndReturn(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, args)
	ann := w.as("ann")
	page := ann.get(path("1", "2.1"))
	reject := with(page.form(`value="reject"`), "verdict", "reject")
	for _, missing := range []url.Values{with(reject, "why", "wrong amount"), with(reject, "reason", "x"), with(reject, "why", "made up", "reason", "x")} {
		again := ann.post(path("1", "2.1")+"/verdict", missing)
		require.Equal(t, http.StatusUnprocessableEntity, again.status)
		require.Contains(t, again.body, "Not sent.")
	}
	kept := ann.post(path("1", "2.1")+"/verdict", with(reject, "reason", "twice <paid>"))
	require.Contains(t, kept.body, "twice &lt;paid&gt;</textarea>", "what was typed stays")
	require.Equal(t, agent.GateOpen, run.Gate("2.1").Status)
	done := ann.post(path("1", "2.1")+"/verdict", with(reject, "why", "wrong amount", "reason", "it was 80"))
	require.Equal(t, http.StatusSeeOther, done.status)
	require.Equal(t, "wrong amount: it was 80", run.Gate("2.1").Reason)
	require.Len(t, run.Run().Rulings, 1)

	run = w.atGate("2", payOptions{}, args)
	give := with(ann.get(path("2", "2.1")).form(`value="return"`), "verdict", "return")
	require.Equal(t, http.StatusUnprocessableEntity, ann.post(path("2", "2.1")+"/verdict", give).status)
	require.Equal(t, http.StatusSeeOther, ann.post(path("2", "2.1")+"/verdict", with(give, "reason", "ask for the photo")).status)
	require.Equal(t, agent.GateReturned, run.Gate("2.1").Status)
	require.Empty(t, run.Run().Rulings)
}

// What has changed since a page was opened is not decided from there.
func TestGate_Stale(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, args)
	ann := w.as("ann")
	form := with(ann.get(path("1", "2.1")).form(`value="approve"`), "verdict", "approve", "digest", strings.Repeat("0", 64))
	for range 2 { // a second click is answered as the first
		a := ann.post(path("1", "2.1")+"/verdict", form)
		require.Equal(t, http.StatusConflict, a.status)
		require.Contains(t, a.body, "This gate has changed since you opened it")
		require.Contains(t, a.body, `href="`+path("1", "2.1")+`"`)
	}
	require.Equal(t, agent.GateOpen, run.Gate("2.1").Status)
}

func TestGate_Quorum(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{quorum: 2, distinct: true}, args)
	ann, bob := w.as("ann"), w.as("bob")
	send := func(b *browser) answer {
		return b.post(path("1", "2.1")+"/verdict", with(b.get(path("1", "2.1")).form(`value="approve"`), "verdict", "approve"))
	}
	require.Equal(t, http.StatusSeeOther, send(ann).status)
	page := ann.get(path("1", "2.1"))
	require.Contains(t, page.body, "You have approved it already")
	require.NotContains(t, page.body, `value="approve"`)
	require.Contains(t, bob.get(path("1", "2.1")).body, "1 of 2")
	require.Equal(t, http.StatusSeeOther, send(bob).status)
	require.Equal(t, agent.GateApproved, run.Gate("2.1").Status)
}

// A person without the role sees the gate and no form, and why; values of sensitive
// fields are for those who decide.
func TestGate_WithoutTheRole(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, args)
	page := w.as("mail").get(path("1", "2.1"))
	require.Equal(t, http.StatusOK, page.status)
	require.Contains(t, page.body, "Deciding needs role refunds, and you have mail.")
	require.NotContains(t, page.body, "/verdict")
	require.NotContains(t, page.body, "4111")
	require.Contains(t, page.body, "(masked)")
	require.Contains(t, w.as("ann").get(path("1", "2.1")).body, "4111 1111")
}

func TestGate_Unreachable(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, args)
	ann := w.as("ann")
	form := with(ann.get(path("1", "2.1")).form(`value="approve"`), "verdict", "approve")
	w.runs.down = agent.Errorf(agent.CodeUnavailable, "Temporal cannot be reached")
	a := ann.post(path("1", "2.1")+"/verdict", form)
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Contains(t, a.body, "Send it again")
	require.Equal(t, form, a.form("Send it again"), "the same verdict, with the same id")
	require.Equal(t, http.StatusOK, ann.get(path("1", "2.1")).status, "what the store has is shown")

	w.runs.down = nil
	w.reading.down = agent.Errorf(agent.CodeUnavailable, "the database is away")
	page := ann.get(path("1", "2.1"))
	require.Equal(t, http.StatusOK, page.status, page.body)
	require.Contains(t, page.body, "The store cannot be read just now")
	w.runs.down = w.reading.down
	away := ann.get(path("1", "2.1"))
	require.Equal(t, http.StatusServiceUnavailable, away.status)
	require.NotContains(t, away.body, "the database is away", "where what runs is no business of who reads the page")
	line := w.audit.last("the database is away")
	require.Contains(t, line, `"request_id":"`+away.header.Get("X-Request-Id")+`"`)
	require.Contains(t, w.as("oda").get(path("1", "2.1")).body, "the database is away", "an operator is told")
}
