package web_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api/access"
	"interlock/llm/scripted"
)

var errLine = errors.New("the line went dead")

func decoded[T any](t *testing.T, data agent.JSON) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(data, &v))
	return v
}

// corpus are texts that careless pages obey.
var corpus = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</textarea><script>alert(1)</script>`,
	`</title><script>alert(1)</script>`, `javascript:alert(1)`, `{{.Caller}}`, "<svg/onload=alert(1)>", `&lt;script&gt;`, "`-alert(1)-`",
	"<!--", "]]>", "\u202egnp.exe", "a\u200bb", "<b class=\"tag green\">approved</b>", "Gate 2.1\n\nThis gate is approved", strings.Repeat("W", 500),
}

// forbidden must not stand in any page: markup of others, and characters that would
// mislead.
var forbidden = regexp.MustCompile(`(?i)<script(>| [^s])|<img|<svg/|onerror=alert[^<&]*>|<b class="tag green">approved</b>|<a [^>]*href="javascript|[\x{202e}\x{200b}]`)

// Whatever users, models, tools and people have written is shown and not obeyed, on
// every page.
func TestNothingIsObeyed(t *testing.T) {
	for i, text := range corpus {
		w := newWorld(t)
		quoted, _ := json.Marshal(text)
		run := w.start(payAgent(payOptions{title: text, risk: text, policy: "p " + text}), "1", payStart{Customer: text})
		run.Says("order 1042 " + text)
		run.Propose(scripted.SetFields("order 1042", scripted.Args{"order_id": "1042"}), scripted.Call("find_order", order{"1042"}))
		run.Done("1.1", found{agent.Money{Minor: 1, Currency: "EUR"}, text})
		run.Propose(scripted.RecordFact(strings.TrimSpace(text)), scripted.Raw("pay", strings.Replace(smallArgs, `"Zoe"`, string(quoted), 1)), scripted.Say("reply "+text))
		w.keep(run)
		subject := "x" + text[:min(len(text), 150)]
		if agent.CheckName("subject", subject) != nil {
			subject = "x" // nobody is called so
		}
		token, entry := access.New(access.Entry{ID: "x", Tenant: "acme", Subject: subject, May: []access.Role{access.Operator, access.Reviewer}, Roles: []string{"refunds"}})
		w.people[token], w.tokens["x"] = entry, token
		b := w.as("x")
		pages := []string{"/", "/runs", "/runs?agent=" + "x", "/runs/pay/1", "/runs/pay/1?turn=2", "/runs/pay/1/cancel", path("1", "2.1"), path("1", "2.1") + "/edit"}
		for n := range run.Events() {
			pages = append(pages, fmt.Sprintf("/runs/pay/1?seq=%d", n+1))
		}
		for _, at := range pages {
			requireHarmless(t, b.get(at), text)
		}
		form := with(b.get(path("1", "2.1")).form(`value="reject"`), "verdict", "reject", "reason", text)
		requireHarmless(t, b.post(path("1", "2.1")+"/verdict", form), text)
		edit := with(b.editing("1"), "reason", text, "args/to/bank/iban", text)
		requireHarmless(t, b.post(path("1", "2.1")+"/edit", edit), text)
		requireHarmless(t, b.post(path("1", "2.1")+"/edit", with(edit, "args/account", text)), text)
		sent := b.post(path("1", "2.1")+"/verdict", with(form, "why", "other"))
		require.Equal(t, http.StatusSeeOther, sent.status, "text %d: %s", i, sent.body)
		w.keep(run)
		for _, at := range []string{"/", "/runs/pay/1", path("1", "2.1"), "/decided?d=pay/1/2.1~" + "x", "/nothing"} {
			requireHarmless(t, b.get(at), text)
		}
	}
}

var textareas = regexp.MustCompile(`(?s)<textarea[^>]*>.*?</textarea>|value="[^"]*"`)

// requireHarmless leaves out what stands in inputs as it will be sent: it is escaped,
// and people edit what is there.
func requireHarmless(t *testing.T, a answer, text string) {
	t.Helper()
	require.NotEqual(t, http.StatusInternalServerError, a.status, "%q %s", text, a.body)
	body := textareas.ReplaceAllStringFunc(a.body, func(s string) string {
		require.NotRegexp(t, `(?i)<script|<img|<svg`, s, "%q", text)
		return ""
	})
	if bad := forbidden.FindString(body); bad != "" {
		at := strings.Index(body, bad)
		require.FailNow(t, "obeyed", "%q: %s", text, body[max(at-200, 0):min(at+200, len(body))])
	}
}
