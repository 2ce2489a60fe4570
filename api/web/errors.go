package web

import (
	"net/http"

	"interlock/agent"
	"interlock/api/access"
)

// errorView is a page that says why there is no other.
type errorView struct {
	Status    int
	Heading   string
	Text      string
	RequestID string
	Links     []link
	Retry     *retry
}

// link is a way on.
type link struct{ Href, Text string }

// retry sends the same form again, with the same id.
type retry struct {
	Action string
	Fields []hidden
}

type hidden struct{ Name, Value string }

// statusOf maps an error's code to a status of HTTP and the page's heading.
func statusOf(code agent.Code) (int, string) {
	switch code {
	case agent.CodeInvalid:
		return http.StatusUnprocessableEntity, "That cannot be taken as it is"
	case agent.CodeNotFound:
		return http.StatusNotFound, "Not found"
	case agent.CodeDenied, access.CodeUnauthenticated:
		return http.StatusForbidden, "Not allowed"
	case access.CodeRateLimited:
		return http.StatusTooManyRequests, "Too often"
	case agent.CodeConflict:
		return http.StatusConflict, "Nothing was done"
	case agent.CodeGateClosed, agent.CodeStale:
		return http.StatusConflict, "Nothing was decided"
	case agent.CodeEnded:
		return http.StatusConflict, "The run has ended"
	case agent.CodeUnavailable:
		return http.StatusServiceUnavailable, "Something that is needed cannot be reached"
	}
	return http.StatusInternalServerError, "A mistake of ours"
}

// showError answers with the page of an error. What does not exist and what the
// caller may not know of is the same page.
func (v *visit) showError(err error) {
	code := agent.ErrorCode(err)
	status, heading := statusOf(code)
	view := errorView{Status: status, Heading: heading, Text: err.Error(), RequestID: v.id, Links: []link{{"/", "Inbox"}}}
	switch code {
	case agent.CodeNotFound:
		view.Text = "There is no such page, or you may not see it."
	case agent.CodeInternal:
		v.Log.ErrorContext(v.ctx, "page failed", "path", v.r.URL.Path, "request_id", v.id, "error", err)
		view.Text = "The page could not be made. The log says why, under the id below."
	case access.CodeRateLimited:
		if v.r.Method == http.MethodPost {
			view.Retry = v.again()
		}
	case agent.CodeUnavailable:
		v.w.Header().Set("Retry-After", "5")
		v.Log.ErrorContext(v.ctx, "page failed", "path", v.r.URL.Path, "request_id", v.id, "error", err)
		if !v.caller.Is(access.Operator) { // it can name hosts, databases and their users
			view.Text = "What this page needs did not answer: try again in a moment. The log says more, under the id below"
		}
		if v.r.Method == http.MethodPost {
			view.Text += ". Whether it arrived is not known: send it again, which is harmless, since the same form is one act."
			view.Retry = v.again()
		}
	}
	if err := v.page(status, "error", heading, view); err != nil {
		v.Log.ErrorContext(v.ctx, "page of an error failed", "request_id", v.id, "error", err)
		http.Error(v.w, heading, status)
	}
}

// again is the form of this request, to be sent once more. A form with an access
// token is none.
func (v *visit) again() *retry {
	if v.r.PostForm.Has("token") {
		return nil
	}
	out := &retry{Action: v.r.URL.Path}
	for _, name := range sortedKeys(v.r.PostForm) {
		for _, value := range v.r.PostForm[name] {
			out.Fields = append(out.Fields, hidden{name, value})
		}
	}
	return out
}
