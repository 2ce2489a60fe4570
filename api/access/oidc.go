package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/time/rate"

	"interlock/agent"
	"interlock/signals"
)

// algorithms are those whose signatures are believed: none that shares a secret.
var algorithms = []string{oidc.RS256, oidc.ES256, oidc.EdDSA}

// Provider names an OpenID Connect provider, and where in its tokens the tenant and
// the roles stand. A claim is named by its path, as realm_access.roles.
type Provider struct {
	Issuer   string // as its tokens say it; https, or http on this machine
	Audience string // that a token must be for
	// Subject is sub where empty. An email counts only where email_verified is true.
	Subject string
	Tenant  string // tenant where empty
	May     string // interlock_may where empty: starter, user, reviewer, operator
	Roles   string // interlock_roles where empty: of gates
}

// Check says what is wrong with it.
func (p Provider) Check() error {
	u, err := url.Parse(p.Issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return agent.Errorf(agent.CodeInvalid, "the issuer of OIDC tokens, %q, is no URL such as https://login.example.com", p.Issuer)
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return agent.Errorf(agent.CodeInvalid, "the issuer of OIDC tokens, %s, is not reached by https: whoever is between could sign anything", p.Issuer)
	case p.Audience == "":
		return agent.Errorf(agent.CodeInvalid, "OIDC tokens need an audience: without one, a token for any other service would be believed here")
	}
	return nil
}

// OIDC believes bearer tokens (JWTs) of one provider: signed by one of its keys by
// RS256, ES256 or EdDSA, for this audience, and not expired. The keys are fetched
// when a token names one that is not known, and kept.
type OIDC struct {
	provider Provider
	client   *http.Client
	log      *slog.Logger
	now      func() time.Time

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier
	failed   error
	retryAt  time.Time
}

// skew is how far the provider's clock may be ahead.
const skew = 30 * time.Second

// discoverAgain is how long after a failed discovery the next one is tried.
const discoverAgain = 5 * time.Second

// NewOIDC makes it. The provider is asked at the first token, and need not be
// reachable before.
func NewOIDC(p Provider, log *slog.Logger) (*OIDC, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	for _, claim := range []struct {
		field *string
		usual string
	}{{&p.Subject, "sub"}, {&p.Tenant, "tenant"}, {&p.May, "interlock_may"}, {&p.Roles, "interlock_roles"}} {
		if *claim.field == "" {
			*claim.field = claim.usual
		}
	}
	if log == nil {
		log = slog.Default()
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &throttle{rate.NewLimiter(rate.Every(fetchEvery), fetchBurst), http.DefaultTransport}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("a provider is not followed to another place")
	}}
	return &OIDC{provider: p, client: client, log: log, now: time.Now}, nil
}

// Authenticate implements [Authenticator].
func (o *OIDC) Authenticate(ctx context.Context, bearer string) (Caller, error) {
	if strings.Count(bearer, ".") != 2 {
		return Caller{}, ErrUnauthenticated
	}
	verifier, err := o.discovered()
	if err != nil {
		return Caller{}, agent.Errorf(agent.CodeUnavailable, "who sent this cannot be found out: the identity provider does not answer; try again")
	}
	token, err := verifier.Verify(ctx, bearer)
	if err != nil {
		return Caller{}, o.refused(err)
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return Caller{}, o.refused(err)
	}
	if token.IssuedAt.After(o.now().Add(skew)) || token.Expiry.Before(token.IssuedAt) {
		return Caller{}, o.refused(errors.New("it was issued in the future, or ends before it was issued"))
	}
	c, err := o.provider.caller(claims)
	if err != nil {
		return Caller{}, o.refused(err)
	}
	return c, nil
}

// refused tells the log why, and the sender nothing. Keys that cannot be fetched are
// no fault of the sender's.
func (o *OIDC) refused(err error) error {
	text := err.Error() // the library wraps no error
	if strings.Contains(text, "fetching keys") && !strings.Contains(text, errThrottled.Error()) {
		o.log.Error("the keys of the identity provider cannot be fetched", "issuer", o.provider.Issuer, "error", err)
		return agent.Errorf(agent.CodeUnavailable, "who sent this cannot be found out: the keys of the identity provider cannot be fetched; try again")
	}
	o.log.Info("a bearer token is not believed", "issuer", o.provider.Issuer, "reason", err)
	return ErrUnauthenticated
}

// discovered is the verifier, once the provider has been found.
func (o *OIDC) discovered() (*oidc.IDTokenVerifier, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.verifier != nil:
		return o.verifier, nil
	case o.now().Before(o.retryAt):
		return nil, o.failed
	}
	// Not the request's context: the keys are fetched by it as long as the process runs.
	found, err := oidc.NewProvider(oidc.ClientContext(context.Background(), o.client), o.provider.Issuer)
	if err != nil {
		o.failed, o.retryAt = err, o.now().Add(discoverAgain)
		o.log.Error("the identity provider cannot be discovered", "issuer", o.provider.Issuer, "error", err)
		return nil, err
	}
	o.verifier = found.Verifier(&oidc.Config{ClientID: o.provider.Audience, SupportedSigningAlgs: algorithms, Now: o.now})
	return o.verifier, nil
}

// caller is whom claims speak of.
func (p Provider) caller(claims map[string]any) (Caller, error) {
	subject, _ := at(claims, p.Subject).(string)
	tenant, _ := at(claims, p.Tenant).(string)
	if verified, _ := claims["email_verified"].(bool); p.Subject == "email" && !verified {
		return Caller{}, errors.New("its email is not verified")
	}
	may, err := words(at(claims, p.May))
	if err != nil {
		return Caller{}, fmt.Errorf("claim %s: %w", p.May, err)
	}
	roles, err := words(at(claims, p.Roles))
	if err != nil {
		return Caller{}, fmt.Errorf("claim %s: %w", p.Roles, err)
	}
	c := Caller{Subject: subject, Tenant: tenant, Roles: roles, Auth: p.Issuer}
	for _, m := range may { // what else a provider grants is none of ours
		if r := Role(m); slices.Contains(Roles, r) {
			c.May = append(c.May, r)
		}
	}
	if subject == "" {
		return Caller{}, fmt.Errorf("claim %s names nobody", p.Subject)
	}
	if err := agent.CheckPrincipal(c.Principal()); err != nil {
		return Caller{}, err
	}
	if err := signals.CheckAddress(tenant, "agent", "key"); err != nil {
		return Caller{}, fmt.Errorf("claim %s names no tenant: %w", p.Tenant, err)
	}
	return c, nil
}

// at is the claim at a path. A claim whose own name has dots comes first.
func at(claims map[string]any, path string) any {
	if v, ok := claims[path]; ok {
		return v
	}
	head, rest, nested := strings.Cut(path, ".")
	inner, ok := claims[head].(map[string]any)
	if !nested || !ok {
		return nil
	}
	return at(inner, rest)
}

// words are those of a list, or of a text in which spaces separate them.
func words(claim any) ([]string, error) {
	switch v := claim.(type) {
	case nil:
		return nil, nil
	case string:
		return strings.Fields(v), nil
	case []any:
		var out []string
		for _, x := range v {
			s, ok := x.(string)
			if !ok {
				return nil, errors.New("it is a list of something else than texts")
			}
			out = append(out, s)
		}
		return out, nil
	}
	return nil, errors.New("it is neither a list of texts nor a text")
}

// A token that names a key nobody knows makes the keys be fetched. Whoever sends
// many of those must not reach the provider with each.
const (
	fetchEvery = 10 * time.Second
	fetchBurst = 5
)

var errThrottled = errors.New("the keys were fetched a moment ago")

type throttle struct {
	limit *rate.Limiter
	to    http.RoundTripper
}

func (t *throttle) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.limit.Allow() {
		return nil, errThrottled
	}
	return t.to.RoundTrip(r)
}

func loopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// Either takes access tokens of the file, which begin with [Prefix], to one
// authenticator, and all others to the other.
type Either struct {
	Static Authenticator // nil: no access token is known
	OIDC   Authenticator
}

// Authenticate implements [Authenticator].
func (e Either) Authenticate(ctx context.Context, bearer string) (Caller, error) {
	if strings.HasPrefix(bearer, Prefix) {
		if e.Static == nil {
			return Caller{}, ErrUnauthenticated
		}
		return e.Static.Authenticate(ctx, bearer)
	}
	return e.OIDC.Authenticate(ctx, bearer)
}

// NoCredentials are those of a server that has no access tokens: nobody begins a
// session, and whoever proxies for browsers adds their bearer tokens.
type NoCredentials struct{}

// Named implements [Credentials].
func (NoCredentials) Named(context.Context, string) (Caller, error) {
	return Caller{}, ErrUnauthenticated
}
