package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever signs or believes must say whose tokens are meant.
func TestTokensNameTheirIssuer(t *testing.T) {
	for _, env := range []string{"INTERLOCK_TOKENS_KEYS=/etc/keys", "INTERLOCK_TOKENS_SIGN_WITH=/etc/k.key.pem"} {
		_, err := Load(Source{Env: []string{env}})
		require.Contains(t, problemsOf(t, err), "tokens.issuer", env)
		cfg, err := Load(Source{Env: []string{env, "INTERLOCK_TOKENS_ISSUER=https://login.acme"}})
		require.NoError(t, err)
		require.Equal(t, "interlock", cfg.Tokens.Audience)
	}
}
