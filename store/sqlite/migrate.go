package sqlite

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/pressly/goose/v3"

	"interlock/agent"
	"interlock/store/internal/rules"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// schemaTable says which migrations a database has had.
const schemaTable = "interlock_schema"

// Migrate brings the schema of the database at path up to date, as Open does,
// and says from which version to which. It makes the file where there is none:
// from is 0 then.
func Migrate(ctx context.Context, path string) (from, to int64, err error) {
	s, err := connect(path, Options{})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = s.Close() }()
	from, to, err = s.migrate(ctx, path, false)
	return from, to, fail("migration of "+path, err)
}

// Version is the schema's version of the database at path, 0 where there is
// none, and the one that this program needs. It changes nothing.
func Version(ctx context.Context, path string) (have, want int64, err error) {
	s, err := connect(path, Options{NoMigrate: true})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = s.Close() }()
	provider, err := s.provider()
	if err == nil {
		want = newest(provider)
		have, err = s.inspect(ctx, path)
	}
	return have, want, fail("look at the schema of "+path, err)
}

// migrate brings the schema up to date, or says why it cannot. Processes that
// start together on a new file get in each other's way, so it tries again.
func (s *Store) migrate(ctx context.Context, path string, noMigrate bool) (from, to int64, err error) {
	for attempt := 1; ; attempt++ {
		from, to, err = s.migrateOnce(ctx, path, noMigrate)
		var coded *agent.Error
		if err == nil || errors.As(err, &coded) || !s.overtaken(ctx, from, err) || attempt == 5 {
			return from, to, err
		}
		select {
		case <-ctx.Done():
			return from, to, ctx.Err()
		case <-time.After(time.Duration(attempt) * 50 * time.Millisecond):
		}
	}
}

// overtaken reports whether a migration may have failed because another
// process was doing the same. Two of them cannot both succeed: each migration
// is one transaction, and begins with what cannot be done twice.
func (s *Store) overtaken(ctx context.Context, from int64, err error) bool {
	var partial *goose.PartialError
	version, foreign, e := s.schemaVersion(ctx)
	return isBusy(err) || errors.As(err, &partial) && e == nil && !foreign && version > from
}

func (s *Store) provider() (*goose.Provider, error) {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectSQLite3, s.writer, files,
		goose.WithTableName(schemaTable), goose.WithDisableGlobalRegistry(true))
}

// newest is the version of the schema that this program needs.
func newest(p *goose.Provider) int64 {
	sources := p.ListSources()
	return sources[len(sources)-1].Version
}

func (s *Store) migrateOnce(ctx context.Context, path string, noMigrate bool) (from, to int64, err error) {
	provider, err := s.provider()
	if err != nil {
		return 0, 0, err
	}
	to = newest(provider)
	// A file is looked at before it is written: a foreign one stays as it is.
	if from, err = s.inspect(ctx, path); err != nil {
		return from, to, err
	}
	if err := rules.CheckSchema(from, to, noMigrate); err != nil {
		return from, to, err
	}
	if err := s.probe(ctx); err != nil {
		return from, to, err
	}
	if from < to {
		_, err = provider.Up(ctx)
	}
	return from, to, err
}

// inspect is the schema's version, 0 for a new file. It refuses what is not ours.
func (s *Store) inspect(ctx context.Context, path string) (version int64, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err == nil && info.IsDir():
		return 0, agent.Errorf(agent.CodeInvalid, "this is a directory; the path must be of a file")
	}
	version, foreign, err := s.schemaVersion(ctx)
	if err == nil && foreign {
		err = agent.Errorf(agent.CodeInvalid, "the file is a database of another program; the path must be of one that Interlock made, or of a file that does not exist")
	}
	return version, err
}

func (s *Store) schemaVersion(ctx context.Context) (version int64, foreign bool, err error) {
	var ours, tables int
	err = s.reader.QueryRowContext(ctx,
		`SELECT count(*) FILTER (WHERE name = ?), count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`,
		schemaTable).Scan(&ours, &tables)
	if err != nil || ours == 0 {
		return 0, tables > 0, err
	}
	err = s.reader.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+schemaTable+` WHERE is_applied = 1`).Scan(&version)
	return version, false, err
}

// probe takes the write lock and lets it go: a database that cannot be written
// is found now, not at a run's first event.
func (s *Store) probe(ctx context.Context) error {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	return tx.Rollback()
}
