package web_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api/web"
)

func TestSignIn(t *testing.T) {
	w := newWorld(t)
	b := &browser{w: w, t: t}
	out := b.get("/runs/pay/1?seq=3")
	require.Equal(t, http.StatusSeeOther, out.status)
	require.Equal(t, "/login?next=%2Fruns%2Fpay%2F1%3Fseq%3D3", out.at)
	form := b.get(out.at).form(`action="/login"`)
	require.Equal(t, "/runs/pay/1?seq=3", form.Get("next"))

	wrong := b.post("/login", with(form, "token", "ilk_nonsense"))
	require.Equal(t, http.StatusUnauthorized, wrong.status)
	require.Contains(t, wrong.body, "This access token is not known here")
	require.NotContains(t, wrong.body, "ilk_nonsense")
	require.Empty(t, b.cookies)
	require.Contains(t, w.audit.last("session.begin"), `"outcome":"unauthenticated"`)

	right := b.post("/login", with(form, "token", w.tokens["ann"]))
	require.Equal(t, "/runs/pay/1?seq=3", right.at)
	require.Len(t, b.cookies, 1)
	require.True(t, b.cookies[0].HttpOnly)
	require.Equal(t, "/", b.get("/login").at, "who is signed in need not again")
	for _, l := range w.audit.all {
		require.NotContains(t, l, w.tokens["ann"])
	}

	require.Equal(t, "/", b.get("/logout").at, "signing out takes a form")
	require.Len(t, b.cookies, 1)
	require.Equal(t, "/login", b.post("/logout", nil).at)
	require.Equal(t, http.StatusSeeOther, b.get("/").status)
}

// Nothing but a path of these pages is gone to after the sign-in.
func TestSignIn_OpenRedirect(t *testing.T) {
	w := newWorld(t)
	for _, next := range []string{"https://evil.test/", "//evil.test/", "/\\evil.test", "\\\\evil.test", "javascript:alert(1)", "/\t/evil.test", "///evil.test", "http:evil", "evil.test", "/login", "/logout?x", "/%2f/../", "/\r\nX: y", ""} {
		b := &browser{w: w, t: t}
		at := b.post("/login", url.Values{"token": {w.tokens["ann"]}, "next": {next}}).at
		if next == "/%2f/../" {
			require.False(t, strings.HasPrefix(at, "//"), at)
			continue
		}
		require.Equal(t, "/", at, next)
	}
}

// A session ends where its token is revoked.
func TestSession_Revoked(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, args)
	ann := w.as("ann")
	form := with(ann.get(path("1", "2.1")).form(`value="approve"`), "verdict", "approve")
	delete(w.people, w.tokens["ann"])
	out := ann.post(path("1", "2.1")+"/verdict", form)
	require.Equal(t, "/login?next=%2Fruns%2Fpay%2F1%2Fgates%2F2.1&lost=form", out.at)
	require.Contains(t, ann.get(out.at).body, "what you sent was not sent")
	require.Equal(t, agent.GateOpen, w.runs.all["acme/pay/1"].Gate("2.1").Status)
}

// Where nobody can be recognised the page says so, and nobody is let in.
func TestSession_Unavailable(t *testing.T) {
	w := newWorld(t)
	ann := w.as("ann")
	w.away = agent.Errorf(agent.CodeUnavailable, "the file of access tokens cannot be read")
	a := ann.get("/")
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.NotContains(t, a.body, "Sign out")
	require.Equal(t, http.StatusServiceUnavailable, (&browser{w: w, t: t}).post("/login", url.Values{"token": {w.tokens["ann"]}}).status)
	w.away = nil
	require.Equal(t, http.StatusOK, ann.get("/").status)
}

// pagesOf are all pages of a run and its gates, as a table.
func pagesOf(key string) map[string]string {
	out := map[string]string{}
	for _, p := range []string{"GET /runs/pay/K", "GET /runs/pay/K?seq=1", "GET /runs/pay/K?turn=1", "GET /runs/pay/K/cancel", "GET /runs/pay/K/export", "GET /runs/pay/K/gates/2.1", "GET /runs/pay/K/gates/2.1/edit",
		"POST /runs/pay/K/gates/2.1/verdict", "POST /runs/pay/K/gates/2.1/edit",
		"POST /runs/pay/K/gates/2.1/take", "POST /runs/pay/K/gates/2.1/hand", "POST /runs/pay/K/gates/2.1/let-go", "POST /runs/pay/K/message", "POST /runs/pay/K/pause", "POST /runs/pay/K/resume",
		"POST /runs/pay/K/cancel", "POST /runs/pay/K/rulings/2.1/lift", "POST /runs/pay/K/rulings/2.1/confirm"} {
		method, p, _ := strings.Cut(p, " ")
		out[strings.ReplaceAll(p, "K", key)+" "+method] = method
	}
	return out
}

func (b *browser) any(method, at string) answer {
	if method == http.MethodPost {
		return b.post(at, url.Values{"verdict": {"approve"}, "id": {"x"}, "digest": {"y"}, "reason": {"z"}})
	}
	return b.get(at)
}

// same is a page without what differs between any two requests.
func same(a answer) string {
	return regexp.MustCompile(`<code>[0-9a-f]{24}</code>`).ReplaceAllString(a.body, "")
}

// What a caller may not know of looks like what does not exist, and nothing is done.
func TestAccess_EveryPage(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, args)
	events := len(run.Events())
	for _, at := range slices.Sorted(maps.Keys(pagesOf("1"))) {
		method := pagesOf("1")[at]
		at, _, _ := strings.Cut(at, " ")
		missing := strings.Replace(at, "/pay/1", "/pay/none", 1)
		out := (&browser{w: w, t: t}).any(method, at)
		require.Equal(t, http.StatusSeeOther, out.status, at)
		require.Contains(t, out.at, "/login", at)
		for _, who := range []string{"eve", "c-018"} {
			b := w.as(who)
			a, none := b.any(method, at), b.any(method, missing)
			require.Contains(t, []int{http.StatusNotFound, http.StatusForbidden}, a.status, "%s %s", who, at)
			require.Equal(t, none.status, a.status, "%s %s", who, at)
			require.Equal(t, same(none), same(a), "%s %s", who, at)
		}
		if method == http.MethodPost {
			require.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, w.as("mail").any(method, at).status, at)
		}
	}
	require.Len(t, run.Events(), events)
}

// The answer to several verdicts tells nobody which runs there are.
func TestAccess_Decided(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{title: "a secret"}, args)
	for _, who := range []string{"eve", "c-018"} {
		b := w.as(who)
		there, none := b.get("/decided?d=pay/1/2.1~taken"), b.get("/decided?d=pay/9/2.1~taken")
		require.Equal(t, strings.ReplaceAll(same(none), "pay/9", "pay/1"), same(there))
	}
	require.Contains(t, w.as("ann").get("/decided?d=pay/1/2.1~taken").body, "a secret")
}

// A form of another site does nothing.
func TestCrossOrigin(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, args)
	ann := w.as("ann")
	form := with(ann.get(path("1", "2.1")).form(`value="approve"`), "verdict", "approve")
	for at := range web.RoutesThatAct() {
		at = strings.NewReplacer("{agent}", "pay", "{key}", "1", "{gate}", "2.1").Replace(at)
		for _, header := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.test"}} {
			r := httptest.NewRequest(http.MethodPost, at, strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set(header[0], header[1])
			a := ann.do(r)
			require.Equal(t, http.StatusForbidden, a.status, "%s %v", at, header)
			require.Contains(t, a.body, "sent from another site")
		}
	}
	require.Equal(t, agent.GateOpen, w.runs.all["acme/pay/1"].Gate("2.1").Status)
	require.Equal(t, path("1", "2.1"), ann.get(path("1", "2.1")+"/verdict?"+form.Encode()).at, "never by GET")
	require.Equal(t, agent.GateOpen, w.runs.all["acme/pay/1"].Gate("2.1").Status)
}

func TestHeaders(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, args)
	ann := w.as("ann")
	for _, at := range []string{"/", "/login", "/nothing", path("1", "2.1")} {
		a := ann.get(at)
		require.Contains(t, a.header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self'", at)
		require.Contains(t, a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'; base-uri 'none'", at)
		require.Equal(t, "no-store", a.header.Get("Cache-Control"), at)
		require.Equal(t, "no-referrer", a.header.Get("Referrer-Policy"), at)
		require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"), at)
		require.NotRegexp(t, `(?i)<script(>| [^s])|<style|\sstyle=|\son[a-z]+=`, a.body, at)
	}
	for _, m := range regexp.MustCompile(`(?:href|src)="(/static/[^"]*)"`).FindAllStringSubmatch(ann.get("/").body, -1) {
		a := ann.get(m[1])
		require.Equal(t, http.StatusOK, a.status, m[1])
		require.Contains(t, a.header.Get("Cache-Control"), "immutable")
	}
	require.Equal(t, http.StatusNotFound, ann.get("/static/none.css").status)
}
