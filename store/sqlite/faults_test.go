package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/store/storetest"
)

// raw is another program's connection to the file.
func raw(t testing.TB, path string, statements ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		_, err := db.Exec(s)
		require.NoError(t, err, s)
	}
	return db
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
	got, err := s.Events(context.Background(), store.Chain{Tenant: h.Ref.Tenant, Address: h.Ref.Address}, 1, 0)
	require.NoError(t, err)
	require.Equal(t, h.Events, got)
}

func TestLockedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1").Say(2, "hi")
	require.NoError(t, appendAll(s, h))

	other := raw(t, path, "BEGIN IMMEDIATE")
	h.Say(1, "more")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	err := s.Append(ctx, h.Ref, h.Batch(4, 4))
	requireCode(t, agent.CodeUnavailable, err, "append of events 4 to 4 to acme/refund/1")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	start := time.Now()
	requireCode(t, agent.CodeUnavailable, appendAll(s, h), "locked by another process", "try again")
	require.InDelta(t, 5, time.Since(start).Seconds(), 2, "the busy timeout")
	requireEvents(t, s, h.Reset("r1", 3)) // who reads is not in the way

	_, err = other.Exec("ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, appendAll(s, h))
	requireEvents(t, s, h)
}

func TestLockReleasedInTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, nil)
	other := raw(t, path, "BEGIN EXCLUSIVE")
	time.AfterFunc(300*time.Millisecond, func() { _, _ = other.Exec("COMMIT") })
	require.NoError(t, appendAll(s, storetest.NewHistory(t, "acme", "1", "r1")))
}

func TestReopeningKeepsEverything(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "a store?.db#1%") // a path is no URL
	s := open(t, path, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1").Say(2, "hi").Open("1.1", "refunds")
	require.NoError(t, appendAll(s, h))
	_, _, err := s.Claim(ctx, store.Claim{Tenant: "acme", Key: "k", Address: h.Ref.Address, Tool: "pay"})
	require.NoError(t, err)
	blob, err := s.PutBlob(ctx, "acme", []byte("big"))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.FileExists(t, path)
	require.NoFileExists(t, path+"-wal", "folded into the file")

	s = open(t, path, &sqlite.Options{NoMigrate: true})
	requireEvents(t, s, h)
	require.NoError(t, appendAll(s, h.Say(1, "more")))
	_, fresh, err := s.Claim(ctx, store.Claim{Tenant: "acme", Key: "k", Address: h.Ref.Address, Tool: "pay"})
	require.NoError(t, err)
	require.False(t, fresh)
	data, err := s.GetBlob(ctx, "acme", blob.Ref, 0, -1)
	require.NoError(t, err)
	require.Equal(t, "big", string(data))
}

func TestTwoStoresOnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	a, b := open(t, path, nil), open(t, path, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1").Say(3, "hi")
	require.NoError(t, appendAll(a, h))
	requireEvents(t, b, h)

	var wg sync.WaitGroup
	var fresh [16]bool
	var errs [32]error
	h.Say(4, "more")
	for i := range fresh {
		s := []*sqlite.Store{a, b}[i%2]
		wg.Go(func() {
			_, fresh[i], errs[i] = s.Claim(context.Background(), store.Claim{Tenant: "acme", Key: "k", Address: h.Ref.Address, Tool: "pay"})
		})
		wg.Go(func() { errs[16+i] = appendAll(s, h) })
	}
	wg.Wait()
	n := 0
	for i, err := range errs {
		require.NoError(t, err)
		if i < 16 && fresh[i] {
			n++
		}
	}
	require.Equal(t, 1, n)
	requireEvents(t, a, h)
	requireEvents(t, b, h)
}

func TestOpeningANewFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			s, err := sqlite.Open(context.Background(), path, nil)
			if errs[i] = err; err == nil {
				errs[i] = s.Close()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestFilesThatAreNotOurs(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("no database at all\n", 100)), 0o600))
	_, err := sqlite.Open(ctx, text, nil)
	requireCode(t, agent.CodeInvalid, err, "not an SQLite database", text)
	content, err := os.ReadFile(text)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("no database at all\n", 100), string(content))

	foreign := filepath.Join(dir, "foreign.db")
	require.NoError(t, raw(t, foreign, "CREATE TABLE bookmarks (url TEXT)").Close())
	before, err := os.ReadFile(foreign)
	require.NoError(t, err)
	_, err = sqlite.Open(ctx, foreign, nil)
	requireCode(t, agent.CodeInvalid, err, "another program")
	after, err := os.ReadFile(foreign)
	require.NoError(t, err)
	require.Equal(t, before, after, "it is not even turned to WAL")

	_, err = sqlite.Open(ctx, dir, nil)
	requireCode(t, agent.CodeInvalid, err, "directory")
	_, err = sqlite.Open(ctx, filepath.Join(dir, "none", "store.db"), nil)
	requireCode(t, agent.CodeUnavailable, err, "its directory must exist")
	_, err = sqlite.Open(ctx, "", nil)
	requireCode(t, agent.CodeInvalid, err)
}

func TestDamagedFile(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1").Say(200, strings.Repeat("hi", 200))
	require.NoError(t, appendAll(s, h))
	require.NoError(t, s.Close())

	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("\xa5", int(info.Size())-8192)), 8192) // all but the first two pages
	require.NoError(t, err)
	require.NoError(t, f.Close())

	s, err = sqlite.Open(ctx, path, nil)
	if err == nil {
		_, err = s.Events(ctx, store.Chain{Tenant: "acme", Address: h.Ref.Address}, 1, 0)
		requireCode(t, agent.CodeUnavailable, s.Append(ctx, h.Ref, h.Batch(1, 2)), "damaged")
		require.NoError(t, s.Close())
	}
	requireCode(t, agent.CodeUnavailable, err, "damaged", "restore a backup")
}

func TestSchemaVersions(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "store.db")
	_, err := sqlite.Open(ctx, path, &sqlite.Options{NoMigrate: true})
	requireCode(t, agent.CodeUnavailable, err, "interlock migrate")
	require.NoFileExists(t, path)

	require.NoError(t, os.WriteFile(path, nil, 0o600)) // an empty file is an empty database
	_, err = sqlite.Open(ctx, path, &sqlite.Options{NoMigrate: true})
	requireCode(t, agent.CodeUnavailable, err, "interlock migrate")

	require.NoError(t, open(t, path, nil).Close())
	require.NoError(t, open(t, path, &sqlite.Options{NoMigrate: true}).Close())
	require.NoError(t, raw(t, path, "INSERT INTO interlock_schema (version_id, is_applied) VALUES (99999, 1)").Close())
	_, err = sqlite.Open(ctx, path, nil)
	requireCode(t, agent.CodeInvalid, err, "99999", "newer Interlock")
}

func TestTriggersHoldTheRows(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1").Say(2, "hi")
	require.NoError(t, appendAll(s, h))
	_, _, err := s.Claim(ctx, store.Claim{Tenant: "acme", Key: "k", Address: h.Ref.Address, Tool: "pay"})
	require.NoError(t, err)
	require.NoError(t, s.Settle(ctx, "acme", "k", store.Outcome{Status: store.EffectApplied}))
	db := raw(t, path)
	for _, change := range []string{
		"UPDATE effects SET status = 'claimed'", "UPDATE effects SET result = '1'", "UPDATE effects SET attempts = 9",
		"UPDATE events SET data = '{}' WHERE seq = 2", "UPDATE events SET branch = 'r2' WHERE seq = 2",
	} {
		_, err := db.Exec(change)
		require.ErrorContains(t, err, "never changes", change)
	}
}

func TestClock(t *testing.T) {
	ctx, at := context.Background(), time.Date(2031, 5, 6, 7, 8, 9, 123456789, time.FixedZone("", 3600))
	s := open(t, filepath.Join(t.TempDir(), "store.db"), &sqlite.Options{Now: func() time.Time { return at }})
	e, _, err := s.Claim(ctx, store.Claim{Tenant: "acme", Key: "k", Address: "a", Tool: "pay"})
	require.NoError(t, err)
	require.Equal(t, at.UTC().Truncate(time.Microsecond), e.ClaimedAt)
}

// Whenever a write is cut short, it is all there or not at all, and the store
// goes on.
func TestContextThatEndsDuringAWrite(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"), nil)
	h := storetest.NewHistory(t, "acme", "1", "r1")
	require.NoError(t, appendAll(s, h))
	cut := 0
	for i := range 60 {
		stands := h.Last()
		h.Say(8, strings.Repeat("hi", 500))
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i*25)*time.Microsecond)
		err := s.Append(ctx, h.Ref, h.Batch(stands+1, h.Last()))
		cancel()
		events, e := s.Events(context.Background(), store.Chain{Tenant: "acme", Address: h.Ref.Address}, stands+1, 0)
		require.NoError(t, e)
		if err != nil {
			cut++
			requireCode(t, agent.CodeUnavailable, err)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Contains(t, []int{0, 8}, len(events))
			require.NoError(t, s.Append(context.Background(), h.Ref, h.Batch(stands+1, h.Last())), "again")
		}
	}
	require.Positive(t, cut)
	requireEvents(t, s, h)
}
