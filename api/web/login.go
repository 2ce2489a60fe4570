package web

import (
	"net/http"
	"net/url"
	"strings"

	"interlock/agent"
	"interlock/api/access"
)

// signIn and signOut are acts of these pages only.
const (
	actSignIn  access.Act = "session.begin"
	actSignOut access.Act = "session.end"
)

type loginView struct {
	Next    string
	Problem string
	Lost    bool // a form was sent without a session, and came to nothing
}

func showLogin(v *visit) error {
	next := localPath(v.query("next"))
	_, err := v.recognise(v.ctx)
	switch {
	case err == nil:
		v.to(next)
		return nil
	case v.proxied() && agent.ErrorCode(err) == access.CodeUnauthenticated:
		return v.notBelieved()
	case v.proxied():
		return err
	}
	return v.page(http.StatusOK, "login", "Sign in", loginView{Next: next, Lost: v.query("lost") != ""})
}

// signIn begins a session for whoever has an access token.
func signIn(v *visit) error {
	next := localPath(v.form("next"))
	if v.proxied() { // there is nothing to begin
		v.to(next)
		return nil
	}
	c, err := v.Auth.Authenticate(v.ctx, v.form("token"))
	if err == nil {
		v.caller = c
		err = v.Sessions.Begin(v.w, v.r, c)
	}
	switch v.audited(actSignIn, "", err); {
	case err == nil:
		v.to(next)
		return nil
	case agent.ErrorCode(err) == agent.CodeUnavailable:
		v.caller = access.Caller{}
		return err
	}
	v.caller = access.Caller{}
	view := loginView{Next: next, Problem: "This access token is not known here: it is mistyped, has expired or was revoked. Paste it whole; it begins with " + access.Prefix + "."}
	if agent.ErrorCode(err) != access.CodeUnauthenticated {
		view.Problem = err.Error()
	}
	return v.page(http.StatusUnauthorized, "login", "Sign in", view)
}

func signOut(v *visit) error {
	if v.proxied() {
		v.Sessions.End(v.w, v.r)
		return v.proxySignsOut()
	}
	if c, err := v.Sessions.Caller(v.ctx, v.r); err == nil {
		v.caller = c
		_ = v.audited(actSignOut, "", nil)
	}
	v.Sessions.End(v.w, v.r)
	v.to("/login")
	return nil
}

// localPath is a path of these pages; whatever names another place is /.
func localPath(next string) string {
	u, err := url.Parse(next)
	switch {
	case err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Opaque != "",
		!strings.HasPrefix(next, "/"), strings.HasPrefix(next, "//"), strings.ContainsAny(next, "\\\r\n\t"),
		strings.HasPrefix(u.Path, "//"), u.Path == "/login", u.Path == "/logout":
		return "/"
	}
	return next
}
