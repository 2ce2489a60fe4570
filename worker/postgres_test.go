package worker_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/config"
	"interlock/store"
	"interlock/store/pgtest"
	"interlock/worker"
)

// A URL in place of a path is all that PostgreSQL takes.
func TestStore_InPostgreSQL(t *testing.T) {
	cfg, err := config.Load(config.Source{Env: []string{"INTERLOCK_STORE_DSN=" + pgtest.New(t)}})
	require.NoError(t, err)
	_, err = worker.OpenStore(t.Context(), cfg)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "interlock migrate")
	have, newest, err := worker.SchemaVersion(t.Context(), cfg)
	require.NoError(t, err)
	require.Zero(t, have)

	before, after, err := worker.Migrate(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, []int64{0, newest}, []int64{before, after})
	st, err := worker.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	rows, err := st.RunRows(t.Context(), "acme", store.RunFilter{})
	require.NoError(t, err)
	require.Empty(t, rows)
	require.NoError(t, st.Close())
}

// No error of the database holds its password.
func TestStore_PasswordsAreNotTold(t *testing.T) {
	u, err := url.Parse(pgtest.New(t))
	require.NoError(t, err)
	for name, change := range map[string]func(*url.URL){
		"nobody listens":   func(u *url.URL) { u.Host, u.RawQuery = "127.0.0.1:1", "" },
		"no such host":     func(u *url.URL) { u.Host, u.RawQuery = "nowhere.invalid", "" },
		"a wrong user":     func(u *url.URL) { u.User = url.UserPassword("nobody", "S3CR3T") },
		"no such database": func(u *url.URL) { u.Path = "/nothing" },
		"a wrong option":   func(u *url.URL) { u.RawQuery = "sslmode=perhaps&password=S3CR3T" },
	} {
		bad := *u
		bad.User = url.UserPassword(u.User.Username(), "S3CR3T")
		change(&bad)
		cfg, err := config.Load(config.Source{Env: []string{"INTERLOCK_STORE_DSN=" + bad.String()}})
		require.NoError(t, err, name)
		for what, open := range map[string]func() error{
			"open":    func() error { _, err := worker.OpenStore(t.Context(), cfg); return err },
			"migrate": func() error { _, _, err := worker.Migrate(t.Context(), cfg); return err },
			"version": func() error { _, _, err := worker.SchemaVersion(t.Context(), cfg); return err },
		} {
			if err := open(); name != "a wrong user" { // a server may trust everybody
				require.Error(t, err, "%s, %s", name, what)
				require.NotContains(t, err.Error(), "S3CR3T", "%s, %s", name, what)
			}
		}
	}
}
