package postgres_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
	"interlock/store/pgtest"
	"interlock/store/postgres"
	"interlock/store/storetest"
)

func TestSchemaVersions(t *testing.T) {
	ctx, dsn := context.Background(), pgtest.New(t)
	have, want, err := postgres.Version(ctx, dsn)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 9}, []int64{have, want})
	_, err = postgres.Open(ctx, dsn, &postgres.Options{NoMigrate: true})
	requireCode(t, agent.CodeUnavailable, err, "run interlock migrate")
	have, _, err = postgres.Version(ctx, dsn)
	require.NoError(t, err)
	require.Zero(t, have, "nothing was made")

	from, to, err := postgres.Migrate(ctx, dsn)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 9}, []int64{from, to})
	from, to, err = postgres.Migrate(ctx, dsn)
	require.NoError(t, err)
	require.Equal(t, []int64{9, 9}, []int64{from, to})
	open(t, dsn, &postgres.Options{NoMigrate: true})

	execute(t, dsn, "INSERT INTO interlock.schema_version (version_id, is_applied) VALUES (99999, true)")
	_, err = postgres.Open(ctx, dsn, nil)
	requireCode(t, agent.CodeInvalid, err, "99999", "made by a newer Interlock")
	_, _, err = postgres.Migrate(ctx, dsn)
	requireCode(t, agent.CodeInvalid, err, "made by a newer Interlock")
	have, _, err = postgres.Version(ctx, dsn)
	require.NoError(t, err)
	require.EqualValues(t, 99999, have)
}

func TestDatabasesThatAreNotOurs(t *testing.T) {
	ctx, dsn := context.Background(), pgtest.New(t)
	execute(t, dsn, "CREATE TABLE public.events (x int); CREATE TABLE public.runs (x int)") // a product's own are not in the way
	execute(t, dsn, "CREATE SCHEMA interlock")                                              // nor is an empty schema
	open(t, dsn, nil)

	foreign := pgtest.New(t)
	execute(t, foreign, "CREATE SCHEMA interlock; CREATE TABLE interlock.trains (x int)")
	_, err := postgres.Open(ctx, foreign, nil)
	requireCode(t, agent.CodeInvalid, err, "another program")

	latin := pgtest.New(t)
	execute(t, latin, "CREATE DATABASE interlock_latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
	t.Cleanup(func() { execute(t, latin, "DROP DATABASE interlock_latin WITH (FORCE)") })
	u, err := url.Parse(latin)
	require.NoError(t, err)
	u.Path = "/interlock_latin"
	_, err = postgres.Open(ctx, u.String(), nil)
	requireCode(t, agent.CodeInvalid, err, "LATIN1", "UTF8")
	u.Path = "/interlock_none"
	_, err = postgres.Open(ctx, u.String(), nil)
	requireCode(t, agent.CodeUnavailable, err, "no such database")
}

// TestMigrationByProcessesAtOnce runs itself as several processes.
func TestMigrationByProcessesAtOnce(t *testing.T) {
	if dsn := os.Getenv("POSTGRES_TEST_MIGRATE"); dsn != "" {
		s, err := postgres.Open(context.Background(), dsn, nil)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		return
	}
	dsn := pgtest.New(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestMigrationByProcessesAtOnce$")
			cmd.Env = append(os.Environ(), "POSTGRES_TEST_MIGRATE="+dsn)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	n := 0
	require.NoError(t, connection(t, dsn).QueryRow(context.Background(), "SELECT count(*) FROM interlock.schema_version WHERE version_id = 2").Scan(&n))
	require.Equal(t, 1, n, "applied once")
}

func TestTriggersHoldTheRows(t *testing.T) {
	ctx, dsn := context.Background(), migrated(t)
	s := open(t, dsn, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1").Say(2, "hi")
	require.NoError(t, appendAll(s, h))
	_, _, err := s.Claim(ctx, store.Claim{Tenant: "acme", Key: "k", Address: h.Ref.Address, Tool: "pay"})
	require.NoError(t, err)
	require.NoError(t, s.Settle(ctx, "acme", "k", store.Outcome{Status: store.EffectApplied}))
	require.NoError(t, s.Bury(ctx, store.DeadNotice{Tenant: "acme", ID: "n", Target: "ops"}))
	_, err = s.SettleDead(ctx, "acme", "n", "ops", store.DeadDropped, "olga")
	require.NoError(t, err)
	conn := connection(t, dsn)
	for _, change := range []string{
		"UPDATE interlock.effects SET status = 'claimed'", "UPDATE interlock.effects SET result = '1'", "UPDATE interlock.effects SET attempts = 9",
		"UPDATE interlock.effects SET undone_at = now(), resolved_by = 'me'",
		"UPDATE interlock.events SET data = '{}' WHERE seq = 2", "UPDATE interlock.events SET branch = 'r2' WHERE seq = 2",
		"UPDATE interlock.dead_notices SET ended = ''",
	} {
		_, err := conn.Exec(ctx, change)
		require.ErrorContains(t, err, "never changes", change)
	}
}

func TestClock(t *testing.T) {
	ctx, dsn := context.Background(), migrated(t)
	at := time.Date(2031, 5, 6, 7, 8, 9, 123456789, time.FixedZone("", 3600))
	s := open(t, dsn, &postgres.Options{Now: func() time.Time { return at }})
	c := store.Claim{Tenant: "acme", Key: "k", Address: "a", Tool: "pay", Attempt: time.Minute, Exclusive: true, Grace: time.Second}
	e, _, err := s.Claim(ctx, c)
	require.NoError(t, err)
	require.Equal(t, at.UTC().Truncate(time.Microsecond), e.ClaimedAt)
	require.Equal(t, e.ClaimedAt.Add(time.Minute), e.Deadline)
	at = at.Add(time.Minute)
	e, _, err = s.Claim(ctx, c)
	require.NoError(t, err)
	require.Equal(t, time.Second, e.Wait)
	at = at.Add(time.Second)
	e, _, err = s.Claim(ctx, c)
	require.NoError(t, err)
	require.Equal(t, []any{time.Duration(0), 2}, []any{e.Wait, e.Attempts})

	var before, after time.Time
	conn, database := connection(t, dsn), open(t, dsn, nil)
	require.NoError(t, conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&before))
	c.Key = "by the database"
	e, _, err = database.Claim(ctx, c)
	require.NoError(t, err)
	require.NoError(t, conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&after))
	require.False(t, e.ClaimedAt.Before(before.UTC()) || e.ClaimedAt.After(after.UTC()))
	require.Equal(t, e.ClaimedAt, e.AttemptAt)
	require.Equal(t, e.ClaimedAt.Add(time.Minute), e.Deadline)
}

// with is a DSN that asks for a way to send statements.
func with(t testing.TB, dsn, mode string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	q := u.Query()
	q.Set("default_query_exec_mode", mode)
	u.RawQuery = q.Encode()
	return u.String()
}

// Behind a pooler the DSN may ask for another way to send statements.
func TestWaysToSendStatements(t *testing.T) {
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			ctx := context.Background()
			s := open(t, with(t, migrated(t), mode), nil)
			h := storetest.NewHistory(t, "acme", "1", "r1").Open("1.1", "refunds", `it's "{a,b}`).CloseGate("1.1", agent.GateApproved).Say(2, `it's \ $1 <b>`).Open("1.2")
			require.NoError(t, appendAll(s, h))
			require.NoError(t, appendAll(s, h))
			r2 := h.Reset("r2", 3).Say(1, "otherwise").CloseGate("1.2", agent.GateVoid)
			require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(3, r2.Last())))
			requireEvents(t, s, r2)
			r3 := h.Reset("r3", 6).CloseGate("1.2", agent.GateVoid).End()
			require.NoError(t, s.Append(ctx, r3.Ref, r3.Batch(7, 8)))
			requireEvents(t, s, r3)
			next := r3.Follow("n1", "r1")
			require.NoError(t, appendAll(s, next))
			requireEvents(t, s, next)
			rows, err := s.RunRows(ctx, "acme", store.RunFilter{Limit: 1, Reason: "", Address: h.Ref.Address})
			require.NoError(t, err)
			rows, err = s.RunRows(ctx, "acme", store.RunFilter{After: rows[0].Cursor})
			require.NoError(t, err)
			require.Len(t, rows, 1)
			gates, err := s.GateRows(ctx, "acme", store.GateFilter{Role: `it's "{a,b}`, Before: time.Now().AddDate(10, 0, 0)})
			require.NoError(t, err)
			require.Len(t, gates, 1)
			c := store.Claim{Tenant: "acme", Key: "k", Address: "a", Tool: "pay", Args: agent.JSON(`{"a":"\\"}`)}
			for range 2 {
				_, _, err = s.Claim(ctx, c)
				require.NoError(t, err)
			}
			require.NoError(t, s.Settle(ctx, "acme", "k", store.Outcome{Status: store.EffectApplied, Result: agent.JSON(`"it's"`)}))
			_, err = s.RecordModelCall(ctx, store.ModelCall{Tenant: "acme", Key: "m", Address: "a", At: storetest.Epoch, Answer: agent.JSON(`{}`)})
			require.NoError(t, err)
			_, err = s.ModelUsage(ctx, "acme", "a")
			require.NoError(t, err)
			b, err := s.PutBlob(ctx, "acme", []byte("\x00\xff\\"))
			require.NoError(t, err)
			data, err := s.GetBlob(ctx, "acme", b.Ref, 1, 1)
			require.NoError(t, err)
			require.Equal(t, []byte{0xff}, data)
			require.NoError(t, s.Deployed(ctx, store.Deployment{Agent: "refund", Version: 1}))
		})
	}
}
