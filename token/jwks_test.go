package token_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/token"
)

// jwk is a public key of a set, with other members than usual where changes say so.
func jwk(t *testing.T, key any, kid string, changes ...func(*jose.JSONWebKey)) string {
	t.Helper()
	k := jose.JSONWebKey{Key: key, KeyID: kid, Use: "sig", Algorithm: "EdDSA"}
	for _, change := range changes {
		change(&k)
	}
	text, err := k.MarshalJSON()
	require.NoError(t, err)
	return string(text)
}

func jwks(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

// newKey is a key of the id in a set, and who signs with it.
func newKey(t *testing.T, id string) (string, *token.Signer) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	signer, err := token.NewSigner(id, private)
	require.NoError(t, err)
	return jwk(t, public, id), signer
}

func rsaKey(t *testing.T, kid string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return jwk(t, &key.PublicKey, kid, func(k *jose.JSONWebKey) { k.Algorithm = "RS256" })
}

func checked(t *testing.T, keys token.Keys, by *token.Signer) error {
	t.Helper()
	text, err := by.Sign(claims())
	require.NoError(t, err)
	_, err = token.Trust{Issuer: "https://login.acme", Audience: "interlock", Keys: keys}.Check(t.Context(), text, expected())
	return err
}

// provider answers without a network, so that the clock of a test can stand still
// meanwhile.
type provider struct {
	mu    sync.Mutex
	serve http.HandlerFunc
	fails error
	calls []time.Time
}

func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.calls = append(p.calls, time.Now())
	serve, fails := p.serve, p.fails
	p.mu.Unlock()
	if fails != nil {
		return nil, fails
	}
	w := httptest.NewRecorder()
	serve(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func (p *provider) answer(serve http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serve, p.fails = serve, nil
}

func (p *provider) fail(err error) { p.mu.Lock(); defer p.mu.Unlock(); p.fails = err }

// count waits until nothing is under way.
func (p *provider) count() int {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// at is when the server was asked for the i-th time.
func (p *provider) at(i int) time.Time { p.mu.Lock(); defer p.mu.Unlock(); return p.calls[i] }

// until lets time go by until the server has been asked so often.
func (p *provider) until(calls int) {
	for p.count() < calls {
		time.Sleep(time.Second)
	}
}

// safe is a buffer that may be read while it is written.
type safe struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *safe) Write(p []byte) (int, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.b.Write(p) }
func (s *safe) String() string              { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

func serving(set string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, h := range header {
			w.Header().Add("Cache-Control", h)
		}
		_, _ = io.WriteString(w, set)
	}
}

const setURL = "https://login.acme/jwks.json"

// inBubble opens the provider's set, under a clock that only the test moves. What
// is still running in the end fails the test.
func inBubble(t *testing.T, p *provider, test func(t *testing.T, set *token.JWKS, log *safe)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log safe
		set, err := token.OpenJWKS(t.Context(), setURL, &token.JWKSOptions{Transport: p, Log: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		defer func() { require.NoError(t, set.Close()) }()
		test(t, set, &log)
	})
}

func TestJWKS_Rotation(t *testing.T) {
	one, old := newKey(t, "k1")
	two, next := newKey(t, "k2")
	p := &provider{serve: serving(jwks(one))}
	inBubble(t, p, func(t *testing.T, set *token.JWKS, _ *safe) {
		require.NoError(t, checked(t, set, old))
		p.answer(serving(jwks(one, two)))
		p.until(2)
		require.NoError(t, checked(t, set, next))
		require.NoError(t, checked(t, set, old))
		p.answer(serving(jwks(two)))
		p.until(3)
		require.NoError(t, checked(t, set, next))
		require.ErrorContains(t, checked(t, set, old), `there is no key "k1"`)
	})
}

// Who takes all keys away is obeyed; only who says nothing is not.
func TestJWKS_AllTakenAway(t *testing.T) {
	one, signer := newKey(t, "k1")
	for name, left := range map[string]string{"none": jwks(), "others": jwks(rsaKey(t, "k1"))} {
		p := &provider{serve: serving(jwks(one))}
		inBubble(t, p, func(t *testing.T, set *token.JWKS, log *safe) {
			p.answer(serving(left))
			p.until(2)
			require.ErrorContains(t, checked(t, set, signer), `there is no key "k1"`, name)
			require.Contains(t, log.String(), "no token is believed any more", name)
		})
	}
}

// Whatever is wrong with the server: the last good set counts, it is told, and the
// server is asked again, ever less often.
func TestJWKS_ServerFails(t *testing.T) {
	one, signer := newKey(t, "k1")
	for name, broken := range map[string]struct {
		serve http.HandlerFunc
		says  string
	}{
		"down":      {nil, "connection refused"},
		"an error":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "502"},
		"redirect":  {http.RedirectHandler("https://evil/jwks.json", http.StatusFound).ServeHTTP, "redirects are not followed"},
		"garbage":   {serving("<html>"), "no JSON Web Key Set"},
		"no set":    {serving("{}"), "no JSON Web Key Set"},
		"two sets":  {serving(jwks(one) + jwks(one)), "no JSON Web Key Set"},
		"huge":      {serving(jwks(one) + strings.Repeat(" ", 256<<10)), "larger than 256 KiB"},
		"twice":     {serving(jwks(one, one)), "two keys of the id"},
		"a bad key": {serving(jwks(one, `{"kty":"OKP","crv":"Ed25519","kid":"k2","x":"AAAA"}`)), "key 2 of the set"},
		"slow":      {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
	} {
		p := &provider{serve: serving(jwks(one))}
		inBubble(t, p, func(t *testing.T, set *token.JWKS, log *safe) {
			p.answer(broken.serve)
			if broken.serve == nil {
				p.fail(errors.New("connection refused"))
			}
			p.until(9)
			synctest.Wait()
			time.Sleep(5 * time.Second) // where it is slow
			require.Contains(t, log.String(), broken.says, name)
			require.NoError(t, checked(t, set, signer), name)
			for i, most := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
				wait := p.at(i + 2).Sub(p.at(i + 1))
				require.GreaterOrEqual(t, wait, most*9/10, "%s: retry %d", name, i+1)
				require.LessOrEqual(t, wait, most+5*time.Second, "%s: retry %d", name, i+1)
			}

			two, next := newKey(t, "k2")
			p.answer(serving(jwks(two)))
			p.until(10)
			require.NoError(t, checked(t, set, next), name)
			require.ErrorContains(t, checked(t, set, signer), `there is no key "k1"`, name)
		})
	}
}

// How long a set is used is the server's to say, within an hour and a minute.
func TestJWKS_CacheControl(t *testing.T) {
	one, _ := newKey(t, "k1")
	for _, c := range []struct {
		header      []string
		least, most time.Duration
	}{
		{nil, 4*time.Minute + 30*time.Second, 5 * time.Minute},
		{[]string{"no-store"}, 4*time.Minute + 30*time.Second, 5 * time.Minute},
		{[]string{"max-age=x"}, 4*time.Minute + 30*time.Second, 5 * time.Minute},
		{[]string{"max-age=-1"}, 4*time.Minute + 30*time.Second, 5 * time.Minute},
		{[]string{"s-maxage=7"}, 4*time.Minute + 30*time.Second, 5 * time.Minute},
		{[]string{"public", "Max-Age=1200, must-revalidate"}, 18 * time.Minute, 20 * time.Minute},
		{[]string{`max-age="600"`}, 9 * time.Minute, 10 * time.Minute},
		{[]string{"max-age=0"}, time.Minute, time.Minute},
		{[]string{"max-age=1"}, time.Minute, time.Minute},
		{[]string{"max-age=4000000000"}, 54 * time.Minute, time.Hour},
	} {
		p := &provider{serve: serving(jwks(one), c.header...)}
		inBubble(t, p, func(t *testing.T, _ *token.JWKS, _ *safe) {
			time.Sleep(10 * time.Hour)
			calls := p.count()
			require.Greater(t, calls, 10)
			for i := 1; i < calls; i++ {
				wait := p.at(i).Sub(p.at(i - 1))
				require.GreaterOrEqual(t, wait, c.least, "%v", c.header)
				require.LessOrEqual(t, wait, c.most, "%v", c.header)
			}
		})
	}
}

// An unknown key is refused at once and asks for the set, but not as often as
// somebody likes; the check itself never waits for the server.
func TestJWKS_UnknownKey(t *testing.T) {
	one, _ := newKey(t, "k1")
	two, next := newKey(t, "k2")
	_, stranger := newKey(t, "k3")
	p := &provider{serve: serving(jwks(one))}
	inBubble(t, p, func(t *testing.T, set *token.JWKS, _ *safe) {
		time.Sleep(2 * time.Minute)
		p.answer(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(3 * time.Second)
			serving(jwks(one, two))(w, r)
		})
		began := time.Now()
		require.ErrorContains(t, checked(t, set, next), "it is fetched anew now")
		for range 100 {
			require.ErrorContains(t, checked(t, set, stranger), "less than a minute ago")
		}
		require.Zero(t, time.Since(began), "no check waits")
		time.Sleep(4 * time.Second)
		require.Equal(t, 2, p.count(), "exactly one refresh")
		require.NoError(t, checked(t, set, next))

		// The clock of the refresh begins anew: the next one is minutes away.
		time.Sleep(55 * time.Second)
		require.ErrorContains(t, checked(t, set, stranger), "less than a minute ago")
		require.Equal(t, 2, p.count())
		time.Sleep(2 * time.Second)
		require.ErrorContains(t, checked(t, set, stranger), "it is fetched anew now")
		time.Sleep(4 * time.Second)
		require.Equal(t, 3, p.count())

		_, err := set.Key("no\nid")
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err))
		time.Sleep(2 * time.Minute)
		require.Equal(t, 3, p.count(), "what is no id asks for nothing")
	})
}

// Close ends a fetch that is under way; the keys stay for whoever still checks.
func TestJWKS_Close(t *testing.T) {
	one, signer := newKey(t, "k1")
	p := &provider{serve: serving(jwks(one))}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		set, err := token.OpenJWKS(ctx, setURL, &token.JWKSOptions{Transport: p, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		cancel() // is of the first fetch only
		p.until(2)
		p.answer(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		p.until(3)
		began := time.Now()
		require.NoError(t, set.Close())
		require.NoError(t, set.Close(), "twice is once")
		require.Zero(t, time.Since(began))
		time.Sleep(time.Hour)
		require.Equal(t, 3, p.count())
		require.NoError(t, checked(t, set, signer))
	})
}

// Nothing is opened that nothing could be believed by; what cannot be reached now
// may be later.
func TestJWKS_Opened(t *testing.T) {
	one, signer := newKey(t, "k1")
	var serve http.HandlerFunc
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r) }))
	t.Cleanup(server.Close)
	open := func(url string) (*token.JWKS, error) { return token.OpenJWKS(t.Context(), url, nil) }

	serve = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusMovedPermanently)
			return
		}
		serving(jwks(one))(w, r)
	}
	set, err := open(server.URL)
	require.NoError(t, err)
	require.NoError(t, checked(t, set, signer))
	require.NoError(t, set.Close())
	_, err = open(server.URL + "/moved")
	require.ErrorContains(t, err, "redirects are not followed")
	for says, body := range map[string]string{"no JSON": "garbage", "holds no key that is believed": jwks(rsaKey(t, "k1")), "two keys of the id": jwks(one, one),
		"larger than 256 KiB": jwks(one) + strings.Repeat(" ", 256<<10)} {
		serve = serving(body)
		_, err := open(server.URL)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, server.URL)
	}
	server.Close()
	_, err = open(server.URL)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err))

	secure := httptest.NewUnstartedServer(serving(jwks(one)))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	_, err = open(secure.URL)
	require.ErrorContains(t, err, "certificate", "of an authority that nobody knows")
	set, err = token.OpenJWKS(t.Context(), secure.URL, &token.JWKSOptions{Transport: secure.Client().Transport})
	require.NoError(t, err)
	require.NoError(t, checked(t, set, signer))
	require.NoError(t, set.Close())

	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		slow := &provider{serve: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
		_, err := token.OpenJWKS(t.Context(), setURL, &token.JWKSOptions{Transport: slow})
		require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err))
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

// Many check while the set is fetched (for the race detector).
func TestJWKS_AtTheSameTime(t *testing.T) {
	one, signer := newKey(t, "k1")
	p := &provider{serve: serving(jwks(one), "max-age=60")}
	inBubble(t, p, func(t *testing.T, set *token.JWKS, _ *safe) {
		var checks sync.WaitGroup
		for i := range 8 {
			checks.Go(func() {
				for n := range 50 {
					time.Sleep(time.Duration(i+1) * time.Second)
					if err := checked(t, set, signer); err != nil {
						t.Error(err)
					}
					_, _ = set.Key(fmt.Sprint(n))
				}
			})
		}
		checks.Wait()
	})
}
