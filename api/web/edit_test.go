package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm/scripted"
	"interlock/store"
)

// editing opens the form of an edit.
func (b *browser) editing(key string) url.Values {
	b.t.Helper()
	page := b.get(path(key, "2.1") + "/edit")
	require.Equal(b.t, http.StatusOK, page.status, page.body)
	return with(page.form("Show what changes"), "reason", "the customer said so")
}

// A form that nobody touches gives the arguments back, byte for byte.
func TestEdit_NothingIsLost(t *testing.T) {
	for name, text := range map[string]string{"all": args, "least": smallArgs,
		"awkward": `{"account":-9223372036854775808,"amount":{"currency":"","minor":0},"labels":{"":"","\"":"\\"},"lines":["","\u0001"],"order_id":"\n\nx\r","text":" \t","to":{"bank":{"iban":"</textarea>&amp;"},"name":"\r\n"},"urgent":true}`} {
		t.Run(name, func(t *testing.T) {
			canonical, err := agent.Canonical([]byte(text))
			require.NoError(t, err)
			w := newWorld(t)
			run := w.atGate("1", payOptions{}, text)
			require.Equal(t, canonical.String(), run.Gate("2.1").Args.String())
			ann := w.as("ann")
			same := ann.post(path("1", "2.1")+"/edit", ann.editing("1"))
			require.Equal(t, http.StatusUnprocessableEntity, same.status)
			require.Contains(t, same.body, "Nothing is changed")

			changed := ann.post(path("1", "2.1")+"/edit", with(ann.editing("1"), "args/account", "9007199254740995"))
			require.Equal(t, http.StatusOK, changed.status, changed.body)
			sent := changed.form("Send the edit")
			want := strings.Replace(canonical.String(), `"account":`+strings.SplitN(strings.SplitN(canonical.String(), `"account":`, 2)[1], ",", 2)[0], `"account":9007199254740995`, 1)
			require.Equal(t, want, sent.Get("edited"))
			require.Equal(t, http.StatusSeeOther, ann.post(path("1", "2.1")+"/verdict", with(sent, "verdict", "edit")).status)
			require.Equal(t, agent.GateEdited, run.Gate("2.1").Status)
			require.Equal(t, want, run.Step("2.2").Args.String())
			require.Equal(t, "ann", run.Step("2.2").EditedBy)
		})
	}
}

func TestEdit_TypesAreKept(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, smallArgs)
	ann := w.as("ann")
	form := ann.editing("1")
	require.Equal(t, "1", form.Get("args/account"))
	require.Equal(t, "false", form.Get("args/urgent"))
	require.Empty(t, form.Get("args/limit"))
	edited := with(form, "args/account", "007", "args/amount/minor", "1.5", "args/limit", "9223372036854775807", "args/lines", "[1,", "args/urgent", "maybe")
	wrong := ann.post(path("1", "2.1")+"/edit", edited)
	require.Equal(t, http.StatusUnprocessableEntity, wrong.status)
	require.Equal(t, 2, strings.Count(wrong.body, "is no integer"))
	require.Contains(t, wrong.body, "This is no JSON that is accepted")
	require.Contains(t, wrong.body, "Choose one of the values.")
	require.Contains(t, wrong.body, `value="007"`, "what was typed stays")
	require.Contains(t, wrong.body, `aria-invalid="true" aria-describedby="vargs-account-problem"`)

	edited = with(form, "args/account", "9007199254740993", "args/limit", "9223372036854775807", "args/lines", `["007", "1"]`, "args/urgent", "true", "args/to/name", "Änne\r\nB", "emptyargs/text", "yes")
	page := ann.post(path("1", "2.1")+"/edit", edited)
	require.Equal(t, `{"account":9007199254740993,"amount":{"currency":"EUR","minor":8990},"limit":9223372036854775807,"lines":["007","1"],"order_id":"1042","text":"",`+
		`"to":{"bank":{"iban":"DE00"},"name":"Änne\nB"},"urgent":true}`, page.form("Send the edit").Get("edited"))
	for _, text := range []string{"/account", "/limit", "/lines/0", "/text", "/to/name", "/urgent", "not there"} {
		require.Contains(t, page.body, text)
	}
	require.NotContains(t, page.body, "<code>/order_id</code>")
	again := ann.post(path("1", "2.1")+"/edit", with(page.form("Go on editing"), "again", "yes")).form("Show what changes")
	require.Equal(t, "9007199254740993", again.Get("args/account"))
	require.Equal(t, "yes", again.Get("emptyargs/text"))
	require.Equal(t, form.Get("id"), again.Get("id"))
}

// What the run refuses stands at the field that it names.
func TestEdit_RefusedByTheRun(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, smallArgs)
	ann := w.as("ann")
	page := ann.post(path("1", "2.1")+"/edit", with(ann.editing("1"), "args/amount/minor", "9223372036854775808"))
	refused := ann.post(path("1", "2.1")+"/verdict", with(page.form("Send the edit"), "verdict", "edit"))
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Regexp(t, `(?s)id="vargs-amount-minor-problem"><b>Wrong:</b> [^<]*does not fit int64`, refused.body)
	require.Contains(t, refused.body, `value="9223372036854775808"`)
	require.Equal(t, agent.GateOpen, run.Gate("2.1").Status)
}

func TestEdit_WithoutASchema(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, args)
	require.NoError(t, w.store.Deployed(t.Context(), store.Deployment{Agent: "pay", Version: 1, Fingerprint: "f"}))
	ann := w.as("ann")
	page := ann.get(path("1", "2.1") + "/edit")
	require.Contains(t, page.body, "edited as JSON")
	form := with(page.form("Show what changes"), "reason", "why")
	require.Equal(t, http.StatusUnprocessableEntity, ann.post(path("1", "2.1")+"/edit", form).status, "nothing is changed")
	changed := ann.post(path("1", "2.1")+"/edit", with(form, "args", strings.Replace(form.Get("args"), "1042", "1043", 1)))
	require.Equal(t, http.StatusSeeOther, ann.post(path("1", "2.1")+"/verdict", with(changed.form("Send the edit"), "verdict", "edit")).status)
	require.Equal(t, strings.Replace(args, "1042", "1043", 1), run.Step("2.2").Args.String())
}

func TestEdit_Stale(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, args)
	ann := w.as("ann")
	form := with(ann.editing("1"), "args/account", "2")
	preview := ann.post(path("1", "2.1")+"/edit", form)
	run.Approve("2.1", "bob", "refunds")
	w.keep(run)
	for _, a := range []answer{ann.post(path("1", "2.1")+"/edit", form), ann.post(path("1", "2.1")+"/verdict", with(preview.form("Send the edit"), "verdict", "edit"))} {
		require.Equal(t, http.StatusConflict, a.status)
		require.Contains(t, a.body, "decided by bob")
	}
	require.Equal(t, path("1", "2.1"), ann.get(path("1", "2.1")+"/edit").at, "the gate's page says why")
}

// asked brings a run to a question.
func (w *world) asked(key string, fields ...string) {
	w.t.Helper()
	run := w.start(payAgent(payOptions{}), key, payStart{Customer: "c-017"})
	run.Says("Please refund order 1042")
	run.Propose(scripted.SetFields("order 1042", scripted.Args{"order_id": "1042"}), scripted.Ask("Is that right?", fields...))
	w.keep(run)
}

// No, 0 and an empty text are answers.
func TestAnswer_Falsy(t *testing.T) {
	w := newWorld(t)
	w.asked("1", "order_id", "gift", "count", "note")
	run := w.runs.all["acme/pay/1"]
	user := w.as("c-017")
	page := user.get(path("1", "1.1"))
	require.Equal(t, http.StatusOK, page.status, page.body)
	require.Contains(t, page.body, "The agent pay asks c-017.")
	form := with(page.form(`value="answer"`), "verdict", "answer")
	none := user.post(path("1", "1.1")+"/verdict", form)
	require.Equal(t, http.StatusUnprocessableEntity, none.status)
	require.Contains(t, none.body, "there is no answer yet")
	wrong := user.post(path("1", "1.1")+"/verdict", with(form, "answer/count", "many", "confirm", "no"))
	require.Contains(t, wrong.body, "is no integer")
	require.Contains(t, wrong.body, `value="no" checked`)

	done := user.post(path("1", "1.1")+"/verdict", with(form, "answer/gift", "false", "answer/count", "0", "emptyanswer/note", "yes", "confirm", "no"))
	require.Equal(t, http.StatusSeeOther, done.status, done.body)
	require.Equal(t, agent.GateAnswered, run.Gate("1.1").Status)
	given := lastVerdict(t, run.Events())
	require.Equal(t, `{"count":0,"gift":false,"note":""}`, given.Answer.Fields.String())
	require.False(t, *given.Answer.Confirm)
}

func TestAnswer_Yes(t *testing.T) {
	w := newWorld(t)
	w.asked("1", "order_id")
	run := w.runs.all["acme/pay/1"]
	reviewer := w.as("ann").get(path("1", "1.1"))
	require.Contains(t, reviewer.body, "only they can answer it")
	require.NotContains(t, reviewer.body, "/verdict")
	user := w.as("c-017")
	form := with(user.get(path("1", "1.1")).form(`value="answer"`), "verdict", "answer", "confirm", "yes")
	require.Equal(t, http.StatusSeeOther, user.post(path("1", "1.1")+"/verdict", form).status)
	require.Contains(t, run.Run().Confirmed, "order_id")
}

func lastVerdict(t *testing.T, events []agent.Event) (v agent.Verdict) {
	t.Helper()
	for _, e := range events {
		if e.Type == agent.EventVerdict {
			v = decoded[agent.VerdictData](t, e.Data).Verdict
		}
	}
	return v
}

func TestDoubt(t *testing.T) {
	w := newWorld(t)
	for _, key := range []string{"1", "2", "3"} {
		run := w.atGate(key, payOptions{}, smallArgs)
		run.Approve("2.1", "ann", "refunds")
		run.Fail("2.1", errLine)
		w.keep(run)
	}
	oda := w.as("oda")
	at := path("1", "2.1-doubt")
	page := oda.get(at)
	require.Contains(t, page.body, "nobody knows whether it happened")
	form := with(page.form(`value="happened"`), "verdict", "happened", "reason", "the bank says so", "result/id", "p-1")
	missing := oda.post(at+"/verdict", form)
	require.Equal(t, http.StatusUnprocessableEntity, missing.status)
	require.Contains(t, missing.body, "A value is needed here.")
	require.Contains(t, missing.body, "p-1</textarea>")
	require.Equal(t, http.StatusSeeOther, oda.post(at+"/verdict", with(form, "result/count", "9007199254740993")).status)
	require.Equal(t, `{"count":9007199254740993,"id":"p-1"}`, w.runs.all["acme/pay/1"].Step("2.1").Result.String())

	at = path("2", "2.1-doubt")
	form = with(oda.get(at).form(`value="did_not_happen"`), "verdict", "did_not_happen", "reason", "the bank has nothing")
	require.Contains(t, oda.post(at+"/verdict", form).body, "say whether it is to run again")
	require.Equal(t, http.StatusSeeOther, oda.post(at+"/verdict", with(form, "again", "no")).status)
	require.Equal(t, agent.StepFailed, w.runs.all["acme/pay/2"].Step("2.1").Status)

	require.NotContains(t, w.as("ann").get(path("3", "2.1-doubt")).body, "/verdict")
}
