package token

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"interlock/agent"
)

// Directory knows what was taken from people since their tokens were signed.
type Directory interface {
	// Roles are those of p.Roles that the person still has: none is nil or empty. An
	// error that is [ErrRevoked] says that nothing at all is left to them, another one
	// that the directory cannot be asked.
	Roles(ctx context.Context, p agent.Principal) ([]string, error)
}

// ErrRevoked says that a person has lost all access, roles or not.
var ErrRevoked = errors.New("all access was revoked")

// standing is the person with what is left to them of what a token says. Nobody
// gets a role here. Who came with roles and has none of them left is refused: a
// token that is wrong in all of them is not the word of who signs now.
func (t Trust) standing(ctx context.Context, p agent.Principal) (agent.Principal, error) {
	if t.Directory == nil {
		return p, nil
	}
	asked := p
	asked.Roles = slices.Clone(p.Roles)
	left, err := t.Directory.Roles(ctx, asked)
	if err != nil && !errors.Is(err, ErrRevoked) {
		return agent.Principal{}, agent.Errorf(agent.CodeUnavailable, "the token is not believed: what %s may still do cannot be found out: %w", p.Subject, err)
	}
	roles := slices.DeleteFunc(slices.Clone(p.Roles), func(r string) bool { return !slices.Contains(left, r) })
	if err != nil || len(p.Roles) > 0 && len(roles) == 0 {
		return agent.Principal{}, fmt.Errorf("the access of %s was revoked", p.Subject)
	}
	p.Roles = roles
	return p, nil
}
