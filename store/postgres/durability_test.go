package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"interlock/store/pgtest"
	"interlock/store/storetest"
)

// reach is how far the server's log reaches, in memory and on the disk.
func reach(t testing.TB, conn *pgx.Conn) (written, flushed int64) {
	t.Helper()
	require.NoError(t, conn.QueryRow(context.Background(),
		`SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, pg_current_wal_flush_lsn() - '0/0'::pg_lsn`).Scan(&written, &flushed))
	return written, flushed
}

// What AppendSoon committed is on the disk when an Append of the same events
// returns, also where the server does not wait for its disk by default.
func TestAppend_OfWhatStandsWaitsForTheDisk(t *testing.T) {
	for _, synchronous := range []string{"on", "off"} {
		t.Run(synchronous, func(t *testing.T) {
			ctx := context.Background()
			server := pgtest.StartServer(t, "wal_writer_delay=10s", "synchronous_commit="+synchronous)
			dsn := server.DSN(t)
			s, conn := open(t, dsn, nil), connection(t, dsn)
			h := storetest.NewHistory(t, "acme", "1", "r1")
			require.NoError(t, appendAll(s, h))
			behind := 0
			for range 20 {
				h.Say(1, "hi")
				batch := h.Batch(h.Last(), h.Last())
				require.NoError(t, s.AppendSoon(ctx, h.Ref, batch))
				require.NoError(t, s.AppendSoon(ctx, h.Ref, batch), "nothing to write, nobody to wait")
				written, flushed := reach(t, conn)
				if flushed < written {
					behind++
				}
				require.NoError(t, s.Append(ctx, h.Ref, batch))
				_, flushed = reach(t, conn)
				require.GreaterOrEqual(t, flushed, written)
			}
			require.Positive(t, behind, "AppendSoon does not wait")
			h.Say(1, "the last")
			batch := h.Batch(h.Last(), h.Last())
			require.NoError(t, s.AppendSoon(ctx, h.Ref, batch))
			require.NoError(t, s.Append(ctx, h.Ref, batch))
			server.Crash()
			server.Start()
			untilDone(t, func() error { _, err := s.RunRow(ctx, h.Chain()); return err })
			requireEvents(t, s, h)
		})
	}
}

// Every durable write covers what was written soon before it.
func TestAppendSoon_IsCoveredByTheNextWrite(t *testing.T) {
	ctx, server := context.Background(), pgtest.StartServer(t, "wal_writer_delay=10s")
	s := open(t, server.DSN(t), nil)
	h := storetest.NewHistory(t, "acme", "1", "r1").Say(3, "hi")
	require.NoError(t, s.AppendSoon(ctx, h.Ref, h.Batch(1, h.Last())))
	_, err := s.PutBlob(ctx, "acme", []byte("x"))
	require.NoError(t, err)
	server.Crash()
	server.Start()
	untilDone(t, func() error { _, err := s.RunRow(ctx, h.Chain()); return err })
	requireEvents(t, s, h)
}
