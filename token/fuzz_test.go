package token_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/token"
)

// Whatever comes as a token, nobody is believed but by the signature of a key.
func FuzzCheck(f *testing.F) {
	private, public := f.TempDir(), f.TempDir()
	require.NoError(f, token.Generate(private, public, "k1"))
	signer, err := token.OpenSigner(private + "/k1.key.pem")
	require.NoError(f, err)
	files, err := token.OpenFiles(public)
	require.NoError(f, err)
	good, err := signer.Sign(claims())
	require.NoError(f, err)
	trust := token.Trust{Issuer: "https://login.acme", Audience: "interlock", Keys: files}
	who, err := trust.Check(f.Context(), good, expected())
	require.NoError(f, err)
	require.Equal(f, "ann", who.Subject)
	for _, seed := range []string{good, "", "a.b.c", good[:len(good)/2], good + good, "eyJhbGciOiJub25lIn0.e30."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		who, err := trust.Check(t.Context(), text, expected())
		if text == good {
			return
		}
		require.Error(t, err)
		require.Zero(t, who)
	})
}
