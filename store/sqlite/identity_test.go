package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/store/storetest"
)

// copyFile is how an operator copies a database that nobody has open.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, 0o600))
}

// An older copy of the file in its place is told by what it lacks, and by being another
// file: nothing of what was seen before is done again unnoticed.
func TestLoss_OfAnOlderCopy(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, nil)
	h := storetest.NewHistory(t, "acme", "1", "r1").Say(2, "hi")
	require.NoError(t, s.Append(ctx, h.Ref, h.Batch(1, 3)))
	require.NoError(t, s.Close())
	copyFile(t, path, path+".copy")

	s = open(t, path, nil)
	h.Say(2, "more")
	require.NoError(t, s.Append(ctx, h.Ref, h.Batch(4, 5)))
	told := s.Acknowledges()
	c := store.Claim{Tenant: "acme", Key: "k", Address: h.Ref.Address, Tool: "pay", Kind: agent.Once, Exclusive: true, Branch: "r1", Store: told}
	_, fresh, err := s.Claim(ctx, c)
	require.NoError(t, err)
	require.True(t, fresh)
	require.NoError(t, s.Settle(ctx, "acme", "k", store.Outcome{Status: store.EffectApplied, Result: agent.JSON(`{}`)}))
	require.NoError(t, s.Close())

	require.NoError(t, os.Rename(path+".copy", path))
	s = open(t, path, nil)
	id, err := s.Identity(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 2, id.Generation)
	require.Contains(t, id.Reason, "it is a copy")
	var r *store.Refusal
	require.ErrorAs(t, s.Append(ctx, h.Ref, agent.Batch{Acked: 5, Store: told}), &r)
	require.Equal(t, store.Lost, r.Kind)
	e, fresh, err := s.Claim(ctx, c)
	require.NoError(t, err)
	require.False(t, fresh)
	require.Equal(t, 2, e.Attempts)
}

// A file that stays where it is keeps its generation over any number of starts.
func TestIdentity_StaysOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	first := open(t, path, nil)
	require.NotEmpty(t, first.Acknowledges())
	require.NoError(t, first.Close())
	require.Equal(t, first.Acknowledges(), open(t, path, nil).Acknowledges())
}

// Nothing is accepted into a file that nobody can find any more, and nothing is read
// from it as though it were the store.
func TestFileThatIsGone_IsNoticedAtTheNextWriteAndRead(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"deleted": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"replaced": func(t *testing.T, path string) {
			other := filepath.Join(t.TempDir(), "other.db")
			s, err := sqlite.Open(context.Background(), other, nil)
			require.NoError(t, err)
			require.NoError(t, s.Close())
			require.NoError(t, os.Rename(other, path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, path := context.Background(), filepath.Join(t.TempDir(), "store.db")
			s := open(t, path, nil)
			h := storetest.NewHistory(t, "acme", "1", "r1").Say(2, "hi")
			require.NoError(t, s.Append(ctx, h.Ref, h.Batch(1, 2)))
			spoil(t, path)
			_, read := s.Events(ctx, h.Chain(), 1, 0)
			for what, err := range map[string]error{"append": s.Append(ctx, h.Ref, h.Batch(3, 3)), "soon": s.AppendSoon(ctx, h.Ref, h.Batch(3, 3)),
				"probe": s.Probe(ctx), "read": read} {
				require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), what)
				require.ErrorContains(t, err, "while it was open", what)
			}
		})
	}
}

// A lock that another process holds is told within a second.
func TestProbe_TellsALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, other := open(t, path, nil), open(t, path, nil)
	require.NoError(t, s.Probe(t.Context()))
	release := sqlite.HoldLock(t, other)
	err := s.Probe(t.Context())
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	release()
	require.NoError(t, s.Probe(t.Context()))
}
