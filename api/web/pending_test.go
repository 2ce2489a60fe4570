package web_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// A verdict that waits says until when, and its person takes it back.
func TestTakeBack(t *testing.T) {
	w := newWorld(t)
	w.now = noon // as the run has it
	run := w.atGate("1", payOptions{takeBack: 5 * time.Minute}, smallArgs)
	ann, at := w.as("ann"), path("1", "2.1")
	page := ann.get(at)
	require.Contains(t, page.body, "takes effect after 5 min")
	approve := with(page.form(`value="approve"`), "verdict", "approve")
	after := ann.get(ann.post(at+"/verdict", approve).at)
	require.Equal(t, agent.GateOpen, run.Gate("2.1").Status)
	require.Contains(t, after.body, "takes effect at <time datetime=\"2026-03-01T12:05:00Z\"")
	require.NotContains(t, after.body, `value="approve"`)
	require.Contains(t, ann.get("/").body, "take it back")

	bob := w.as("bob")
	others := bob.get(at)
	require.Contains(t, others.body, "unless they take it back")
	require.NotContains(t, others.body, `value="take_back"`)
	late := bob.post(at+"/verdict", with(approve, "id", "other"))
	require.Equal(t, http.StatusConflict, late.status)
	require.Contains(t, late.body, "was decided by ann (refunds), unverified: approve, takes effect at 2026-03-01 12:05:00")
	form := with(after.form(`value="take_back"`), "verdict", "take_back")
	require.Equal(t, http.StatusForbidden, bob.post(at+"/verdict", form).status)

	back := ann.post(at+"/verdict", with(form, "id", "page-again"))
	require.Equal(t, http.StatusSeeOther, back.status, back.body)
	require.Nil(t, run.Gate("2.1").Pending)
	again := ann.get(back.at)
	require.Contains(t, again.body, `value="approve"`)
	none := ann.post(at+"/verdict", with(form, "id", "page-third"))
	require.Equal(t, http.StatusConflict, none.status)
	require.Contains(t, none.body, "there is nothing to take back")
}

// A verdict whose time is over takes effect, and can be taken back no more.
func TestTakeBack_TooLate(t *testing.T) {
	w := newWorld(t)
	w.now = noon
	run := w.atGate("1", payOptions{takeBack: 5 * time.Minute}, smallArgs)
	ann, at := w.as("ann"), path("1", "2.1")
	after := ann.get(ann.post(at+"/verdict", with(ann.get(at).form(`value="approve"`), "verdict", "approve")).at)
	run.Advance(6 * time.Minute)
	w.keep(run)
	w.now = noon.Add(6 * time.Minute)
	late := ann.post(at+"/verdict", with(after.form(`value="take_back"`), "verdict", "take_back"))
	require.Equal(t, http.StatusConflict, late.status)
	require.Contains(t, late.body, "decided by ann (refunds), unverified: approved")
}

func TestTakeBack_Several(t *testing.T) {
	w := newWorld(t)
	w.now = noon
	w.atGate("1", payOptions{takeBack: 5 * time.Minute}, smallArgs)
	ann := w.as("ann")
	sent := ann.post("/decide", with(ann.get("/").form(`name="pick"`), "verdict", "approve", "pick", "0"))
	page := ann.get(sent.at)
	require.Contains(t, page.body, "1 of 1 were taken.")
	require.Contains(t, page.body, "takes effect at 2026-03-01 12:05:00")
	require.NotContains(t, ann.get("/").body, `name="pick"`)
}
