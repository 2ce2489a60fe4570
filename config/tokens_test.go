package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever signs or believes must say whose tokens are meant.
func TestTokensNameTheirIssuer(t *testing.T) {
	for _, env := range []string{"INTERLOCK_TOKENS_KEYS=/etc/keys", "INTERLOCK_TOKENS_JWKS=/etc/jwks.json", "INTERLOCK_TOKENS_SIGN_WITH=/etc/k.key.pem"} {
		_, err := Load(Source{Env: []string{env}})
		require.Contains(t, problemsOf(t, err), "tokens.issuer", env)
		cfg, err := Load(Source{Env: []string{env, "INTERLOCK_TOKENS_ISSUER=https://login.acme"}})
		require.NoError(t, err)
		require.Equal(t, "interlock", cfg.Tokens.Audience)
	}
}

func TestTokensHaveOneSourceOfKeys(t *testing.T) {
	const issuer = "INTERLOCK_TOKENS_ISSUER=https://login.acme"
	load := func(env ...string) error {
		_, err := Load(Source{Env: append(env, issuer)})
		return err
	}
	both := problemsOf(t, load("INTERLOCK_TOKENS_KEYS=/etc/keys", "INTERLOCK_TOKENS_JWKS=/etc/jwks.json"))
	require.Len(t, both, 1)
	require.Equal(t, "one source of keys: tokens.keys or tokens.jwks, not both", both["tokens.jwks"].Want)
	require.Equal(t, "environment INTERLOCK_TOKENS_JWKS", both["tokens.jwks"].Origin)
	for _, good := range []string{"jwks.json", "https://login.acme/jwks.json", "http://127.0.0.1:8080/jwks"} {
		require.NoError(t, load("INTERLOCK_TOKENS_JWKS="+good), good)
	}
	for _, bad := range []string{"http://login.acme/jwks", "ftp://login.acme/jwks", "https://u:" + hidden + "@login.acme/jwks"} {
		err := load("INTERLOCK_TOKENS_JWKS=" + bad)
		found := problemsOf(t, err)
		require.Len(t, found, 1, bad)
		require.Contains(t, found["tokens.jwks"].Want, "a URL of https", bad)
		require.NotContains(t, err.Error(), hidden)
	}
}
