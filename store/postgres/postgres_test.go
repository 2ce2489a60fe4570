package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
	"interlock/store/pgtest"
	"interlock/store/postgres"
	"interlock/store/storetest"
)

// One database serves the whole suite, emptied before each test: making one for
// each takes most of the time.
func TestContract(t *testing.T) {
	dsn := migrated(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		execute(t, dsn, `DELETE FROM interlock.events; DELETE FROM interlock.gates; DELETE FROM interlock.runs; DELETE FROM interlock.effect_attempts; DELETE FROM interlock.effects;
DELETE FROM interlock.model_calls; DELETE FROM interlock.blobs; DELETE FROM interlock.deployments; DELETE FROM interlock.holds;
DELETE FROM interlock.assignments; DELETE FROM interlock.absences; DELETE FROM interlock.places; DELETE FROM interlock.dead_notices;
UPDATE interlock.store SET generation = 1`)
		return open(t, dsn, nil)
	})
}

// execute runs a statement as another program does.
func execute(t testing.TB, dsn, statement string, args ...any) {
	t.Helper()
	_, err := connection(t, dsn).Exec(context.Background(), statement, args...)
	require.NoError(t, err, statement)
}

// connection is another program's, closed at the test's end.
func connection(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// migrated is the DSN of a database with an empty store.
func migrated(t testing.TB) string {
	t.Helper()
	return pgtest.NewFrom(t, func(ctx context.Context, dsn string) error {
		_, _, err := postgres.Migrate(ctx, dsn)
		return err
	})
}

func open(t testing.TB, dsn string, opts *postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), dsn, opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func requireCode(t testing.TB, want agent.Code, err error, says ...string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, want, agent.ErrorCode(err), "%v", err)
	for _, s := range says {
		require.Contains(t, err.Error(), s)
	}
}

func appendAll(s store.Store, h *storetest.History) error {
	return s.Append(context.Background(), h.Ref, h.Batch(1, h.Last()))
}

func requireEvents(t testing.TB, s store.Store, h *storetest.History) {
	t.Helper()
	got, err := s.Events(context.Background(), h.Chain(), 1, 0)
	require.NoError(t, err)
	require.Equal(t, h.Events, got)
}
