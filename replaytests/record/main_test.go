package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlan_KeepsWhatExists(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	all, err := plan(dir, "", "")
	require.NoError(t, err)
	require.Len(t, all, len(scenarios()))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain.json"), []byte("{}"), 0o600))
	rest, err := plan(dir, "", "")
	require.NoError(t, err)
	require.Len(t, rest, len(all)-1)
	one, err := plan(dir, "plain", "")
	require.NoError(t, err)
	require.Empty(t, one)
	one, err = plan(dir, "plain", "a reason")
	require.NoError(t, err)
	require.Len(t, one, 1)
	_, err = plan(dir, "pla", "")
	require.ErrorContains(t, err, `there is no "pla"; there are plain`)
}

// Every scenario has been recorded, and each bad one says what must be found.
func TestScenariosAreRecorded(t *testing.T) {
	for _, s := range scenarios() {
		base := filepath.Join("..", "testdata", s.name)
		require.FileExists(t, base+".json")
		require.Equal(t, s.want != "", strings.HasPrefix(s.name, "bad-"), s.name)
		if s.want != "" {
			text, err := os.ReadFile(base + ".want")
			require.NoError(t, err)
			require.Equal(t, s.want+"\n", string(text))
		}
	}
}
