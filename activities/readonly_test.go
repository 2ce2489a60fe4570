package activities_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
	"interlock/tool"
)

// withoutLedger is a store of which nobody may use the ledger: any method of it,
// also one that is still to come, is nil and panics.
type withoutLedger struct {
	store.Journal
	store.Ledger
	store.Holds
	store.ModelCalls
	store.Blobs
	store.Reader
	store.Deployments
	store.Feed
	store.Identities
	store.Deltas
	store.Assignments
	store.Notices
	store.Overview
}

func (withoutLedger) Close() error { return nil }

// A tool without a side effect costs nothing in the ledger, however it ends.
func TestReadOnly_TouchesNoLedger(t *testing.T) {
	b := newBench(t)
	b.acts.Store = withoutLedger{Journal: b.store, ModelCalls: b.store, Blobs: b.store, Reader: b.store, Deployments: b.store, Identities: b.store}
	for name, look := range map[string]func(context.Context, args) (args, error){
		"done":    func(_ context.Context, a args) (args, error) { return a, nil },
		"refused": func(context.Context, args) (args, error) { return args{}, tool.Refused(errors.New("no such thing")) },
		"failed":  func(context.Context, args) (args, error) { return args{}, errors.New("down") },
		"panics":  func(context.Context, args) (args, error) { panic("oops") },
	} {
		b.look = look
		_, err := b.tool("look")
		require.Equal(t, name == "done", err == nil, name)
		task := agent.Task{Step: "1.1", Agent: "lab", Version: 1, Tool: "glance", Args: agent.JSON(`{"text":"a"}`), Effect: agent.ReadOnly, Tenant: "acme", Limit: 1000}
		var quick signals.ToolResult
		require.Equal(t, name == "done", b.run(signals.QuickActivity("lab", "glance"), task, &quick) == nil, name)
	}
	_, err := b.tool("send")
	require.ErrorContains(t, err, "nil pointer", "the same store fails a tool that has an effect")
	rows, err := b.store.Effects(context.Background(), "acme", store.EffectFilter{})
	require.NoError(t, err)
	require.Empty(t, rows)
}

// A Transactional tool's truth is in its own database alone.
func TestTransactional_TouchesNoLedger(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "product.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	run := func(_ context.Context, _ *sql.Tx, a args) (args, error) { return a, nil }
	book := tool.Transactional("send", db, run, func(*state, args, args) error { return nil })
	s := newBench(t).store
	b := toolBench(t, withoutLedger{Journal: s, Blobs: s, Holds: s, Identities: s}, &runner{}, book)
	out, err := b.tool("send")
	require.NoError(t, err)
	require.Equal(t, `{"text":"a"}`, out.Result.String())
	again, err := b.tool("send")
	require.NoError(t, err)
	require.Equal(t, out.Result, again.Result)
	var rows int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM interlock_effects`).Scan(&rows))
	require.Equal(t, 1, rows)
}
