// Package pgtest gives tests a PostgreSQL of their own, made of the binaries of
// the system. It is support of tests, of the benchmark and of the chaos harness,
// outside of _test files only so that they can share it: nothing in production may
// import it.
//
// One server runs for a test binary, from the first [New] on; it ends, and its
// files go, when the binary does, however it dies. INTERLOCK_TEST_POSTGRES may
// be the URL of a server to use instead, whose user may create databases, or
// "required", by which a missing PostgreSQL fails the tests that need it instead
// of skipping them. They fail too where CI is set.
package pgtest

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	variable = "INTERLOCK_TEST_POSTGRES"
	required = "required"
)

// existing is the URL of the server that is to be used; "" where it is our own.
func existing() string {
	if dsn := os.Getenv(variable); dsn != required {
		return dsn
	}
	return ""
}

// empty is a database of every server, which others are made of.
const empty = "template0"

// shared is the server of this test binary, and the database on it that NewFrom
// copies.
var shared struct {
	starting, preparing sync.Once
	server              *server
	err, unprepared     error
}

const prepared = "interlock_test_prepared"

// New makes an empty database, which goes at the test's end.
func New(t testing.TB) (dsn string) {
	t.Helper()
	if dsn := existing(); dsn != "" {
		return database(t, dsn, empty)
	}
	return database(t, start(t).dsn(), empty)
}

// NewFrom makes a database like one that prepare has been through. All callers of
// a test binary hand in the same: it may run once only, and be copied.
func NewFrom(t testing.TB, prepare func(ctx context.Context, dsn string) error) (dsn string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if existing() != "" {
		dsn := New(t)
		if err := prepare(ctx, dsn); err != nil {
			t.Fatal(err)
		}
		return dsn
	}
	s := start(t)
	shared.preparing.Do(func() {
		if shared.unprepared = create(s.dsn(), prepared, empty); shared.unprepared == nil {
			shared.unprepared = prepare(ctx, withDatabase(s.dsn(), prepared))
		}
	})
	if shared.unprepared != nil {
		t.Fatal(shared.unprepared)
	}
	return database(t, s.dsn(), prepared)
}

func start(t testing.TB) *server {
	t.Helper()
	shared.starting.Do(func() { shared.server, shared.err = initialize(nil) })
	if shared.err != nil {
		give(t, shared.err)
	}
	return shared.server
}

// Server is one that a test may stop, crash and start again. Its methods belong
// into the test's own goroutine.
type Server struct {
	t      testing.TB
	server *server
}

// StartServer starts a server for this test alone. Settings ("name=value") are
// those of postgresql.conf.
func StartServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := initialize(settings)
	if err != nil {
		give(t, err)
	}
	t.Cleanup(s.remove)
	return &Server{t, s}
}

// DSN makes an empty database on the server. The DSN stays good when the server
// is started again.
func (s *Server) DSN(t testing.TB) string {
	t.Helper()
	return database(t, s.server.dsn(), empty)
}

// Stop shuts the server down, as its administrator does: sessions are ended.
func (s *Server) Stop() {
	s.t.Helper()
	s.check(s.server.stop(fast))
}

// Crash ends the server without a shutdown: what it has not written is lost.
func (s *Server) Crash() {
	s.t.Helper()
	s.check(s.server.stop(crash))
}

// Start starts the server again.
func (s *Server) Start() {
	s.t.Helper()
	s.check(s.server.start())
}

// Keep makes a cold copy of the data directory; the function that it returns puts the
// copy in its place again, as a restore does. The server runs after both.
func (s *Server) Keep() (restore func()) {
	s.t.Helper()
	data, kept := s.server.data(), s.server.data()+".kept"
	s.Stop()
	s.check(exec.Command("cp", "-a", data, kept).Run())
	s.Start()
	return func() {
		s.t.Helper()
		s.Stop()
		s.check(os.RemoveAll(data))
		s.check(exec.Command("cp", "-a", kept, data).Run())
		s.Start()
	}
}

func (s *Server) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// Available reports whether tests that need a server do anything but skip: there
// is one, or its want is to fail them.
func Available() bool {
	_, err := binaries()
	return err == nil || existing() != "" || mustHave()
}

// mustHave reports whether a missing PostgreSQL fails tests.
func mustHave() bool { return os.Getenv("CI") != "" || os.Getenv(variable) == required }

// missing says that there is no PostgreSQL, and what to do.
type missing string

func (m missing) Error() string { return string(m) }

// give ends a test for want of a server.
func give(t testing.TB, err error) {
	t.Helper()
	if _, absent := err.(missing); absent && !mustHave() {
		t.Skip(err)
	}
	t.Fatal(err)
}

// timeout bounds what a test waits for a server.
const timeout = time.Minute

// database makes a database on a server, as a copy, and drops it at the test's end.
func database(t testing.TB, server, like string) (dsn string) {
	t.Helper()
	name := "interlock_test_" + unique()
	if err := create(server, name, like); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { drop(server, name) })
	return withDatabase(server, name)
}

func unique() string { return strings.ToLower(rand.Text()) }

// drop is in vain where a test has stopped the server.
func drop(server, name string) {
	_ = connected(server, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		return err
	})
}

func create(server, name, like string) error {
	return connected(server, func(ctx context.Context, conn *pgx.Conn) error {
		statement := "CREATE DATABASE " + name + " TEMPLATE " + like + " ENCODING 'UTF8'"
		var files bool // copying these is the faster way where nothing waits for the disk
		err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int >= 150000 AND current_setting('fsync') = 'off'").Scan(&files)
		if err != nil {
			return err
		}
		if files {
			statement += " STRATEGY file_copy"
		}
		_, err = conn.Exec(ctx, statement)
		return err
	})
}

// connected hands a connection to f.
func connected(dsn string, f func(ctx context.Context, conn *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	err = f(ctx, conn)
	if e := conn.Close(ctx); err == nil {
		err = e
	}
	return err
}

// withDatabase is a server's URL for another database.
func withDatabase(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server // connecting says what is wrong
	}
	u.Path = "/" + name
	return u.String()
}
