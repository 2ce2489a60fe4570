package web

import (
	"context"
	"net/http"
	"strings"

	"interlock/agent"
	"interlock/api/access"
)

// proxied reports a request with a bearer token, which no browser sends by itself: a
// proxy before these pages has signed its person in, and adds the token to each
// request. It counts, whatever session there is.
func (v *visit) proxied() bool {
	for _, h := range v.r.Header.Values("Authorization") {
		if scheme, _, _ := strings.Cut(h, " "); strings.EqualFold(scheme, "Bearer") {
			return true
		}
	}
	return false
}

// recognise is who asks: by the token that a proxy adds, else by the session.
func (v *visit) recognise(ctx context.Context) (access.Caller, error) {
	if v.proxied() {
		return v.Auth.Authenticate(ctx, access.BearerOf(v.r))
	}
	return v.Sessions.Caller(ctx, v.r)
}

// notBelieved is the page of whoever's proxy has added a token that says nothing here.
// There is no form: signing in is the proxy's.
func (v *visit) notBelieved() error {
	return v.page(http.StatusUnauthorized, "error", "Not signed in", errorView{Status: http.StatusUnauthorized, Heading: "Not signed in", RequestID: v.id,
		Text:  "The proxy before these pages has signed you in, but its token is not believed here: it has expired, or is for another service. Sign in there again; if that does not help, the log says why.",
		Links: []link{{"/", "Try again"}}})
}

// proxySignsOut says where a person signs out whom a proxy has signed in.
func (v *visit) proxySignsOut() error {
	if c, err := v.recognise(v.ctx); err == nil {
		v.caller = c
	} else if agent.ErrorCode(err) == access.CodeUnauthenticated {
		return v.notBelieved()
	}
	return v.page(http.StatusOK, "error", "You are still signed in", errorView{Status: http.StatusOK, Heading: "You are still signed in", RequestID: v.id,
		Text:  "The proxy before these pages signs you in, with each request. Sign out there; these pages have no session of yours.",
		Links: []link{{"/", "Inbox"}}})
}
