package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/config"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/examples/trip"
	"interlock/llm"
	"interlock/localtemporal"
	"interlock/starter"
	"interlock/store"
	"interlock/worker"
)

// stage is all that the refund agent needs, on this machine: Temporal, a store,
// a shop, a mail service, a worker, and a starter to use it by.
type stage struct {
	settings     config.Config // Store.Path names the folder of all data
	ui           bool
	bare         bool // Temporal and the store only: the worker is somebody else's
	port, uiPort int  // 0: a free one
	log          *slog.Logger
	model        llm.Model
	desk         *trip.Desk // of the travel agent, which it then serves in the place of the refund's

	temporal *localtemporal.Server
	client   client.Client
	store    store.Store
	shop     *shop.Shop
	mail     *mail.Server
	starter  *starter.Starter
	closers  []func() error
}

func (s *stage) folder() string { return filepath.Dir(s.settings.Store.Path) }

// Open starts everything, or nothing.
func (s *stage) Open(ctx context.Context) error {
	err := s.open(ctx)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

func (s *stage) open(ctx context.Context) (err error) {
	if err := os.MkdirAll(s.folder(), 0o700); err != nil {
		return err
	}
	// Two Temporal servers over one file would destroy each other's data.
	unlock, err := lock(filepath.Join(s.folder(), "lock"))
	if errors.Is(err, errLocked) {
		return fmt.Errorf("another interlock uses the data in %s: stop it, or name another file by --store-path", s.folder())
	}
	if err != nil {
		return err
	}
	s.later(unlock)
	if _, _, err = worker.Migrate(ctx, s.settings); err != nil {
		return err
	}
	if s.store, err = worker.OpenStore(ctx, s.settings); err != nil {
		return err
	}
	s.later(s.store.Close)
	switch {
	case s.bare:
		return s.openTemporal(ctx)
	case s.desk != nil:
		if err := s.openTemporal(ctx); err != nil {
			return err
		}
		return s.serve(ctx, trip.Agent(s.desk))
	}
	return s.openAgent(ctx)
}

// openAgent starts Temporal, and the sample agent with all that it works with.
func (s *stage) openAgent(ctx context.Context) (err error) {
	if s.shop, err = shop.Open(ctx, filepath.Join(s.folder(), "shop.db")); err != nil {
		return err
	}
	s.later(s.shop.Close)
	// It must outlive an interrupt, until the worker has stopped.
	if s.mail, err = mail.Serve(context.WithoutCancel(ctx), "127.0.0.1:0", filepath.Join(s.folder(), "mail.db")); err != nil {
		return err
	}
	s.later(s.mail.Close)
	if err := s.openTemporal(ctx); err != nil {
		return err
	}
	return s.serve(ctx, refund.Agent(s.shop, mail.Client{BaseURL: s.mail.URL()}))
}

// serve starts the worker of an agent.
func (s *stage) serve(ctx context.Context, def *agent.Definition) error {
	w, err := worker.New(worker.Config{Settings: s.settings, Client: s.client, Store: s.store, Model: s.model, Log: s.log}, def)
	if err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	s.later(func() error { w.Stop(); return nil })
	s.starter = starter.New(s.client, starter.WithReader(s.store), starter.WithTaskQueue(s.settings.TaskQueue))
	return nil
}

func (s *stage) openTemporal(ctx context.Context) (err error) {
	file, err := filepath.Abs(filepath.Join(s.folder(), "temporal.db"))
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.folder(), "temporal.log"))
	if err != nil {
		return err
	}
	s.later(log.Close)
	s.temporal, err = localtemporal.Start(ctx, localtemporal.Options{DBFile: file, UI: s.ui, UIPort: s.uiPort, Port: s.port, LogWriter: log})
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: stop what uses the port, or choose others with --port and --ui-port", err)
	}
	if err != nil {
		return err
	}
	s.later(s.temporal.Stop)
	// The server's own client logs nothing; what goes wrong in a task must be seen.
	s.client, err = client.DialContext(ctx, client.Options{HostPort: s.temporal.Address(), Logger: worker.SDKLog(s.log)})
	if err != nil {
		return fmt.Errorf("local Temporal: %w", err)
	}
	s.later(func() error { s.client.Close(); return nil })
	return nil
}

func (s *stage) later(f func() error) { s.closers = append(s.closers, f) }

// Close stops everything in the reverse order, whatever fails on the way. More
// calls do nothing.
func (s *stage) Close() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// emptyFolder makes a folder, and refuses one that holds something.
func emptyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return os.MkdirAll(dir, 0o700)
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty: name a folder that is, or one that does not exist yet", dir)
	}
	return nil
}
