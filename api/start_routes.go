package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"

	"interlock/agent"
	"interlock/api/access"
	"interlock/signals"
	"interlock/starter"
)

// StartBody is what a run is started with.
type StartBody struct {
	Agent   string        `json:"agent" minLength:"1" maxLength:"64"`
	Version int           `json:"version,omitempty" minimum:"0" doc:"none: the newest that is served"`
	Key     string        `json:"key,omitempty" maxLength:"200" doc:"the session, order or ticket that it serves: one run for each. None: it is made of the Idempotency-Key"`
	User    string        `json:"user,omitempty" maxLength:"200" doc:"the subject that the run serves; none: who starts it"`
	AsUser  string        `json:"as_user,omitempty" maxLength:"200" doc:"who starts it, where a backend does so for a user"`
	Body    agent.JSON    `json:"body,omitempty" doc:"the agent's start input"`
	Message *FirstMessage `json:"message,omitempty" doc:"what the user says first"`
}

// FirstMessage comes with a start.
type FirstMessage struct {
	Text string `json:"text" minLength:"1" maxLength:"65536"`
}

// SessionBody is a message of a session, and what a run is started with where the
// session has none under way.
type SessionBody struct {
	Text    string     `json:"text" minLength:"1" maxLength:"65536"`
	Policy  string     `json:"policy,omitempty" enum:"queue,reject,interrupt,rollback" doc:"what the message does while the run is busy; none: the agent's own"`
	Version int        `json:"version,omitempty" minimum:"0"`
	User    string     `json:"user,omitempty" maxLength:"200"`
	AsUser  string     `json:"as_user,omitempty" maxLength:"200" doc:"who says it, where a backend sends it for a user"`
	Body    agent.JSON `json:"body,omitempty" doc:"the start input of a run that is started"`
}

// firstMessageID is constant, so that the same start is the same start whatever
// its Idempotency-Key.
const firstMessageID = "interlock.first"

type startInput struct {
	Keyed
	Body StartBody
}

type startOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     starter.Started
}

type sessionInput struct {
	RunPath
	Keyed
	Body SessionBody
}

func (s *Server) startRoutes() {
	handle(s, Route{Method: http.MethodPost, Path: "/v1/runs", ID: "start-run", Tag: "runs", Summary: "Start a run", Act: access.Start, Acts: true, KeyInBody: true, Created: true}, s.start)
	handle(s, Route{Method: http.MethodPost, Path: "/v1/sessions/{agent}/{key}/messages", ID: "converse", Tag: "sessions",
		Summary: "Bring a message to a session's run, or start one", Act: access.Converse, Acts: true}, s.converse)
}

// servedBy is whom a run serves that is started on behalf of somebody.
func servedBy(user, asUser string) (string, error) {
	if user != "" && asUser != "" && user != asUser {
		return "", agent.Errorf(agent.CodeInvalid, "user and as_user are two different people: who starts a run for a user is that user (as_user), or the backend itself (user)")
	}
	if user == "" {
		return asUser, nil
	}
	return user, nil
}

// keyMade is a run's key made of an Idempotency-Key: the same for the same caller.
func keyMade(c *call) string {
	sum := sha256.Sum256([]byte(c.caller.Subject + "\x00" + c.key))
	return "k-" + hex.EncodeToString(sum[:16])
}

func (s *Server) start(ctx context.Context, c *call, in *startInput) (*startOutput, error) {
	b := in.Body
	c.asUser = b.AsUser
	user, err := servedBy(b.User, b.AsUser)
	if err != nil {
		return nil, err
	}
	if b.Key == "" {
		if c.key == "" {
			return nil, problem(codeNoKey, "Give a key in the body, which names the run, or an Idempotency-Key, of which one is made: a repeat is the same run then.")
		}
		b.Key = keyMade(c)
	}
	if err := signals.CheckAddress(c.caller.Tenant, b.Agent, b.Key); err != nil {
		return nil, err
	}
	c.target = signals.Address(c.caller.Tenant, b.Agent, b.Key)
	if err := access.Check(c.caller, c.act, access.On{Tenant: c.caller.Tenant, AsUser: b.AsUser}); err != nil {
		return nil, err
	}
	start := starter.Start{Agent: b.Agent, Version: b.Version, Tenant: c.caller.Tenant, Key: b.Key, Principal: c.principal(), User: user, TraceID: c.trace}
	if len(b.Body) > 0 {
		start.Body = b.Body
	}
	if b.Message != nil {
		start.Message = &signals.Message{ID: firstMessageID, Principal: c.principal(), Text: b.Message.Text, TraceID: c.trace}
	}
	started, err := s.runs.Start(ctx, start)
	if err != nil {
		return nil, unknownAgent(err)
	}
	out := &startOutput{Status: http.StatusOK, Location: "/v1/runs/" + b.Agent + "/" + url.PathEscape(b.Key), Body: started}
	if started.New {
		out.Status = http.StatusCreated
	}
	return out, nil
}

// unknownAgent tells an agent that nobody serves from a run that is not there.
func unknownAgent(err error) error {
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return problem(codeUnknown, err.Error())
	}
	return err
}

func (s *Server) converse(ctx context.Context, c *call, in *sessionInput) (*body[starter.Conversed], error) {
	b := in.Body
	c.asUser = b.AsUser
	user, err := servedBy(b.User, b.AsUser)
	if err != nil {
		return nil, err
	}
	if err := signals.CheckAddress(c.caller.Tenant, in.Agent, in.Key); err != nil {
		return nil, err
	}
	address := signals.Address(c.caller.Tenant, in.Agent, in.Key)
	on := access.On{Tenant: c.caller.Tenant, AsUser: b.AsUser}
	// A run that is there already must serve the user who is spoken for.
	if served, err := s.userOf(ctx, c.caller.Tenant, address); err == nil {
		on.Run, on.User = address, served
	} else if agent.ErrorCode(err) != agent.CodeNotFound {
		return nil, err
	}
	if err := access.Check(c.caller, c.act, on); err != nil {
		return nil, err
	}
	said := starter.Converse{Agent: in.Agent, Version: b.Version, Tenant: c.caller.Tenant, Key: in.Key, Principal: c.principal(), User: user, TraceID: c.trace,
		Message: signals.Message{ID: c.key, Principal: c.principal(), Text: b.Text, Policy: agent.MessagePolicy(b.Policy), TraceID: c.trace}}
	if len(b.Body) > 0 {
		said.Body = b.Body
	}
	out, err := s.runs.Converse(ctx, said)
	if err != nil {
		return nil, unknownAgent(err)
	}
	return &body[starter.Conversed]{out}, nil
}
