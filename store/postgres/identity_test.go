package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
	"interlock/store/pgtest"
	"interlock/store/postgres"
	"interlock/store/storetest"
)

// A cold copy of the data directory in its place looks like the same database: it is
// told by what it lacks, and by the operator's word where it lacks only claims.
func TestLoss_OfAnOlderCopy(t *testing.T) {
	ctx, server := context.Background(), pgtest.StartServer(t)
	dsn := server.DSN(t)
	_, _, err := postgres.Migrate(ctx, dsn)
	require.NoError(t, err)
	s := open(t, dsn, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1").Say(2, "hi")
	require.NoError(t, s.Append(ctx, h.Ref, h.Batch(1, 3)))
	restore := server.Keep()

	h.Say(2, "more")
	require.Eventually(t, func() bool { return s.Append(ctx, h.Ref, h.Batch(4, 5)) == nil }, 20*time.Second, 50*time.Millisecond)
	told := s.Acknowledges()
	c := store.Claim{Tenant: "acme", Key: "k", Address: h.Ref.Address, Tool: "pay", Kind: agent.Once, Exclusive: true, Branch: "r1", Store: told}
	_, fresh, err := s.Claim(ctx, c)
	require.NoError(t, err)
	require.True(t, fresh)
	require.NoError(t, s.Settle(ctx, "acme", "k", store.Outcome{Status: store.EffectApplied, Result: agent.JSON(`{}`)}))

	restore()
	var r *store.Refusal
	require.Eventually(t, func() bool {
		err = s.Append(ctx, h.Ref, agent.Batch{Acked: 5, Store: told})
		return agent.ErrorCode(err) != agent.CodeUnavailable
	}, 20*time.Second, 50*time.Millisecond)
	require.ErrorAs(t, err, &r)
	require.Equal(t, store.Lost, r.Kind)
	e, fresh, err := s.Claim(ctx, c)
	require.NoError(t, err)
	require.False(t, fresh, "it may have happened")
	require.Equal(t, 2, e.Attempts)
	id, err := s.Identity(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 2, id.Generation)
	require.Contains(t, id.Place, "timeline 1")
}

// A database on another cluster than before is a copy.
func TestIdentity_NoticesAnotherCluster(t *testing.T) {
	dsn := migrated(t)
	first := open(t, dsn, nil).Acknowledges()
	require.Equal(t, first, open(t, dsn, nil).Acknowledges())
	execute(t, dsn, `UPDATE interlock.store SET place = 'cluster 7, timeline 1'`)
	s := open(t, dsn, nil)
	require.NotEqual(t, first, s.Acknowledges())
	id, err := s.Identity(context.Background())
	require.NoError(t, err)
	require.Contains(t, id.Reason, "cluster 7")
}

// A table lock and a server that takes no writes are told within a second.
func TestProbe_TellsALockAndAReadOnlyServer(t *testing.T) {
	dsn := migrated(t)
	s := open(t, dsn, nil)
	require.NoError(t, s.Probe(t.Context()))
	conn := connection(t, dsn)
	_, err := conn.Exec(t.Context(), `BEGIN; LOCK TABLE interlock.store IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	requireCode(t, agent.CodeUnavailable, s.Probe(t.Context()), "lock")
	_, err = conn.Exec(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	require.NoError(t, s.Probe(t.Context()))
}
