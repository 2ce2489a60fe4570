package pgtest

import (
	"fmt"
	"time"
)

// Process is a server for a program that is no test, such as a harness that kills
// it. It ends, and its files go, when that program does, however it dies. Its
// methods belong into one goroutine at a time.
type Process struct{ server *server }

// Launch starts a server. Settings ("name=value") are those of postgresql.conf. An
// error says what is missing where there is no PostgreSQL.
func Launch(settings ...string) (*Process, error) {
	s, err := initialize(settings)
	if err != nil {
		return nil, err
	}
	return &Process{s}, nil
}

// Database makes an empty database. Its DSN stays good when the server is started
// again.
func (p *Process) Database(name string) (dsn string, err error) {
	if err := create(p.server.dsn(), name, empty); err != nil {
		return "", fmt.Errorf("database %s: %w", name, err)
	}
	return withDatabase(p.server.dsn(), name), nil
}

// Kill ends the server's first process by SIGKILL. What was not written is lost,
// and what was acknowledged as durable is not.
func (p *Process) Kill() error { return p.server.stop(kill) }

// Start starts the server again. The other processes of one that was killed may
// still hold its memory for a moment: it tries again until they are gone.
func (p *Process) Start() (err error) {
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if err = p.server.start(); err == nil || time.Since(began) > timeout {
			return err
		}
	}
}

// Remove ends the server and deletes its files.
func (p *Process) Remove() { p.server.remove() }
