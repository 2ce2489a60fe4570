package web

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/signals"
	"interlock/store"
)

// visit is one request for a page.
type visit struct {
	*Pages
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	id     string // of the request
	caller access.Caller
	now    time.Time
	// connection ends with the browser's, and not with the time that a page may take.
	connection context.Context
	banner     string // what stands above the page: something that could not be reached
}

// open makes a handler of a page that needs no sign-in.
func (p *Pages) open(page func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		of, _ := r.Context().Value(requestKey{}).(request)
		v := &visit{Pages: p, w: w, r: r, ctx: r.Context(), connection: of.connection, id: of.id, now: p.Now()}
		v.answer(page)
	}
}

// signedIn makes a handler of a page behind the sign-in.
func (p *Pages) signedIn(page func(*visit) error) http.HandlerFunc {
	return p.open(func(v *visit) error {
		c, err := v.recognise(v.ctx)
		if agent.ErrorCode(err) == access.CodeUnauthenticated {
			return v.unknown()
		}
		if err != nil {
			return err
		}
		v.caller = c
		if err := v.limited(); err != nil {
			return err
		}
		return page(v)
	})
}

// answer calls a page, and shows its error.
func (v *visit) answer(page func(*visit) error) {
	if v.r.Method == http.MethodPost {
		if err := v.r.ParseForm(); err != nil {
			v.showError(agent.Errorf(agent.CodeInvalid, "the form cannot be read, or is larger than %d bytes: nothing was done", maxForm))
			return
		}
	}
	if err := page(v); err != nil {
		v.showError(err)
	}
}

// unknown answers a request of nobody.
func (v *visit) unknown() error {
	switch {
	case strings.HasPrefix(v.r.URL.Path, "/live/"): // its page signs in again
		v.w.WriteHeader(http.StatusUnauthorized)
		return nil
	case v.proxied():
		return v.notBelieved()
	}
	v.toLogin()
	return nil
}

// toLogin sends a browser to sign in, and back to this page then. What it wanted
// to send is not sent by that.
func (v *visit) toLogin() {
	next := v.pageOf()
	if v.r.Method == http.MethodGet {
		next = v.r.URL.RequestURI()
	}
	target := "/login"
	if next != "/" {
		target += "?next=" + url.QueryEscape(next)
	}
	if v.r.Method == http.MethodPost {
		target += map[bool]string{true: "?", false: "&"}[next == "/"] + "lost=form"
	}
	if v.fragment() {
		// A part of a page must not become the page of signing in.
		v.w.Header().Set("HX-Redirect", target)
		v.w.WriteHeader(http.StatusNoContent)
		return
	}
	v.to(target)
}

// pageOf is the page that a form stands on.
func (v *visit) pageOf() string {
	switch {
	case v.r.PathValue("gate") != "":
		return gatePath(v.r.PathValue("agent"), v.r.PathValue("key"), v.r.PathValue("gate"))
	case strings.HasPrefix(v.r.URL.Path, "/ops"):
		return "/ops"
	case strings.HasPrefix(v.r.URL.Path, "/absences"):
		return "/absences"
	case v.r.PathValue("key") != "":
		return runPath(v.r.PathValue("agent"), v.r.PathValue("key"))
	}
	return "/"
}

// fragment reports a request for a part of a page, by htmx.
func (v *visit) fragment() bool { return v.r.Header.Get("HX-Request") == "true" }

// to sends the browser on. It asks by GET whatever the method was.
func (v *visit) to(path string) { http.Redirect(v.w, v.r, path, http.StatusSeeOther) }

// address is that of the run that the path names, in the caller's tenant: no path
// reaches another's.
func (v *visit) address() string {
	return signals.Address(v.caller.Tenant, v.r.PathValue("agent"), v.r.PathValue("key"))
}

// chain is the run that the path names, for a reader.
func (v *visit) chain() (store.Chain, error) {
	if signals.CheckAddress(v.caller.Tenant, v.r.PathValue("agent"), v.r.PathValue("key")) != nil {
		return store.Chain{}, access.NotFound()
	}
	return store.Chain{Tenant: v.caller.Tenant, Address: v.address()}, nil
}

// form is a value that the form sent, without white space around it. Browsers end
// lines by CR LF, whatever was typed: nobody would quote that word for word.
func (v *visit) form(name string) string { return strings.TrimSpace(lineEnds(v.r.PostFormValue(name))) }

func (v *visit) query(name string) string { return strings.TrimSpace(v.r.URL.Query().Get(name)) }

// audited writes the line of an act, and returns its error.
func (v *visit) audited(act access.Act, target string, err error) error {
	outcome := "ok"
	if err != nil {
		outcome = string(agent.ErrorCode(err))
	}
	v.Audit.Write(v.ctx, access.Line{Act: act, Caller: v.caller, Target: target, RequestID: v.id, Outcome: outcome})
	return err
}

// newID is an id that nobody can guess, made when a form is shown: whatever
// becomes of the form, what it sends is one act.
func newID(prefix string) string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // it never fails
	return prefix + hex.EncodeToString(b)
}

func runPath(agentName, key string) string {
	return "/runs/" + url.PathEscape(agentName) + "/" + url.PathEscape(key)
}

func gatePath(agentName, key, gate string) string {
	return runPath(agentName, key) + "/gates/" + url.PathEscape(gate)
}

// pathOf is the path of a run by its address.
func pathOf(address string) string {
	_, agentName, key, _ := signals.SplitAddress(address)
	return runPath(agentName, key)
}
