package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// The list refreshes itself, and not under the finger of somebody who chooses in it.
func TestBrowser_ListRefreshesItself(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{title: "the first"}, smallArgs)
	b := openTab(t, serve(t, faster15(w)))
	b.as(w.tokens["ann"])
	b.press(`input[name="pick"]`)
	run := func(script string) int {
		n, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](script))
		require.NoError(t, err)
		return n
	}
	run(`window.held = 0; document.addEventListener("htmx:before:request", e => { if (e.defaultPrevented) window.held++ }); 0`)
	w.atGate("2", payOptions{title: "the second"}, smallArgs)
	require.Eventually(t, func() bool { return run("window.held") > 2 }, patience, 50*time.Millisecond, "the list waits")
	require.NotContains(t, b.text(), "the second")
	b.press(`input[name="pick"]`)
	run(`document.activeElement.blur(); 0`)
	b.do(chromedp.WaitVisible(chromedp.CSS(`a[href="` + path("2", "2.1") + `"]`)))
}

// The Enter key in the reason of a reject decides nothing.
func TestBrowser_EnterDecidesNothing(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, smallArgs)
	b := openTab(t, serve(t, w.pages))
	b.as(w.tokens["ann"])
	b.press(`input[name="pick"]`)
	b.press(`.rejecting summary`)
	b.fill("#why", "other")
	b.do(chromedp.SendKeys(chromedp.CSS("#reason"), "no\r"))
	b.shoot("several-rejecting")
	require.Equal(t, agent.GateOpen, run.Gate("2.1").Status)
	require.Empty(t, w.audit.of(`"act":"verdict"`))
	b.click(`button[value="reject"]`)
	require.Contains(t, b.text(), "1 of 1 were taken.")
	require.Equal(t, agent.GateRejected, run.Gate("2.1").Status)
}

// Beside a time in UTC stands what the reader's own clock says then; after a refresh
// too, and once. Whose clock is at UTC is told nothing more.
func TestBrowser_LocalTimes(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{quorum: 3}, smallArgs)
	b := openTab(t, serve(t, w.pages))
	b.as(w.tokens["ann"])
	at := func(zone string) string {
		call(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone})
		b.open(path("1", "2.1"))
		return b.text()
	}
	require.NotContains(t, at("UTC"), " = ")
	kolkata := at("Asia/Kolkata") // half an hour off, and the same the whole year
	require.Contains(t, kolkata, "2026-03-01 12:00:00 UTC = ")
	require.Contains(t, kolkata, "05:30")
	before := strings.Count(kolkata, "UTC = ")
	require.Eventually(t, func() bool { return w.web.OpenStreams() == 1 }, patience, 20*time.Millisecond)
	run.Approve("2.1", "bob", "refunds")
	w.keep(run)
	b.says("1 of 3")
	require.Equal(t, before+1, strings.Count(b.text(), "UTC = "), "that of the approval is new")
}

// The pages are used by keyboard: the content is reached at once, and what has the
// focus is seen.
func TestBrowser_Keyboard(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, smallArgs)
	b := openTab(t, serve(t, w.pages))
	b.as(w.tokens["ann"])
	b.open(path("1", "2.1"))
	text := func(script string) string {
		s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](script))
		require.NoError(t, err)
		return s
	}
	b.do(chromedp.KeyEvent("\t"))
	require.Equal(t, "Skip to the content", text(`document.activeElement.textContent`))
	require.Equal(t, "solid", text(`getComputedStyle(document.activeElement).outlineStyle`))
	b.do(chromedp.KeyEvent("\r"))
	require.Equal(t, "#main", text(`location.hash`))
	for range 40 {
		if b.do(chromedp.KeyEvent("\t")); text(`document.activeElement.value || ""`) == "approve" {
			break
		}
	}
	require.Equal(t, "approve", text(`document.activeElement.value || ""`), "the verdict is reached by the Tab key")
	require.Equal(t, "solid", text(`getComputedStyle(document.activeElement).outlineStyle`))
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	_, err := chromedp.RunResponse(ctx, chromedp.KeyEvent("\r"))
	require.NoError(t, err)
	require.Equal(t, agent.GateApproved, run.Gate("2.1").Status)
}

// faster15 are the pages of a world that ask ten times a second, and not every 15
// seconds.
func faster15(w *world) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.pages.ServeHTTP(faster{rw}, r) })
}

// faster has the list refreshed ten times a second.
type faster struct{ http.ResponseWriter }

func (f faster) Write(p []byte) (int, error) {
	if _, err := f.ResponseWriter.Write([]byte(strings.ReplaceAll(string(p), "every 15s", "every 100ms"))); err != nil {
		return 0, err
	}
	return len(p), nil
}
