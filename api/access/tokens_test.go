package access

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

var ann = Entry{ID: "ann", Tenant: "acme", Subject: "ann", May: []Role{Reviewer}, Roles: []string{"refunds"}}

func added(t *testing.T, path string, e Entry) (token string) {
	t.Helper()
	token, e = New(e)
	require.NoError(t, Add(path, e))
	return token
}

// opened are the tokens of a file with a clock that the test moves.
func opened(t *testing.T, path string) (tokens *Tokens, pass func(time.Duration), log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	tokens, err := OpenTokens(path, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tokens.now, tokens.readAt = func() time.Time { return now }, now
	return tokens, func(d time.Duration) { now = now.Add(d) }, log
}

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.yaml")
	token := added(t, path, ann)
	require.Regexp(t, `^ilk_[A-Za-z0-9_-]{43}$`, token)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), token, "the file holds hashes only")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	tokens, pass, _ := opened(t, path)
	c, err := tokens.Authenticate(context.Background(), token)
	require.NoError(t, err)
	require.Equal(t, agent.Principal{Subject: "ann", Roles: []string{"refunds"}, Tenant: "acme", Auth: "static:ann"}, c.Principal())
	for _, wrong := range []string{"", "ilk_", token + "x", token[:len(token)-1], strings.ToUpper(token), "ann"} {
		_, err := tokens.Authenticate(context.Background(), wrong)
		require.Equal(t, ErrUnauthenticated, err, "%q", wrong)
	}

	bob := added(t, path, Entry{ID: "bob", Tenant: "acme", Subject: "bob", May: []Role{User}})
	require.NoError(t, Remove(path, "ann"))
	pass(rereads)
	_, err = tokens.Authenticate(context.Background(), token)
	require.Equal(t, ErrUnauthenticated, err, "it was revoked")
	_, err = tokens.Authenticate(context.Background(), bob)
	require.NoError(t, err, "a new one is believed without a restart")
}

func TestTokens_Expired(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.yaml")
	at := time.Date(2026, 11, 30, 12, 0, 10, 0, time.UTC)
	e := ann
	e.Expires = &at
	token := added(t, path, e)
	tokens, pass, _ := opened(t, path)
	_, err := tokens.Authenticate(context.Background(), token)
	require.NoError(t, err)
	pass(10 * time.Second)
	_, err = tokens.Authenticate(context.Background(), token)
	require.Equal(t, ErrUnauthenticated, err)
	_, err = tokens.Named(context.Background(), "ann")
	require.Equal(t, ErrUnauthenticated, err)
}

// A file that has become bad lets nobody in, and says so once in the log.
func TestTokens_FailClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.yaml")
	token := added(t, path, ann)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	tokens, pass, log := opened(t, path)
	require.NoError(t, os.WriteFile(path, append(good, "  - id: bob\n"...), 0o600))
	for range 3 {
		pass(rereads)
		_, err = tokens.Authenticate(context.Background(), token)
		require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err))
		require.NotContains(t, err.Error(), path, "the client learns nothing of the file")
	}
	require.Equal(t, 1, strings.Count(log.String(), "nobody is let in"))
	require.Contains(t, log.String(), "(token bob)")
	require.NoError(t, os.WriteFile(path, good, 0o600))
	pass(rereads)
	_, err = tokens.Authenticate(context.Background(), token)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	pass(rereads)
	_, err = tokens.Authenticate(context.Background(), token)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err))
}

func TestRead_Mistakes(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	entry := "tokens:\n  - id: ann\n    sha256: " + hash + "\n    tenant: acme\n    subject: ann\n    may: [reviewer]\n"
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", entry + "    role: refunds\n", `line 7: unknown key "role"`},
		{"unknown role", strings.Replace(entry, "reviewer", "admin", 1), `may has "admin"`},
		{"bad hash", strings.Replace(entry, hash, "abc", 1), "sha256 is no hash"},
		{"no may", strings.Replace(entry, "[reviewer]", "[]", 1), "may is empty"},
		{"may is no list", strings.Replace(entry, "[reviewer]", "reviewer", 1), "may is a list"},
		{"no tenant", strings.Replace(entry, "tenant: acme", "tenant: Acme", 1), `tenant "Acme"`},
		{"no subject", strings.Replace(entry, "subject: ann", "subject: ''", 1), "subject"},
		{"key twice", entry + "    id: bob\n", "id stands twice"},
		{"id twice", entry + strings.TrimPrefix(entry, "tokens:\n"), "line 7 (token ann): the id is another token's"},
		{"hash twice", entry + strings.Replace(strings.TrimPrefix(entry, "tokens:\n"), "id: ann", "id: bob", 1), "(token bob): it has the hash of token ann"},
		{"expires", entry + "    expires: tomorrow\n", `expires "tomorrow"`},
		{"other top key", "users: []\n", "one key, tokens"},
		{"two documents", entry + "---\ntokens: []\n", "second document"},
		{"no YAML", "tokens: [", "is no YAML"},
		{"no list", "tokens: 7\n", "tokens is a list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.yaml")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			_, err := OpenTokens(path, nil)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, path)
		})
	}
	path := filepath.Join(t.TempDir(), "access.yaml")
	require.NoError(t, os.WriteFile(path, []byte(entry), 0o600))
	require.NoError(t, os.Chmod(path, 0o622))
	_, err := OpenTokens(path, nil)
	require.ErrorContains(t, err, "can be written by others")
}

// An edit keeps what a person wrote, and changes nothing where it is refused.
func TestAddRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.yaml")
	added(t, path, ann)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	noted := strings.Replace(string(text), "  - id: ann", "  # of the refund team\n  - id: ann", 1)
	require.NoError(t, os.WriteFile(path, []byte(noted), 0o600))
	added(t, path, Entry{ID: "bob", Tenant: "acme", Subject: "bob: 7", May: []Role{User, Starter}, Roles: []string{"no", "1e3"}})
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(after), "# of the refund team")
	all, err := Read(path)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, []string{"no", "1e3"}, all[1].Roles)
	_, e := New(ann)
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(Add(path, e)))
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(Remove(path, "eve")))
	require.NoError(t, Remove(path, "ann"))
	require.NoError(t, Remove(path, "bob"))
	all, err = Read(path)
	require.NoError(t, err)
	require.Empty(t, all)
	added(t, path, ann)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left beside the file")
}
