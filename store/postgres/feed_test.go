package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/store"
	"interlock/store/postgres"
	"interlock/store/storetest"
)

func hinted(t *testing.T, wake <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-wake:
	case <-time.After(20 * time.Second):
		require.FailNow(t, "no hint", what)
	}
}

// Another process has a store of its own on the database. Where the connection that
// hears of it is cut, it is made anew, and whoever follows looks again.
func TestFollow_OtherProcesses(t *testing.T) {
	dsn := migrated(t)
	here, there := open(t, dsn, nil), open(t, dsn, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1")
	wake := here.Follow(t.Context(), store.Scope{Tenant: "acme", Address: h.Ref.Address})
	hinted(t, wake, "once it listens")
	for range 3 {
		h.Say(1, "a")
		require.NoError(t, appendAll(there, h))
		hinted(t, wake, "of another process")
	}
	execute(t, dsn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%LISTEN interlock_appended'`)
	hinted(t, wake, "the connection broke")
	require.Eventually(t, func() bool { // it listens anew
		h.Say(1, "b")
		require.NoError(t, appendAll(there, h))
		select {
		case <-wake:
			return true
		case <-time.After(time.Second):
			return false
		}
	}, 20*time.Second, time.Millisecond)
}

// A transaction that began earlier and commits late is not passed over: the feed
// waits for it, and then has it in its place.
func TestFeed_LateCommit(t *testing.T) {
	ctx, dsn := context.Background(), migrated(t)
	s := open(t, dsn, nil)
	first, late, after := storetest.NewHistory(t, "acme", "1", "r1"), storetest.NewHistory(t, "acme", "2", "r2"), storetest.NewHistory(t, "acme", "3", "r3")
	require.NoError(t, appendAll(s, first))
	require.NoError(t, appendAll(s, late))
	place, err := s.FeedEnd(ctx)
	require.NoError(t, err)

	slow := connection(t, dsn)
	tx, err := slow.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, `INSERT INTO interlock.events (tenant, address, first_run_id, seq, branch, at, type, v, turn, step, trace_id, data, hash)
SELECT tenant, address, first_run_id, 2, branch, at, 'paused', 1, 0, '', '', '{}', 'h' FROM interlock.events WHERE address = $1`, late.Ref.Address)
	require.NoError(t, err)
	require.NoError(t, appendAll(s, after))
	found, next, err := s.Appended(ctx, store.FeedFilter{After: place})
	require.NoError(t, err)
	require.Empty(t, found, "what is behind it waits with it")
	require.NoError(t, tx.Commit(ctx))
	found, _, err = s.Appended(ctx, store.FeedFilter{After: next})
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, []string{late.Ref.Address, after.Ref.Address}, []string{found[0].Address, found[1].Address})
}

// Pieces of answers reach other processes, in order and once.
func TestDeltas_OtherProcesses(t *testing.T) {
	dsn := migrated(t)
	here, there := open(t, dsn, nil), open(t, dsn, nil)
	heard := here.Hear(t.Context(), store.Scope{Tenant: "acme"})
	hinted(t, here.Follow(t.Context(), store.Scope{}), "once it listens")
	for _, teller := range []*postgres.Store{there, here} {
		for n := 1; n <= 20; n++ {
			teller.Tell(store.Delta{Tenant: "acme", Address: "acme/a/1", Turn: 1, Attempt: 1, N: n, Text: "it's \"so\"\n"})
		}
		for n := 1; n <= 20; n++ {
			select {
			case d := <-heard:
				require.Equal(t, store.Delta{Tenant: "acme", Address: "acme/a/1", Turn: 1, Attempt: 1, N: n, Text: "it's \"so\"\n"}, d)
			case <-time.After(20 * time.Second):
				require.FailNow(t, "a piece did not come", n)
			}
		}
	}
	h := storetest.NewHistory(t, "acme", "1", "r1")
	wake := here.Follow(t.Context(), store.Scope{Tenant: "acme", Address: h.Ref.Address})
	require.NoError(t, appendAll(there, h))
	hinted(t, wake, "what was told before it has come back")
	require.Empty(t, heard, "its own pieces were not heard twice")
}
