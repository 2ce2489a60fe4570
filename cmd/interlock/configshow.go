package main

import (
	"io"

	"github.com/spf13/cobra"

	"interlock/config"
	"interlock/worker"
)

func (a *app) configCommand() *cobra.Command {
	return group("config", "Shows the configuration", "Shows the configuration.", a.configShowCommand())
}

// shownConfig is the configuration as it may be shown.
type shownConfig struct {
	Settings []config.Setting `json:"settings"`
	Model    string           `json:"model"`
	Temporal temporalShown    `json:"temporal"`
}

type temporalShown struct {
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	TLS       bool   `json:"tls"`
	Secret    bool   `json:"credentials"`
}

func (a *app) configShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show", Short: "Shows every setting with its origin, secrets masked", Args: cobra.NoArgs,
		Long: `Shows every setting with its value and where that was written, as the other
commands would see it with the same flags, variables and file; secrets are
masked. And which model and which Temporal are meant by them, OPENAI_* and
TEMPORAL_* variables and temporal.toml.`,
	}
	output := outputFlag(cmd)
	var keys []string
	for _, k := range config.Keys() {
		if !k.Secret {
			keys = append(keys, k.Name)
		}
	}
	a.configured(cmd.Flags(), keys...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, settings, err := a.explained(cmd, "")
		if err != nil {
			return err
		}
		options, err := config.TemporalOptions(cfg)
		if err != nil {
			return usageError{err}
		}
		shown := shownConfig{settings, worker.DescribeModel(cfg), temporalShown{options.HostPort, options.Namespace, options.ConnectionOptions.TLS != nil, options.Credentials != nil}}
		return a.show(output, shown, shown.print)
	}
	return cmd
}

func (c shownConfig) print(w io.Writer) error {
	p := &printer{w: w}
	rows := [][]string{}
	for _, s := range c.Settings {
		rows = append(rows, []string{s.Key, s.Value, s.Origin})
	}
	p.table(rows)
	p.line("\nModel:    %s", c.Model)
	p.line("Temporal: %s, namespace %s, TLS %s, credentials %s", c.Temporal.Address, c.Temporal.Namespace, yesNo(c.Temporal.TLS), yesNo(c.Temporal.Secret))
	return p.err
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
