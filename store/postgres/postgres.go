// Package postgres keeps the store in a PostgreSQL database (13 or newer, of
// encoding UTF8), in a schema of its own, "interlock", for any number of
// processes.
//
// A write is one transaction, whose statements are sent together as far as none
// needs another's result: an append is two round trips, most other writes are
// one. Appends to one address wait for each other. A commit is on the server's
// disk when it is acknowledged, but for AppendSoon.
//
// A store outlives its server: where the server is gone a call fails as
// unavailable, and when it is back the next one succeeds.
package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/follow"
)

// Options change what Open does. The zero value is right for production.
type Options struct {
	// NoMigrate leaves the schema as it is: a database that is behind, or has
	// none, is an error. Migrate is for it.
	NoMigrate bool
	// Now is the store's clock. Where nil it is the database's, which is the same
	// for all processes.
	Now func() time.Time
	// MaxConns bounds the connections; where 0 it is the DSN's pool_max_conns, or 10.
	MaxConns int
}

// Store is a [store.Store] in a PostgreSQL database.
type Store struct {
	pool   *pgxpool.Pool
	now    func() time.Time // nil: the database's clock
	where  string           // for people; without a secret
	closed atomic.Bool
	id     string // among those that tell each other
	hub    follow.Hub
	teller teller

	selectIdentity string       // as this user may ask for it
	acknowledges   atomic.Value // string: identity at the latest append
}

var _ store.Store = (*Store)(nil)

const (
	defaultConns   = 10
	connectTimeout = 10 * time.Second
)

// Open connects to the database that dsn names, as a URL or as pairs of key and
// value, and brings its schema up to date. It refuses a schema that another
// program or a newer Interlock made, and a server that takes no writes.
func Open(ctx context.Context, dsn string, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	s, err := connect(ctx, dsn, *opts)
	if err != nil {
		return nil, err
	}
	if _, _, err := s.migrate(ctx, opts.NoMigrate); err != nil {
		_ = s.Close()
		return nil, fail("opening of "+s.where, err)
	}
	if err := s.identify(ctx); err != nil {
		_ = s.Close()
		return nil, fail("opening of "+s.where, err)
	}
	return s, nil
}

// connect makes the pool; nothing is sent yet.
func connect(ctx context.Context, dsn string, opts Options) (*Store, error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	switch {
	case opts.MaxConns > 0:
		config.MaxConns = int32(min(opts.MaxConns, 1<<16))
	case !strings.Contains(dsn, "pool_max_conns"):
		config.MaxConns = defaultConns
	}
	c := config.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "interlock"
	}
	s := &Store{now: opts.Now, id: rand.Text(), where: fmt.Sprintf("database %s at %s:%d", c.Database, c.Host, c.Port)}
	s.hub.Listen, s.teller.tell = s.listen, s.tell
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fail("opening of "+s.where, err)
	}
	return s, nil
}

// parse reads a DSN. What is wrong with one is not told in detail: any part of
// it may be a part of a password.
func parse(dsn string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil || dsn == "" || strings.Contains(config.ConnConfig.Database, "@") || strings.Contains(config.ConnConfig.Host, "@") {
		return nil, agent.Errorf(agent.CodeInvalid, "the DSN of the store cannot be read: it is like postgres://user:password@host:5432/database?sslmode=verify-full, "+
			"or like host=… user=… dbname=…; in a URL, characters such as @ : / ? # %% in the password are written as %%40 %%3A %%2F %%3F %%23 %%25")
	}
	return config, nil
}

// Close ends all use of the store, once what is under way has ended.
func (s *Store) Close() error {
	if s.closed.Load() {
		return nil
	}
	s.hub.Close()
	s.teller.close()
	if !s.closed.Swap(true) {
		s.pool.Close()
	}
	return nil
}

// clock is the store's time, nil for the database's: coalesce($n, clock_timestamp()).
func (s *Store) clock() *time.Time {
	if s.now == nil {
		return nil
	}
	t := s.now().UTC().Truncate(time.Microsecond)
	return &t
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
