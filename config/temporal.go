package config

import (
	"cmp"
	"fmt"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
)

// TemporalOptions says how to reach Temporal, by Temporal's own convention:
// TEMPORAL_* variables over the named profile of temporal.toml over the default
// (localhost:7233, namespace default). An unknown key in that file is an error,
// and so is a file that was named and does not exist, which the SDK would take
// for an empty one. Logger and converters are left for the caller to set.
//
// It reads the process's environment; the result holds credentials and must
// never be printed.
func TemporalOptions(cfg Config) (client.Options, error) {
	if file := cmp.Or(cfg.Temporal.ConfigFile, os.Getenv("TEMPORAL_CONFIG_FILE")); file != "" {
		if _, err := os.Stat(file); err != nil {
			return client.Options{}, fmt.Errorf("temporal.config_file or TEMPORAL_CONFIG_FILE names no readable file: %w", err)
		}
	}
	opts, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{
		ConfigFilePath:    cfg.Temporal.ConfigFile,
		ConfigFileProfile: cfg.Temporal.Profile,
		ConfigFileStrict:  true,
	})
	if err != nil {
		return client.Options{}, fmt.Errorf("how to reach Temporal: %w", err)
	}
	opts.HostPort = cmp.Or(opts.HostPort, client.DefaultHostPort)
	opts.Namespace = cmp.Or(opts.Namespace, client.DefaultNamespace)
	return opts, nil
}
