package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"interlock/config"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/llm"
	"interlock/worker"
)

func (a *app) workerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "worker", Short: "Serves the sample agents that are compiled in: refund", Args: cobra.NoArgs,
		Long: `Serves the sample agents that are compiled in (refund) until SIGINT or SIGTERM: then
it takes no new work, lets what runs end within shutdown_timeout, and exits with 0.
A second signal ends it at once.

The store must be there (` + "`interlock migrate`" + `) and Temporal must answer. The model is
the one of model.name; without one it is the agent's script.

A worker of your own agents is a main of a few lines:

  package main

  import (
      "context"
      "os"

      "interlock/worker"
  )

  func main() {
      os.Exit(worker.Main(context.Background(), myagent.Agent(database)))
  }`,
	}
	data := cmd.Flags().String("data", ".interlock", "`folder` for the sample shop and mail service")
	a.configured(cmd.Flags(), slices.Concat([]string{"task_queue", "shutdown_timeout", "worker.max_activities", "worker.cache_size",
		"tokens.issuer", "tokens.audience", "tokens.keys", "tokens.jwks", "tokens.revoked", "notices.targets", "notices.page", "notices.give_up"},
		storeKeys, modelKeys, temporalKeys, logKeys)...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := a.settings(cmd, "info")
		if err != nil {
			return err
		}
		c := worker.Config{Settings: cfg, Log: cfg.Log.Logger(a.err)}
		if c.Model, err = sampleModel(cfg); err != nil {
			return err
		}
		return serveSamples(cmd.Context(), c, *data)
	}
	return cmd
}

// sampleModel is the configured model; without one, the sample agent's script.
func sampleModel(cfg config.Config) (llm.Model, error) {
	if cfg.Model.Serves() == config.Scripted {
		return refund.Model(), nil
	}
	return worker.OpenModel(cfg)
}

func serveSamples(ctx context.Context, c worker.Config, folder string) (err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return usageError{fmt.Errorf("--data: %w", err)}
	}
	s, err := shop.Open(ctx, filepath.Join(folder, "shop.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	// It must outlive an interrupt, until the worker has stopped.
	m, err := mail.Serve(context.WithoutCancel(ctx), "127.0.0.1:0", filepath.Join(folder, "mail.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return worker.Serve(ctx, c, refund.Agent(s, mail.Client{BaseURL: m.URL()}))
}
