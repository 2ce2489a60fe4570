package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// inEveryWay does something in a browser with and without JavaScript, on a phone and a
// desk.
func inEveryWay(t *testing.T, do func(t *testing.T, b *tab, name string)) {
	for _, c := range []struct {
		screen  screen
		scripts bool
	}{{phone, true}, {phone, false}, {desk, true}, {desk, false}} {
		name := fmt.Sprintf("%s-scripts-%v", c.screen.name, c.scripts)
		t.Run(name, func(t *testing.T) {
			b := openTab(t, "")
			b.on(c.screen, !c.scripts)
			b.scripts(c.scripts)
			do(t, b, name)
		})
	}
}

// A verdict that waits is taken back, by the button that its person is shown.
func TestBrowser_TakeBack(t *testing.T) {
	inEveryWay(t, func(t *testing.T, b *tab, name string) {
		w := newWorld(t)
		w.now = noon
		run := w.atGate("1", payOptions{takeBack: 5 * time.Minute}, smallArgs)
		b.base = serve(t, w.pages)
		b.as(w.tokens["ann"])
		b.open(path("1", "2.1"))
		b.click(`button[value="approve"]`)
		require.Contains(t, b.text(), "takes effect at 2026-03-01 12:05:00 UTC")
		b.shoot("take-back-" + name)
		require.NotNil(t, run.Gate("2.1").Pending)
		b.click(`button[value="take_back"]`)
		require.Nil(t, run.Gate("2.1").Pending)
		require.Equal(t, agent.GateOpen, run.Gate("2.1").Status)
		b.fill("#why", "other")
		b.fill("#reject-reason", "on second thoughts")
		b.click(`button[value="reject"]`)
		require.Contains(t, b.text(), "reject (on second thoughts)")
	})
}

// A gate is taken, handed over and let go, and an absence is set and ended.
func TestBrowser_Desk(t *testing.T) {
	inEveryWay(t, func(t *testing.T, b *tab, name string) {
		w := newWorld(t)
		w.atGate("1", payOptions{}, smallArgs)
		b.base = serve(t, w.pages)
		b.as(w.tokens["ann"])
		b.open(path("1", "2.1"))
		b.click(`form[action$="/take"] button`)
		require.Contains(t, b.text(), "You look at it until")
		b.click(`form[action$="/let-go"] button`)
		require.Contains(t, b.text(), "Nobody. Take it")
		b.press(`.desk details summary`)
		b.fill("#desk-to", "bob")
		b.click(`form[action$="/hand"] button`)
		require.Contains(t, b.text(), "bob looks at it (handed over by ann) until")
		b.open("/?desk=nobody")
		require.Contains(t, b.text(), "No gate that you may decide is of this kind.")
		b.as(w.tokens["bob"])
		b.open("/?desk=mine")
		require.Contains(t, b.text(), "You look at it (handed over by ann)")

		b.open("/absences")
		b.fill("#a-cover", "ann")
		b.fill("#a-until", "2026-03-03T08:00")
		b.click(`form[action="/absences"] button`)
		require.Contains(t, b.text(), "ann stands in")
		b.shoot("absence-" + name)
		b.as(w.tokens["ann"])
		b.open("/?desk=mine")
		require.Contains(t, b.text(), "standing in for bob")
		b.as(w.tokens["bob"])
		b.open("/absences")
		b.click(`form[action="/absences/end"] button`)
		require.Contains(t, b.text(), "Nobody is away.")
	})
}

// A dead notice is told again, and dropped.
func TestBrowser_DeadNotices(t *testing.T) {
	inEveryWay(t, func(t *testing.T, b *tab, _ string) {
		w := worked(t)
		b.base = serve(t, w.pages)
		b.as(w.tokens["oda"])
		b.click(`.top a[href="/ops"]`)
		b.click(`form[action="/ops/notices/retry"] button`)
		require.Contains(t, b.text(), "A worker tells the notice again.")
		require.Len(t, w.runs.told, 1)
		b.press(`details:has(form[action="/ops/notices/drop"]) summary`)
		b.click(`form[action="/ops/notices/drop"] button`)
		require.Contains(t, b.text(), "The notice was dropped")
		b.do(chromedp.WaitVisible(chromedp.CSS(`input[value="notice-1"] ~ button`)))
		require.Equal(t, 1, len(w.runs.told))
	})
}

// What is new is looked at on all screens.
func TestBrowser_LookAtTheSecondHalf(t *testing.T) {
	w := worked(t)
	ann, bob := w.as("ann"), w.as("bob")
	w.atGate("pending", payOptions{title: "Refund 89.90 EUR for order 1042", takeBack: 5 * time.Minute}, smallArgs)
	ann.post(path("pending", "2.1")+"/verdict", with(ann.get(path("pending", "2.1")).form(`value="approve"`), "verdict", "approve"))
	w.atGate("looked", payOptions{title: "Refund 12.00 EUR for order 2210"}, smallArgs)
	bob.post(path("looked", "2.1")+"/take", nil)
	ann.post(path("waits", "2.1")+"/take", nil)
	for _, form := range []map[string]string{{"cover": "bob", "until": "2026-03-04T08:00", "from": "2026-03-02T08:00"}} {
		ann.post("/absences", with(nil, "cover", form["cover"], "until", form["until"], "from", form["from"]))
	}
	w.as("oda").post("/absences", with(nil, "subject", "mail", "cover", "lea", "until", "2026-03-09T08:00"))
	b := openTab(t, serve(t, w.pages))
	see := func(name, path string) {
		b.open(path)
		b.everywhere(name)
	}
	b.as(w.tokens["ann"])
	b.everywhere("second-inbox")
	see("gate-pending", path("pending", "2.1"))
	see("gate-looked-at", path("looked", "2.1"))
	see("gate-mine", path("waits", "2.1"))
	see("absences", "/absences")
	b.fill("#a-cover", "ann")
	b.fill("#a-until", "2026-03-03T08:00")
	b.click(`form[action="/absences"] button`)
	b.everywhere("absences-wrong")
	b.as(w.tokens["bob"])
	see("gate-pending-others", path("pending", "2.1"))
	b.as(w.tokens["oda"])
	see("ops", "/ops")
	see("runs-reason", "/runs?reason=asked&status=paused")
}
