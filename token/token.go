// Package token signs and checks what somebody does to a run: who they are, with
// which roles, and exactly what they decide, of which run. A token is a JWT
// signed with Ed25519. It is made where a person has been authenticated, and
// checked by a worker with keys that it holds: nothing is fetched on that path.
package token

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"interlock/agent"
)

// MaxAge bounds how long a token may be good for: it says what somebody decides
// now, and is no pass.
const MaxAge = 15 * time.Minute

// skew is how far the clocks of who signs and who checks may differ.
const skew = 30 * time.Second

// Claims are what a token says.
type Claims struct {
	Issuer   string // who has authenticated the person
	Audience string // the workers that are to believe it
	// Subject, Roles and Tenant are the person's.
	Subject string
	Roles   []string
	Tenant  string
	// Address and FirstRunID are the run's.
	Address    string
	FirstRunID string
	// Act is what is done to the run: the name of the signal or update. Body is the
	// digest of all that it says: of a verdict the gate, its digest, the verdict, the
	// arguments and the reason.
	Act  string
	Body string
	// ID makes a repeat known. Expires is judged when the act arrives at the run.
	ID      string
	Issued  time.Time
	Expires time.Time
}

type wire struct {
	jwt.RegisteredClaims
	Tenant     string   `json:"tenant"`
	Roles      []string `json:"roles,omitempty"`
	Address    string   `json:"run"`
	FirstRunID string   `json:"chain"`
	Act        string   `json:"act"`
	Body       string   `json:"body"`
}

// Signer signs with one key, which the token names.
type Signer struct {
	id  string
	key ed25519.PrivateKey
}

// NewSigner makes a signer. id names the key among those of who checks.
func NewSigner(id string, key ed25519.PrivateKey) (*Signer, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if len(key) != ed25519.PrivateKeySize {
		return nil, agent.Errorf(agent.CodeInvalid, "key %s is no private key of Ed25519", id)
	}
	return &Signer{id, key}, nil
}

// Sign makes the token. All claims but Roles are required.
func (s *Signer) Sign(c Claims) (string, error) {
	for name, v := range map[string]string{"issuer": c.Issuer, "audience": c.Audience, "subject": c.Subject, "tenant": c.Tenant, "address": c.Address,
		"first run id": c.FirstRunID, "act": c.Act, "body": c.Body, "id": c.ID} {
		if v == "" {
			return "", agent.Errorf(agent.CodeInvalid, "a token without its %s says too little", name)
		}
	}
	if age := c.Expires.Sub(c.Issued); age <= 0 || age > MaxAge {
		return "", agent.Errorf(agent.CodeInvalid, "a token is good for at most %s, and not for %s", MaxAge, age)
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, wire{
		RegisteredClaims: jwt.RegisteredClaims{Issuer: c.Issuer, Audience: jwt.ClaimStrings{c.Audience}, Subject: c.Subject, ID: c.ID,
			IssuedAt: jwt.NewNumericDate(c.Issued), ExpiresAt: jwt.NewNumericDate(c.Expires)},
		Tenant: c.Tenant, Roles: c.Roles, Address: c.Address, FirstRunID: c.FirstRunID, Act: c.Act, Body: c.Body,
	})
	t.Header["kid"] = s.id
	return t.SignedString(s.key)
}

// Keys are the public keys of who may sign, by their ids: [Files] or [JWKS].
type Keys interface {
	// Key is the key of an id; its error says that there is none, or that the keys
	// cannot be read. The id is whatever a token says, and not checked yet. It is
	// asked while a run waits: it fetches nothing.
	Key(id string) (crypto.PublicKey, error)
}

// Trust is what a worker believes: tokens of an issuer, for an audience, signed
// with one of the keys.
type Trust struct {
	Issuer   string
	Audience string
	Keys     Keys
	// Directory knows what was taken from people since. nil: a token's word stands.
	Directory Directory
}

// Expected is what a token must say to be one of the act that came with it.
type Expected struct {
	Tenant, Address, FirstRunID string
	Act, Body, ID               string
	At                          time.Time // of the arrival
}

// Check is the person that a token speaks of, with the roles that are left to them.
// Its error says why it is not believed; CodeUnavailable, that this cannot be found
// out now.
func (t Trust) Check(ctx context.Context, text string, want Expected) (agent.Principal, error) {
	none := agent.Principal{}
	if t.Keys == nil || t.Issuer == "" || t.Audience == "" {
		return none, errors.New("this worker has no keys to check tokens with")
	}
	var c wire
	parsed, err := jwt.ParseWithClaims(text, &c, t.keyOf,
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithIssuer(t.Issuer), jwt.WithAudience(t.Audience),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(skew), jwt.WithTimeFunc(func() time.Time { return want.At }), jwt.WithStrictDecoding())
	if err != nil {
		return none, fmt.Errorf("the token is not believed: %w", err)
	}
	if _, critical := parsed.Header["crit"]; critical {
		return none, errors.New("the token demands what is not understood here (crit), and is not believed")
	}
	if c.IssuedAt != nil && c.ExpiresAt.Before(c.IssuedAt.Time) {
		return none, errors.New("the token ends before it was issued")
	}
	if c.IssuedAt == nil || c.ExpiresAt.Sub(c.IssuedAt.Time) > MaxAge {
		return none, fmt.Errorf("the token is good for longer than %s, which no token may be", MaxAge)
	}
	for _, p := range []struct{ name, is, want string }{
		{"tenant", c.Tenant, want.Tenant}, {"run", c.Address, want.Address}, {"chain", c.FirstRunID, want.FirstRunID},
		{"act", c.Act, want.Act}, {"body", c.Body, want.Body}, {"id", c.ID, want.ID},
	} {
		if p.is != p.want || p.want == "" {
			return none, fmt.Errorf("the token is of another %s than what it came with", p.name)
		}
	}
	if c.Subject == "" {
		return none, errors.New("the token names nobody")
	}
	who := agent.Principal{Subject: c.Subject, Roles: c.Roles, Tenant: c.Tenant, Auth: c.Issuer}
	if err := agent.CheckPrincipal(who); err != nil {
		return none, err
	}
	return t.standing(ctx, who)
}

func (t Trust) keyOf(parsed *jwt.Token) (any, error) {
	id, _ := parsed.Header["kid"].(string)
	if id == "" {
		return nil, errors.New("it does not name its key (kid)")
	}
	return t.Keys.Key(id)
}
