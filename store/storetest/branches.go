package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

var branchTests = []contract{
	{"equal events of another branch are acknowledged and stay whose they are", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(4, "hi")
		appendAll(t, s, h)
		r2 := h.Reset("r2", 5).Say(1, "went on")
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(3, 5)))
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(4, 6)))
		requireEvents(t, s, r2)
		requireBranches(t, s, h, store.Branch{RunID: "r1", First: 1, Last: 5}, store.Branch{RunID: "r2", First: 6, Last: 6})
	}},
	{"another branch supersedes the tail, which stays", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(5, "hi")
		appendAll(t, s, h)
		r2 := h.Reset("r2", 3).Say(2, "otherwise")
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(3, 5)))
		requireEvents(t, s, r2)
		requireBranches(t, s, h, store.Branch{RunID: "r1", First: 1, Last: 6, Superseded: 3, SupersededBy: "r2"},
			store.Branch{RunID: "r2", First: 4, Last: 5})
		row, err := s.RunRow(ctx, store.Chain{Tenant: "acme", Address: h.Ref.Address})
		require.NoError(t, err)
		require.EqualValues(t, 5, row.Seq)
		r2.Say(1, "and on")
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(6, 6)))
		requireEvents(t, s, r2)
	}},
	{"a superseded branch appends nothing more", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(5, "hi")
		appendAll(t, s, h)
		r2 := h.Reset("r2", 3).Say(1, "otherwise")
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(4, 4)))
		h.Say(1, "more")
		for _, b := range []agent.Batch{h.Batch(1, 2), h.Batch(4, 6), h.Batch(7, 7), r2.Batch(1, 4)} {
			requireRefusal(t, store.Superseded, s.Append(ctx, h.Ref, b))
		}
		require.NoError(t, s.Append(ctx, h.Ref, agent.Batch{}))
		requireEvents(t, s, r2)
	}},
	{"superseding goes on from branch to branch", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(5, "hi")
		appendAll(t, s, h)
		r2 := h.Reset("r2", 4).Say(3, "second")
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(5, 7)))
		r3 := h.Reset("r3", 2).Say(1, "third")
		require.NoError(t, s.Append(ctx, r3.Ref, r3.Batch(2, 3)))
		requireEvents(t, s, r3)
		requireRefusal(t, store.Superseded, s.Append(ctx, r2.Ref, r2.Batch(5, 7)))
		requireRefusal(t, store.Superseded, s.Append(ctx, h.Ref, h.Batch(1, 2)))
		requireBranches(t, s, h, store.Branch{RunID: "r1", First: 1, Last: 6, Superseded: 4, SupersededBy: "r2"},
			store.Branch{RunID: "r2", First: 5, Last: 7, Superseded: 3, SupersededBy: "r3"}, store.Branch{RunID: "r3", First: 3, Last: 3})
	}},
	{"a reset to the start supersedes all of it", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(2, "hi")
		appendAll(t, s, h)
		r2 := NewHistoryOf(t, "acme", "r1", Epoch.AddDate(0, 0, 1), agent.StartedData{Agent: "refund", Version: 2, Key: "1", User: "bob", BodyDigest: "body-2"})
		r2.Ref.Branch = "r2"
		appendAll(t, s, r2)
		requireEvents(t, s, r2)
		row, err := s.RunRow(ctx, store.Chain{Tenant: "acme", Address: h.Ref.Address})
		require.NoError(t, err)
		require.Equal(t, []any{2, "bob", "body-2", int64(1), "r1"}, []any{row.Version, row.User, row.Body, row.Seq, row.FirstRunID})
		require.Equal(t, Epoch.AddDate(0, 0, 1), row.StartedAt)
	}},
	{"a late append of the older branch does not undo the newer one", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(2, "hi")
		appendAll(t, s, h)
		r2 := h.Reset("r2", 3).Say(1, "went on")
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(4, 4)))
		h.Say(1, "late")
		requireRefusal(t, store.Superseded, s.Append(ctx, h.Ref, h.Batch(3, 4)))
		requireEvents(t, s, r2)
		r2.Say(1, "and on")
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(5, 5)))
		requireEvents(t, s, r2)
	}},
	{"a branch with rows of its own cannot supersede what is before them", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(3, "hi")
		appendAll(t, s, h)
		r2 := h.Reset("r2", 4).Say(1, "went on")
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(4, 5)))
		other := h.Reset("r2", 3).Say(1, "otherwise")
		r := requireRefusal(t, store.Diverged, s.Append(ctx, other.Ref, other.Batch(4, 4)))
		require.EqualValues(t, 4, r.Seq)
		requireEvents(t, s, r2)
	}},
}

func requireBranches(t testing.TB, s store.Store, h *History, want ...store.Branch) {
	t.Helper()
	got, err := s.Branches(context.Background(), store.Chain{Tenant: h.Ref.Tenant, Address: h.Ref.Address})
	require.NoError(t, err)
	require.Equal(t, want, got)
}
