package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"interlock/llm/scripted"
	"interlock/store"
)

// says waits until the page says something.
func (b *tab) says(text string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return strings.Contains(b.text(), text) }, patience, 50*time.Millisecond, "%q at %s", text, b.name)
}

func evaluate[T any](b *tab, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	require.NoError(b.t, err)
	return v
}

// connected waits until the page follows what happens.
func (w *world) connected(b *tab) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return w.web.OpenStreams() > 0 }, patience, 20*time.Millisecond)
}

// The inbox shows what is opened long before it would be asked for again.
func TestBrowser_LiveInbox(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{title: "the first"}, smallArgs)
	b := openTab(t, serve(t, w.pages))
	for _, s := range []screen{phone, desk} {
		b.on(s, false)
		b.as(w.tokens["ann"])
		w.connected(b)
		title := "opened on a " + s.name
		w.atGate("on-"+s.name, payOptions{title: title}, smallArgs)
		b.says(title)
		require.Equal(t, "A gate was opened: "+title, evaluate[string](b, `document.getElementById("says").textContent`))

		b.press(`input[name="pick"]`)
		w.atGate("while-"+s.name, payOptions{title: "while somebody chooses on a " + s.name}, smallArgs)
		b.do(chromedp.WaitVisible(chromedp.CSS("#changed")))
		require.NotContains(t, evaluate[string](b, `document.getElementById("list").textContent`), "while somebody chooses on a "+s.name)
		b.shoot("live-changed-" + s.name)
		b.click("#changed a")
		b.says("while somebody chooses on a " + s.name)
	}
}

// The stream ends while nobody looks, and what has happened meanwhile is shown then.
func TestBrowser_LiveHidden(t *testing.T) {
	w := newWorld(t)
	b := openTab(t, serve(t, w.pages))
	b.as(w.tokens["ann"])
	w.connected(b)
	hide := func(hidden bool) {
		evaluate[int](b, fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %v, configurable: true}); document.dispatchEvent(new Event("visibilitychange")); 0`, hidden))
	}
	hide(true)
	require.Eventually(t, func() bool { return w.web.OpenStreams() == 0 }, patience, 20*time.Millisecond)
	w.atGate("1", payOptions{title: "while the tab was hidden"}, smallArgs)
	hide(false)
	b.says("while the tab was hidden")
}

// A run's page goes on with the run, and has an answer while it comes.
func TestBrowser_LiveRun(t *testing.T) {
	w := newWorld(t)
	run := w.start(payAgent(payOptions{}), "1", payStart{Customer: "c-017"})
	run.Says("hello order 1042")
	w.keep(run)
	b := openTab(t, serve(t, w.pages))
	b.on(phone, false)
	b.as(w.tokens["c-017"])
	b.open("/runs/pay/1")
	n := 0
	require.Eventually(t, func() bool {
		n++
		w.store.Tell(store.Delta{Tenant: "acme", Address: "acme/pay/1", FirstRunID: run.Run().FirstRunID, Turn: 1, Attempt: 1, N: n, Text: "I look at <b>it</b> "})
		return strings.Contains(b.text(), "I look at <b>it</b>")
	}, patience, 50*time.Millisecond)
	b.shoot("live-coming")
	run.Propose(scripted.Say("I have looked at it."))
	w.keep(run)
	b.says("I have looked at it.")
	require.True(t, evaluate[bool](b, `document.getElementById("coming").hidden`), "the reply has taken its place")
}

// A gate's page tells of what has changed; what is decided about is not replaced, and
// what somebody types stays.
func TestBrowser_LiveGate(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{quorum: 3}, smallArgs)
	b := openTab(t, serve(t, w.pages))
	b.as(w.tokens["ann"])
	b.open(path("1", "2.1"))
	require.Eventually(t, func() bool { return w.web.OpenStreams() == 1 }, patience, 20*time.Millisecond)
	run.Approve("2.1", "bob", "refunds")
	w.keep(run)
	b.says("1 of 3")
	b.fill("#reject-reason", "half a sen")
	run.Approve("2.1", "carl", "refunds")
	w.keep(run)
	b.do(chromedp.WaitVisible(chromedp.CSS("#changed")))
	require.Equal(t, "half a sen", evaluate[string](b, `document.getElementById("reject-reason").value`))
	require.Contains(t, b.text(), "1 of 3")
	b.click("#changed a")
	b.says("2 of 3")
	run.Reject("2.1", "no", "bob", "refunds")
	w.keep(run)
	b.says("decided by bob")
}

// Without the stream the list is asked for again as before.
func TestBrowser_LiveNotToBeHad(t *testing.T) {
	w := newWorld(t)
	w.web.EndStreams()
	b := openTab(t, serve(t, faster15(w)))
	b.as(w.tokens["ann"])
	w.atGate("1", payOptions{title: "found by asking"}, smallArgs)
	b.says("found by asking")
}
