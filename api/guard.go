package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"interlock/agent"
	"interlock/api/access"
	"interlock/signals"
	"interlock/store"
)

// Route is one operation of the API.
type Route struct {
	Method, Path string
	ID           string // operationId: stable, generated clients name their methods by it
	Summary      string
	Tag          string
	Act          access.Act
	// Acts: it changes something, and so needs an Idempotency-Key; KeyInBody: it may
	// have the run's key in its body instead.
	Acts, KeyInBody bool
	Created         bool // 201 beside 200
	Stream          bool // it answers with server-sent events
}

// handle registers a route: whatever is common to all of them is done here.
func handle[I, O any](s *Server, r Route, do func(ctx context.Context, c *call, in *I) (*O, error)) {
	s.routes = append(s.routes, r)
	op := huma.Operation{Method: r.Method, Path: r.Path, OperationID: r.ID, Summary: r.Summary, Tags: []string{r.Tag}, RejectUnknownQueryParameters: true,
		MaxBodyBytes: s.limits.Body + 1, Security: []map[string][]string{{"token": {}}}, Middlewares: huma.Middlewares{s.guard(r)}}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		c := callOf(ctx)
		out, err := do(ctx, c, in)
		if err != nil {
			p := s.problemOf(ctx, err)
			return nil, redactedProblem(s.redaction(ctx, c), p)
		}
		c.outcome = "ok"
		if c.redacted || r.Stream {
			return out, nil
		}
		return agent.Redacted(s.redaction(ctx, c), out), nil
	})
}

// guard is before every route: who asks, how often, whether they may ever do
// this, and that the body is JSON that all readers read alike. What was asked and
// what came of it is in the audit.
func (s *Server) guard(route Route) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		c := callOf(r.Context())
		c.act = route.Act
		defer func() {
			s.audit.Write(r.Context(), access.Line{Act: c.act, Caller: c.caller, AsUser: c.asUser, Target: c.target, RequestID: c.id, Outcome: c.outcome})
		}()
		c.outcome = string(agent.CodeInternal) // unless somebody says something else
		if err := s.admit(r, c, route); err != nil {
			writeProblem(w, s.problemOf(r.Context(), err))
			return
		}
		next(ctx)
	}
}

// admit says why a request is refused before its route sees it.
func (s *Server) admit(r *http.Request, c *call, route Route) error {
	var err error
	if c.caller, err = s.auth.Authenticate(r.Context(), access.BearerOf(r)); err != nil {
		c.caller = access.Caller{}
		return err
	}
	c.target = targetOf(c.caller.Tenant, r)
	if wait := s.rates.Wait(c.caller.Tenant+"\x00"+c.caller.Subject, s.now()); wait > 0 {
		p := problem(codeRateLimited, "Wait, and send it again: Retry-After says how many seconds.")
		p.wait = wait
		return p
	}
	if err := access.Check(c.caller, c.act, access.On{}); err != nil {
		return err
	}
	if route.Acts {
		key, p := keyOf(r)
		if p != nil && (p.Code != codeNoKey || !route.KeyInBody) {
			return p
		}
		c.key = key
	}
	return s.readBody(r)
}

// readBody puts the canonical form in the place of the body: the one that is
// digested, stored and run. What two readers could read differently is refused,
// with the place.
func (s *Server) readBody(r *http.Request) error {
	if r.Method == http.MethodGet || r.Body == nil {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, s.limits.Body+1))
	if err != nil {
		return problem(codeMalformed, "The body was not received whole.")
	}
	canonical, err := decodeBody(data, r.Header.Get("Content-Type"), s.limits.Body)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(canonical)), int64(len(canonical))
	return nil
}

// decodeBody is the canonical form of a body; an empty one stays empty.
func decodeBody(data []byte, contentType string, limit int64) ([]byte, error) {
	if int64(len(data)) > limit {
		p := problem(codeTooLarge, "")
		p.Detail = "The body has more than " + size(limit) + "."
		return nil, p
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	if media, _, err := mime.ParseMediaType(contentType); contentType != "" && (err != nil || media != "application/json") {
		return nil, problem(codeMedia, "Send the body as application/json.")
	}
	canonical, err := agent.Canonical(data)
	if err != nil {
		p := problem(codeMalformed, "The body is no JSON that is accepted: "+err.Error())
		p.Errors = []Place{{Location: "body", Message: err.Error()}}
		return nil, p
	}
	return canonical, nil
}

// run finds the run that a request names, and checks that the caller may do to it
// what they ask for. A run that is not there and one that they may not know of are
// the same.
func (s *Server) run(ctx context.Context, c *call, agentName, key string, on access.On) (address string, err error) {
	if address, err = c.address(agentName, key); err != nil {
		return "", err
	}
	if on.User, err = s.userOf(ctx, c.caller.Tenant, address); err != nil {
		return "", err
	}
	on.Tenant, on.Run, on.AsUser = c.caller.Tenant, address, c.asUser
	err = access.Check(c.caller, c.act, on)
	if err == nil {
		c.run = address
	}
	return address, err
}

// redaction hides from the caller the sensitive values of the run that the request is
// about. A run that its journal does not know yet is asked itself.
func (s *Server) redaction(ctx context.Context, c *call) *agent.Redaction {
	if c.run == "" {
		return nil
	}
	x, err := store.Redaction(ctx, s.reads, chainOf(c.caller.Tenant, c.run))
	if err == nil {
		return x
	}
	if run, err := s.runs.Get(ctx, c.run); err == nil {
		return run.Redaction()
	}
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return nil // it has said nothing
	}
	return agent.HideAll()
}

// redactedProblem is a problem whose texts may repeat what a run has said.
func redactedProblem(x *agent.Redaction, err error) error {
	var p *Problem
	if errors.As(err, &p) && x.Hides() {
		p.Detail = x.Text(p.Detail)
		for i := range p.Errors {
			p.Errors[i].Message = x.Text(p.Errors[i].Message)
		}
	}
	return err
}

// targetOf is what a request's path names, for the audit: a run, with its gate or
// ruling behind #, or the key of an effect.
func targetOf(tenant string, r *http.Request) string {
	name, key, part := r.PathValue("agent"), r.PathValue("key"), r.PathValue("gate")+r.PathValue("ruling")
	switch {
	case key == "":
		return ""
	case name != "":
		key = signals.Address(tenant, name, key)
	}
	if part != "" {
		key += "#" + part
	}
	const most = 400 // whatever somebody writes there
	return strings.ToValidUTF8(key[:min(len(key), most)], "")
}

// userOf is whom a run serves: by the store, and where that does not know the run
// yet, or does not answer, by the run itself.
func (s *Server) userOf(ctx context.Context, tenant, address string) (string, error) {
	row, err := s.reads.RunRow(ctx, chainOf(tenant, address))
	if err == nil {
		return row.User, nil
	}
	run, asked := s.runs.Get(ctx, address)
	if asked == nil {
		return run.User, nil
	}
	if code := agent.ErrorCode(err); code != agent.CodeNotFound && agent.ErrorCode(asked) == agent.CodeNotFound {
		return "", errors.Join(err, asked) // the store might know it
	}
	return "", asked
}
