// Package access says who a request comes from, and what they may do. The HTTP
// API and the pages on top of it ask the same table ([Check]), so that neither
// lets anybody do what the other refuses.
//
// What a run itself judges (the roles of a gate, separation of duties, a signed
// verdict) is not repeated here: this is the door, and the run is the safe.
package access

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"interlock/agent"
)

// Role is what a caller may do at the API. It is no role of a gate: those are the
// agent's own words, such as refunds.
type Role string

const (
	Starter  Role = "starter"  // a product backend: starts runs and speaks for its users
	User     Role = "user"     // a person whom runs serve: their own runs
	Reviewer Role = "reviewer" // reads the tenant's runs, and decides at gates
	Operator Role = "operator" // everything in the tenant
)

// Roles are all of them.
var Roles = []Role{Starter, User, Reviewer, Operator}

// CodeUnauthenticated is of an error that says nothing but that nobody was
// recognised: which part of a credential was wrong is not told.
const CodeUnauthenticated agent.Code = "unauthenticated"

// CodeRateLimited is of a request that comes too soon after others of its subject.
const CodeRateLimited agent.Code = "rate_limited"

// ErrUnauthenticated is what a missing, wrong, expired or revoked credential
// answers: the same for all of them.
var ErrUnauthenticated = agent.Errorf(CodeUnauthenticated, "a valid access token is needed: Authorization: Bearer <token>")

// Caller is who a request comes from.
type Caller struct {
	Subject string
	Tenant  string
	Roles   []string // of gates, such as refunds and operator
	May     []Role   // at the API
	Auth    string   // who has authenticated them, such as static:<token id>

	// Credential names what they were authenticated by, for a [Session] to find it
	// again; "" where no session can be begun with it.
	Credential string
	// Stamp changes where another credential takes the place of this one under the
	// same name.
	Stamp string
}

// Principal is the caller as a run is told of them.
func (c Caller) Principal() agent.Principal {
	return agent.Principal{Subject: c.Subject, Roles: slices.Clone(c.Roles), Tenant: c.Tenant, Auth: c.Auth}
}

// For is the principal of a user on whose behalf a backend acts; "" is the caller
// themself. It says who vouches for it, and has none of the caller's roles.
func (c Caller) For(user string) agent.Principal {
	if user == "" {
		return c.Principal()
	}
	return agent.Principal{Subject: user, Tenant: c.Tenant, Auth: c.Auth + " for " + user}
}

// Is reports whether the caller has an API role.
func (c Caller) Is(r Role) bool { return slices.Contains(c.May, r) }

// Authenticator recognises a caller by a bearer token.
type Authenticator interface {
	// Authenticate is the token's caller. An unknown one is [ErrUnauthenticated];
	// CodeUnavailable says that nobody can be recognised just now.
	Authenticate(ctx context.Context, bearer string) (Caller, error)
}

// maxBearer bounds what is looked at.
const maxBearer = 8 << 10

// BearerOf is the token of a request's Authorization header, "" where it has none.
func BearerOf(r *http.Request) string {
	all := r.Header.Values("Authorization")
	if len(all) != 1 || len(all[0]) > maxBearer {
		return ""
	}
	scheme, token, _ := strings.Cut(all[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

type callerKey struct{}

// With is a context in which the caller is known.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// From is the caller of a context; false where nobody was authenticated.
func From(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}
