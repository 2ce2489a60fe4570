package token_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/token"
)

var now = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func claims() token.Claims {
	return token.Claims{Issuer: "https://login.acme", Audience: "interlock", Subject: "ann", Roles: []string{"refunds"}, Tenant: "acme",
		Address: "acme/refund/1", FirstRunID: "r1", Act: "verdict", Body: "d1", ID: "v-1", Issued: now, Expires: now.Add(5 * time.Minute)}
}

func expected() token.Expected {
	return token.Expected{Tenant: "acme", Address: "acme/refund/1", FirstRunID: "r1", Act: "verdict", Body: "d1", ID: "v-1", At: now.Add(time.Minute)}
}

// keys makes a folder with a pair of keys, a signer and who trusts it.
func keys(t *testing.T) (folder string, signer *token.Signer, trust token.Trust) {
	t.Helper()
	folder = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "public"), 0o700))
	require.NoError(t, token.Generate(folder, filepath.Join(folder, "public"), "k1"))
	signer, err := token.OpenSigner(filepath.Join(folder, "k1.key.pem"))
	require.NoError(t, err)
	files, err := token.OpenFiles(filepath.Join(folder, "public"))
	require.NoError(t, err)
	return folder, signer, token.Trust{Issuer: "https://login.acme", Audience: "interlock", Keys: files}
}

func TestCheck(t *testing.T) {
	_, signer, trust := keys(t)
	text, err := signer.Sign(claims())
	require.NoError(t, err)
	who, err := trust.Check(t.Context(), text, expected())
	require.NoError(t, err)
	require.Equal(t, agent.Principal{Subject: "ann", Roles: []string{"refunds"}, Tenant: "acme", Auth: "https://login.acme"}, who)

	for name, change := range map[string]func(*token.Expected){
		"another tenant": func(e *token.Expected) { e.Tenant = "globex" }, "another run": func(e *token.Expected) { e.Address = "acme/refund/2" },
		"another chain": func(e *token.Expected) { e.FirstRunID = "r2" }, "another act": func(e *token.Expected) { e.Act = "cancel" },
		"other words": func(e *token.Expected) { e.Body = "d2" }, "replayed under another id": func(e *token.Expected) { e.ID = "v-2" },
		"nothing expected": func(e *token.Expected) { e.Body = "" },
		"expired":          func(e *token.Expected) { e.At = now.Add(5*time.Minute + 31*time.Second) },
		"from the future":  func(e *token.Expected) { e.At = now.Add(-31 * time.Second) },
	} {
		want := expected()
		change(&want)
		who, err := trust.Check(t.Context(), text, want)
		require.Error(t, err, name)
		require.Zero(t, who, name)
	}
	for name, change := range map[string]func(*token.Trust){
		"of another issuer": func(t *token.Trust) { t.Issuer = "https://evil" }, "for another audience": func(t *token.Trust) { t.Audience = "other" },
		"no keys": func(t *token.Trust) { t.Keys = nil }, "no issuer": func(t *token.Trust) { t.Issuer = "" }, "no audience": func(t *token.Trust) { t.Audience = "" },
	} {
		other := trust
		change(&other)
		_, err := other.Check(t.Context(), text, expected())
		require.Error(t, err, name)
	}
}

// What a token could be forged from.
func TestCheck_Forged(t *testing.T) {
	folder, signer, trust := keys(t)
	good, err := signer.Sign(claims())
	require.NoError(t, err)
	parts := strings.Split(good, ".")
	public, err := os.ReadFile(filepath.Join(folder, "public", "k1.pem"))
	require.NoError(t, err)
	require.NoError(t, token.Generate(folder, folder, "k2")) // of somebody else
	stranger, err := token.OpenSigner(filepath.Join(folder, "k2.key.pem"))
	require.NoError(t, err)
	strange, err := stranger.Sign(claims())
	require.NoError(t, err)
	part := func(v any) string {
		j, err := json.Marshal(v)
		require.NoError(t, err)
		return base64.RawURLEncoding.EncodeToString(j)
	}
	body := jwt.MapClaims{"iss": "https://login.acme", "aud": "interlock", "sub": "ann", "jti": "v-1", "tenant": "acme", "run": "acme/refund/1", "chain": "r1",
		"act": "verdict", "body": "d1", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
	hmac := jwt.NewWithClaims(jwt.SigningMethodHS256, body)
	hmac.Header["kid"] = "k1"
	symmetric, err := hmac.SignedString(public)
	require.NoError(t, err)
	renamed := strings.Split(strange, ".")

	for name, text := range map[string]string{
		"empty":                             "",
		"no token":                          "a.b.c",
		"no signature":                      parts[0] + "." + parts[1] + ".",
		"algorithm none":                    part(map[string]string{"alg": "none", "kid": "k1"}) + "." + parts[1] + ".",
		"the public key as a secret":        symmetric,
		"a key that is not believed":        strange,
		"another's signature, our key's id": parts[0] + "." + renamed[1] + "." + renamed[2],
		"changed claims":                    parts[0] + "." + part(body) + "." + parts[2],
		"a path as the key's id":            part(map[string]string{"alg": "EdDSA", "kid": "../public/k1"}) + "." + parts[1] + "." + parts[2],
		"no key's id":                       part(map[string]string{"alg": "EdDSA"}) + "." + parts[1] + "." + parts[2],
		"padded":                            good + "=",
	} {
		who, err := trust.Check(t.Context(), text, expected())
		require.Error(t, err, name)
		require.Zero(t, who, name)
	}
}

// A token that was signed as no Signer signs is not believed for long.
func TestCheck_Terms(t *testing.T) {
	_, signer, _ := keys(t)
	for name, change := range map[string]func(*token.Claims){
		"no subject": func(c *token.Claims) { c.Subject = "" }, "no body": func(c *token.Claims) { c.Body = "" }, "no id": func(c *token.Claims) { c.ID = "" },
		"no end": func(c *token.Claims) { c.Expires = time.Time{} }, "too long": func(c *token.Claims) { c.Expires = now.Add(token.MaxAge + time.Second) },
		"no time": func(c *token.Claims) { c.Expires = c.Issued },
	} {
		c := claims()
		change(&c)
		_, err := signer.Sign(c)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), name)
	}
}

func TestRotation(t *testing.T) {
	folder, old, trust := keys(t)
	public := filepath.Join(folder, "public")
	require.NoError(t, token.Generate(folder, folder, "k2"))
	next, err := token.OpenSigner(filepath.Join(folder, "k2.key.pem"))
	require.NoError(t, err)
	check := func(s *token.Signer) error {
		text, err := s.Sign(claims())
		require.NoError(t, err)
		_, err = trust.Check(t.Context(), text, expected())
		return err
	}
	require.ErrorContains(t, check(next), "there is no key k2")
	require.NoError(t, os.Rename(filepath.Join(folder, "k2.pem"), filepath.Join(public, "k2.pem")))
	require.NoError(t, check(next), "at once, without a restart")
	require.NoError(t, check(old), "and so is the old one, as long as it is there")
	require.NoError(t, os.Remove(filepath.Join(public, "k1.pem")))
	require.NoError(t, check(next))
	fresh, err := token.OpenFiles(public) // as after 5 seconds
	require.NoError(t, err)
	trust.Keys = fresh
	require.ErrorContains(t, check(old), "there is no key k1")
}

func TestKeyFiles(t *testing.T) {
	folder := t.TempDir()
	_, err := token.OpenFiles(filepath.Join(folder, "nowhere"))
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err))
	_, err = token.OpenFiles(folder)
	require.ErrorContains(t, err, "holds no <id>.pem")
	require.NoError(t, token.Generate(folder, folder, "a"))
	_, err = token.OpenFiles(folder)
	require.ErrorContains(t, err, "is a key to sign with")
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(token.Generate(folder, folder, "a")))
	for _, id := range []string{"", "../a", "a.b", "-a", strings.Repeat("a", 65), "a/b", "a\x00"} {
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(token.Generate(folder, folder, id)), id)
	}
	require.NoError(t, os.Chmod(filepath.Join(folder, "a.key.pem"), 0o644))
	_, err = token.OpenSigner(filepath.Join(folder, "a.key.pem"))
	require.ErrorContains(t, err, "can be read by others")
	_, err = token.OpenSigner(filepath.Join(folder, "a.pem"))
	require.Error(t, err, "a public key signs nothing")

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	public := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(public, "r.pem"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	_, err = token.OpenFiles(public)
	require.ErrorContains(t, err, "only Ed25519 is believed")
	require.NoError(t, os.WriteFile(filepath.Join(public, "r.pem"), []byte("no key"), 0o600))
	_, err = token.OpenFiles(public)
	require.ErrorContains(t, err, "is not one PEM block")
}

// A token whose terms are not understood, or make no sense, proves nothing; nor does one
// for a name that two people could read in two ways.
func TestCheck_NotUnderstood(t *testing.T) {
	folder, signer, trust := keys(t)
	pemText, err := os.ReadFile(filepath.Join(folder, "k1.key.pem"))
	require.NoError(t, err)
	block, _ := pem.Decode(pemText)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	require.NoError(t, err)
	text, err := signer.Sign(claims())
	require.NoError(t, err)
	good, _, err := jwt.NewParser().ParseUnverified(text, jwt.MapClaims{})
	require.NoError(t, err)
	for name, change := range map[string]func(*jwt.Token, jwt.MapClaims){
		"crit": func(tok *jwt.Token, _ jwt.MapClaims) { tok.Header["crit"] = []string{"exp"} },
		"ends before it was issued": func(_ *jwt.Token, c jwt.MapClaims) {
			c["exp"] = now.Add(45 * time.Second).Unix()
			c["iat"] = now.Add(50 * time.Second).Unix()
		},
		"a hidden character":           func(_ *jwt.Token, c jwt.MapClaims) { c["sub"] = "ann\u202e" },
		"a role with spaces around it": func(_ *jwt.Token, c jwt.MapClaims) { c["roles"] = []string{" refunds"} },
	} {
		said := jwt.MapClaims{}
		for k, v := range good.Claims.(jwt.MapClaims) {
			said[k] = v
		}
		forged := jwt.NewWithClaims(jwt.SigningMethodEdDSA, said)
		forged.Header["kid"] = good.Header["kid"]
		if typ, ok := good.Header["typ"]; ok {
			forged.Header["typ"] = typ
		}
		signed, err := forged.SignedString(key)
		require.NoError(t, err)
		_, err = trust.Check(t.Context(), signed, expected())
		require.NoError(t, err, "as it was")
		change(forged, said)
		signed, err = forged.SignedString(key)
		require.NoError(t, err)
		_, err = trust.Check(t.Context(), signed, expected())
		require.Error(t, err, name)
	}
}
