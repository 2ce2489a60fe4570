package main

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"interlock/localtemporal"
)

// temporal is a Temporal that can be killed. Its state is in a file, its address
// stays.
type temporal struct {
	file   string
	server *localtemporal.Server
	port   int
}

func startTemporal(ctx context.Context, dir string) (*temporal, error) {
	t := &temporal{file: filepath.Join(dir, "temporal.db")}
	if err := t.start(ctx); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(t.server.Address())
	if err == nil {
		t.port, err = strconv.Atoi(port)
	}
	return t, err
}

func (t *temporal) start(ctx context.Context) (err error) {
	t.server, err = localtemporal.Start(ctx, localtemporal.Options{DBFile: t.file, Port: t.port})
	return err
}

// restart starts it after a kill. Its port may be busy for a moment.
func (t *temporal) restart(ctx context.Context) error {
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		if err := t.start(ctx); err == nil || ctx.Err() != nil || time.Since(began) > time.Minute {
			return err
		}
	}
}

func (t *temporal) address() string { return t.server.Address() }
func (t *temporal) kill()           { t.server.Kill() }
func (t *temporal) close()          { _ = t.server.Stop() }
