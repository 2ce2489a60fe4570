package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm/scripted"
	"interlock/starter"
)

const runAt = "/runs/pay/1"

func TestRun(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, args)
	page := w.as("ann").get(runAt)
	require.Equal(t, http.StatusOK, page.status, page.body)
	for _, text := range []string{"Waits, as the test says.", "interlock run get acme/pay/1", "pay version 1", "turn 1: the model is called", "find_order&#39;s result (step 1.1)",
		"<svg ", "The timeline as a table", `<meter min="0" max="500" value="2"`, "Events 1 to 17 of 17", "it broke", "(masked)"} {
		require.Contains(t, page.body, text)
	}
	require.NotContains(t, page.body, "Steer it", "a reviewer decides gates, and steers no run")
}

// Who has decided a gate stands in the picture and in the table beside it.
func TestRun_Timeline(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, smallArgs)
	run.Approve("2.1", "ann", "refunds")
	w.keep(run)
	page := w.as("oda").get(runAt)
	require.Contains(t, page.body, `<tspan dx="6">gate 2.1 approved, by ann (refunds), unverified</tspan>`)
	require.Contains(t, page.body, `<bdi class="said" dir="auto">gate 2.1 approved, by ann (refunds), unverified</bdi>`, "the table says the same")
	require.Contains(t, page.body, `class="bar gate green"`)
	require.Contains(t, page.body, `class="bar step blue open"`)
}

// What was undone since a run has ended stands on its page, with the run that did it.
func TestRun_Repaired(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, args)
	require.NotContains(t, w.as("oda").get(runAt).body, "Repaired by")
	w.runs.mends = []starter.Repair{{Address: "acme/pay/1+undo-7", Status: agent.RunWaiting,
		Steps: []starter.RepairedStep{{Step: "3.1", Tool: "refund", Status: agent.StepUndone}, {Step: "1.1", Tool: "find_order", Status: agent.StepDone}}}}
	require.Regexp(t, `(?s)Repaired by</dt><dd><a href="/runs/pay/1&#43;undo-7">acme/pay/1&#43;undo-7</a>.*?waiting</b>; step 3.1 <code>refund</code>[^;]*undone</b>; step 1.1 <code>find_order</code>[^;]*done</b>`,
		w.as("oda").get(runAt).body)
}

// The page shows the run as it stood after any event, and what that changed.
func TestRun_Past(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, args)
	ann := w.as("ann")
	for n, e := range run.Events() {
		page := ann.get(fmt.Sprintf("%s?seq=%d", runAt, n+1))
		require.Equal(t, http.StatusOK, page.status)
		require.Contains(t, page.body, fmt.Sprintf("as it stood after event %d", n+1))
		require.NotContains(t, page.body, "Steer it")
		require.Equal(t, e.Type == agent.EventStateSet, strings.Contains(page.body, "What it changed"))
	}
	set := ann.get(runAt + "?seq=11")
	require.Regexp(t, `(?s)What it changed.*amount</th>.*89.90 EUR.*find_order&#39;s result \(step 1.1\).*card</th>.*\(masked\)`, set.body)
	for _, none := range []string{"0", "99", "x", "-1", "1e1"} {
		require.Equal(t, http.StatusNotFound, ann.get(runAt+"?seq="+none).status, none)
	}
}

func TestRun_Context(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, args)
	ann := w.as("ann")
	page := ann.get(runAt + "?turn=2")
	require.Contains(t, page.body, "What the model was shown in turn 2")
	require.Contains(t, page.body, "find_order {&#34;order_id&#34;:&#34;1042&#34;}")
	require.Equal(t, http.StatusNotFound, ann.get(runAt+"?turn=3").status)
	require.Equal(t, http.StatusForbidden, w.as("c-017").get(runAt+"?turn=2").status, "a user sees no context")
}

func TestRun_EventsInPages(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, args)
	for i := range 40 {
		run.Says(fmt.Sprintf("and %d?", i))
		run.Propose(scripted.Say("wait"))
	}
	w.keep(run)
	n := len(run.Events())
	ann := w.as("ann")
	page := ann.get(runAt)
	require.Contains(t, page.body, fmt.Sprintf("Events %d to %d of %d", n-49, n, n))
	require.Contains(t, page.body, fmt.Sprintf(`<a rel="prev" href="%s?from=%d#events">`, runAt, n-99))
	first := ann.get(runAt + "?from=1")
	require.Contains(t, first.body, fmt.Sprintf("Events 1 to 50 of %d", n))
	require.Contains(t, first.body, `?from=51#events`)
}

func TestRun_Acts(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, args)
	oda := w.as("oda")
	pause := oda.get(runAt).form(runAt + "/pause")
	require.Equal(t, http.StatusUnprocessableEntity, oda.post(runAt+"/pause", pause).status)
	require.Equal(t, http.StatusSeeOther, oda.post(runAt+"/pause", with(pause, "reason", "look first")).status)
	require.Equal(t, agent.RunPaused, run.Status())
	events := len(run.Events())
	require.Equal(t, http.StatusSeeOther, oda.post(runAt+"/pause", with(pause, "reason", "look first")).status)
	require.Len(t, run.Events(), events, "a double click is one act")

	resume := oda.get(runAt).form(runAt + "/resume")
	require.Equal(t, http.StatusSeeOther, oda.post(runAt+"/resume", resume).status)
	require.Equal(t, agent.RunWaiting, run.Status())

	user := w.as("c-017")
	page := user.get(runAt)
	require.NotContains(t, page.body, "/pause")
	message := with(page.form(runAt+"/message"), "text", "never mind", "policy", "queue")
	for range 2 {
		require.Equal(t, http.StatusSeeOther, user.post(runAt+"/message", message).status)
	}
	require.Contains(t, user.get(runAt).body, "never mind")
	require.Equal(t, 1, strings.Count(fmt.Sprint(run.Run().Turns[len(run.Run().Turns)-1].Opening), "never mind"))
	require.Equal(t, http.StatusSeeOther, user.post(runAt+"/message", with(message, "id", "lines", "text", "refund 1042\r\nit broke", "policy", "queue")).status)
	sent := ""
	for _, e := range run.Events() {
		if e.Type == agent.EventMessage {
			sent = e.Data.String()
		}
	}
	require.Contains(t, sent, `refund 1042\nit broke`, "browsers send other ends of lines than a model quotes")
	require.Equal(t, http.StatusUnprocessableEntity, user.post(runAt+"/message", with(message, "text", " ")).status)
	busy := user.post(runAt+"/message", with(message, "id", "another", "text", "and now?", "policy", "reject"))
	require.Equal(t, http.StatusConflict, busy.status, "the model is called")
	require.Contains(t, busy.body, "and now?</textarea>", "what was typed stays")
	require.Equal(t, http.StatusForbidden, user.post(runAt+"/pause", pause).status)
	require.Contains(t, w.audit.last(`"act":"pause"`), `"outcome":"denied"`)
}

func TestRun_Cancel(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, smallArgs)
	run.Approve("2.1", "ann", "refunds")
	run.Done("2.1", paid{ID: "p-1"})
	w.keep(run)
	require.NotContains(t, w.as("c-017").get(runAt+"/cancel").body, `value="run"`, "a user undoes no earlier turn")
	oda := w.as("oda")
	page := oda.get(runAt + "/cancel")
	require.Contains(t, page.body, "its tool has nothing that undoes it")
	form := page.form(runAt + "/cancel")
	require.Equal(t, "none", form.Get("undo"))
	again := oda.post(runAt+"/cancel", with(form, "undo", "run"))
	require.Equal(t, http.StatusUnprocessableEntity, again.status)
	require.Contains(t, again.body, `value="run" checked`)
	require.Equal(t, http.StatusSeeOther, oda.post(runAt+"/cancel", with(form, "reason", "a test")).status)
	require.Equal(t, agent.RunCancelled, run.Status())
	require.Equal(t, http.StatusConflict, oda.get(runAt+"/cancel").status)
	require.NotContains(t, oda.get(runAt).body, "Steer it")
	require.Equal(t, http.StatusForbidden, w.as("c-017").post(runAt+"/cancel", with(form, "undo", "run", "reason", "x")).status)
}

func TestRun_Rulings(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, smallArgs)
	run.Reject("2.1", "no photo", "ann", "refunds")
	w.keep(run)
	ann := w.as("ann")
	lift := ann.get(runAt).form(runAt + "/rulings/2.1/lift")
	require.Equal(t, http.StatusUnprocessableEntity, ann.post(runAt+"/rulings/2.1/lift", lift).status)
	require.Equal(t, http.StatusSeeOther, ann.post(runAt+"/rulings/2.1/lift", with(lift, "reason", "a photo came")).status)
	require.Equal(t, agent.RulingLifted, run.Run().RulingStatus(run.Run().Rulings[0]))
	require.NotContains(t, ann.get(runAt).body, "/rulings/2.1/lift")
	require.NotContains(t, w.as("c-017").get(runAt).body, "/rulings/")
	require.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, w.as("mail").post(runAt+"/rulings/none/confirm", url.Values{"id": {"x"}}).status)
}

func TestRun_Unreachable(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, args)
	oda := w.as("oda")
	w.runs.down = agent.Errorf(agent.CodeUnavailable, "no connection")
	page := oda.get(runAt)
	require.Equal(t, http.StatusOK, page.status)
	require.Contains(t, page.body, "Not seen: Temporal: no connection")
	form := with(page.form(runAt+"/pause"), "reason", "x")
	sent := oda.post(runAt+"/pause", form)
	require.Equal(t, http.StatusServiceUnavailable, sent.status)
	require.Equal(t, form, sent.form("Send it again"))

	w.runs.down, w.reading.down = nil, agent.Errorf(agent.CodeUnavailable, "no database")
	page = oda.get(runAt)
	require.Equal(t, http.StatusOK, page.status)
	require.Contains(t, page.body, "The store cannot be read just now")
	require.Contains(t, page.body, "find_order")
	require.Equal(t, http.StatusServiceUnavailable, oda.get("/").status)
	require.Equal(t, http.StatusServiceUnavailable, oda.get("/runs").status)
}

func TestRuns(t *testing.T) {
	w := newWorld(t)
	for i := range 52 {
		w.start(payAgent(payOptions{}), fmt.Sprintf("%02d", i), payStart{Customer: "c-017"})
	}
	ann := w.as("ann")
	page := ann.get("/runs")
	require.Equal(t, 50, strings.Count(page.body, `<li class="row">`))
	next := attribute(page.body[strings.Index(page.body, `<a rel="next"`):], "href")
	require.Equal(t, 2, strings.Count(ann.get(next).body, `<li class="row">`))
	require.Equal(t, 1, strings.Count(ann.get("/runs?agent=pay&key=07").body, `<li class="row">`))
	require.Contains(t, ann.get("/runs?key=07").body, "name the agent too")
	require.Contains(t, ann.get("/runs?status=failed").body, "There are no such runs.")
	require.Contains(t, ann.get("/runs?user=nobody").body, "There are no such runs.")
	require.Contains(t, w.as("c-018").get("/runs?user=c-017").body, "There are no such runs.", "others' runs")
	require.Equal(t, 50, strings.Count(w.as("c-017").get("/runs").body, `<li class="row">`))
	require.Equal(t, http.StatusUnprocessableEntity, ann.get("/runs?agent=%00").status)
}

// An export is the journal, byte for byte, but for what is masked.
func TestRun_Export(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, args)
	a := w.as("ann").get(runAt + "/export")
	require.Equal(t, `attachment; filename="pay-1.json"`, a.header.Get("Content-Disposition"))
	var out struct {
		Run    agent.Run
		Events []agent.Event
	}
	require.NoError(t, json.Unmarshal([]byte(a.body), &out))
	require.Equal(t, args, out.Run.Gates[0].Args.String())
	require.Len(t, out.Events, len(run.Events()))
	again, err := agent.Reduce(out.Events)
	require.NoError(t, err)
	require.Equal(t, "(masked)", decoded[map[string]any](t, again.State)["card"])
}

// A draft of the model's binds nothing until a person confirms it, with one click.
func TestRun_Drafts(t *testing.T) {
	w := newWorld(t)
	for key, word := range map[string]string{"1": "confirm", "2": "lift"} {
		run := w.atGate(key, payOptions{}, args)
		run.Says("never pay that one")
		run.Propose(scripted.Raw("rule_out", `{"tool":"pay","args":`+smallArgs+`,"reason":"the user said never"}`), scripted.Say("noted"))
		w.keep(run)
		ann := w.as("ann")
		require.Equal(t, agent.RulingDraft, run.Run().RulingStatus(run.Run().Rulings[0]))
		at := "/runs/pay/" + key
		ruling := at + "/rulings/" + run.Run().Rulings[0].ID + "/" + word
		for _, page := range []string{at, path(key, "2.1")} {
			require.Contains(t, ann.get(page).body, "the user said never", page)
			require.Contains(t, ann.get(page).body, `action="`+ruling+`"`, page)
		}
		form := ann.get(path(key, "2.1")).form(ruling)
		require.Equal(t, http.StatusSeeOther, ann.post(ruling, form).status)
		want := map[string]agent.RulingStatus{"confirm": agent.RulingBinds, "lift": agent.RulingDropped}[word]
		require.Equal(t, want, run.Run().RulingStatus(run.Run().Rulings[0]))
		require.NotContains(t, ann.get(path(key, "2.1")).body, ruling)
	}
}

// What is looked at is a look in the audit, and what is done is one line.
func TestAudit(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, args)
	oda := w.as("oda")
	form := oda.get(runAt + "/cancel").form(runAt + "/cancel")
	require.Empty(t, w.audit.of(`"act":"cancel"`))
	require.Len(t, w.audit.of(`"act":"run.get"`), 1)
	oda.post(runAt+"/cancel", with(form, "reason", "a test"))
	require.Len(t, w.audit.of(`"act":"cancel"`), 1)
	require.Contains(t, w.audit.last(`"act":"cancel"`), `"outcome":"ok"`)
	w.as("mail").post(path("1", "2.1")+"/verdict", form)
	require.Contains(t, w.audit.last(`"act":"verdict"`), `"outcome":"denied"`)
	for _, l := range w.audit.all {
		for _, token := range w.tokens {
			require.NotContains(t, l, token)
		}
	}
}
