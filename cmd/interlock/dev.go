package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"interlock/examples/refund"
	"interlock/starter"
)

func (a *app) devCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serves the refund agent on a local Temporal, to try it by hand",
		Long: `Starts a local Temporal with its UI, a shop, a mail service, a worker with the
refund agent and its scripted model, and the HTTP API, and prints commands to try. With --no-worker
it starts Temporal and the store only, for a worker of your own. All data is in the
folder of store.path, .interlock by default, and is still there the next time.

Ctrl-C stops everything in order, a second one at once. Exit codes: 0 stopped,
1 it could not start (a port is in use, no temporal CLI) or stop, 2 a flag or
the configuration is wrong.`,
		Args: cobra.NoArgs,
	}
	port := cmd.Flags().Int("port", 7233, "port of Temporal")
	uiPort := cmd.Flags().Int("ui-port", 8233, "port of Temporal's UI")
	bare := cmd.Flags().Bool("no-worker", false, "start Temporal and the store only, for a worker of your own")
	a.configured(cmd.Flags(), "store.path", "task_queue", "api.listen", "log.level", "log.format")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for name, p := range map[string]int{"port": *port, "ui-port": *uiPort} {
			if p < 1 || p > 65535 {
				return usageError{fmt.Errorf("--%s %d is no port: give one from 1 to 65535", name, p)}
			}
		}
		if *port == *uiPort {
			return usageError{fmt.Errorf("--port and --ui-port are both %d: give them different ports", *port)}
		}
		cfg, err := a.settings(cmd, "info")
		if err != nil {
			return err
		}
		if cfg.Store.DSN != "" {
			return usagef("dev keeps all its data in the folder of store.path: unset store.dsn for it (INTERLOCK_STORE_DSN)")
		}
		s := &stage{settings: cfg, log: cfg.Log.Logger(a.err), model: refund.Model(), ui: true, bare: *bare, port: *port, uiPort: *uiPort}
		return a.serve(cmd.Context(), s)
	}
	return cmd
}

// sweepEvery is how often effects whose runs have ended are looked after.
const sweepEvery = 5 * time.Minute

// serve runs until ctx ends.
func (a *app) serve(ctx context.Context, s *stage) error {
	if err := s.Open(ctx); err != nil {
		return err
	}
	sweeps := starter.New(s.client, starter.WithTaskQueue(s.settings.TaskQueue))
	if err := sweeps.ScheduleSweep(ctx, sweepEvery); err != nil {
		return errors.Join(err, s.Close())
	}
	d, people, err := s.openAPI(ctx)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		defer stop()
		served <- d.serve(serving)
	}()
	err = a.invite(serving, s, welcome(d, people))
	stop()
	return errors.Join(err, <-served, s.Close())
}

// invite says what there is to try, and waits until ctx ends.
func (a *app) invite(ctx context.Context, s *stage, welcome string) error {
	file, err := filepath.Abs(s.settings.Store.Path)
	if err != nil {
		return err
	}
	if s.bare {
		fmt.Fprintf(a.out, `
Temporal     %s
UI           %s
data         %s (Temporal's warnings: temporal.log)

Your worker, your backend and the interlock commands find them by:

export TEMPORAL_ADDRESS=%s INTERLOCK_TASK_QUEUE=%s INTERLOCK_STORE_PATH=%s

%s
Ctrl-C stops everything; the data stays (delete the folder to begin anew).
`, s.temporal.Address(), s.temporal.UIAddress(), filepath.Dir(file), s.temporal.Address(), s.settings.TaskQueue, file, welcome)
		<-ctx.Done()
		return nil
	}
	key, err := freeKey(ctx, s.store)
	if err != nil {
		return err
	}
	order, err := freeOrder(ctx, s.shop)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, `
Temporal     %s
UI           %s
task queue   %s, served by a worker with agent refund
mail         %s/messages
data         %s (Temporal's warnings: temporal.log)

%s
%s
Ctrl-C stops everything; the data stays (delete the folder to begin anew).
`, s.temporal.Address(), s.temporal.UIAddress(), s.settings.TaskQueue, s.mail.URL(), filepath.Dir(file), welcome,
		try{s.temporal.Address(), s.settings.TaskQueue, file, key, order}.text())
	<-ctx.Done()
	return nil
}
