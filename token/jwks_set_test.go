package token_test

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/token"
)

func TestCheckJWKS(t *testing.T) {
	for _, good := range []string{"jwks.json", "/etc/keys/set", "https://login.acme/jwks?tenant=a", "http://127.0.0.1:8080/jwks", "http://[::1]/jwks", "http://localhost/jwks"} {
		require.NoError(t, token.CheckJWKS(good), good)
	}
	for _, bad := range []string{"", "a\x00b", "https://", "http://login.acme/jwks", "http://localhost.evil/jwks", "http://127.0.0.1.evil/jwks", "ftp://h/x", "file:///etc/keys",
		"https://u:p@login.acme/jwks", "https://login.acme/jwks#a", "https://%zz/"} {
		err := token.CheckJWKS(bad)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), bad)
		_, again := token.OpenJWKS(t.Context(), bad, nil)
		require.Equal(t, err, again, bad)
		require.NotContains(t, err.Error(), "u:p")
	}
}

// Which keys of a set are believed.
func TestJWKS_WhichKeys(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	good, _ := newKey(t, "good")
	with := func(kid string, changes ...func(*jose.JSONWebKey)) string { return jwk(t, public, kid, changes...) }
	open := func(t *testing.T, set string) (*token.JWKS, error) {
		path := filepath.Join(t.TempDir(), "jwks.json")
		require.NoError(t, os.WriteFile(path, []byte(set), 0o600))
		return token.OpenJWKS(t.Context(), path, nil)
	}
	none := func(k *jose.JSONWebKey) { k.Use, k.Algorithm = "", "" }
	for kid, key := range map[string]string{"a": with("a"), "no use, no algorithm": with("no use, no algorithm", none),
		"https://login.acme/ß#1": with("https://login.acme/ß#1"), "../k": with("../k"), strings.Repeat("k", 200): with(strings.Repeat("k", 200))} {
		set, err := open(t, jwks(good, key))
		require.NoError(t, err, kid)
		got, err := set.Key(kid)
		require.NoError(t, err, kid)
		require.Equal(t, public, got, kid)
	}
	for name, key := range map[string]string{
		"rsa": rsaKey(t, "k"), "to encrypt with": with("k", func(k *jose.JSONWebKey) { k.Use = "enc" }),
		"another algorithm": with("k", func(k *jose.JSONWebKey) { k.Algorithm = "HS256" }),
		"private":           jwk(t, private, "k"),
		"a secret":          `{"kty":"oct","kid":"k","k":"AAAA"}`,
		"another curve":     `{"kty":"OKP","crv":"X25519","kid":"k","x":"AAAA"}`,
		"a type to come":    `{"kty":"AKP","alg":"ML-DSA-44","kid":"k","pub":"AAAA"}`,
		"a broken RSA key":  `{"kty":"RSA","kid":"k","n":5}`,
		"no id":             with(""), "a long id": with(strings.Repeat("k", 201)), "a line in the id": with("k\nk"),
	} {
		set, err := open(t, jwks(key, good))
		require.NoError(t, err, name)
		for _, kid := range []string{"k", "", strings.Repeat("k", 201), "k\nk"} {
			_, err := set.Key(kid)
			require.Error(t, err, name)
		}
		_, err = set.Key("good")
		require.NoError(t, err, name)
		_, err = open(t, jwks(key))
		require.ErrorContains(t, err, "holds no key that is believed", name)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), name)
	}
	// Of two keys of one id, one that is not believed is not meant.
	set, err := open(t, jwks(rsaKey(t, "a"), with("a")))
	require.NoError(t, err)
	got, err := set.Key("a")
	require.NoError(t, err)
	require.Equal(t, public, got)
	for says, text := range map[string]string{"two keys of the id": jwks(with("a"), good, with("a")), "key 1 of the set": jwks(`5`, good),
		"key 2 of the set": jwks(good, `{"kty":"OKP","crv":"Ed25519","kid":"k"}`), "no JSON Web Key Set": `[]`, `no member "keys"`: `{"keys":null}`, "believed": `{"keys":[]}`} {
		_, err := open(t, text)
		require.ErrorContains(t, err, says)
	}
}

// A file is read anew within 5 seconds; without it nothing is believed.
func TestJWKS_File(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwks.json")
	_, err := token.OpenJWKS(t.Context(), path, nil)
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err))
	require.ErrorIs(t, err, os.ErrNotExist)
	one, old := newKey(t, "k1")
	two, next := newKey(t, "k2")
	write := func(set string) { require.NoError(t, os.WriteFile(path, []byte(set), 0o600)) }
	synctest.Test(t, func(t *testing.T) {
		write(jwks(one))
		set, err := token.OpenJWKS(t.Context(), path, nil)
		require.NoError(t, err)
		write(jwks(two))
		require.NoError(t, checked(t, set, old))
		require.ErrorContains(t, checked(t, set, next), "read anew every 5s")
		time.Sleep(5 * time.Second)
		require.NoError(t, checked(t, set, next))
		require.ErrorContains(t, checked(t, set, old), `there is no key "k1"`)

		for says, broken := range map[string]string{"no JSON Web Key Set": "garbage", "holds no key": jwks(), "larger": jwks(two) + strings.Repeat(" ", 256<<10)} {
			write(broken)
			time.Sleep(5 * time.Second)
			require.ErrorContains(t, checked(t, set, next), says)
			write(jwks(two))
			require.NoError(t, checked(t, set, next), "as soon as it is mended")
		}
		require.NoError(t, os.Remove(path))
		time.Sleep(5 * time.Second)
		require.ErrorIs(t, checked(t, set, next), os.ErrNotExist)
		require.NoError(t, set.Close())
	})
}
