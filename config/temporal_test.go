package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clean gives a test an environment without a Temporal of the developer's own.
func clean(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "TEMPORAL_") {
			t.Setenv(name, "")
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
}

func tomlFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestTemporalDefaultIsTheLocalServer(t *testing.T) {
	clean(t)
	opts, err := TemporalOptions(Default())
	require.NoError(t, err)
	require.Equal(t, "localhost:7233", opts.HostPort)
	require.Equal(t, "default", opts.Namespace)
}

func TestTemporalProfileAndVariables(t *testing.T) {
	clean(t)
	cfg := Default()
	cfg.Temporal = Temporal{Profile: "prod", ConfigFile: tomlFile(t, "[profile.prod]\naddress = \"t.example:7233\"\nnamespace = \"agents\"\n")}
	opts, err := TemporalOptions(cfg)
	require.NoError(t, err)
	require.Equal(t, "t.example:7233", opts.HostPort)
	require.Equal(t, "agents", opts.Namespace)

	t.Setenv("TEMPORAL_NAMESPACE", "other")
	opts, err = TemporalOptions(cfg)
	require.NoError(t, err)
	require.Equal(t, "other", opts.Namespace)

	cfg.Temporal.Profile = "absent"
	_, err = TemporalOptions(cfg)
	require.ErrorContains(t, err, "absent")
}

func TestTemporalFileIsStrict(t *testing.T) {
	clean(t)
	cfg := Default()
	cfg.Temporal.ConfigFile = tomlFile(t, "[profile.default]\nadress = \"x\"\n")
	_, err := TemporalOptions(cfg)
	require.ErrorContains(t, err, "adress")

	cfg.Temporal.ConfigFile = filepath.Join(t.TempDir(), "absent.toml")
	_, err = TemporalOptions(cfg)
	require.ErrorContains(t, err, "temporal.config_file")

	t.Setenv("TEMPORAL_CONFIG_FILE", cfg.Temporal.ConfigFile)
	_, err = TemporalOptions(Default())
	require.ErrorIs(t, err, os.ErrNotExist)
}
