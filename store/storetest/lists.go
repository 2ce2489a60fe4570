package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

var listTests = []contract{
	{"events are read in pages", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(9, "hi")
		appendAll(t, s, h)
		var all []agent.Event
		for from := int64(1); ; {
			page, err := s.Events(ctx, store.Chain{Tenant: "acme", Address: h.Ref.Address}, from, 4)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), 4)
			if len(page) == 0 {
				break
			}
			all, from = append(all, page...), page[len(page)-1].Seq+1
		}
		require.Equal(t, h.Events, all)
		tail, err := s.Events(ctx, store.Chain{Tenant: "acme", Address: h.Ref.Address}, 9, 0)
		require.NoError(t, err)
		require.Equal(t, h.Events[8:], tail)
	}},
	{"an unknown run has no events and no branches", func(t *testing.T, s store.Store) {
		events, err := s.Events(context.Background(), store.Chain{Tenant: "acme", Address: "acme/refund/none"}, 1, 0)
		require.NoError(t, err)
		require.Empty(t, events)
		branches, err := s.Branches(context.Background(), store.Chain{Tenant: "acme", Address: "acme/refund/none"})
		require.NoError(t, err)
		require.Empty(t, branches)
	}},
	{"runs are listed newest first, in pages, also those of one instant", func(t *testing.T, s store.Store) {
		var want []string
		for i := range 7 {
			h := NewHistoryOf(t, "acme", fmt.Sprint("r", i), Epoch.Add(time.Duration(i/3)*time.Second), agent.StartedData{Agent: "refund", Key: fmt.Sprint(i)})
			appendAll(t, s, h)
			want = append([]string{h.Ref.Address}, want...)
		}
		var got []string
		f := store.RunFilter{Limit: 2}
		for {
			page, err := s.RunRows(context.Background(), "acme", f)
			require.NoError(t, err)
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				got = append(got, r.Address)
			}
			f.After = page[len(page)-1].Cursor
		}
		require.Equal(t, want, got)
		_, err := s.RunRows(context.Background(), "acme", store.RunFilter{After: "no cursor!"})
		requireCode(t, agent.CodeInvalid, err)
	}},
	{"runs are narrowed by agent, status and user", func(t *testing.T, s store.Store) {
		for i, r := range []struct {
			agent, user string
			status      agent.RunStatus
		}{{"refund", "ann", agent.RunRunning}, {"refund", "bob", agent.RunWaiting}, {"triage", "ann", agent.RunWaiting}} {
			h := NewHistoryOf(t, "acme", fmt.Sprint("r", i), Epoch, agent.StartedData{Agent: r.agent, Key: fmt.Sprint(i), User: r.user})
			h.Head.Status = r.status
			appendAll(t, s, h)
		}
		for _, c := range []struct {
			filter store.RunFilter
			want   []string
		}{
			{store.RunFilter{Agent: "refund"}, []string{"acme/refund/1", "acme/refund/0"}},
			{store.RunFilter{Status: agent.RunWaiting}, []string{"acme/triage/2", "acme/refund/1"}},
			{store.RunFilter{User: "ann"}, []string{"acme/triage/2", "acme/refund/0"}},
			{store.RunFilter{User: "ann", Agent: "refund", Status: agent.RunRunning}, []string{"acme/refund/0"}},
			{store.RunFilter{User: "nobody"}, nil},
			{store.RunFilter{Limit: 100_000}, []string{"acme/triage/2", "acme/refund/1", "acme/refund/0"}},
		} {
			rows, err := s.RunRows(context.Background(), "acme", c.filter)
			require.NoError(t, err)
			var got []string
			for _, r := range rows {
				got = append(got, r.Address)
			}
			require.Equal(t, c.want, got, "%+v", c.filter)
		}
	}},
	{"runs are narrowed by what their reason begins with", func(t *testing.T, s store.Store) {
		for i, reason := range []string{"budget:turns", "budget:cost", "budget", "model", "Budget:turns", "", "ärger: ü%_", "är"} {
			h := NewHistoryOf(t, "acme", fmt.Sprint("r", i), Epoch.Add(time.Duration(i)*time.Second), agent.StartedData{Agent: "refund", Key: fmt.Sprint(i)})
			h.Head.Status, h.Head.Reason = agent.RunPaused, reason
			appendAll(t, s, h)
		}
		for reason, want := range map[string][]string{"budget:": {"1", "0"}, "budget": {"2", "1", "0"}, "budget:turns": {"0"}, "budget:turns ": nil,
			"%": nil, "b_dget": nil, "är": {"7", "6"}, "ärger: ü%": {"6"}} {
			require.Equal(t, want, keys(t, s, store.RunFilter{Reason: reason, Status: agent.RunPaused}), reason)
		}
	}},
	{"the chains of one address, and those of all, in pages", func(t *testing.T, s store.Store) {
		var newest *History
		for i, id := range []string{"r1", "r2", "r3", "r4"} {
			h := NewHistory(t, "acme", "1", id)
			if i > 0 {
				h = newest.Follow(id, newest.Ref.FirstRunID)
				h.Events[0].At = Epoch // all of one instant
			}
			newest = h.End()
			appendAll(t, s, newest)
		}
		appendAll(t, s, NewHistoryOf(t, "acme", "r5", Epoch, agent.StartedData{Agent: "refund", Key: "10"}))
		for _, c := range []struct {
			filter store.RunFilter
			want   []string
		}{
			{store.RunFilter{}, []string{"acme/refund/10 r5", "acme/refund/1 r4", "acme/refund/1 r3", "acme/refund/1 r2", "acme/refund/1 r1"}},
			{store.RunFilter{Address: "acme/refund/1"}, []string{"acme/refund/1 r4", "acme/refund/1 r3", "acme/refund/1 r2", "acme/refund/1 r1"}},
			{store.RunFilter{Address: "acme/refund"}, nil},
			{store.RunFilter{Under: "acme/refund/10"}, []string{"acme/refund/10 r5"}},
			{store.RunFilter{Under: "acme/refund/1"}, []string{"acme/refund/10 r5", "acme/refund/1 r4", "acme/refund/1 r3", "acme/refund/1 r2", "acme/refund/1 r1"}},
			{store.RunFilter{Under: "acme/refund/%"}, nil},
		} {
			for limit := 1; limit <= 3; limit++ {
				c.filter.Limit, c.filter.After = limit, ""
				var got []string
				for {
					page, err := s.RunRows(context.Background(), "acme", c.filter)
					require.NoError(t, err)
					if len(page) == 0 {
						break
					}
					for _, r := range page {
						got = append(got, r.Address+" "+r.FirstRunID)
					}
					c.filter.After = page[len(page)-1].Cursor
				}
				require.Equal(t, c.want, got)
			}
		}
	}},
	{"gates are narrowed by when they opened, and those of every chain are listed", func(t *testing.T, s store.Store) {
		a := NewHistory(t, "acme", "1", "r1").Open("1.1").End()
		appendAll(t, s, a)
		b := a.Follow("r2", "r1").Open("1.1")
		appendAll(t, s, b)
		list := func(f store.GateFilter) (got []string) {
			for _, r := range gateRows(t, s, "acme", f) {
				got = append(got, r.FirstRunID)
			}
			return got
		}
		require.Equal(t, []string{"r1", "r2"}, list(store.GateFilter{}))
		require.Equal(t, []string{"r1", "r2"}, list(store.GateFilter{Address: a.Ref.Address}))
		opened := b.Events[1].At
		require.Equal(t, []string{"r1"}, list(store.GateFilter{Before: opened}))
		require.Equal(t, []string{"r1", "r2"}, list(store.GateFilter{Before: opened.Add(time.Nanosecond)}))
		require.Empty(t, list(store.GateFilter{Before: a.Events[1].At}))
		require.Equal(t, []string{"r1"}, list(store.GateFilter{Before: opened.In(time.FixedZone("", 3600)), Status: agent.GateOpen}))
	}},
	{"gates are listed in pages, also those of one instant", func(t *testing.T, s store.Store) {
		var want []string
		for i := range 3 {
			h := NewHistoryOf(t, "acme", fmt.Sprint("r", i), Epoch, agent.StartedData{Agent: "refund", Key: fmt.Sprint(i)}).Open("1.1", "refunds").Open("1.2", "refunds")
			for j := range h.Events[1:] {
				h.Events[j+1].At = Epoch.Add(time.Second)
			}
			appendAll(t, s, h)
			want = append(want, h.Ref.Address+" 1.1", h.Ref.Address+" 1.2")
		}
		for limit := 1; limit <= 4; limit++ {
			var got []string
			f := store.GateFilter{Limit: limit, Role: "refunds"}
			for {
				page := gateRows(t, s, "acme", f)
				if len(page) == 0 {
					break
				}
				for _, r := range page {
					got = append(got, r.Address+" "+r.Gate.ID)
				}
				f.After = page[len(page)-1].Cursor
			}
			require.Len(t, got, len(want))
			require.ElementsMatch(t, want, got, "none is left out, none comes twice")
		}
		runs, err := s.RunRows(context.Background(), "acme", store.RunFilter{Limit: 1})
		require.NoError(t, err)
		for _, wrong := range []string{"no cursor!", runs[0].Cursor} {
			_, err := s.GateRows(context.Background(), "acme", store.GateFilter{After: wrong})
			requireCode(t, agent.CodeInvalid, err)
		}
	}},
	{"text that no database holds is no filter", func(t *testing.T, s store.Store) {
		for _, f := range []store.RunFilter{{Agent: "a\x00"}, {Status: "\xff"}, {Reason: "a\x00"}, {User: "\xff"}, {Address: "a\x00"}, {Under: "a\x00"}} {
			_, err := s.RunRows(context.Background(), "acme", f)
			requireCode(t, agent.CodeInvalid, err)
		}
		for _, f := range []store.GateFilter{{Agent: "a\x00"}, {Status: "\xff"}, {Role: "a\x00"}, {Address: "\xff"}} {
			_, err := s.GateRows(context.Background(), "acme", f)
			requireCode(t, agent.CodeInvalid, err)
		}
		_, err := s.RunRow(context.Background(), store.Chain{Tenant: "acme", Address: "a", FirstRunID: "\x00"})
		requireCode(t, agent.CodeInvalid, err)
		_, err = s.Events(context.Background(), store.Chain{Tenant: "acme", Address: "\xff"}, 1, 0)
		requireCode(t, agent.CodeInvalid, err)
	}},
	{"gates are listed oldest first and narrowed", func(t *testing.T, s store.Store) {
		a := NewHistory(t, "acme", "1", "r1").Open("1.1", "refunds", "it's").Open("1.2").CloseGate("1.2", agent.GateAnswered)
		b := NewHistoryOf(t, "acme", "r2", Epoch.Add(-time.Hour), agent.StartedData{Agent: "triage", Key: "2"}).Open("1.1", "nurses", "refunds")
		appendAll(t, s, a)
		appendAll(t, s, b)
		for _, c := range []struct {
			filter store.GateFilter
			want   []string
		}{
			{store.GateFilter{}, []string{"acme/triage/2 1.1", "acme/refund/1 1.1", "acme/refund/1 1.2"}},
			{store.GateFilter{Limit: 1}, []string{"acme/triage/2 1.1"}},
			{store.GateFilter{Address: a.Ref.Address}, []string{"acme/refund/1 1.1", "acme/refund/1 1.2"}},
			{store.GateFilter{Agent: "triage"}, []string{"acme/triage/2 1.1"}},
			{store.GateFilter{Role: "refunds"}, []string{"acme/triage/2 1.1", "acme/refund/1 1.1"}},
			{store.GateFilter{Role: "it's"}, []string{"acme/refund/1 1.1"}},
			{store.GateFilter{Role: "refund"}, nil},
			{store.GateFilter{Status: agent.GateAnswered}, []string{"acme/refund/1 1.2"}},
			{store.GateFilter{Status: agent.GateOpen, Role: "refunds", Agent: "refund"}, []string{"acme/refund/1 1.1"}},
		} {
			var got []string
			for _, r := range gateRows(t, s, "acme", c.filter) {
				got = append(got, r.Address+" "+r.Gate.ID)
			}
			require.Equal(t, c.want, got, "%+v", c.filter)
		}
	}},
}

// keys are those of the runs that a filter lets through.
func keys(t testing.TB, s store.Store, f store.RunFilter) (got []string) {
	t.Helper()
	rows, err := s.RunRows(context.Background(), "acme", f)
	require.NoError(t, err)
	for _, r := range rows {
		got = append(got, r.Key)
	}
	return got
}

func decode(t testing.TB, e agent.Event, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(e.Data, into))
}
