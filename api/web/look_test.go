package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm/scripted"
)

// lookedAt is a world with something of everything.
func lookedAt(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.atGate("ticket-311", payOptions{title: "Refund 89.90 EUR for order 1042"}, smallArgs)
	w.atGate("ticket-312", payOptions{title: "Refund 4,990.00 EUR for order 2210", risk: "more than a day's limit of this customer", quorum: 2, distinct: true,
		escalate: agent.Escalate{After: time.Hour, Roles: []string{"lead"}}}, args)
	w.atGate("ticket-313", payOptions{title: strings.Repeat("Averylongwordwithoutanyspace", 12) + " \u202eevil"}, strings.Replace(smallArgs, "Zoe", strings.Repeat("x", 900), 1))
	w.atGate("ticket-314", payOptions{title: "Refund for \u202e gnp.exe"}, strings.Replace(smallArgs, "Zoe", "p\u0430ypal.com", 1))
	doubt := w.atGate("ticket-315", payOptions{}, smallArgs)
	doubt.Approve("2.1", "ann", "refunds")
	doubt.Fail("2.1", errLine)
	w.keep(doubt)
	done := w.atGate("ticket-316", payOptions{}, smallArgs)
	done.Reject("2.1", "wrong amount: it was 80.00", "ann", "refunds")
	done.Propose(scripted.Say("A colleague has refused it, I am sorry."))
	done.Says("and why?")
	done.Propose(scripted.Call("pay", scripted.Args{}), scripted.Call("find_order", order{"1042"}))
	w.keep(done)
	w.asked("ticket-317", "order_id", "gift", "count", "note")
	w.now = noon.Add(23*time.Hour + 21*time.Minute)
	return w
}

// Every page, on a phone and a desk, light and dark: nothing is cut off, nothing
// breaks a serious rule of accessibility, and the pictures are kept.
func TestBrowser_Look(t *testing.T) {
	w := lookedAt(t)
	b := openTab(t, serve(t, w.pages))
	see := func(name, path string) {
		b.open(path)
		b.everywhere(name)
	}
	see("login", "/login")
	b.as("ilk_wrong")
	b.everywhere("login-wrong")
	b.as(w.tokens["ann"])
	b.everywhere("inbox")
	see("inbox-empty", "/?agent=none")
	see("gate", path("ticket-312", "2.1"))
	see("gate-misleading", path("ticket-314", "2.1"))
	see("gate-closed", path("ticket-316", "2.1"))
	see("edit", path("ticket-312", "2.1")+"/edit")
	see("runs", "/runs")
	see("run", "/runs/pay/ticket-316")
	see("past", "/runs/pay/ticket-316?seq=11")
	see("context", "/runs/pay/ticket-316?turn=2")
	see("error", "/nothing")
	see("decided", "/decided?d=pay/ticket-311/2.1~stale&d=pay/ticket-316/2.1~taken")
	b.as(w.tokens["oda"])
	see("run-operator", "/runs/pay/ticket-312")
	see("cancel", "/runs/pay/ticket-316/cancel")
	see("gate-doubt", path("ticket-315", "2.1-doubt"))
	b.as(w.tokens["c-017"])
	see("inbox-user", "/")
	see("gate-question", path("ticket-317", "1.1"))
	see("gate-no-role", path("ticket-317", "1.1"))
}

// What a form is answered with is looked at too.
func TestBrowser_LookAtAnswers(t *testing.T) {
	w := lookedAt(t)
	b := openTab(t, serve(t, w.pages))
	b.as(w.tokens["ann"])
	at := path("ticket-312", "2.1")
	b.open(at + "/edit")
	b.fill("#vargs-account", "007")
	b.click(".editing button")
	b.everywhere("edit-wrong")
	b.fill("#vargs-account", "9007199254740995")
	b.fill("#vargs-text", "other")
	b.fill("#reason", "the customer gave another account")
	b.click(".editing button")
	b.everywhere("difference")
	b.open(at)
	other := w.as("bob")
	form := with(other.get(at).form(`value="reject"`), "verdict", "reject", "why", "other", "reason", "not this month")
	require.Equal(t, http.StatusSeeOther, other.post(at+"/verdict", form).status)
	b.click(`button[value=approve]`)
	require.Contains(t, b.text(), "decided by bob")
	b.everywhere("gate-too-late")
}
