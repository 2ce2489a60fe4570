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
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// schemaTable says which migrations a database has had.
const schemaTable = "interlock_schema"

// migrate brings the schema up to date, or says why it cannot. Processes that
// start together on a new file get in each other's way, so it tries again.
func (s *Store) migrate(ctx context.Context, path string, noMigrate bool) error {
	for attempt := 1; ; attempt++ {
		err := s.migrateOnce(ctx, path, noMigrate)
		var coded *agent.Error
		if err == nil || errors.As(err, &coded) || !s.overtaken(ctx, err) || attempt == 5 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(attempt) * 50 * time.Millisecond):
		}
	}
}

// overtaken reports whether a migration may have failed because another
// process was doing the same.
func (s *Store) overtaken(ctx context.Context, err error) bool {
	var partial *goose.PartialError
	version, foreign, e := s.schemaVersion(ctx)
	return isBusy(err) || errors.As(err, &partial) && e == nil && !foreign && version > 0
}

func (s *Store) migrateOnce(ctx context.Context, path string, noMigrate bool) error {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, s.writer, files,
		goose.WithTableName(schemaTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	sources := provider.ListSources()
	newest := sources[len(sources)-1].Version

	// A file is looked at before it is written: a foreign one stays as it is.
	version, err := s.inspect(ctx, path, newest, noMigrate)
	if err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return err
	}
	if version < newest {
		_, err = provider.Up(ctx)
	}
	return err
}

// inspect is the schema's version, 0 for a new file. It refuses what is not
// ours, what is newer than this program, and, without migrations, what is older.
func (s *Store) inspect(ctx context.Context, path string, newest int64, noMigrate bool) (version int64, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && noMigrate:
		return 0, agent.Errorf(agent.CodeUnavailable, "there is no database; the command `interlock migrate` makes it")
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err == nil && info.IsDir():
		return 0, agent.Errorf(agent.CodeInvalid, "this is a directory; the path must be of a file")
	}
	version, foreign, err := s.schemaVersion(ctx)
	switch {
	case err != nil:
		return 0, err
	case foreign:
		return 0, agent.Errorf(agent.CodeInvalid, "the file is a database of another program; the path must be of one that Interlock made, or of a file that does not exist")
	case version > newest:
		return 0, agent.Errorf(agent.CodeInvalid, "the database has schema version %d and this program knows %d: it was migrated by a newer Interlock, which must be used", version, newest)
	case version < newest && noMigrate:
		return 0, agent.Errorf(agent.CodeUnavailable, "the database has schema version %d and this program needs %d; the command `interlock migrate` brings it up to date", version, newest)
	}
	return version, nil
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
