package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/store"
)

// An operator who has brought back a copy says so: the generation rises, with the reason.
func TestStoreRestored(t *testing.T) {
	c := command{env: []string{"INTERLOCK_STORE_PATH=" + filepath.Join(t.TempDir(), "store.db")}, temporal: "127.0.0.1:1"}
	require.Equal(t, exitUsage, c.run(t, "store", "restored").code, "a reason is missing")
	r := c.run(t, "store", "restored", "--reason", "a backup")
	require.Equal(t, exitUnavailable, r.code, r.out)
	require.Contains(t, r.err, "interlock migrate")
	require.Equal(t, exitOK, c.run(t, "migrate").code)
	restored := func() (id store.Identity) {
		r := c.run(t, "store", "restored", "--reason", "backup of 02:00", "-o", "json")
		require.Equal(t, exitOK, r.code, r.err)
		require.NoError(t, json.Unmarshal([]byte(r.out), &id))
		return id
	}
	first, second := restored(), restored()
	require.Equal(t, first.Generation+1, second.Generation)
	require.NotEqual(t, first.ID, second.ID)
	require.Equal(t, "backup of 02:00", second.Reason)
	r = c.run(t, "store", "restored", "--reason", "once more")
	require.Contains(t, r.out, "interlock gate list")
}
