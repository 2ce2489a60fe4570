package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// revoking runs the commands about revocations on a file of its own.
func revoking(t *testing.T) (file string, key func(args ...string) result) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "revoked")
	env := []string{"INTERLOCK_TOKENS_REVOKED=" + file, "INTERLOCK_TENANT="}
	return file, func(args ...string) result {
		return playWith(t, t.Context(), env, nil, append([]string{"key"}, args...)...)
	}
}

func TestKey_Revoke(t *testing.T) {
	file, key := revoking(t)
	r := key("revoked")
	require.Equal(t, exitNotFound, r.code)
	require.Contains(t, r.err, file)
	r = key("restore", "--tenant", "acme", "--subject", "ann")
	require.Equal(t, exitNotFound, r.code)

	r = key("revoke", "--tenant", "acme", "--subject", "ann", "--role", "refunds", "--reason", "moved to sales")
	require.Equal(t, result{exitOK, "Revoked: role refunds of ann in acme; workers see it within 5 seconds\n", ""}, r)
	r = key("revoke", "--tenant", "acme", "--subject", "ann", "--role", "refunds")
	require.Equal(t, result{exitOK, "Revoked before: role refunds of ann in acme\n", ""}, r)
	r = key("revoke", "--tenant", "globex", "--subject", "eve of sales", "-o", "json")
	require.Equal(t, exitOK, r.code, r.err)
	require.JSONEq(t, fmt.Sprintf(`{"tenant":"globex","subject":"eve of sales","file":%q,"done":true}`, file), r.out)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "acme ann refunds # moved to sales\nglobex \"eve of sales\"\n", string(text))

	require.Equal(t, "TENANT  SUBJECT       REVOKED       REASON\nacme    ann           role refunds  moved to sales\nglobex  eve of sales  all access\n", key("revoked").out)
	require.Equal(t, `{"tenant":"acme","subject":"ann","role":"refunds","reason":"moved to sales"}`+"\n", key("revoked", "--tenant", "acme", "-o", "jsonl").out)
	require.JSONEq(t, `{"revoked":[{"tenant":"globex","subject":"eve of sales"}]}`, key("revoked", "--tenant", "globex", "-o", "json").out)

	r = key("restore", "--tenant", "acme", "--subject", "ann")
	require.Equal(t, exitNotFound, r.code, "all access was not revoked")
	require.Contains(t, r.err, "interlock key revoked")
	r = key("restore", "--tenant", "acme", "--subject", "ann", "--role", "refunds")
	require.Equal(t, result{exitOK, "Restored: role refunds of ann in acme; workers see it within 5 seconds\n", ""}, r)
	r = key("restore", "--tenant", "globex", "--subject", "eve of sales", "-o", "json")
	require.JSONEq(t, fmt.Sprintf(`{"tenant":"globex","subject":"eve of sales","file":%q,"done":true}`, file), r.out)
	require.Equal(t, "Nothing is revoked.\n", key("revoked").out)
	require.JSONEq(t, `{"revoked":[]}`, key("revoked", "-o", "json").out)
}

func TestKey_RevokeMistakes(t *testing.T) {
	file, key := revoking(t)
	for args, says := range map[string]string{
		"revoke --subject ann":                             "--tenant",
		"revoke --tenant acme":                             "--subject",
		"revoke --tenant Acme --subject ann":               "tenant",
		"revoke --tenant acme --subject ann --role=":       "leave it out for all access",
		"revoke --tenant acme --subject ann --reason a\nb": "one line",
		"restore --tenant acme":                            "--subject",
		"restore --subject ann":                            "--tenant",
		"restore --tenant acme --subject ann --role=":      "leave it out for all access",
		"revoke ann":                "unknown command",
		"revoked --tokens-revoked=": "tokens.revoked",
		"revoke --tenant acme --subject a --tokens-revoked /nowhere/at/all/x": "/nowhere/at/all/x",
	} {
		r := key(strings.Split(args, " ")...)
		require.Equal(t, exitUsage, r.code, args)
		require.Contains(t, r.err, says, args)
		require.Empty(t, r.out, args)
		require.NoFileExists(t, file, args)
	}
	require.NoError(t, os.WriteFile(file, []byte("acme ann\nacme ann smith refunds\n"), 0o600))
	for _, args := range []string{"revoked", "revoke --tenant acme --subject x", "restore --tenant acme --subject ann"} {
		r := key(strings.Fields(args)...)
		require.Equal(t, exitUsage, r.code, args)
		require.Contains(t, r.err, "line 2 of the file", args)
	}
}

// Of many commands at the same time, none is lost.
func TestKey_RevokeAtTheSameTime(t *testing.T) {
	_, key := revoking(t)
	const many = 16
	var commands sync.WaitGroup
	codes := make([]result, many)
	for i := range many {
		commands.Go(func() { codes[i] = key("revoke", "--tenant", "acme", "--subject", fmt.Sprintf("p%d", i)) })
	}
	commands.Wait()
	for _, r := range codes {
		require.Equal(t, exitOK, r.code, r.err)
	}
	var all struct{ Revoked []revokedLine }
	require.NoError(t, json.Unmarshal([]byte(key("revoked", "-o", "json").out), &all))
	seen := map[string]bool{}
	for _, l := range all.Revoked {
		seen[l.Subject] = true
	}
	require.Len(t, all.Revoked, many)
	require.Len(t, seen, many)
}

func TestKey_New(t *testing.T) {
	folder := t.TempDir()
	r := play(t, t.Context(), nil, "key", "new", "k1", "--in", folder, "-o", "json")
	require.Equal(t, exitOK, r.code, r.err)
	require.FileExists(t, filepath.Join(folder, "k1.key.pem"))
	require.Equal(t, exitConflict, play(t, t.Context(), nil, "key", "new", "k1", "--in", folder).code)
	r = play(t, t.Context(), nil, "key", "new", "k2", "--in", filepath.Join(folder, "none"))
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "make it first")
}

// The settings about tokens are shown, and refused, as the others are.
func TestConfigShow_Tokens(t *testing.T) {
	env := []string{"INTERLOCK_TOKENS_ISSUER=https://login.acme", "INTERLOCK_TOKENS_JWKS=https://login.acme/jwks.json", "INTERLOCK_TOKENS_REVOKED=/etc/revoked"}
	r := playWith(t, t.Context(), env, nil, "config", "show", "-o", "json")
	require.Equal(t, exitOK, r.code, r.err)
	var shown shownConfig
	require.NoError(t, json.Unmarshal([]byte(r.out), &shown))
	found := map[string]string{}
	for _, s := range shown.Settings {
		found[s.Key] = s.Value + " " + s.Origin
	}
	require.Equal(t, `"https://login.acme/jwks.json" environment INTERLOCK_TOKENS_JWKS`, found["tokens.jwks"])
	require.Equal(t, `"/etc/revoked" environment INTERLOCK_TOKENS_REVOKED`, found["tokens.revoked"])
	r = playWith(t, t.Context(), env, nil, "config", "show", "--tokens-keys", "/etc/keys")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "tokens.keys or tokens.jwks, not both")
}
