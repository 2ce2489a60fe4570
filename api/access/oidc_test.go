package access_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api/access"
)

// idp is an identity provider on this machine.
type idp struct {
	t     *testing.T
	url   string
	keys  map[string]crypto.Signer
	asked atomic.Int32
	down  atomic.Bool
	serve *oidctest.Server
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	one, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	two, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p := &idp{t: t, keys: map[string]crypto.Signer{"one": one, "two": two}}
	p.serve = &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: one.Public(), KeyID: "one", Algorithm: oidc.RS256}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if p.down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		p.serve.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	p.serve.SetIssuer(server.URL)
	return p
}

func (p *idp) claims() map[string]any {
	return map[string]any{"iss": p.url, "aud": "interlock", "sub": "u-1", "exp": time.Now().Add(time.Hour).Unix(), "tenant": "acme",
		"interlock_may": []string{"reviewer"}, "interlock_roles": []string{"refunds"}}
}

func (p *idp) sign(key, alg string, claims map[string]any) string {
	p.t.Helper()
	body, err := json.Marshal(claims)
	require.NoError(p.t, err)
	return oidctest.SignIDToken(p.keys[key], key, alg, string(body))
}

func (p *idp) authenticator(change func(*access.Provider)) *access.OIDC {
	p.t.Helper()
	to := access.Provider{Issuer: p.url, Audience: "interlock"}
	if change != nil {
		change(&to)
	}
	o, err := access.NewOIDC(to, slog.New(slog.DiscardHandler))
	require.NoError(p.t, err)
	return o
}

func TestOIDC_Callers(t *testing.T) {
	p := newIDP(t)
	for name, c := range map[string]struct {
		to     func(*access.Provider)
		claims map[string]any
		want   access.Caller
	}{
		"as they come": {nil, nil, access.Caller{Subject: "u-1", Tenant: "acme", May: []access.Role{access.Reviewer}, Roles: []string{"refunds"}, Auth: p.url}},
		"texts, and what is not ours": {nil, map[string]any{"interlock_may": "operator offline_access user", "interlock_roles": "refunds chief"},
			access.Caller{Subject: "u-1", Tenant: "acme", May: []access.Role{access.Operator, access.User}, Roles: []string{"refunds", "chief"}, Auth: p.url}},
		"no roles": {nil, map[string]any{"interlock_may": nil, "interlock_roles": nil}, access.Caller{Subject: "u-1", Tenant: "acme", Auth: p.url}},
		"other claims, by path": {func(to *access.Provider) {
			to.Subject, to.Tenant, to.May, to.Roles = "email", "org.id", "realm_access.roles", "https://acme.test/roles"
		}, map[string]any{"email": "ann@acme.test", "email_verified": true, "org": map[string]any{"id": "globex"}, "realm_access": map[string]any{"roles": []string{"starter"}},
			"https://acme.test/roles": []string{"x"}},
			access.Caller{Subject: "ann@acme.test", Tenant: "globex", May: []access.Role{access.Starter}, Roles: []string{"x"}, Auth: p.url}},
	} {
		claims := p.claims()
		maps.Copy(claims, c.claims)
		got, err := p.authenticator(c.to).Authenticate(t.Context(), p.sign("one", oidc.RS256, claims))
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestOIDC_NotBelieved(t *testing.T) {
	p := newIDP(t)
	for name, change := range map[string]map[string]any{
		"another audience":     {"aud": "other"},
		"another issuer":       {"iss": "https://evil.test"},
		"expired":              {"exp": time.Now().Add(-time.Second).Unix()},
		"never expires":        {"exp": nil},
		"not yet":              {"nbf": time.Now().Add(time.Hour).Unix()},
		"nobody":               {"sub": ""},
		"no tenant":            {"tenant": nil},
		"a tenant that is two": {"tenant": "acme/refund"},
		"a list as a tenant":   {"tenant": []string{"acme"}},
		"roles of numbers":     {"interlock_roles": []int{1}},
		"roles as an object":   {"interlock_may": map[string]any{"operator": true}},
		"of the future":        {"iat": time.Now().Add(time.Minute).Unix()},
		"ended before it was":  {"iat": time.Now().Add(25 * time.Second).Unix(), "exp": time.Now().Add(20 * time.Second).Unix()},
		"a hidden character":   {"sub": "u-1\u202e"},
		"spaces around it":     {"sub": " u-1 "},
		"a role in disguise":   {"interlock_roles": []string{"refunds\u200b"}},
	} {
		claims := p.claims()
		maps.Copy(claims, change)
		_, err := p.authenticator(nil).Authenticate(t.Context(), p.sign("one", oidc.RS256, claims))
		require.Equal(t, access.ErrUnauthenticated, err, name)
	}
	email := p.claims()
	email["email"] = "ann@acme.test"
	_, err := p.authenticator(func(to *access.Provider) { to.Subject = "email" }).Authenticate(t.Context(), p.sign("one", oidc.RS256, email))
	require.Equal(t, access.ErrUnauthenticated, err, "an email that is not verified")
	good := p.sign("one", oidc.RS256, p.claims())
	for name, bearer := range map[string]string{
		"empty": "", "no token": "a.b.c", "not signed": good[:len(good)-300], "by RS384": p.sign("one", oidc.RS384, p.claims()),
		"algorithm none": "eyJhbGciOiJub25lIn0.e30.", "an access token": "ilk_x",
	} {
		_, err := p.authenticator(nil).Authenticate(t.Context(), bearer)
		require.Equal(t, access.ErrUnauthenticated, err, name)
	}
}

// A new key is fetched when a token names it; who names keys that are none does not
// make the provider be asked each time, nor keeps out whoever is known.
func TestOIDC_Keys(t *testing.T) {
	p := newIDP(t)
	o := p.authenticator(nil)
	good := p.sign("one", oidc.RS256, p.claims())
	_, err := o.Authenticate(t.Context(), good)
	require.NoError(t, err)
	p.serve.PublicKeys = append(p.serve.PublicKeys, oidctest.PublicKey{PublicKey: p.keys["two"].Public(), KeyID: "two", Algorithm: oidc.ES256})
	_, err = o.Authenticate(t.Context(), p.sign("two", oidc.ES256, p.claims()))
	require.NoError(t, err)

	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	p.keys["stranger"] = stranger
	before := p.asked.Load()
	for range 100 {
		_, err := o.Authenticate(t.Context(), p.sign("stranger", oidc.RS256, p.claims()))
		require.Equal(t, access.ErrUnauthenticated, err)
	}
	require.LessOrEqual(t, p.asked.Load()-before, int32(5))
	_, err = o.Authenticate(t.Context(), good)
	require.NoError(t, err)
}

// A provider that does not answer makes nobody wrong: it is said that nobody can be
// recognised just now, and the next token is tried again.
func TestOIDC_ProviderDown(t *testing.T) {
	p := newIDP(t)
	p.down.Store(true)
	o := p.authenticator(nil)
	now := time.Now()
	access.SetNow(o, func() time.Time { return now })
	good := p.sign("one", oidc.RS256, p.claims())
	for range 3 {
		_, err := o.Authenticate(t.Context(), good)
		require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	}
	require.EqualValues(t, 1, p.asked.Load(), "not asked with each request")
	p.down.Store(false)
	now = now.Add(6 * time.Second)
	_, err := o.Authenticate(t.Context(), good)
	require.NoError(t, err)

	other := p.authenticator(nil)
	_, err = other.Authenticate(t.Context(), "a.b.c")
	require.Equal(t, access.ErrUnauthenticated, err)
	p.down.Store(true)
	_, err = other.Authenticate(t.Context(), good)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "discovered, and the keys cannot be fetched: %v", err)
}

func TestProvider_Check(t *testing.T) {
	for issuer, says := range map[string]string{
		"": "is no URL", "login": "is no URL", "https://u:p@login.test": "is no URL", "https://login.test?x=1": "is no URL", "http://login.test": "is not reached by https",
		"ftp://login.test": "is not reached by https",
	} {
		_, err := access.NewOIDC(access.Provider{Issuer: issuer, Audience: "a"}, nil)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), issuer)
		require.ErrorContains(t, err, says)
	}
	_, err := access.NewOIDC(access.Provider{Issuer: "https://login.test"}, nil)
	require.ErrorContains(t, err, "need an audience")
}

// named recognises everybody, and says by whom.
type named string

func (n named) Authenticate(context.Context, string) (access.Caller, error) {
	return access.Caller{Subject: string(n)}, nil
}

func TestEither(t *testing.T) {
	e := access.Either{Static: named("file"), OIDC: named("provider")}
	for bearer, want := range map[string]string{"ilk_x": "file", "a.b.c": "provider", "": "provider"} {
		c, err := e.Authenticate(t.Context(), bearer)
		require.NoError(t, err)
		require.Equal(t, want, c.Subject)
	}
	_, err := access.Either{OIDC: named("provider")}.Authenticate(t.Context(), "ilk_x")
	require.Equal(t, access.ErrUnauthenticated, err)
}
