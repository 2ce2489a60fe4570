package pgtest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"interlock/store/pgtest"
)

func query(t *testing.T, dsn, text string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	require.NoError(t, conn.QueryRow(context.Background(), text).Scan(&n))
	return n
}

func TestDatabasesAreEmptyAndApart(t *testing.T) {
	a, b := pgtest.New(t), pgtest.New(t)
	require.NotEqual(t, a, b)
	require.Equal(t, 1, query(t, a, "WITH made AS (SELECT 1) SELECT count(*) FROM made"))
	conn, err := pgx.Connect(context.Background(), a)
	require.NoError(t, err)
	_, err = conn.Exec(context.Background(), "CREATE TABLE x (y int)")
	require.NoError(t, err)
	require.NoError(t, conn.Close(context.Background()))
	const tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
	require.Equal(t, 1, query(t, a, tables))
	require.Equal(t, 0, query(t, b, tables))
}

func TestDatabasesLikeOneThatIsPrepared(t *testing.T) {
	times := 0
	prepare := func(ctx context.Context, dsn string) error {
		times++
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "CREATE TABLE x AS SELECT 7 AS y"); err != nil {
			return err
		}
		return conn.Close(ctx)
	}
	for range 3 {
		require.Equal(t, 7, query(t, pgtest.NewFrom(t, prepare), "SELECT y FROM x"))
	}
	if v := os.Getenv("INTERLOCK_TEST_POSTGRES"); v == "" || v == "required" {
		require.Equal(t, 1, times)
	}
}

func TestServerThatIsStoppedAndStarted(t *testing.T) {
	s := pgtest.StartServer(t, "max_connections=7")
	dsn := s.DSN(t)
	require.Equal(t, 7, query(t, dsn, "SELECT current_setting('max_connections')::int"))
	for _, end := range []func(){s.Stop, s.Crash} {
		end()
		_, err := pgx.Connect(context.Background(), dsn)
		require.Error(t, err)
		s.Start()
		require.Equal(t, 1, query(t, dsn, "SELECT 1"))
	}
}

// A process that is killed leaves neither a server nor its files.
func TestServerEndsWithItsProcess(t *testing.T) {
	if out := os.Getenv("PGTEST_LEAVE"); out != "" {
		require.NoError(t, os.WriteFile(out+".new", []byte(pgtest.StartServer(t).DSN(t)), 0o600))
		require.NoError(t, os.Rename(out+".new", out))
		time.Sleep(time.Minute) // it is killed long before
	}
	pgtest.New(t) // skips where there is no server
	out := filepath.Join(t.TempDir(), "dsn")
	cmd := exec.Command(os.Args[0], "-test.run=^TestServerEndsWithItsProcess$")
	cmd.Env = append(os.Environ(), "PGTEST_LEAVE="+out)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { _, err := os.Stat(out); return err == nil }, time.Minute, 20*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	dsn, err := os.ReadFile(out)
	require.NoError(t, err)
	config, err := pgx.ParseConfig(string(dsn))
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := os.Stat(config.Host); return os.IsNotExist(err) }, 30*time.Second, 50*time.Millisecond, config.Host)
	_, err = pgx.Connect(context.Background(), string(dsn))
	require.Error(t, err)
}
