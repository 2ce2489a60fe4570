package storetest

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

var chainTests = []contract{
	{"a chain follows the one that has ended, and each is read by itself", func(t *testing.T, s store.Store) {
		a, b := followed(t, s)
		requireRead(t, s, a)
		requireRead(t, s, b)
		newest := store.Chain{Tenant: "acme", Address: a.Ref.Address}
		events, err := s.Events(context.Background(), newest, 1, 0)
		require.NoError(t, err)
		require.Equal(t, b.Events, events)
		row, err := s.RunRow(context.Background(), newest)
		require.NoError(t, err)
		require.Equal(t, []any{"r2", b.Last(), b.Head}, []any{row.FirstRunID, row.Seq, row.Head})

		b.CloseGate("1.1", agent.GateRejected).End()
		requireAppend(t, s, b, 2, b.Last())
		requireRead(t, s, a)
		requireRead(t, s, b)
		c := b.Follow("r3", "r2").Say(1, "third")
		appendAll(t, s, c)
		appendAll(t, s, c)
		for _, h := range []*History{a, b, c} {
			requireRead(t, s, h)
		}
	}},
	{"an older chain appends nothing more, whatever it is", func(t *testing.T, s store.Store) {
		a, b := followed(t, s)
		reset := a.Reset("r1b", 2).Say(1, "otherwise")
		for _, h := range []*History{a, a.Reset("r1", a.Last()).Say(1, "more"), reset, a.Reset("r1c", a.Last()).Say(1, "more")} {
			for _, first := range []int64{1, 2, h.Last()} {
				requireRefusal(t, store.Superseded, s.Append(context.Background(), h.Ref, h.Batch(first, h.Last())))
			}
		}
		requireRead(t, s, a)
		requireRead(t, s, b)
	}},
	{"one that was terminated is followed too, and ends in its row", func(t *testing.T, s store.Store) {
		ctx, a := context.Background(), NewHistory(t, "acme", "1", "r1").Say(2, "hi").Open("1.1", "refunds")
		appendAll(t, s, a)
		b := a.Follow("r2", "r1").Say(1, "second")
		appendAll(t, s, b)
		appendAll(t, s, b)
		requireRefusal(t, store.Superseded, s.Append(ctx, a.Ref, a.Batch(1, a.Last())))
		row, err := s.RunRow(ctx, store.Chain{Tenant: "acme", Address: a.Ref.Address, FirstRunID: "r1"})
		require.NoError(t, err)
		require.Equal(t, agent.RunCancelled, row.Head.Status)
		require.Contains(t, row.Head.Reason, "closed in Temporal")
		require.NotNil(t, row.EndedAt)
		gates, err := s.GateRows(ctx, "acme", store.GateFilter{Status: agent.GateOpen})
		require.NoError(t, err)
		require.Empty(t, gates)
		events, err := s.Events(ctx, store.Chain{Tenant: "acme", Address: a.Ref.Address, FirstRunID: "r1"}, 1, 0)
		require.NoError(t, err)
		require.Equal(t, a.Events, events, "the journal itself stays as it was")
		requireRead(t, s, b)
	}},
	{"a chain is followed only by one that names it", func(t *testing.T, s store.Store) {
		ctx, a := context.Background(), NewHistory(t, "acme", "1", "r1").Say(2, "hi")
		appendAll(t, s, a)
		a.End()
		requireAppend(t, s, a, a.Last(), a.Last())
		stranger := a.Follow("r2", "r0")
		r := requireRefusal(t, store.Conflict, s.Append(ctx, stranger.Ref, stranger.Batch(1, 1)))
		require.Equal(t, "r1", r.FirstRunID)
		require.Contains(t, r.Message, "r0")
		require.Contains(t, r.Message, "r1")
		unnamed := a.Follow("r2", "")
		requireRefusal(t, store.KeyUsed, s.Append(ctx, unnamed.Ref, unnamed.Batch(1, 1)))
		headless := a.Follow("r2", "r1").Say(3, "second")
		requireRefusal(t, store.Diverged, s.Append(ctx, headless.Ref, headless.Batch(2, 3)))
		requireRead(t, s, a)

		appendAll(t, s, a.Follow("r2", "r1"))
		late := a.Follow("r3", "r1")
		r = requireRefusal(t, store.Conflict, s.Append(ctx, late.Ref, late.Batch(1, 1)))
		require.Equal(t, "r2", r.FirstRunID)
	}},
	{"a chain that follows where nothing stands is the first", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Follow("r2", "r1").Say(2, "hi")
		appendAll(t, s, h)
		appendAll(t, s, h)
		requireRead(t, s, h)
	}},
	{"a chain follows the end that stands, not one that was superseded", func(t *testing.T, s store.Store) {
		a := NewHistory(t, "acme", "1", "r1").Say(2, "hi").End()
		appendAll(t, s, a)
		reset := a.Reset("r1b", 2).Say(1, "otherwise")
		reset.Head = agent.Head{Status: agent.RunRunning, Phase: "collect"}
		requireAppend(t, s, reset, 3, 3)
		early := NewHistoryOf(t, "acme", "r2", reset.Events[2].At, agent.StartedData{Agent: "refund", Version: 1, Key: "1", User: "ann",
			BodyDigest: "body-1", FirstRunID: "r2", After: "r1", Body: agent.JSON(`{}`)}) // and was closed by the reset
		requireRefusal(t, store.Conflict, s.Append(context.Background(), early.Ref, early.Batch(1, 1)))
		b := a.Follow("r2", "r1")
		reset.End()
		requireAppend(t, s, reset, 4, 4)
		appendAll(t, s, b)
		requireRead(t, s, reset)
		requireRead(t, s, b)
	}},
	{"the branches of a chain are its own", func(t *testing.T, s store.Store) {
		a, b := followed(t, s)
		b.Say(4, "on")
		requireAppend(t, s, b, 3, b.Last())
		reset := b.Reset("r2b", 3).Say(2, "otherwise").Open("2.1")
		requireAppend(t, s, reset, 4, 6)
		requireBranchesOf(t, s, a, store.Branch{RunID: "r1", First: 1, Last: a.Last()})
		requireBranchesOf(t, s, reset, store.Branch{RunID: "r2", First: 1, Last: 6, Superseded: 3, SupersededBy: "r2b"}, store.Branch{RunID: "r2b", First: 4, Last: 6})
		requireRead(t, s, a)
		requireRead(t, s, reset)
		restart := a.Follow("r2", "r1").Open("9.1") // from its start, as another one
		restart.Ref.Branch = "r2c"
		restart.Events[0].At = restart.Events[0].At.AddDate(0, 0, 1)
		appendAll(t, s, restart)
		requireRead(t, s, a)
		requireRead(t, s, restart)
		revived := b.Reset("r2d", 6).Say(1, "back") // what r2 wrote, never what r1 did
		requireAppend(t, s, revived, 7, 7)
		requireRead(t, s, a)
		requireRead(t, s, revived)
	}},
	{"of chains that would follow at once, one does", func(t *testing.T, s store.Store) {
		a := NewHistory(t, "acme", "1", "r1").End()
		appendAll(t, s, a)
		requireOne(t, s, func(id string) *History { return a.Follow(id, "r1").Say(2, "of "+id) })
		requireRead(t, s, a)
	}},
	{"of chains that would be the first at once, one is", func(t *testing.T, s store.Store) {
		requireOne(t, s, func(id string) *History {
			h := NewHistory(t, "acme", "1", id).Say(2, "of "+id)
			return h
		})
	}},
}

// followed is a chain r1 that has ended, and r2 that has followed it; both have
// a gate 1.1.
func followed(t testing.TB, s store.Store) (a, b *History) {
	t.Helper()
	a = NewHistory(t, "acme", "1", "r1").Open("1.1", "refunds").CloseGate("1.1", agent.GateApproved).Say(1, "hi").End()
	appendAll(t, s, a)
	b = a.Follow("r2", "r1").Open("1.1", "ops")
	appendAll(t, s, b)
	return a, b
}

// requireOne lets eight chains append at once, and holds the journal to one of them.
func requireOne(t *testing.T, s store.Store, chain func(firstRunID string) *History) {
	t.Helper()
	var wg sync.WaitGroup
	chains, errs := make([]*History, 8), make([]error, 8)
	for i := range chains {
		chains[i] = chain("n" + string(rune('a'+i)))
	}
	for i, h := range chains {
		wg.Go(func() { errs[i] = s.Append(context.Background(), h.Ref, h.Batch(1, h.Last())) })
	}
	wg.Wait()
	var won *History
	for i, err := range errs {
		if err == nil {
			require.Nil(t, won, "a second chain")
			won = chains[i]
		}
	}
	require.NotNil(t, won)
	for _, err := range errs {
		if err != nil {
			var r *store.Refusal
			require.ErrorAs(t, err, &r)
			require.Equal(t, won.Ref.FirstRunID, r.FirstRunID)
		}
	}
	requireRead(t, s, won)
}

// requireRead holds everything that is read of a chain to what h says.
func requireRead(t testing.TB, s store.Store, h *History) {
	t.Helper()
	ctx := context.Background()
	events, err := s.Events(ctx, h.Chain(), 1, 0)
	require.NoError(t, err)
	require.Equal(t, h.Events, events)
	row, err := s.RunRow(ctx, h.Chain())
	require.NoError(t, err)
	require.Equal(t, []any{h.Ref.FirstRunID, h.Last(), h.Head, h.Events[0].At}, []any{row.FirstRunID, row.Seq, row.Head, row.StartedAt})
	require.Equal(t, h.Head.Status.Ended(), row.EndedAt != nil)
	run, err := agent.Reduce(events)
	require.NoError(t, err)
	want, got := map[string]agent.GateStatus{}, map[string]agent.GateStatus{}
	for _, g := range run.Gates {
		want[g.ID] = g.Status
	}
	for _, g := range gateRows(t, s, h.Ref.Tenant, store.GateFilter{Address: h.Ref.Address}) {
		if g.FirstRunID == h.Ref.FirstRunID {
			got[g.Gate.ID] = g.Gate.Status
		}
	}
	require.Equal(t, want, got)
}

func requireBranchesOf(t testing.TB, s store.Store, h *History, want ...store.Branch) {
	t.Helper()
	got, err := s.Branches(context.Background(), h.Chain())
	require.NoError(t, err)
	require.Equal(t, want, got)
}
