package access

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asked is a request with what a browser would send back of a response.
func asked(w *httptest.ResponseRecorder, https bool) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if https {
		r.Header.Set("X-Forwarded-Proto", "https")
	}
	if w != nil {
		for _, c := range w.Result().Cookies() {
			r.AddCookie(c)
		}
	}
	return r
}

func TestSessions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.yaml")
	token := added(t, path, ann)
	tokens, pass, _ := opened(t, path)
	sessions, err := NewSessions(nil, tokens)
	require.NoError(t, err)
	sessions.now = tokens.now
	c, err := tokens.Authenticate(context.Background(), token)
	require.NoError(t, err)

	w := httptest.NewRecorder()
	require.NoError(t, sessions.Begin(w, asked(nil, true), c))
	set := w.Result().Cookies()[0]
	require.Equal(t, "__Host-interlock_session", set.Name)
	require.True(t, set.Secure && set.HttpOnly && set.SameSite == http.SameSiteLaxMode && set.Path == "/" && set.Domain == "")
	require.NotContains(t, set.Value, token)
	got, err := sessions.Caller(context.Background(), asked(w, true))
	require.NoError(t, err)
	require.Equal(t, c, got)
	_, err = sessions.Caller(context.Background(), asked(w, false))
	require.Equal(t, ErrUnauthenticated, err, "a cookie of https is none of http")

	forged := asked(nil, true)
	forged.AddCookie(&http.Cookie{Name: set.Name, Value: strings.Replace(set.Value, "ey", "eY", 1)})
	_, err = sessions.Caller(context.Background(), forged)
	require.Equal(t, ErrUnauthenticated, err)

	others, err := NewSessions(nil, tokens)
	require.NoError(t, err)
	_, err = others.Caller(context.Background(), asked(w, true))
	require.Equal(t, ErrUnauthenticated, err, "it is signed with another key")

	// A new token of the same id is another credential.
	require.NoError(t, Remove(path, "ann"))
	added(t, path, ann)
	pass(rereads)
	_, err = sessions.Caller(context.Background(), asked(w, true))
	require.Equal(t, ErrUnauthenticated, err)
	require.NoError(t, Remove(path, "ann"))
	pass(rereads)
	_, err = sessions.Caller(context.Background(), asked(w, true))
	require.Equal(t, ErrUnauthenticated, err)
}

func TestSessions_End(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.yaml")
	added(t, path, ann)
	tokens, pass, _ := opened(t, path)
	sessions, err := NewSessions(nil, tokens)
	require.NoError(t, err)
	sessions.now = tokens.now
	c, err := tokens.Named(context.Background(), "ann")
	require.NoError(t, err)
	w := httptest.NewRecorder()
	require.NoError(t, sessions.Begin(w, asked(nil, false), c))
	require.Equal(t, "interlock_session", w.Result().Cookies()[0].Name)
	require.False(t, w.Result().Cookies()[0].Secure)
	pass(SessionFor - time.Second)
	_, err = sessions.Caller(context.Background(), asked(w, false))
	require.NoError(t, err)
	pass(time.Second)
	_, err = sessions.Caller(context.Background(), asked(w, false))
	require.Equal(t, ErrUnauthenticated, err)
	w = httptest.NewRecorder()
	sessions.End(w, asked(nil, false))
	require.Equal(t, -1, w.Result().Cookies()[0].MaxAge)
	require.Error(t, sessions.Begin(w, asked(nil, false), Caller{Subject: "ann"}))
}

func TestReadSessionKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for text, ok := range map[string]bool{strings.Repeat("k", 32): true, strings.Repeat("0f", 32) + "\n": true, "short": false, strings.Repeat("zz", 32): false} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		key, err := ReadSessionKey(path)
		require.Equal(t, ok, err == nil, "%q: %v", text, err)
		require.Equal(t, ok, len(key) == 32)
	}
	require.NoError(t, os.Chmod(path, 0o640))
	_, err := ReadSessionKey(path)
	require.ErrorContains(t, err, "can be read by others")
}
