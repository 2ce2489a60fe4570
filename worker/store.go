package worker

import (
	"context"
	"os"
	"path/filepath"

	"interlock/agent"
	"interlock/config"
	"interlock/store"
	"interlock/store/postgres"
	"interlock/store/sqlite"
)

// OpenStore opens the store that the configuration names. It changes no schema:
// a database that is not there, or is behind this program, is refused with what
// to do, so that a worker that is rolled out early or late migrates nothing by
// the way.
func OpenStore(ctx context.Context, c config.Config) (store.Store, error) {
	if dsn := c.Store.DSN.Reveal(); dsn != "" {
		return postgres.Open(ctx, dsn, &postgres.Options{NoMigrate: true})
	}
	return sqlite.Open(ctx, c.Store.Path, &sqlite.Options{NoMigrate: true})
}

// Migrate brings the schema of that store up to date and reports its version
// before and after; before is 0 for a new database. The folder of a SQLite file
// is created. Several processes may do it at the same time.
func Migrate(ctx context.Context, c config.Config) (before, after int64, err error) {
	if dsn := c.Store.DSN.Reveal(); dsn != "" {
		return postgres.Migrate(ctx, dsn)
	}
	if err := os.MkdirAll(filepath.Dir(c.Store.Path), 0o700); err != nil {
		return 0, 0, agent.Errorf(agent.CodeUnavailable, "the store's folder cannot be made: %w", err)
	}
	return sqlite.Migrate(ctx, c.Store.Path)
}

// SchemaVersion is the version of that store's schema, 0 where there is none
// yet, and the newest that this program knows. It changes nothing.
func SchemaVersion(ctx context.Context, c config.Config) (have, newest int64, err error) {
	if dsn := c.Store.DSN.Reveal(); dsn != "" {
		return postgres.Version(ctx, dsn)
	}
	return sqlite.Version(ctx, c.Store.Path)
}
