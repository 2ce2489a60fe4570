package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
	"interlock/store/pgtest"
	"interlock/store/postgres"
	"interlock/store/storetest"
)

func TestServerIsRestarted(t *testing.T) {
	for name, end := range map[string]func(*pgtest.Server){"stopped": (*pgtest.Server).Stop, "crashed": (*pgtest.Server).Crash} {
		t.Run(name, func(t *testing.T) {
			ctx, server := context.Background(), pgtest.StartServer(t)
			s := open(t, server.DSN(t), nil)
			h := storetest.NewHistory(t, "acme", "1", "r1").Say(2, "before")
			require.NoError(t, appendAll(s, h))
			var wg sync.WaitGroup
			for range 5 { // several connections, all to be lost
				wg.Go(func() { _, _ = s.RunRow(ctx, h.Chain()) })
			}
			wg.Wait()

			end(server)
			h.Say(2, "during")
			requireCode(t, agent.CodeUnavailable, s.Append(ctx, h.Ref, h.Batch(4, 5)), "append of events 4 to 5 to acme/refund/1: ")
			requireCode(t, agent.CodeUnavailable, s.Append(ctx, h.Ref, h.Batch(4, 5)), "cannot be reached")
			_, err := s.RunRow(ctx, h.Chain())
			requireCode(t, agent.CodeUnavailable, err)

			server.Start()
			require.NoError(t, s.Append(ctx, h.Ref, h.Batch(4, 5)), "at once")
			requireEvents(t, s, h)

			end(server)
			server.Start()
			h.Say(1, "after")
			if err := s.Append(ctx, h.Ref, h.Batch(6, 6)); err != nil { // by a connection that is lost, and does not know
				requireCode(t, agent.CodeUnavailable, err)
				require.NoError(t, s.Append(ctx, h.Ref, h.Batch(6, 6)))
			}
			requireEvents(t, s, h)
		})
	}
}

// What is acknowledged stands, whatever the server was doing; what is not comes
// with the next try.
func TestServerIsRestartedDuringWrites(t *testing.T) {
	ctx, server := context.Background(), pgtest.StartServer(t)
	s := open(t, server.DSN(t), nil)
	var stop atomic.Bool
	var wg sync.WaitGroup
	histories, claims := make([]*storetest.History, 4), make([]int, 4)
	for i := range histories {
		h := storetest.NewHistory(t, "acme", fmt.Sprint(i), "r1")
		histories[i] = h
		wg.Go(func() {
			for first := int64(1); !stop.Load(); first = h.Last() + 1 {
				h.Say(3, strings.Repeat("x", 200))
				untilDone(t, func() error { return s.Append(ctx, h.Ref, h.Batch(first, h.Last())) })
				claims[i]++
				key := fmt.Sprintf("%d.%d", i, claims[i])
				untilDone(t, func() error {
					_, _, err := s.Claim(ctx, store.Claim{Tenant: "acme", Key: key, Address: h.Ref.Address, Tool: "pay"})
					return err
				})
				untilDone(t, func() error { return s.Settle(ctx, "acme", key, store.Outcome{Status: store.EffectApplied}) })
			}
		})
	}
	for _, end := range []func(){server.Stop, server.Crash, server.Stop} {
		time.Sleep(150 * time.Millisecond)
		end()
		time.Sleep(50 * time.Millisecond)
		server.Start()
	}
	time.Sleep(150 * time.Millisecond)
	stop.Store(true)
	wg.Wait()
	for i, h := range histories {
		requireEvents(t, s, h)
		effects, err := s.Effects(ctx, "acme", store.EffectFilter{Address: h.Ref.Address})
		require.NoError(t, err)
		require.Len(t, effects, claims[i])
		for _, e := range effects {
			require.Equal(t, store.EffectApplied, e.Status)
		}
	}
}

// untilDone repeats what may find the server gone.
func untilDone(t *testing.T, f func() error) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		err := f()
		if err == nil || time.Now().After(deadline) || agent.ErrorCode(err) != agent.CodeUnavailable {
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

func TestServerThatTakesNoWrites(t *testing.T) {
	ctx, dsn := context.Background(), migrated(t)
	s := open(t, dsn, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1").Say(2, "hi")
	require.NoError(t, appendAll(s, h))
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	everySession := func(readOnly string) {
		execute(t, dsn, "BEGIN READ WRITE; ALTER DATABASE "+config.Database+" SET default_transaction_read_only = "+readOnly+"; COMMIT")
	}
	everySession("on")
	execute(t, dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	h.Say(1, "more")
	_ = s.Append(ctx, h.Ref, h.Batch(4, 4)) // its connection was lost
	requireCode(t, agent.CodeUnavailable, s.Append(ctx, h.Ref, h.Batch(4, 4)), "takes no writes", "primary")
	_, err = s.PutBlob(ctx, "acme", []byte("x"))
	requireCode(t, agent.CodeUnavailable, err, "takes no writes")
	requireEvents(t, s, h.Reset("r1", 3))
	_, err = postgres.Open(ctx, dsn, nil)
	requireCode(t, agent.CodeUnavailable, err, "takes no writes")

	everySession("off")
	_ = s.Append(ctx, h.Ref, h.Batch(4, 4)) // by a connection of before
	require.NoError(t, s.Append(ctx, h.Ref, h.Batch(4, 4)), "by a new one, as after a failover")
	requireEvents(t, s, h)
}

func TestServerWithoutConnections(t *testing.T) {
	ctx, server := context.Background(), pgtest.StartServer(t, "max_connections=6", "superuser_reserved_connections=0", "max_wal_senders=0")
	dsn := server.DSN(t)
	s := open(t, dsn, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1")
	require.NoError(t, s.Close())
	s = open(t, dsn, &postgres.Options{NoMigrate: true})
	execute(t, dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
	var taken []*pgx.Conn
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			taken = append(taken, conn)
		}
		return err != nil
	}, 10*time.Second, time.Millisecond)
	_ = appendAll(s, h) // its connection was lost
	requireCode(t, agent.CodeUnavailable, appendAll(s, h), "no connection left")
	_, err := postgres.Open(ctx, dsn, nil)
	requireCode(t, agent.CodeUnavailable, err, "no connection left")
	for _, conn := range taken {
		require.NoError(t, conn.Close(ctx))
	}
	untilDone(t, func() error { return appendAll(s, h) })
	requireEvents(t, s, h)
}

func TestStatementIsCancelled(t *testing.T) {
	ctx, dsn := context.Background(), migrated(t)
	s := open(t, dsn, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1")
	require.NoError(t, appendAll(s, h))
	holder := connection(t, dsn)
	tx, err := holder.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, "LOCK TABLE interlock.runs IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)

	h.Say(1, "more")
	failed := make(chan error)
	go func() { failed <- s.Append(ctx, h.Ref, h.Batch(2, 2)) }()
	const waiting = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	other := connection(t, dsn)
	require.Eventually(t, func() bool {
		n := 0
		require.NoError(t, other.QueryRow(ctx, waiting).Scan(&n))
		return n == 1
	}, 10*time.Second, 5*time.Millisecond)
	requireCode(t, agent.CodeUnavailable, <-failed, "cancelled")

	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	err = s.Append(short, h.Ref, h.Batch(2, 2))
	requireCode(t, agent.CodeUnavailable, err)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, tx.Rollback(ctx))
	require.NoError(t, s.Append(ctx, h.Ref, h.Batch(2, 2)))
	requireEvents(t, s, h)
}

// Whenever a write is cut short, it is all there or not at all, and the store
// goes on.
func TestContextThatEndsDuringAWrite(t *testing.T) {
	s := open(t, migrated(t), nil)
	h := storetest.NewHistory(t, "acme", "1", "r1")
	require.NoError(t, appendAll(s, h))
	cut := 0
	for i := range 60 {
		stands := h.Last()
		h.Say(8, strings.Repeat("hi", 500))
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i*60)*time.Microsecond)
		err := s.Append(ctx, h.Ref, h.Batch(stands+1, h.Last()))
		cancel()
		events, e := s.Events(context.Background(), h.Chain(), stands+1, 0)
		require.NoError(t, e)
		if err != nil {
			cut++
			requireCode(t, agent.CodeUnavailable, err)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Contains(t, []int{0, 8}, len(events))
		}
		require.NoError(t, s.Append(context.Background(), h.Ref, h.Batch(stands+1, h.Last())), "again")
	}
	require.Positive(t, cut)
	requireEvents(t, s, h)
}

func TestTwoBranchesAtOnce(t *testing.T) {
	ctx, dsn := context.Background(), migrated(t)
	stores := []*postgres.Store{open(t, dsn, nil), open(t, dsn, nil)}
	for round := range 10 {
		h := storetest.NewHistory(t, "acme", fmt.Sprint(round), "r1").Say(4, "hi")
		require.NoError(t, appendAll(stores[0], h))
		branches := []*storetest.History{h.Reset("r2", 3).Say(3, "second"), h.Reset("r3", 3).Say(3, "third")}
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, b := range branches {
			wg.Go(func() { errs[i] = stores[i].Append(ctx, b.Ref, b.Batch(3, 6)) })
		}
		wg.Wait()
		// Both may supersede what stands: the one that came last is the live one, and
		// what the other wrote is marked as superseded by it.
		require.NoError(t, errs[0])
		require.NoError(t, errs[1])
		got, err := stores[0].Branches(ctx, h.Chain())
		require.NoError(t, err)
		live := branches[0]
		if got[len(got)-1].RunID == "r3" {
			live = branches[1]
		}
		requireEvents(t, stores[1], live)
	}
}

func TestClaimsOfTwoStoresAtOnce(t *testing.T) {
	ctx, dsn := context.Background(), migrated(t)
	stores := []*postgres.Store{open(t, dsn, nil), open(t, dsn, nil)}
	for round := range 10 {
		c := store.Claim{Tenant: "acme", Key: fmt.Sprint(round), Address: "a", Tool: "pay", Attempt: time.Hour, Exclusive: round%2 == 0}
		var wg sync.WaitGroup
		var fresh, granted atomic.Int32
		for i := range 8 {
			wg.Go(func() {
				e, isFresh, err := stores[i%2].Claim(ctx, c)
				if err != nil {
					t.Error(err)
				}
				if isFresh {
					fresh.Add(1)
				}
				if e.Wait == 0 {
					granted.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, fresh.Load())
		e, err := stores[0].Effect(ctx, "acme", c.Key)
		require.NoError(t, err)
		require.EqualValues(t, granted.Load(), e.Attempts)
		require.Equal(t, c.Exclusive, e.Attempts == 1)
	}
}
