package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"interlock/store/pgtest"
)

// What was committed is there after a kill -9, and its open session's work is not.
func TestProcessThatIsKilled(t *testing.T) {
	pgtest.New(t) // skips where there is no server
	p, err := pgtest.Launch()
	require.NoError(t, err)
	t.Cleanup(p.Remove)
	dsn, err := p.Database("one")
	require.NoError(t, err)
	for n := range 2 {
		conn, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS rows AS SELECT 1 AS n WHERE false; INSERT INTO rows VALUES (1)")
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "BEGIN; INSERT INTO rows VALUES (2)")
		require.NoError(t, err)
		require.NoError(t, p.Kill())
		_, err = pgx.Connect(context.Background(), dsn)
		require.Error(t, err)
		require.NoError(t, p.Start())
		require.Equal(t, n+1, query(t, dsn, "SELECT count(*)::int FROM rows"))
		_ = conn.Close(t.Context())
	}
}
