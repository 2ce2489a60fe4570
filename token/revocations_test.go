package token_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"interlock/agent"
	"interlock/token"
)

// directory answers what a test says.
type directory func(agent.Principal) ([]string, error)

func (d directory) Roles(_ context.Context, p agent.Principal) ([]string, error) { return d(p) }

// What was taken from a person counts, whatever their token says.
func TestCheck_Directory(t *testing.T) {
	_, signer, trust := keys(t)
	ask := func(d directory, roles ...string) (agent.Principal, error) {
		c := claims()
		c.Roles = roles
		text, err := signer.Sign(c)
		require.NoError(t, err)
		trust.Directory = d
		return trust.Check(t.Context(), text, expected())
	}
	has := func(left ...string) directory {
		return func(p agent.Principal) ([]string, error) {
			require.Equal(t, "ann", p.Subject)
			require.Equal(t, "acme", p.Tenant)
			if len(p.Roles) > 0 {
				p.Roles[0] = "boss" // of its own copy
			}
			return left, nil
		}
	}
	for name, c := range map[string]struct {
		directory     directory
		claimed, left []string
	}{
		"has all":              {has("refunds", "finance"), []string{"finance", "refunds"}, []string{"finance", "refunds"}},
		"has lost one":         {has("refunds"), []string{"finance", "refunds"}, []string{"refunds"}},
		"is given none":        {has("refunds", "boss", "finance"), []string{"refunds"}, []string{"refunds"}},
		"claims none, has one": {has("refunds"), nil, nil},
		"claims and has none":  {has(), nil, nil},
	} {
		who, err := ask(c.directory, c.claimed...)
		require.NoError(t, err, name)
		require.Equal(t, agent.Principal{Subject: "ann", Roles: c.left, Tenant: "acme", Auth: "https://login.acme"}, who, name)
	}
	fails := func(err error) directory {
		return func(agent.Principal) ([]string, error) { return []string{"refunds"}, err }
	}
	for name, c := range map[string]struct {
		directory directory
		claimed   []string
		says      string
	}{
		"has lost all of them":            {has(), []string{"refunds"}, "the access of ann was revoked"},
		"has others instead":              {has("boss"), []string{"refunds"}, "the access of ann was revoked"},
		"has lost everything":             {fails(fmt.Errorf("x: %w", token.ErrRevoked)), []string{"refunds"}, "the access of ann was revoked"},
		"has lost everything, claims nil": {fails(token.ErrRevoked), nil, "the access of ann was revoked"},
		"nobody knows":                    {fails(errors.New("it is down")), []string{"refunds"}, "the token is not believed: what ann may still do cannot be found out: it is down"},
	} {
		who, err := ask(c.directory, c.claimed...)
		require.EqualError(t, err, c.says, name)
		require.Zero(t, who, name)
	}
	// Nobody is asked about whom no good token speaks of.
	trust.Directory = directory(func(agent.Principal) ([]string, error) { t.Error("asked"); return nil, nil })
	_, err := trust.Check(t.Context(), "a.b.c", expected())
	require.Error(t, err)
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "revoked")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func TestRevocations_Lines(t *testing.T) {
	path := write(t, "# who has left\n\nacme ann finance # moved to sales: \"#1\"\t!\r\n  acme\tbob   \nacme \"eve of \\\"sales\\\"\" \"team lead\"#x\nacme "+
		`"a#b" c`+"\n\t\nglobex ann\nacme zoë refunds")
	all, err := token.ReadRevocations(path)
	require.ErrorContains(t, err, "line 5", "a comment needs a space before it")
	require.Nil(t, all)

	path = write(t, "# who has left\n\nacme ann finance # moved to sales: \"#1\"\t!\r\n  acme\tbob   \nacme \"eve of \\\"sales\\\"\" \"team lead\" #x\nacme "+
		`"a#b" c`+"\n\t\nglobex ann\nacme zoë refunds")
	all, err = token.ReadRevocations(path)
	require.NoError(t, err)
	require.Equal(t, []token.Revocation{{"acme", "ann", "finance", "moved to sales: \"#1\"\t!"}, {"acme", "bob", "", ""}, {"acme", `eve of "sales"`, "team lead", "x"},
		{"acme", "a#b", "c", ""}, {"globex", "ann", "", ""}, {"acme", "zoë", "refunds", ""}}, all)

	r, err := token.OpenRevocations(path)
	require.NoError(t, err)
	for _, c := range []struct {
		tenant, subject string
		left            []string
		err             error
	}{
		{"acme", "ann", []string{"refunds", "team lead"}, nil}, {"acme", "bob", nil, token.ErrRevoked}, {"globex", "ann", nil, token.ErrRevoked},
		{"acme", `eve of "sales"`, []string{"finance", "refunds"}, nil}, {"acme", "zoë", []string{"finance", "team lead"}, nil},
		{"acme", "Ann", []string{"finance", "refunds", "team lead"}, nil}, {"globex", "bob", []string{"finance", "refunds", "team lead"}, nil},
	} {
		left, err := r.Roles(t.Context(), agent.Principal{Subject: c.subject, Tenant: c.tenant, Roles: []string{"finance", "refunds", "team lead"}})
		require.ErrorIs(t, err, c.err, c.subject)
		require.Equal(t, c.left, left, c.subject)
	}
	for _, bad := range []string{"acme", "acme ann smith refunds", `acme "ann`, `acme ""`, `acme ann ""`, `acme "a"b c`, "acme a\"b", "acme ann#left", "acme 'ann smith' refunds",
		"Acme ann", "acme/x ann", "\ufeffacme ann", "acme a\u200bnn", "acme a\xff", "acme `ann`", `acme "a\xff"`, "acme ann, refunds x"} {
		_, err := token.OpenRevocations(write(t, "acme bob\n"+bad+"\n"))
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%q", bad)
		require.ErrorContains(t, err, "line 2 of the file", "%q", bad)
	}
	_, err = token.OpenRevocations(filepath.Join(t.TempDir(), "nowhere"))
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err))
	_, err = token.OpenRevocations(write(t, ""))
	require.NoError(t, err)
}

// A change counts within 5 seconds; while the file is broken or gone, no token is
// believed, and the reason says so.
func TestRevocations_ReadAnew(t *testing.T) {
	_, signer, trust := keys(t)
	c := claims()
	c.Roles = []string{"finance", "refunds"}
	text, err := signer.Sign(c)
	require.NoError(t, err)
	path := write(t, "")
	trust.Directory, err = token.OpenRevocations(path)
	require.NoError(t, err)
	become := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o644)) }
	synctest.Test(t, func(t *testing.T) {
		trust.Directory, err = token.OpenRevocations(path)
		require.NoError(t, err)
		roles := func() ([]string, error) {
			time.Sleep(5 * time.Second)
			who, err := trust.Check(t.Context(), text, expected())
			return who.Roles, err
		}
		all, err := roles()
		require.NoError(t, err)
		require.Equal(t, []string{"finance", "refunds"}, all)
		become("acme ann finance\n")
		left, err := roles()
		require.NoError(t, err)
		require.Equal(t, []string{"refunds"}, left)
		become("acme ann finance\nacme ann refunds\n")
		_, err = roles()
		require.EqualError(t, err, "the access of ann was revoked")
		become("acme ann\n")
		_, err = roles()
		require.EqualError(t, err, "the access of ann was revoked")

		become("acme ann finance refunds x\n")
		_, err = roles()
		require.ErrorContains(t, err, "the token is not believed: what ann may still do cannot be found out: line 1 of the file")
		require.NoError(t, os.Remove(path))
		_, err = roles()
		require.ErrorIs(t, err, os.ErrNotExist)
		become("")
		who, err := trust.Check(t.Context(), text, expected())
		require.NoError(t, err, "as soon as it is mended")
		require.Equal(t, all, who.Roles)
	})
}

func TestRevoke(t *testing.T) {
	path := filepath.Join(t.TempDir(), "revoked")
	revoke := func(tenant, subject, role, reason string) bool {
		added, err := token.Revoke(t.Context(), path, token.Revocation{Tenant: tenant, Subject: subject, Role: role, Reason: reason})
		require.NoError(t, err)
		return added
	}
	require.ErrorIs(t, token.Restore(t.Context(), path, token.Revocation{Tenant: "acme", Subject: "ann"}), os.ErrNotExist)
	require.NoFileExists(t, path)
	require.True(t, revoke("acme", "ann", "finance", ""))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode())
	require.False(t, revoke("acme", "ann", "finance", "another reason"), "it is revoked already")
	require.True(t, revoke("acme", "ann", "", " has left "))
	require.True(t, revoke("globex", "eve of sales", "a #1\n", `"x" # y`))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "acme ann finance\nacme ann # has left\nglobex \"eve of sales\" \"a #1\\n\" # \"x\" # y\n", string(text))
	all, err := token.ReadRevocations(path)
	require.NoError(t, err)
	require.Equal(t, []token.Revocation{{"acme", "ann", "finance", ""}, {"acme", "ann", "", "has left"}, {"globex", "eve of sales", "a #1\n", `"x" # y`}}, all)

	// What people have written stays; so do mode and link.
	require.NoError(t, os.WriteFile(path, []byte("# list\nacme  bob # b\n\nacme bob\nacme bob x"), 0o600))
	require.NoError(t, os.Chmod(path, 0o640))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(path, link))
	require.True(t, revoke("acme", "ann", "", ""))
	require.NoError(t, token.Restore(t.Context(), link, token.Revocation{Tenant: "acme", Subject: "bob"}))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "# list\n\nacme bob x\nacme ann\n", string(text))
	info, err = os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode())
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(token.Restore(t.Context(), path, token.Revocation{Tenant: "acme", Subject: "bob"})))

	for name, bad := range map[string]token.Revocation{"no tenant": {Subject: "ann"}, "a wrong tenant": {Tenant: "A", Subject: "ann"}, "nobody": {Tenant: "acme"},
		"no text": {Tenant: "acme", Subject: "\xff"}, "no role": {Tenant: "acme", Subject: "ann", Role: "\xff"}, "two lines": {Tenant: "acme", Subject: "cid", Reason: "a\nacme dan"}} {
		_, err := token.Revoke(t.Context(), path, bad)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), name)
	}
	require.NoError(t, os.WriteFile(path, []byte("what\n"), 0o600))
	_, err = token.Revoke(t.Context(), path, token.Revocation{Tenant: "acme", Subject: "ann"})
	require.ErrorContains(t, err, "line 1 of the file")
	require.ErrorContains(t, token.Restore(t.Context(), path, token.Revocation{Tenant: "acme", Subject: "ann"}), "line 1 of the file")
	left, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	require.Equal(t, []string{path}, left, "nothing lies about")
}

// Whoever it is about, what was written is what is read.
func TestRevoke_AnyText(t *testing.T) {
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(folder, "revoked")
		_ = os.Remove(path)
		text := rapid.OneOf(rapid.StringN(1, 20, -1), rapid.StringOfN(rapid.RuneFrom([]rune(" \"#\\`\t\r\n\u00a0\u2028ab")), 1, 8, -1))
		r := token.Revocation{Tenant: "acme", Subject: text.Draw(t, "subject"), Role: rapid.OneOf(rapid.Just(""), text).Draw(t, "role"), Reason: "why # \"so\""}
		other := r
		other.Subject += "x"
		for _, one := range []token.Revocation{r, other} {
			added, err := token.Revoke(context.Background(), path, one)
			require.NoError(t, err)
			require.True(t, added)
		}
		all, err := token.ReadRevocations(path)
		require.NoError(t, err)
		require.Equal(t, []token.Revocation{r, other}, all)
		require.NoError(t, token.Restore(context.Background(), path, r))
		all, err = token.ReadRevocations(path)
		require.NoError(t, err)
		require.Equal(t, []token.Revocation{other}, all)
	})
}

// Of many that change the file, none is lost, and a reader never sees half a line.
func TestRevoke_AtTheSameTime(t *testing.T) {
	path := write(t, "acme keep\n")
	const many = 24
	reading, stop := context.WithCancel(t.Context())
	var readers, writers sync.WaitGroup
	readers.Go(func() {
		for reading.Err() == nil {
			if all, err := token.ReadRevocations(path); err != nil || len(all) == 0 {
				t.Errorf("%v %v", all, err)
			}
		}
	})
	for i := range many {
		writers.Go(func() {
			r := token.Revocation{Tenant: "acme", Subject: fmt.Sprintf("p%d", i), Reason: strings.Repeat("x", 5000)}
			added, err := token.Revoke(t.Context(), path, r)
			if err == nil && !added {
				err = errors.New("not added")
			}
			if i%3 == 0 {
				err = errors.Join(err, token.Restore(t.Context(), path, r))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	stop()
	readers.Wait()
	all, err := token.ReadRevocations(path)
	require.NoError(t, err)
	found := map[string]int{}
	for _, r := range all {
		found[r.Subject]++
	}
	want := map[string]int{"keep": 1}
	for i := range many {
		if i%3 != 0 {
			want[fmt.Sprintf("p%d", i)] = 1
		}
	}
	require.Equal(t, want, found)
}

// A command that was killed in the middle is told of.
func TestRevoke_Locked(t *testing.T) {
	path := write(t, "")
	require.NoError(t, os.WriteFile(path+".lock", nil, 0o600))
	synctest.Test(t, func(t *testing.T) {
		_, err := token.Revoke(t.Context(), path, token.Revocation{Tenant: "acme", Subject: "ann"})
		require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err))
		require.ErrorContains(t, err, "remove "+path+".lock")
	})
	require.FileExists(t, path+".lock", "it is another one's")
}
