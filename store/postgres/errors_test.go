package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store/pgtest"
)

func TestMeaningOfStates(t *testing.T) {
	for state, want := range map[string]agent.Code{
		"08006": agent.CodeUnavailable, "57P01": agent.CodeUnavailable, "57P03": agent.CodeUnavailable, "57014": agent.CodeUnavailable,
		"53300": agent.CodeUnavailable, "53100": agent.CodeUnavailable, "53200": agent.CodeUnavailable, "25006": agent.CodeUnavailable,
		"40001": agent.CodeUnavailable, "40P01": agent.CodeUnavailable, "55P03": agent.CodeUnavailable, "25P03": agent.CodeUnavailable,
		"58030": agent.CodeUnavailable, "28P01": agent.CodeUnavailable, "3D000": agent.CodeUnavailable, "42P01": agent.CodeUnavailable,
		"XX001": agent.CodeUnavailable, "23505": agent.CodeConflict, "23001": agent.CodeConflict, "22021": agent.CodeInvalid,
		"54000": agent.CodeInvalid, "23502": agent.CodeInternal, "42601": agent.CodeInternal, "": agent.CodeInternal, "x": agent.CodeInternal,
	} {
		code, _ := meaning(state)
		require.Equal(t, want, code, state)
	}
}

const secret = "s3cr3t"

// requireDiscreet holds an error, and all that it wraps, to tell no password.
func requireDiscreet(t *testing.T, dsn string, err error) {
	t.Helper()
	require.Error(t, err, dsn)
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, format := range []string{"%v", "%+v", "%#v", "%q"} {
			require.NotContains(t, fmt.Sprintf(format, e), secret, "%s as %s", dsn, format)
		}
	}
}

func TestNoErrorTellsAPassword(t *testing.T) {
	for _, dsn := range []string{
		"postgres://user:" + secret + "@127.0.0.1:1/db", "postgres://user:a@" + secret + "@127.0.0.1:1/db", "postgres://user:a/" + secret + "@127.0.0.1:1/db",
		"postgres://user:12/" + secret + "@127.0.0.1:1/db", "postgres://user:a#" + secret + "@127.0.0.1:1/db", "postgres://user:a?" + secret + "@127.0.0.1:1/db",
		"postgres://user:a%" + secret + "@127.0.0.1:1/db", "postgres://user:" + secret + "@127.0.0.1:port/db", "postgres://user:" + secret + "@127.0.0.1:1/db?sslmode=nonsense",
		"postgres://user:" + secret + "@127.0.0.1:1/db?pool_max_conns=many", "postgres://127.0.0.1:1/db?user=user&password=" + secret,
		"host=127.0.0.1 port=1 user=user password=" + secret, "host=127.0.0.1 port=1 password='a\\'" + secret + "'", "host=127.0.0.1 port=1 password=a " + secret,
		"host=127.0.0.1 port=nonsense password=" + secret, "password=" + secret + " host=127.0.0.1 port=1 sslmode=nonsense", "user:" + secret + "@127.0.0.1/db",
		"postgres://user:" + secret + "@nowhere.invalid:5432/db",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		s, err := Open(ctx, dsn, nil)
		require.Nil(t, s)
		requireDiscreet(t, dsn, err)
		_, _, err = Migrate(ctx, dsn)
		requireDiscreet(t, dsn, err)
		_, _, err = Version(ctx, dsn)
		requireDiscreet(t, dsn, err)
		cancel()
	}
	_, err := Open(context.Background(), "", nil)
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err))
	_, err = Open(context.Background(), "postgres://user:"+secret+"@127.0.0.1:1/db", nil)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err))
	require.ErrorContains(t, err, "database db at 127.0.0.1:1: ")
	require.ErrorContains(t, err, "cannot be reached")
}

// A server that asks for a password is told a wrong one, and dies later.
func TestNoErrorTellsAPassword_OfAServerThatAsks(t *testing.T) {
	hba := filepath.Join(t.TempDir(), "hba")
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(hba)), 0o755))
	require.NoError(t, os.WriteFile(hba, []byte("local all postgres trust\nlocal all all scram-sha-256\n"), 0o644))
	server := pgtest.StartServer(t, "hba_file="+hba)
	ctx, dsn := context.Background(), server.DSN(t)
	admin, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	_, err = admin.Exec(ctx, "CREATE ROLE ann LOGIN PASSWORD '"+secret+"'; GRANT CREATE ON DATABASE "+admin.Config().Database+" TO ann")
	require.NoError(t, err)
	require.NoError(t, admin.Close(ctx))

	wrong := strings.Replace(dsn, "postgres@", "ann:x"+secret+"@", 1)
	_, err = Open(ctx, wrong, nil)
	requireDiscreet(t, wrong, err)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err))
	require.ErrorContains(t, err, "refuses the user or its password")

	s, err := Open(ctx, strings.Replace(dsn, "postgres@", "ann:"+secret+"@", 1), nil)
	require.NoError(t, err, "a user who may create a schema is enough")
	defer func() { require.NoError(t, s.Close()) }()
	_, err = s.PutBlob(ctx, "acme", []byte("x"))
	require.NoError(t, err)
	server.Stop()
	for range 3 {
		_, err = s.PutBlob(ctx, "acme", []byte("x"))
		requireDiscreet(t, dsn, err)
		require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err))
	}
}

func TestServerThatDoesNotAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, "postgres://ann@"+silent.Addr().String()+"/db?sslmode=disable", nil)
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
