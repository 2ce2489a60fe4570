package worker_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/config"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/localtemporal"
	"interlock/signals"
	"interlock/starter"
	"interlock/token"
	"interlock/worker"
)

const issuer = "https://login.test"

// provided serves the public key of a signer as a key set.
func provided(t *testing.T) (url string, signer *token.Signer) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	signer, err = token.NewSigner("k1", private)
	require.NoError(t, err)
	key, err := jose.JSONWebKey{Key: public, KeyID: "k1"}.MarshalJSON()
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"keys":[`+string(key)+`]}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, signer
}

// refreshing reports that a key set is kept up to date in this process.
func refreshing() bool {
	stacks := make([]byte, 4<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "token.(*fetched).run")
}

// trusting is what a worker of this package's tests is made of, on a server of its
// own.
func trusting(t *testing.T) (*localtemporal.Server, worker.Config) {
	t.Helper()
	server, err := localtemporal.Start(t.Context(), localtemporal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	cfg := migrated(t)
	cfg.ShutdownTimeout = time.Second
	st, err := worker.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	return server, worker.Config{Settings: cfg, Client: server.Client(), Store: st, Model: refund.Model(), Log: slog.New(slog.DiscardHandler)}
}

// A worker believes by the key set that its settings name, but for what was revoked,
// and lets go of the set when it stops.
func TestTrust_KeySetAndRevocations(t *testing.T) {
	server, c := trusting(t)
	url, signer := provided(t)
	c.Settings.Tokens = config.Tokens{Issuer: issuer, Audience: "interlock", JWKS: url, Revoked: filepath.Join(t.TempDir(), "revoked")}
	require.NoError(t, os.WriteFile(c.Settings.Tokens.Revoked, nil, 0o644))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- worker.Serve(ctx, c, refund.Agent(&shop.Shop{}, mail.Client{})) }()

	ann := agent.Principal{Subject: "ann", Roles: []string{"support"}}
	runs := starter.New(server.Client(), starter.WithSigner(signer, issuer, "interlock"))
	run, err := runs.Start(t.Context(), starter.Start{Agent: "refund", Tenant: "acme", Key: "k", Principal: ann, Body: refund.Start{CustomerID: "c-017"}})
	require.NoError(t, err)
	_, err = runs.Pause(t.Context(), run.Address, signals.Pause{ID: "p", Principal: ann, Reason: "look"})
	require.NoError(t, err)
	_, stranger := provided(t)
	_, err = starter.New(server.Client(), starter.WithSigner(stranger, issuer, "interlock")).Resume(t.Context(), run.Address, signals.Resume{ID: "r", Principal: ann})
	require.Equal(t, agent.CodeDenied, agent.ErrorCode(err), "%v", err)

	added, err := token.Revoke(t.Context(), c.Settings.Tokens.Revoked, token.Revocation{Tenant: "acme", Subject: "ben"})
	require.NoError(t, err)
	require.True(t, added)
	ben := agent.Principal{Subject: "ben", Roles: []string{"support"}}
	n := 0
	require.Eventually(t, func() bool { // the worker reads it anew within 5 seconds
		n++
		_, err = runs.Pause(t.Context(), run.Address, signals.Pause{ID: fmt.Sprintf("ben-%d", n), Principal: ben, Reason: "look"})
		return err != nil && strings.Contains(err.Error(), "the access of ben was revoked")
	}, wait, 100*time.Millisecond, "%v", err)
	_, err = runs.Resume(t.Context(), run.Address, signals.Resume{ID: "ann", Principal: ann})
	require.NoError(t, err)

	require.True(t, refreshing())
	cancel()
	require.NoError(t, <-done)
	require.Eventually(t, func() bool { return !refreshing() }, wait, 10*time.Millisecond)
}

// What cannot start leaves nothing behind.
func TestTrust_NotStarted(t *testing.T) {
	_, c := trusting(t)
	url, _ := provided(t)
	c.Settings.Tokens = config.Tokens{Issuer: issuer, Audience: "interlock", JWKS: url}
	require.NoError(t, c.Store.Close())
	require.Error(t, worker.Serve(t.Context(), c, refund.Agent(&shop.Shop{}, mail.Client{})))
	require.Eventually(t, func() bool { return !refreshing() }, wait, 10*time.Millisecond)

	c.Settings.Tokens.Revoked = filepath.Join(t.TempDir(), "revoked")
	_, err := worker.New(c, refund.Agent(&shop.Shop{}, mail.Client{}))
	require.ErrorContains(t, err, "there is no file of revocations")
	require.Eventually(t, func() bool { return !refreshing() }, wait, 10*time.Millisecond)

	_, err = worker.New(worker.Config{Trust: token.Trust{Directory: &token.Revocations{}}, Settings: c.Settings}, refund.Agent(&shop.Shop{}, mail.Client{}))
	require.ErrorContains(t, err, "Trust has a Directory and no Keys")

	for name, tokens := range map[string]config.Tokens{
		"no set":    {JWKS: filepath.Join(t.TempDir(), "jwks.json")},
		"no server": {JWKS: "http://127.0.0.1:1/jwks.json"},
		"no folder": {Keys: filepath.Join(t.TempDir(), "keys")},
	} {
		c.Settings.Tokens, c.Settings.Tokens.Issuer, c.Settings.Tokens.Audience = tokens, issuer, "interlock"
		_, err := worker.New(c, refund.Agent(&shop.Shop{}, mail.Client{}))
		require.ErrorContains(t, err, "key", name)
	}
}

const wait = 20 * time.Second
