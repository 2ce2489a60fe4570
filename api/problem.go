package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"interlock/agent"
	"interlock/api/access"
)

// Codes beside those of [agent.Code]. All of them are on the wire; never rename.
const (
	codeMalformed   agent.Code = "malformed"
	codeNoKey       agent.Code = "idempotency_key_missing"
	codeTooLarge    agent.Code = "too_large"
	codeMedia       agent.Code = "unsupported_media_type"
	codeMethod      agent.Code = "method_not_allowed"
	codeRateLimited            = access.CodeRateLimited
	codeUnknown     agent.Code = "unknown_agent"
)

// problems is the one table of what a code means in HTTP.
var problems = []struct {
	code   agent.Code
	status int
	title  string
}{
	{codeMalformed, http.StatusBadRequest, "The request cannot be read"},
	{codeNoKey, http.StatusBadRequest, "The request needs an Idempotency-Key"},
	{access.CodeUnauthenticated, http.StatusUnauthorized, "Nobody was recognised"},
	{agent.CodeDenied, http.StatusForbidden, "This caller may not do it"},
	{agent.CodeNotFound, http.StatusNotFound, "There is no such thing"},
	{codeMethod, http.StatusMethodNotAllowed, "This path is not asked so"},
	{agent.CodeConflict, http.StatusConflict, "Something else stands in its place"},
	{agent.CodeEnded, http.StatusConflict, "The run has ended"},
	{agent.CodeGateClosed, http.StatusConflict, "The gate is decided, or open no more"},
	{agent.CodeStale, http.StatusConflict, "The gate has changed since it was shown"},
	{codeTooLarge, http.StatusRequestEntityTooLarge, "The body is too large"},
	{codeMedia, http.StatusUnsupportedMediaType, "The body is no JSON"},
	{agent.CodeInvalid, http.StatusUnprocessableEntity, "The request can never work as it is"},
	{codeUnknown, http.StatusUnprocessableEntity, "No worker serves this agent"},
	{codeRateLimited, http.StatusTooManyRequests, "Too many requests"},
	{agent.CodeInternal, http.StatusInternalServerError, "A mistake of ours"},
	{agent.CodeUnavailable, http.StatusServiceUnavailable, "Not now"},
}

// Said of what went wrong on our side: the rest is in the log, under the id.
const (
	saysInternal    = "Something went wrong that should not have; the log has it under the id in instance."
	saysUnavailable = "The run did not answer in time, or what it stands on cannot be reached. Send the same request again, with the same Idempotency-Key: it takes effect once."
)

// Problem is the body of every error, as RFC 9457 has it.
type Problem struct {
	Type     string     `json:"type" doc:"urn:interlock:problem: and the code; stable"`
	Title    string     `json:"title" doc:"what the code means"`
	Status   int        `json:"status"`
	Detail   string     `json:"detail,omitempty" doc:"what was wrong here, and what to do"`
	Instance string     `json:"instance,omitempty" doc:"the request's id, as in X-Request-Id and in the log"`
	Code     agent.Code `json:"code" doc:"what kind of mistake it is; stable, clients decide on it"`
	Errors   []Place    `json:"errors,omitempty" doc:"what is wrong where in the request"`
	// Gate is of a verdict that decided nothing.
	Gate *agent.GateOutcome `json:"gate,omitempty" doc:"how the gate of a verdict stands, who decided it and when"`

	wait time.Duration
}

// Place is one mistake in a request.
type Place struct {
	Location string `json:"location" doc:"such as body.args or query.page_size"`
	Message  string `json:"message"`
}

// Error, GetStatus, ContentType and GetHeaders are what huma asks an error for.
func (p *Problem) Error() string             { return p.Detail }
func (p *Problem) GetStatus() int            { return p.Status }
func (p *Problem) ContentType(string) string { return "application/problem+json" }
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.Code == access.CodeUnauthenticated {
		h.Set("WWW-Authenticate", `Bearer realm="interlock"`)
	}
	if p.wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.wait+time.Second-1)/time.Second)))
	}
	return h
}

// problem makes one of a code; unknown codes are mistakes of ours.
func problem(code agent.Code, detail string) *Problem {
	i := slices.IndexFunc(problems, func(p struct {
		code   agent.Code
		status int
		title  string
	}) bool {
		return p.code == code
	})
	if i < 0 {
		return problem(agent.CodeInternal, saysInternal)
	}
	p := &Problem{Type: "urn:interlock:problem:" + string(code), Title: problems[i].title, Status: problems[i].status, Code: code, Detail: detail}
	if code == agent.CodeUnavailable {
		p.wait = time.Second
	}
	return p
}

// problemOf is what a client is told of an error. What a server error was is
// logged, and not told.
func (s *Server) problemOf(ctx context.Context, err error) *Problem {
	c := callOf(ctx)
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		code := agent.ErrorCode(err)
		if errors.Is(err, context.DeadlineExceeded) && code == agent.CodeInternal {
			code = agent.CodeUnavailable
		}
		p = problem(code, err.Error())
		switch code {
		case agent.CodeNotFound:
			p.Detail = access.NotFound().Error() // whatever is not there
		case agent.CodeUnavailable:
			p.Detail = saysUnavailable
		}
	}
	if p.Status >= http.StatusInternalServerError {
		s.log.ErrorContext(ctx, "request failed", "request_id", c.id, "trace_id", c.trace, "act", string(c.act), "target", c.target, "code", string(p.Code), "error", err)
		if p.Code == agent.CodeInternal {
			p.Detail = saysInternal
		}
	}
	p.Instance = c.id
	c.outcome = string(p.Code)
	return p
}

// within keeps what is said of a part that a run does not have. It is for errors of a
// run that the caller has been found to see: of others nothing is told.
func within(err error) error {
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return problem(agent.CodeNotFound, err.Error())
	}
	return err
}

// writeProblem is for what is refused before a route is reached.
func writeProblem(w http.ResponseWriter, p *Problem) {
	for k, values := range p.GetHeaders() {
		w.Header()[k] = values
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(p) // the client may have gone
}

// Huma is told by package variables what its own refusals look like, that keys
// differ by case, and that a list of ours is never null.
func init() {
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		return refusalOf(status, detail, errs)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, detail string, errs ...error) huma.StatusError {
		p := refusalOf(status, detail, errs)
		if ctx != nil {
			c := callOf(ctx.Context())
			p.Instance, c.outcome = c.id, string(p.Code)
			if p.Status >= http.StatusInternalServerError && c.server != nil {
				c.server.log.ErrorContext(ctx.Context(), "request failed", "request_id", c.id, "code", string(p.Code), "error", errors.Join(errs...))
			}
		}
		return p
	}
	huma.ValidateStrictCasing = true
	huma.DefaultArrayNullable = false
}

// refusalOf is a refusal of huma's as a problem of ours. Values are not told
// back: they would be cut and rounded, and stand in logs.
func refusalOf(status int, detail string, errs []error) *Problem {
	code := map[int]agent.Code{http.StatusBadRequest: codeMalformed, http.StatusRequestEntityTooLarge: codeTooLarge,
		http.StatusUnsupportedMediaType: codeMedia, http.StatusUnprocessableEntity: agent.CodeInvalid, http.StatusRequestTimeout: agent.CodeUnavailable}[status]
	if code == "" {
		code, detail = agent.CodeInternal, saysInternal
	}
	p := problem(code, detail)
	if p.Status >= http.StatusInternalServerError {
		return p
	}
	for _, err := range errs {
		place := Place{Message: err.Error()}
		if d, ok := err.(huma.ErrorDetailer); ok {
			place = Place{Location: d.ErrorDetail().Location, Message: d.ErrorDetail().Message}
		}
		p.Errors = append(p.Errors, place)
	}
	if len(p.Errors) > 0 {
		p.Detail = p.Errors[0].Message
		if at := p.Errors[0].Location; at != "" {
			p.Detail = at + ": " + p.Detail
		}
	}
	return p
}
