package postgres

import (
	"context"
	"embed"
	"io/fs"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"interlock/agent"
	"interlock/store/internal/rules"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

const (
	// schemaTable says which migrations a database has had.
	schemaTable = "interlock.schema_version"
	// migrationLock is this program's own: goose's would be shared with a product
	// that migrates the same database by it.
	migrationLock = 0x696e7465726c6f63
	// oldest is the oldest server that is supported.
	oldest = 130000
)

// Migrate brings the schema of the database that dsn names up to date, as Open
// does, and says from which version to which; 0 is a database without it.
// Processes that migrate at once wait for each other.
func Migrate(ctx context.Context, dsn string) (from, to int64, err error) {
	s, err := connect(ctx, dsn, Options{})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = s.Close() }()
	from, to, err = s.migrate(ctx, false)
	return from, to, fail("migration of "+s.where, err)
}

// Version is the schema's version of the database that dsn names, 0 where there
// is none, and the one that this program needs. It changes nothing.
func Version(ctx context.Context, dsn string) (have, want int64, err error) {
	s, err := connect(ctx, dsn, Options{})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = s.Close() }()
	if want, err = newest(); err == nil {
		have, _, err = s.inspect(ctx)
	}
	return have, want, fail("look at the schema of "+s.where, err)
}

// newest is the version of the schema that this program needs.
func newest() (version int64, err error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	for _, name := range names {
		n, e := goose.NumericComponent(name)
		if e != nil {
			return 0, e
		}
		version = max(version, n)
	}
	return version, err
}

// migrate brings the schema up to date, or says why it cannot.
func (s *Store) migrate(ctx context.Context, noMigrate bool) (from, to int64, err error) {
	if to, err = newest(); err != nil {
		return 0, 0, err
	}
	from, writable, err := s.inspect(ctx)
	if err != nil {
		return from, to, err
	}
	if !writable {
		return from, to, agent.Errorf(states[readOnly].code, "%sit is read-only", states[readOnly].advice)
	}
	if err := rules.CheckSchema(from, to, noMigrate); err != nil || from == to {
		return from, to, err
	}
	if err := s.createSchema(ctx); err != nil {
		return from, to, err
	}
	return from, to, s.up(ctx)
}

// inspect is the schema's version, and whether the server takes writes. It
// refuses a server or a schema that is not for us.
func (s *Store) inspect(ctx context.Context) (version int64, writable bool, err error) {
	var encoding string
	var server, tables int
	var ours bool
	if err := s.plain(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
  current_setting('transaction_read_only') = 'off', count(*) FILTER (WHERE tablename = 'schema_version') > 0, count(*)
FROM pg_catalog.pg_tables WHERE schemaname = 'interlock'`, nil, func(r row) error {
		return r.Scan(&server, &encoding, &writable, &ours, &tables)
	}); err != nil {
		return 0, false, err
	}
	switch {
	case server < oldest:
		return 0, false, agent.Errorf(agent.CodeInvalid, "the database server is PostgreSQL %d; 13 or newer is needed", server/10000)
	case encoding != "UTF8":
		return 0, false, agent.Errorf(agent.CodeInvalid, "the database has the encoding %s; make one with the encoding UTF8", encoding)
	case !ours && tables > 0:
		return 0, false, agent.Errorf(agent.CodeInvalid, "the database has a schema interlock of another program; use another database")
	case !ours:
		return 0, writable, nil
	}
	err = s.plain(ctx, `SELECT coalesce(max(version_id), 0) FROM `+schemaTable+` WHERE is_applied`, nil, func(r row) error {
		return r.Scan(&version)
	})
	return version, writable, err
}

// createSchema makes the schema where it is missing. That is asked first: a user
// who may not make it may still fill it. It is asked of the table: a function
// like to_regnamespace may answer from what the session knew before it waited.
func (s *Store) createSchema(ctx context.Context) error {
	return s.transact(ctx, durably, func(t *transaction) error {
		t.exec(advisory, int64(migrationLock))
		missing := false
		t.rows(func(r row) error { return r.Scan(&missing) }, `SELECT NOT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'interlock')`)
		if err := t.flush(ctx); err != nil || !missing {
			return err
		}
		t.exec(`CREATE SCHEMA interlock`)
		return nil
	})
}

// up applies what is missing, under a lock that the session holds: who comes
// later finds it done.
func (s *Store) up(ctx context.Context) (err error) {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(migrationLock), lock.WithLockTimeout(1, 600))
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*s.pool.Config().ConnConfig)
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker),
		goose.WithTableName(schemaTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}
