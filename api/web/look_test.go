package web_test

import (
	"strings"
	"testing"
	"time"

	"interlock/agent"
)

// Every page, on a phone and a desk, light and dark.
func TestBrowser_Look(t *testing.T) {
	w := newWorld(t)
	w.atGate("ticket-311", payOptions{title: "Refund 89.90 EUR for order 1042"}, smallArgs)
	w.atGate("ticket-312", payOptions{title: "Refund 4,990.00 EUR for order 2210", risk: "more than a day's limit of this customer", quorum: 2, distinct: true, escalate: agent.Escalate{After: time.Hour, Roles: []string{"lead"}}}, args)
	long := w.atGate("ticket-313", payOptions{title: strings.Repeat("Averylongwordwithoutanyspace", 12) + " \u202eevil"}, strings.Replace(smallArgs, "Zoe", strings.Repeat("x", 900), 1))
	long.Advance(23*time.Hour + 20*time.Minute)
	w.keep(long)
	w.now = noon.Add(23*time.Hour + 21*time.Minute)
	b := openTab(t, serve(t, w.pages))
	b.open("/login")
	b.everywhere("login")
	b.as(w.tokens["ann"])
	b.everywhere("inbox")
	b.open(path("ticket-312", "2.1"))
	b.everywhere("gate")
	b.open("/runs")
	b.everywhere("runs")
	b.open("/runs/pay/ticket-312")
	b.everywhere("run")
	b.open("/runs/pay/ticket-312?seq=6")
	b.everywhere("past")
	b.open("/runs/pay/ticket-312?turn=2")
	b.everywhere("context")
	b.open("/nothing")
	b.everywhere("error")
}
