package starter

import (
	"context"
	"time"

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

// WithSigner signs what is sent to a run: a run then knows that it comes from the
// principal whom it names, since whoever holds the key has authenticated them.
// Each call asks Temporal once more, for the run that stands at the address.
func WithSigner(by *token.Signer, issuer, audience string) Option {
	return func(s *Starter) { s.signing = &signing{by, issuer, audience} }
}

// signed adds the token to a payload.
func (s *Starter) signed(ctx context.Context, address string, in input, body agent.JSON) (agent.JSON, error) {
	if s.signing == nil {
		return body, nil
	}
	described, err := s.temporal.DescribeWorkflow(ctx, address, "")
	if err != nil {
		return body, nil // sending it says what is wrong
	}
	firstRunID := described.RawResponse.GetWorkflowExecutionInfo().GetFirstRunId()
	said, err := signals.Said(body)
	if err != nil {
		return nil, err
	}
	tenant, _, _, _ := signals.SplitAddress(address)
	now := time.Now()
	text, err := s.signing.by.Sign(token.Claims{Issuer: s.signing.issuer, Audience: s.signing.audience, Subject: in.who.Subject, Roles: in.who.Roles,
		Tenant: tenant, Address: address, FirstRunID: firstRunID, Act: in.name, Body: said, ID: in.id, Issued: now, Expires: now.Add(signFor)})
	if err != nil {
		return nil, err
	}
	return agent.With(body, "token", text)
}
