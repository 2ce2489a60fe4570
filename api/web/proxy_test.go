package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api/access"
)

// proxied asks as a browser behind a proxy that adds a bearer token.
func (b *browser) proxied(method, path, token string, form url.Values, header ...string) answer {
	b.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return b.do(r)
}

// A token that a proxy adds signs in, and goes before any session.
func TestProxy(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, smallArgs)
	w.people["header.body.signature"] = access.Entry{ID: "oidc", Tenant: "acme", Subject: "pia", May: []access.Role{access.Reviewer}, Roles: []string{"refunds"}}
	const token = "header.body.signature"
	b, at := &browser{w: w, t: t}, path("1", "2.1")

	page := b.proxied(http.MethodGet, at, token, nil)
	require.Equal(t, http.StatusOK, page.status)
	require.Contains(t, page.body, "pia")
	require.Empty(t, b.cookies, "no session is begun")
	require.Equal(t, "/runs", b.proxied(http.MethodGet, "/login?next=/runs", token, nil).at)
	require.Equal(t, "/runs", b.proxied(http.MethodPost, "/login", token, url.Values{"next": {"/runs"}, "token": {w.tokens["ann"]}}).at)
	require.Empty(t, b.cookies)
	ann := w.as("ann")
	require.Contains(t, ann.proxied(http.MethodGet, "/", token, nil).body, "pia", "the token counts, and not the session")

	form := with(page.form(`value="approve"`), "verdict", "approve")
	require.Equal(t, http.StatusForbidden, b.proxied(http.MethodPost, at+"/verdict", token, form, "Sec-Fetch-Site", "cross-site").status)
	require.Equal(t, agent.GateOpen, run.Gate("2.1").Status)
	require.Equal(t, http.StatusSeeOther, b.proxied(http.MethodPost, at+"/verdict", token, form).status)
	require.Equal(t, "pia", run.Gate("2.1").By.Subject)

	out := ann.proxied(http.MethodPost, "/logout", token, nil)
	require.Equal(t, http.StatusOK, out.status)
	require.Contains(t, out.body, "Sign out there")
	require.Empty(t, ann.cookies, "a session that was left over ends")
}

// A token that is not believed lets nobody in, whatever session there is.
func TestProxy_NotBelieved(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, smallArgs)
	ann := w.as("ann")
	for _, path := range []string{"/", "/login", path("1", "2.1"), "/nothing"} {
		a := ann.proxied(http.MethodGet, path, "wrong", nil)
		require.Equal(t, http.StatusUnauthorized, a.status, path)
		require.Contains(t, a.body, "Sign in there again")
		require.NotContains(t, a.body, "ann")
	}
	require.Equal(t, http.StatusUnauthorized, ann.proxied(http.MethodGet, "/live/inbox", "wrong", nil).status)
	require.Equal(t, http.StatusUnauthorized, ann.proxied(http.MethodPost, "/decide", "wrong", nil).status)
	twice := httptest.NewRequest(http.MethodGet, "/", nil)
	twice.Header["Authorization"] = []string{"Bearer " + w.tokens["ann"], "Bearer " + w.tokens["bob"]}
	require.Equal(t, http.StatusUnauthorized, ann.do(twice).status)
	basic := httptest.NewRequest(http.MethodGet, "/", nil)
	basic.Header.Set("Authorization", "Basic YTpi") // of the proxy's own
	require.Equal(t, http.StatusOK, ann.do(basic).status)
	w.away = agent.Errorf(agent.CodeUnavailable, "the identity provider does not answer")
	require.Equal(t, http.StatusServiceUnavailable, ann.proxied(http.MethodGet, "/", "header.body.signature", nil).status)
	require.Equal(t, http.StatusServiceUnavailable, ann.proxied(http.MethodGet, "/login", "header.body.signature", nil).status)
}
