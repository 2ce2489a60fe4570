package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"interlock/agent"
	"interlock/config"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/worker"
)

// session is what a command about runs works with.
type session struct {
	starter *starter.Starter
	store   store.Store // nil where there is none, or it cannot be opened
	client  client.Client
	tenant  string // that a list is of
	timeout time.Duration
}

// sessionFlags are the flags of every command about runs.
func (a *app) sessionFlags(cmd *cobra.Command) {
	a.configured(cmd.PersistentFlags(), slices.Concat([]string{"task_queue", "tenant", "tokens.issuer", "tokens.audience", "tokens.sign_with"}, storeKeys, temporalKeys, logKeys)...)
	cmd.PersistentFlags().Duration("timeout", starter.DefaultDeadline, "give up after so long where Temporal or the run does not answer")
}

// open makes a session. Temporal is not asked yet: what the store knows can be
// read while it is down. A store that cannot be opened is an error only where
// it is needed; elsewhere whatever looks into it is told why.
func (a *app) open(cmd *cobra.Command, needsStore bool) (*session, error) {
	cfg, settings, err := a.explained(cmd, "warn")
	if err != nil {
		return nil, err
	}
	timeout, err := cmd.Flags().GetDuration("timeout")
	if err != nil || timeout <= 0 {
		return nil, usagef("--timeout leaves no time: give a duration such as 20s")
	}
	options, err := config.TemporalOptions(cfg)
	if err != nil {
		return nil, usageError{err}
	}
	options.Logger = sdklog.NewStructuredLogger(cfg.Log.Logger(a.err))
	s := &session{timeout: timeout}
	if s.client, err = client.NewLazyClient(options); err != nil {
		return nil, usageError{fmt.Errorf("how to reach Temporal: %w", err)}
	}
	given := []starter.Option{starter.WithTaskQueue(cfg.TaskQueue), starter.WithDeadline(timeout)}
	signing, err := signerOf(cfg)
	if err != nil {
		s.close()
		return nil, err
	}
	given = append(given, signing...)
	reader, err := s.openStore(cmd.Context(), cfg, settings)
	switch {
	case err != nil && needsStore:
		s.close()
		return nil, err
	case err != nil:
		given = append(given, starter.WithReader(down{err}))
	case reader:
		given = append(given, starter.WithReader(s.store))
	case needsStore:
		s.close()
		return nil, agent.Errorf(agent.CodeUnavailable, "there is no store at %s: name the one that the workers use, by --store-path, INTERLOCK_STORE_PATH or INTERLOCK_STORE_DSN; `interlock migrate` makes a new one", cfg.Store.Path)
	}
	s.starter = starter.New(s.client, given...)
	return s, nil
}

// openStore reports false where nobody has named a store and the default one is
// not there: not every caller has one.
func (s *session) openStore(ctx context.Context, cfg config.Config, settings []config.Setting) (bool, error) {
	if i := slices.IndexFunc(settings, func(s config.Setting) bool { return s.Key == "store.path" }); settings[i].Origin == "default" {
		if _, err := os.Stat(cfg.Store.Path); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	st, err := worker.OpenStore(ctx, cfg)
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		return false, agent.Errorf(agent.CodeUnavailable, "the store does not answer within %s, it may be locked by another process: try again (%w)", s.timeout, err)
	}
	if err != nil {
		return false, err
	}
	s.store = st
	return true, nil
}

func (s *session) close() {
	if s.store != nil {
		_ = s.store.Close() // it was only read
	}
	s.client.Close()
}

// down is a store that could not be opened.
type down struct{ why error }

func (d down) Events(context.Context, store.Chain, int64, int) ([]agent.Event, error) {
	return nil, d.why
}
func (d down) Branches(context.Context, store.Chain) ([]store.Branch, error) { return nil, d.why }
func (d down) RunRow(context.Context, store.Chain) (store.RunRow, error) {
	return store.RunRow{}, d.why
}
func (d down) RunRows(context.Context, string, store.RunFilter) ([]store.RunRow, error) {
	return nil, d.why
}
func (d down) GateRows(context.Context, string, store.GateFilter) ([]store.GateRow, error) {
	return nil, d.why
}

// about makes the body of a command about one run, whose address is its first
// argument.
func (a *app) about(needsStore bool, do func(ctx context.Context, s *session, address string, rest []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := checkAddress(args[0]); err != nil {
			return err
		}
		s, err := a.open(cmd, needsStore)
		if err != nil {
			return err
		}
		defer s.close()
		return do(cmd.Context(), s, args[0], args[1:])
	}
}

func checkAddress(address string) error {
	if _, _, _, ok := signals.SplitAddress(address); !ok {
		return usagef("%q is no run's address: it is <tenant>/<agent>/<key>, such as acme/refund/ticket-311", address)
	}
	return nil
}

// age is how long ago something was, in its two largest units.
func age(t time.Time) string {
	d := time.Since(t)
	switch {
	case d < 0:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}
