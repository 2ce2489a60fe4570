package starter

import (
	"context"
	"crypto/rand"
	"time"

	"go.temporal.io/api/enums/v1"

	"interlock/agent"
	"interlock/signals"
	"interlock/token"
)

// signFor is how long a token is good for: it is sent at once, and a repeat is
// signed anew.
const signFor = 5 * time.Minute

// signing makes the tokens of what this starter sends.
type signing struct {
	by               *token.Signer
	issuer, audience string
}

// WithSigner signs starts and what is sent to a run: a run then knows that it comes
// from the principal whom it names, since whoever holds the key has authenticated
// them. Each call but a start asks Temporal once more, for the run that stands at
// the address.
func WithSigner(by *token.Signer, issuer, audience string) Option {
	return func(s *Starter) { s.signing = &signing{by, issuer, audience} }
}

// signed adds the token to a payload: of the run that stands at the address, or of
// the one that a start with the id start begins there.
func (s *Starter) signed(ctx context.Context, address, start string, in input, body agent.JSON) (agent.JSON, error) {
	if s.signing == nil {
		return body, nil
	}
	described, err := s.temporal.DescribeWorkflow(ctx, address, "")
	if err != nil && start == "" {
		return body, nil // sending it says what is wrong
	}
	chain := signals.StartChain(start)
	if err == nil {
		info := described.RawResponse.GetWorkflowExecutionInfo()
		if start == "" || info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			chain = info.GetFirstRunId()
		}
	}
	return s.signing.seal(address, chain, in, body)
}

// signedStart adds the token, which speaks for its first message too.
func (s *Starter) signedStart(start signals.Start) (signals.Start, error) {
	if s.signing == nil {
		return start, nil
	}
	if start.ID == "" {
		start.ID = rand.Text()
	}
	body, err := agent.Encode(start)
	if err != nil {
		return start, err
	}
	sealed, err := s.signing.seal(signals.Address(start.Tenant, start.Agent, start.Key), signals.StartChain(start.ID),
		input{name: signals.ActStart, id: start.ID, who: start.Principal}, body)
	if err != nil {
		return start, err
	}
	return signals.Starts.Decode(sealed)
}

// seal makes the token of what is said to a run, and adds it.
func (g *signing) seal(address, chain string, in input, body agent.JSON) (agent.JSON, error) {
	said, err := signals.Said(body)
	if err != nil {
		return nil, err
	}
	tenant, _, _, _ := signals.SplitAddress(address)
	now := time.Now()
	text, err := g.by.Sign(token.Claims{Issuer: g.issuer, Audience: g.audience, Subject: in.who.Subject, Roles: in.who.Roles,
		Tenant: tenant, Address: address, FirstRunID: chain, Act: in.name, Body: said, ID: in.id, Issued: now, Expires: now.Add(signFor)})
	if err != nil {
		return nil, err
	}
	return agent.With(body, "token", text)
}
