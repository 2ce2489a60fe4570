package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/store"
	"interlock/store/storetest"
)

// Another process has a store of its own on the file: what it appends is heard of,
// and only by those who follow it.
func TestFollow_OtherProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	here, there := open(t, path, nil), open(t, path, nil)
	mine, other := storetest.NewHistory(t, "acme", "1", "r1"), storetest.NewHistory(t, "acme", "2", "r2")
	wake := here.Follow(t.Context(), store.Scope{Tenant: "acme", Address: mine.Ref.Address})
	next := func(what string) {
		t.Helper()
		select {
		case <-wake:
		case <-time.After(20 * time.Second):
			require.FailNow(t, "no hint", what)
		}
	}
	next("the first look: what came before is not known")
	for range 3 {
		mine.Say(1, "a")
		require.NoError(t, appendAll(there, mine))
		next("of another process")
	}
	all := here.Follow(t.Context(), store.Scope{Tenant: "acme"})
	require.NoError(t, appendAll(there, other))
	select {
	case <-all:
	case <-time.After(20 * time.Second):
		require.FailNow(t, "no hint of the other run")
	}
	require.Empty(t, wake, "another run's append is none of its business")
	require.NoError(t, here.Close())
	require.NoError(t, here.Close())
	ctx, stop := context.WithCancel(t.Context())
	here.Follow(ctx, store.Scope{})
	stop()
}
