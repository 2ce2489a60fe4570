package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
	"interlock/store/storetest"
)

// filled makes a database with rows in all tables, and says whose runs they are:
// one with superseded events and gates in every state, one that has ended.
func filled(t *testing.T, path string) (live, ended *storetest.History) {
	t.Helper()
	ctx := context.Background()
	s, err := Open(ctx, path, nil)
	require.NoError(t, err)
	h := storetest.NewHistory(t, "acme", "1", "r1").Open("1.1", "refunds").Open("1.2").CloseGate("1.2", agent.GateApproved).Say(3, "it's <b>")
	require.NoError(t, s.Append(ctx, h.Ref, h.Batch(1, h.Last())))
	live = h.Reset("r2", 5).CloseGate("1.1", agent.GateRejected).Open("2.1", "ops")
	require.NoError(t, s.Append(ctx, live.Ref, live.Batch(6, live.Last())))
	require.NoError(t, s.Append(ctx, live.Ref, live.Batch(6, live.Last())), "which counts as touched")
	ended = storetest.NewHistory(t, "acme", "2", "r9").End()
	require.NoError(t, s.Append(ctx, ended.Ref, ended.Batch(1, 2)))
	other := storetest.NewHistory(t, "globex", "1", "r1").Say(2, "other")
	require.NoError(t, s.Append(ctx, other.Ref, other.Batch(1, 3)))
	for _, key := range []string{"settled", "unknown", "running"} {
		_, _, err := s.Claim(ctx, store.Claim{Tenant: "acme", Key: key, Address: h.Ref.Address, Tool: "pay", Args: agent.JSON(`{"a":1}`)})
		require.NoError(t, err)
	}
	require.NoError(t, s.Settle(ctx, "acme", "settled", store.Outcome{Status: store.EffectApplied, Result: agent.JSON(`1`), Whole: &agent.Blob{Ref: "x", Bytes: 3}}))
	_, err = s.MarkUnknown(ctx, "acme", "unknown", 1, "lost")
	require.NoError(t, err)
	for range 2 {
		_, err = s.RecordModelCall(ctx, store.ModelCall{Tenant: "acme", Key: "m", Address: h.Ref.Address, Answer: agent.JSON(`{}`), At: storetest.Epoch})
		require.NoError(t, err)
	}
	_, err = s.PutBlob(ctx, "acme", []byte("\x00big"))
	require.NoError(t, err)
	require.NoError(t, s.Deployed(ctx, store.Deployment{Agent: "refund", Version: 1, Fingerprint: "f"}))
	require.NoError(t, s.Close())
	return live, ended
}

// firstVersion makes a database as the first migration left it, with the rows
// that another one has.
func firstVersion(t *testing.T, path, from string) {
	t.Helper()
	s, err := connect(path, Options{})
	require.NoError(t, err)
	p, err := s.provider()
	require.NoError(t, err)
	_, err = p.UpTo(context.Background(), 1)
	require.NoError(t, err)
	_, err = s.writer.Exec(`ATTACH ? AS a`, from)
	require.NoError(t, err)
	for _, copied := range []string{
		`runs SELECT tenant, address, first_run_id, agent, version, key, user, body, seq, hash, status, reason, phase, turn, started_at, updated_at, ended_at, touched`,
		`events SELECT tenant, address, seq, branch, at, type, v, turn, step, trace_id, data, hash, superseded_by`,
		`gates SELECT tenant, address, gate, opened, closed, status, roles, opened_at, expires_at, data`,
		`effects SELECT tenant, key, address, scope, agent, version, tool, kind, step, ordinal, args, status, result, whole_ref, whole_bytes, reason, attempts, released, unknown, claimed_at, settled_at`,
		`model_calls SELECT *`, `blobs SELECT *`, `deployments SELECT agent, version, fingerprint, at`,
	} {
		var table string
		_, err = fmt.Sscan(copied, &table)
		require.NoError(t, err)
		done, err := s.writer.Exec(`INSERT INTO main.` + copied + ` FROM a.` + table)
		require.NoError(t, err, table)
		n, err := done.RowsAffected()
		require.NoError(t, err)
		require.Positive(t, n, table)
	}
	require.NoError(t, s.Close())
}

// dump is every row of a table, with its columns.
func dump(t *testing.T, path, query string) (all []string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	rows, err := db.Query(query)
	require.NoError(t, err)
	columns, err := rows.Columns()
	require.NoError(t, err)
	require.NoError(t, each(rows, func(r row) error {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		err := r.Scan(into...)
		all = append(all, fmt.Sprintf("%q", fmt.Sprint(columns, values)))
		return err
	}))
	return all
}

func TestMigration_KeepsEveryRow(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	fresh, path := filepath.Join(dir, "fresh.db"), filepath.Join(dir, "first.db")
	live, ended := filled(t, fresh)
	firstVersion(t, path, fresh)

	have, want, err := Version(ctx, path)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 10}, []int64{have, want})
	_, err = Open(ctx, path, &Options{NoMigrate: true})
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err))
	require.ErrorContains(t, err, "run interlock migrate")
	from, to, err := Migrate(ctx, path)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 10}, []int64{from, to})

	for _, query := range []string{
		`SELECT * FROM runs ORDER BY tenant, address`, `SELECT * FROM events ORDER BY rowid`, `SELECT * FROM gates ORDER BY tenant, address, gate`,
		`SELECT * FROM model_calls ORDER BY nth`, `SELECT * FROM blobs`, `SELECT * FROM deployments`,
		`SELECT tenant, key, args, status, result, whole_ref, reason, attempts, unknown, claimed_at, attempt_at, settled_at FROM effects ORDER BY rowid`,
		`SELECT tenant, key, n, at, branch FROM effect_attempts ORDER BY key, n`,
		`SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'interlock_%' ORDER BY name`,
	} {
		require.NotEmpty(t, dump(t, fresh, query))
		require.Equal(t, dump(t, fresh, query), dump(t, path, query), query)
	}
	require.Empty(t, dump(t, path, `PRAGMA foreign_key_check`))
	require.Equal(t, dump(t, fresh, `PRAGMA integrity_check`), dump(t, path, `PRAGMA integrity_check`))

	s, err := Open(ctx, path, &Options{NoMigrate: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	branches, err := s.Branches(ctx, live.Chain())
	require.NoError(t, err)
	require.Equal(t, []store.Branch{{RunID: "r1", First: 1, Last: 7, Superseded: 2, SupersededBy: "r2"}, {RunID: "r2", First: 6, Last: 7}}, branches)
	live.Say(1, "and on")
	require.NoError(t, s.Append(ctx, live.Ref, live.Batch(8, 8)))
	events, err := s.Events(ctx, live.Chain(), 1, 0)
	require.NoError(t, err)
	require.Equal(t, live.Events, events)
	next := ended.Follow("r10", "r9")
	next.Ref.Address = ended.Ref.Address
	require.NoError(t, s.Append(ctx, next.Ref, next.Batch(1, 1)))
	e, _, err := s.Claim(ctx, store.Claim{Tenant: "acme", Key: "running", Tool: "pay", Address: "a", Args: agent.JSON(`{"a":1}`), Exclusive: true, Grace: time.Hour})
	require.NoError(t, err)
	require.Equal(t, []any{2, time.Duration(0)}, []any{e.Attempts, e.Wait}, "its attempt is of a program that knew no deadline")
}

func TestMigration_AtOnce(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	fresh, path := filepath.Join(dir, "fresh.db"), filepath.Join(dir, "first.db")
	filled(t, fresh)
	firstVersion(t, path, fresh)
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		wg.Go(func() {
			s, err := Open(ctx, path, nil)
			if errs[i] = err; err == nil {
				errs[i] = s.Close()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, dump(t, fresh, `SELECT * FROM events ORDER BY rowid`), dump(t, path, `SELECT * FROM events ORDER BY rowid`))
	require.Len(t, dump(t, path, `SELECT * FROM `+schemaTable+` WHERE version_id = 4`), 1, "applied once")
}

func TestMigrateAndVersion_OfWhatIsNotThere(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "store.db")
	have, want, err := Version(ctx, path)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 10}, []int64{have, want})
	require.NoFileExists(t, path)
	from, to, err := Migrate(ctx, path)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 10}, []int64{from, to})
	from, to, err = Migrate(ctx, path)
	require.NoError(t, err)
	require.Equal(t, []int64{10, 10}, []int64{from, to})
	_, _, err = Version(ctx, filepath.Dir(path))
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err))
}
