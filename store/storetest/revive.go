package storetest

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

// A reset of a run that a newer one has superseded goes on with events that do
// not count any more. In most of these, r2 has superseded r1's events from 5 on.
var revivalTests = []contract{
	{"a reset of an older run goes on with what was superseded", func(t *testing.T, s store.Store) {
		for name, newer := range map[string]int{"longer": 30, "as long as what the batch follows": 16, "shorter": 1} {
			h, r2 := superseded(t, s, name, newer)
			r3 := h.Reset("r3", 20).Say(3, "third")
			r3.Head = agent.Head{Status: agent.RunWaiting, Reason: "user", Phase: "pay", Turn: 4}
			requireAppend(t, s, r3, 21, 22)
			requireAppend(t, s, r3, 21, 22)
			requireAppend(t, s, r3, 22, 23)
			requireAppend(t, s, r3, 1, 23)
			requireEvents(t, s, r3)
			requireBranches(t, s, h,
				store.Branch{RunID: "r1", First: 1, Last: 25, Superseded: 21, SupersededBy: "r2"},
				store.Branch{RunID: "r2", First: 5, Last: r2.Last(), Superseded: newer, SupersededBy: "r3"},
				store.Branch{RunID: "r3", First: 5, Last: 23})
			row := runRow(t, s, h)
			require.Equal(t, []any{int64(23), r3.Head, "body-1"}, []any{row.Seq, row.Head, row.Body}, name)
			require.Equal(t, r3.Events[22].At, row.UpdatedAt)
			requireBarred(t, s, h, r2)
			requireEvents(t, s, r3)
		}
	}},
	{"and again, from whichever run", func(t *testing.T, s store.Store) {
		h, r2 := superseded(t, s, "1", 6)
		r3 := h.Reset("r3", 7).Say(3, "third")
		requireAppend(t, s, r3, 8, 10)
		r4 := h.Reset("r4", 12).Say(1, "fourth") // what r3 revived stands, and is part of it
		requireAppend(t, s, r4, 13, 13)
		requireEvents(t, s, r4)
		r5 := r2.Reset("r5", 8).Say(2, "fifth")
		requireAppend(t, s, r5, 9, 10)
		requireEvents(t, s, r5)
		r6 := r3.Reset("r6", 10).Say(1, "sixth")
		requireAppend(t, s, r6, 11, 11)
		requireEvents(t, s, r6)
		requireBranches(t, s, h,
			store.Branch{RunID: "r1", First: 1, Last: 25, Superseded: 21, SupersededBy: "r2"},
			store.Branch{RunID: "r2", First: 5, Last: 10, Superseded: 6, SupersededBy: "r3"},
			store.Branch{RunID: "r3", First: 5, Last: 10, Superseded: 6, SupersededBy: "r4"},
			store.Branch{RunID: "r4", First: 8, Last: 13, Superseded: 6, SupersededBy: "r5"},
			store.Branch{RunID: "r5", First: 5, Last: 10, Superseded: 6, SupersededBy: "r6"},
			store.Branch{RunID: "r6", First: 5, Last: 11})
		requireBarred(t, s, h, r2, r3, r4, r5)
		requireEvents(t, s, r6)
	}},
	{"what several runs wrote one after the other comes back together", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Say(5, "hi")
		appendAll(t, s, h)
		r2 := h.Reset("r2", 6).Say(3, "went on")
		requireAppend(t, s, r2, 7, 9)
		r3 := h.Reset("r3", 2).Say(1, "third")
		requireAppend(t, s, r3, 3, 3)
		r4 := r2.Reset("r4", 8).Say(1, "fourth")
		requireAppend(t, s, r4, 9, 9)
		requireEvents(t, s, r4)
		requireBranches(t, s, h, store.Branch{RunID: "r1", First: 1, Last: 6, Superseded: 4, SupersededBy: "r3"},
			store.Branch{RunID: "r2", First: 7, Last: 9, Superseded: 3, SupersededBy: "r3"},
			store.Branch{RunID: "r3", First: 3, Last: 3, Superseded: 1, SupersededBy: "r4"}, store.Branch{RunID: "r4", First: 3, Last: 9})
	}},
	{"a batch may be part superseded and part new", func(t *testing.T, s store.Store) {
		for name, first := range map[string]int64{"after a live event": 5, "after the first superseded one": 6, "after a later one": 9} {
			h, r2 := superseded(t, s, name, 6)
			r3 := h.Reset("r3", 12).Say(2, "third")
			requireAppend(t, s, r3, first, 14)
			requireEvents(t, s, r3)
			requireBarred(t, s, h, r2)
			r4 := h.Reset("r4", 14)
			requireAppend(t, s, r4, 11, 14) // all of it superseded, and nothing new
			requireEvents(t, s, r4)
			require.EqualValues(t, 14, runRow(t, s, r4).Seq)
		}
	}},
	{"activities of one run, that carry older and newer events, in any order", func(t *testing.T, s store.Store) {
		for name, order := range map[string][3][2]int64{
			"older first":  {{5, 7}, {9, 12}, {18, 22}},
			"newer first":  {{18, 22}, {9, 12}, {5, 7}},
			"middle first": {{9, 12}, {18, 22}, {5, 7}},
		} {
			h, r2 := superseded(t, s, name, 3)
			r3 := h.Reset("r3", 20).Say(2, "third")
			for _, b := range order {
				requireAppend(t, s, r3, b[0], b[1])
			}
			requireEvents(t, s, r3)
			require.EqualValues(t, 22, runRow(t, s, r3).Seq, name)
			requireBarred(t, s, h, r2)
		}
	}},
	{"equal batches at once revive once", func(t *testing.T, s store.Store) {
		h, _ := superseded(t, s, "1", 6)
		r3 := h.Reset("r3", 20).Say(2, "third")
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() { errs[i] = s.Append(context.Background(), r3.Ref, r3.Batch(21-int64(i%3), 22)) })
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		requireEvents(t, s, r3)
	}},
	{"back to another start", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Say(3, "hi")
		appendAll(t, s, h)
		r2 := NewHistoryOf(t, "acme", "r1", Epoch.AddDate(0, 0, 1), agent.StartedData{Agent: "refund", Version: 2, Key: "1", User: "bob", BodyDigest: "body-2"})
		r2.Ref.Branch = "r2"
		appendAll(t, s, r2.Say(4, "second").Open("1.1"))
		r3 := h.Reset("r3", 3).Say(1, "third")
		r3.Head = agent.Head{Status: agent.RunPaused, Reason: "operator", Phase: "pay", Turn: 1}
		requireAppend(t, s, r3, 4, 4)
		requireEvents(t, s, r3)
		row := runRow(t, s, r3)
		row.Cursor = ""
		require.Equal(t, store.RunRow{Tenant: "acme", Address: h.Ref.Address, FirstRunID: "r1", Agent: "refund", Key: "1", Version: 1,
			User: "ann", Head: r3.Head, Body: "body-1", Seq: 4, StartedAt: Epoch, UpdatedAt: r3.Events[3].At}, row)
		require.Empty(t, gateRows(t, s, "acme", store.GateFilter{}))
		requireBarred(t, s, h, r2)
	}},
	{"the gates are what the revived events say", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Open("1.1", "refunds").Open("1.2").CloseGate("1.2", agent.GateApproved)
		h.CloseGate("1.1", agent.GateRejected).Open("2.1").CloseGate("2.1", agent.GateExpired).Open("2.2", "ops").Open("2.3") // 5 to 9
		appendAll(t, s, h)
		want := gateRows(t, s, "acme", store.GateFilter{})[:4] // 2.3 aside, which is opened last
		r2 := h.Reset("r2", 3).CloseGate("1.1", agent.GateApproved).Open("2.1", "others").Open("3.1")
		requireAppend(t, s, r2, 4, 6)
		require.Equal(t, map[string]agent.GateStatus{"1.1": agent.GateApproved, "1.2": agent.GateOpen, "2.1": agent.GateOpen, "3.1": agent.GateOpen},
			gateStatuses(t, s))

		r3 := h.Reset("r3", 8).Say(1, "third")
		requireAppend(t, s, r3, 9, 9)
		requireReduced(t, s, r3)
		require.Equal(t, map[string]agent.GateStatus{"1.1": agent.GateRejected, "1.2": agent.GateApproved, "2.1": agent.GateExpired,
			"2.2": agent.GateOpen}, gateStatuses(t, s))
		require.Equal(t, want, gateRows(t, s, "acme", store.GateFilter{}), "byte for byte what they were")
		r3.CloseGate("2.2", agent.GateRejected)
		requireAppend(t, s, r3, 10, 10)
		requireReduced(t, s, r3)

		r4 := h.Reset("r4", 8).CloseGate("2.2", agent.GateApproved).Open("4.1") // where r3 differs, nothing is revived
		requireAppend(t, s, r4, 9, 10)
		requireReduced(t, s, r4)
		r5 := r2.Reset("r5", 5).CloseGate("2.1", agent.GateVoid)
		requireAppend(t, s, r5, 6, 6)
		requireReduced(t, s, r5)
		require.Equal(t, map[string]agent.GateStatus{"1.1": agent.GateApproved, "1.2": agent.GateOpen, "2.1": agent.GateVoid}, gateStatuses(t, s))
	}},
	{"an end that is revived, and one that goes", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Say(3, "hi").Add(agent.EventCompleted, agent.EndedData{Reason: "done"})
		h.Head = agent.Head{Status: agent.RunCompleted, Phase: "done"}
		appendAll(t, s, h)
		r2 := h.Reset("r2", 2).Say(1, "second")
		r2.Head = agent.Head{Status: agent.RunRunning, Phase: "collect"}
		requireAppend(t, s, r2, 3, 3)
		r3 := h.Reset("r3", 5)
		requireAppend(t, s, r3, 5, 5)
		requireEvents(t, s, r3)
		require.Equal(t, h.Events[4].At, *runRow(t, s, r3).EndedAt)
		r4 := r2.Reset("r4", 3).Say(1, "fourth")
		requireAppend(t, s, r4, 4, 4)
		require.Nil(t, runRow(t, s, r4).EndedAt)
		require.Equal(t, r2.Head, runRow(t, s, r4).Head)
	}},
}

// superseded is a run r1 of 25 events, and a run r2 that has superseded those
// from 5 on with newer ones of its own.
func superseded(t testing.TB, s store.Store, key string, newer int) (h, r2 *History) {
	t.Helper()
	h = NewHistory(t, "acme", key, "r1").Say(24, "hi")
	appendAll(t, s, h)
	r2 = h.Reset("r2", 4).Say(newer, "second")
	requireAppend(t, s, r2, 5, r2.Last())
	return h, r2
}

func requireAppend(t testing.TB, s store.Store, h *History, first, last int64) {
	t.Helper()
	require.NoError(t, s.Append(context.Background(), h.Ref, h.Batch(first, last)), "%s, events %d to %d", h.Ref.Branch, first, last)
}

// requireBarred holds branches to append nothing, whatever it is.
func requireBarred(t testing.TB, s store.Store, all ...*History) {
	t.Helper()
	for _, h := range all {
		more := h.Reset(h.Ref.Branch, h.Last()).Say(1, "more")
		for _, first := range []int64{1, h.Last(), h.Last() + 1} {
			requireRefusal(t, store.Superseded, s.Append(context.Background(), h.Ref, more.Batch(first, more.Last())))
		}
	}
}

// requireReduced holds the journal to these events, and the rows of gates to
// what a run that is made from them has.
func requireReduced(t testing.TB, s store.Store, h *History) {
	t.Helper()
	requireEvents(t, s, h)
	events, err := s.Events(context.Background(), store.Chain{Tenant: h.Ref.Tenant, Address: h.Ref.Address}, 1, 0)
	require.NoError(t, err)
	run, err := agent.Reduce(events)
	require.NoError(t, err)
	require.Equal(t, h.Last(), run.Seq)
	gates := map[string]agent.GateStatus{}
	for _, g := range run.Gates {
		gates[g.ID] = g.Status
	}
	require.Equal(t, gates, gateStatuses(t, s))
}
