package tool_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// firstTable is what the first Interlock made, with an effect in it.
var firstTable = []string{`CREATE TABLE IF NOT EXISTS interlock_effects (
  tenant     TEXT NOT NULL,
  key        TEXT NOT NULL,
  scope      TEXT NOT NULL,
  tool       TEXT NOT NULL,
  step       TEXT NOT NULL,
  args       TEXT NOT NULL,
  refused    TEXT NOT NULL DEFAULT '',
  result     TEXT NOT NULL DEFAULT '',
  whole_ref  TEXT NOT NULL DEFAULT '',
  whole_size BIGINT NOT NULL DEFAULT 0,
  at         TEXT NOT NULL,
  PRIMARY KEY (tenant, key)
)`, `INSERT INTO interlock_effects (tenant, key, scope, tool, step, args, at, result)
VALUES ('acme', 'old', 'acme/a/k/run-1', 't', '1.1', '{"n":9007199254740993}', '2026-03-01T09:00:00Z', '{"n":1}')`}

func TestInstallEffects(t *testing.T) {
	ctx := context.Background()
	added := []string{"agent", "version", "address", "ordinal", "undone_by", "undone_at", "fenced"}
	for engine, open := range openers {
		t.Run(engine, func(t *testing.T) {
			database, schema := "SQLite", "main"
			if engine == "postgres" {
				database, schema = "PostgreSQL", "public"
			}
			db := open(t)
			done, err := tool.InstallEffects(ctx, db.DB)
			require.NoError(t, err)
			require.Equal(t, tool.EffectsTable{Database: database, Schema: schema, Made: true}, done)
			done, err = tool.InstallEffects(ctx, db.DB)
			require.NoError(t, err)
			require.Equal(t, tool.EffectsTable{Database: database, Schema: schema}, done)

			old := open(t)
			old.do(t, firstTable...)
			done, err = tool.InstallEffects(ctx, old.DB)
			require.NoError(t, err)
			require.Equal(t, tool.EffectsTable{Database: database, Schema: schema, Added: added}, done)
			out, f := attempt(transactional(old.DB, pay), keyed("old"))
			require.Nil(t, f)
			require.Equal(t, `{"n":1}`, out.JSON.String(), "an effect of before stands")
			require.Zero(t, old.paid(t))
			require.NoError(t, transactional(old.DB, pay).Undone(ctx, keyed("old"), "undo", tool.Ports{}))

			other := open(t)
			other.do(t, `CREATE TABLE interlock_effects (id INTEGER, key TEXT)`)
			_, err = tool.InstallEffects(ctx, other.DB)
			require.ErrorContains(t, err, "without the column tenant: it is not Interlock's")
			_, f = attempt(transactional(other.DB, pay), keyed("k"))
			isFailure(t, f, tool.FailedStore, false, "it is not Interlock's")
		})
	}
}

// Workers that start at once all find the table, whether there was none or an old
// one.
func TestInstallEffects_AtOnce(t *testing.T) {
	drivers := map[string]string{"sqlite": "sqlite", "postgres": "pgx"}
	for engine, open := range openers {
		for name, before := range map[string][]string{"none": nil, "old": firstTable} {
			t.Run(engine+"/"+name, func(t *testing.T) {
				for range 5 {
					db := open(t)
					db.do(t, before...)
					var wg sync.WaitGroup
					for i := range 8 {
						own := connect(t, drivers[engine], db.dsn)
						r := transactional(own, pay)
						wg.Go(func() {
							_, f := attempt(r, keyed(string(rune('a'+i))))
							if f != nil {
								t.Errorf("%s: %v", f.Kind, f)
							}
						})
					}
					wg.Wait()
					require.Equal(t, 8, db.paid(t))
					require.Equal(t, 8, db.count(t, `SELECT count(*) FROM interlock_effects WHERE address = 'acme/a/k' AND version = 1`))
					require.Equal(t, len(before)/2, db.count(t, `SELECT count(*) FROM interlock_effects WHERE key = 'old'`))
				}
			})
		}
	}
}

// A tool whose user may not make tables works once somebody else has made it.
func TestInstallEffects_ByWhoMay(t *testing.T) {
	for name, before := range map[string][]string{"none": nil, "old": firstTable} {
		t.Run(name, func(t *testing.T) {
			admin := newPostgres(t, "")
			role := "shop_" + strings.ToLower(strings.ReplaceAll(filepath.Base(t.TempDir()), "-", "_")) + name
			admin.do(t, before...)
			admin.do(t, `CREATE ROLE "`+role+`" LOGIN`, `GRANT INSERT ON payments TO "`+role+`"`)
			t.Cleanup(func() { admin.do(t, `DROP OWNED BY "`+role+`"`, `DROP ROLE "`+role+`"`) })
			r := transactional(connect(t, "pgx", as(t, admin.dsn, role)), pay)
			_, f := attempt(r, keyed("k"))
			isFailure(t, f, tool.FailedStore, false, "run `interlock effects install DSN` as a user who may, and then GRANT SELECT, INSERT, UPDATE ON interlock_effects TO ")
			_, _, err := r.Standing(context.Background(), keyed("k"), tool.Ports{})
			require.ErrorContains(t, err, "interlock effects install")

			_, err = tool.InstallEffects(context.Background(), admin.DB)
			require.NoError(t, err)
			_, f = attempt(r, keyed("k"))
			isFailure(t, f, tool.FailedStore, false, "GRANT SELECT, INSERT, UPDATE ON interlock_effects TO ")
			admin.do(t, `GRANT SELECT, INSERT, UPDATE ON interlock_effects TO "`+role+`"`)
			_, f = attempt(r, keyed("k"))
			require.Nil(t, f)
			require.NoError(t, r.Undone(context.Background(), keyed("k"), "undo", tool.Ports{}))
			require.Equal(t, 1, admin.paid(t))
		})
	}
}

func TestInstallEffects_ReadOnlyFile(t *testing.T) {
	db := newSQLite(t, "")
	path := strings.TrimSuffix(strings.TrimPrefix(db.dsn, "file:"), "?")
	require.FileExists(t, path)
	require.NoError(t, db.Close())
	require.NoError(t, os.Chmod(path, 0o400))
	_, f := attempt(transactional(connect(t, "sqlite", "file:"+path+"?mode=ro"), pay), keyed("k"))
	isFailure(t, f, tool.FailedStore, false, "table interlock_effects cannot be made or brought up to date: ")
	require.Contains(t, f.Error(), "readonly")
}

// All effects of a tool are in one table, whatever the search_path is.
func TestSearchPath(t *testing.T) {
	ctx := context.Background()
	public := newPostgres(t, "")
	public.do(t, `CREATE SCHEMA shop`, `CREATE SCHEMA "odd ""name"`, `CREATE TABLE shop.payments (n BIGINT)`)
	base := public.dsn
	shop := &product{DB: connect(t, "pgx", base+"&search_path=shop")}
	r := transactional(shop.DB, after(func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `SET LOCAL search_path = public`)
		return err
	}))
	for range 2 {
		_, f := attempt(r, keyed("k"))
		require.Nil(t, f)
	}
	require.Equal(t, 1, shop.count(t, `SELECT count(*) FROM shop.interlock_effects WHERE result <> ''`))
	shop.do(t, `SET search_path = public`) // of one connection, as some code does
	require.NoError(t, r.Undone(ctx, keyed("k"), "undo", tool.Ports{}))

	// A connection that does not find the table makes no second one: an effect would
	// happen again.
	elsewhere := connect(t, "pgx", base)
	_, f := attempt(transactional(elsewhere, pay), keyed("l"))
	isFailure(t, f, tool.FailedStore, false, "table interlock_effects is in the schema shop, which the search_path of the tool's connection does not reach")
	done, err := tool.InstallEffects(ctx, elsewhere)
	require.NoError(t, err)
	require.Equal(t, tool.EffectsTable{Database: "PostgreSQL", Schema: "public", Made: true}, done)
	_, f = attempt(transactional(elsewhere, pay), keyed("l"))
	require.Nil(t, f)

	odd := connect(t, "pgx", base+"&search_path="+url.PathEscape(`"odd ""name",public`))
	done, err = tool.InstallEffects(ctx, odd)
	require.NoError(t, err)
	require.Equal(t, "public", done.Schema, "the one that is found")
	_, err = odd.Exec(`CREATE TABLE "odd ""name".interlock_effects (LIKE public.interlock_effects INCLUDING ALL)`)
	require.NoError(t, err)
	_, f = attempt(transactional(odd, pay), keyed("m"))
	require.Nil(t, f)
	require.Equal(t, 1, shop.count(t, `SELECT count(*) FROM "odd ""name".interlock_effects`))

	nowhere := connect(t, "pgx", newPostgres(t, "").dsn+"&search_path=nowhere")
	_, f = attempt(transactional(nowhere, pay), keyed("n"))
	isFailure(t, f, tool.FailedStore, false, "no schema has been selected to create in")
}

// foreignDB is a database of which only the answer to one query is known.
type foreignDB map[string]string

func (a foreignDB) Connect(context.Context) (driver.Conn, error) { return a, nil }
func (a foreignDB) Driver() driver.Driver                        { return nil }
func (a foreignDB) Prepare(string) (driver.Stmt, error)          { return nil, errors.New("syntax error") }
func (a foreignDB) Close() error                                 { return nil }
func (a foreignDB) Begin() (driver.Tx, error)                    { return nil, errors.New("unexpected") }

func (a foreignDB) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	if v, ok := a[query]; ok {
		return &answer{v}, nil
	}
	return nil, errors.New("function does not exist")
}

type answer struct{ value string }

func (a *answer) Columns() []string { return []string{"v"} }
func (a *answer) Close() error      { return nil }
func (a *answer) Next(to []driver.Value) error {
	if a.value == "" {
		return io.EOF
	}
	to[0], a.value = a.value, ""
	return nil
}

func TestOtherDatabases(t *testing.T) {
	ctx := context.Background()
	for _, version := range []string{"8.0.36", "10.11.6-MariaDB-0+deb12u1", "CockroachDB CCL v23.1.11"} {
		db := sql.OpenDB(foreignDB{`SELECT version()`: version})
		_, err := tool.InstallEffects(ctx, db)
		require.ErrorContains(t, err, `must be SQLite or PostgreSQL, and this one says that it is "`+version+`"`)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "an end at once: waiting does not help")
		r := transactional(db, pay)
		_, f := attempt(r, keyed("k"))
		isFailure(t, f, tool.FailedStore, false, "must be SQLite or PostgreSQL")
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(f.Err))
		_, ok, err := r.Standing(ctx, keyed("k"), tool.Ports{})
		require.NoError(t, err, "no run stands still for it")
		require.False(t, ok)
		require.Error(t, r.Undone(ctx, keyed("k"), "undo", tool.Ports{}))
	}
	_, f := attempt(transactional(sql.OpenDB(foreignDB{}), pay), keyed("k"))
	isFailure(t, f, tool.FailedStore, false, "does not answer, or is neither SQLite nor PostgreSQL")
	require.NotEqual(t, agent.CodeInvalid, agent.ErrorCode(f.Err), "it may be down: it is waited for")
	_, f = attempt(transactional(nil, pay), keyed("k"))
	isFailure(t, f, tool.FailedRefused, false, "made without a database")
}

// A row under the same key of another effect does not pass for this one's.
func TestTransactional_ForeignRow(t *testing.T) {
	for engine, open := range openers {
		t.Run(engine, func(t *testing.T) {
			db := open(t)
			r := transactional(db.DB, pay)
			_, f := attempt(r, keyed("k"))
			require.Nil(t, f)
			foreign := keyed("k")
			foreign.Scope = "acme/a/other/run-2"
			_, f = attempt(r, foreign)
			isFailure(t, f, tool.FailedStore, false, "the key k is another effect's in interlock_effects: of tool t in acme/a/k/run-1")
			require.Equal(t, agent.CodeConflict, agent.ErrorCode(f.Err))
			require.Equal(t, agent.CodeConflict, agent.ErrorCode(r.Undone(context.Background(), foreign, "undo", tool.Ports{})))
			tenant := keyed("k")
			tenant.Tenant = "other"
			_, f = attempt(r, tenant)
			require.Nil(t, f)
			require.Equal(t, 2, db.paid(t))
		})
	}
}
