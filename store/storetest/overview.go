package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

var overviewTests = []contract{
	{"runs are counted as they stand, ended ones since a time", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		for i, r := range []struct {
			tenant, agent string
			head          agent.Head
			ended         time.Duration
		}{
			{"acme", "refund", agent.Head{Status: agent.RunPaused, Reason: "model: it is down"}, 0},
			{"acme", "refund", agent.Head{Status: agent.RunPaused, Reason: "model: it is down still: wait"}, 0},
			{"acme", "refund", agent.Head{Status: agent.RunPaused, Reason: "snapshot"}, 0},
			{"acme", "triage", agent.Head{Status: agent.RunWaiting, Reason: "gate"}, 0},
			{"acme", "triage", agent.Head{Status: agent.RunRunning}, 0},
			{"acme", "triage", agent.Head{Status: agent.RunCompleted}, time.Hour},
			{"acme", "triage", agent.Head{Status: agent.RunCompleted}, time.Second},
			{"globex", "triage", agent.Head{Status: agent.RunWaiting, Reason: "gate"}, 0},
		} {
			h := NewHistoryOf(t, r.tenant, fmt.Sprint("r", i), Epoch, agent.StartedData{Agent: r.agent, Key: fmt.Sprint(i)})
			if r.ended > 0 {
				h.addAt(Epoch.Add(r.ended), agent.EventCompleted, struct{}{})
			}
			h.Head = r.head
			appendAll(t, s, h)
		}
		count := func(agentName string, status agent.RunStatus, kind string, n int) store.RunCount {
			return store.RunCount{Agent: agentName, Status: status, Kind: kind, Runs: n}
		}
		want := []store.RunCount{count("refund", agent.RunPaused, "model", 2), count("refund", agent.RunPaused, "snapshot", 1),
			count("triage", agent.RunCompleted, "", 1), count("triage", agent.RunRunning, "", 1), count("triage", agent.RunWaiting, "gate", 1)}
		got, err := s.CountRuns(ctx, "acme", Epoch.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, want, got)
		found, err := s.RunRows(ctx, "acme", store.RunFilter{Status: agent.RunPaused, Reason: want[0].Kind})
		require.NoError(t, err)
		require.Len(t, found, want[0].Runs)
		got, err = s.CountRuns(ctx, "acme", Epoch)
		require.NoError(t, err)
		require.Equal(t, 2, got[2].Runs)
		got, err = s.CountRuns(ctx, "nobody", Epoch)
		require.NoError(t, err)
		require.Empty(t, got)
		_, err = s.CountRuns(ctx, "", Epoch)
		requireCode(t, agent.CodeInvalid, err)
	}},
	{"what was spent is summed by step of time, agent and model", func(t *testing.T, s store.Store) {
		ctx, nine := context.Background(), time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
		call := func(tenant, key, address, model string, at time.Time) {
			m := modelCall(tenant, key)
			m.Address, m.Model, m.At = address, model, at
			_, err := s.RecordModelCall(ctx, m)
			require.NoError(t, err)
		}
		call("acme", "1", "acme/refund/1", "m-1", nine)
		call("acme", "2", "acme/refund/2", "m-1", nine.Add(time.Hour-time.Microsecond))
		call("acme", "2", "acme/refund/2", "m-1", nine.Add(time.Minute)) // billed twice
		call("acme", "3", "acme/refund/1", "m-2", nine)
		call("acme", "4", "acme/triage/1", "m-1", nine.Add(time.Hour))
		call("acme", "5", "acme/triage/1", "m-1", nine.Add(2*time.Hour))          // not within
		call("acme", "6", "acme/triage/1", "m-1", nine.Add(-time.Microsecond))    // not within
		call("globex", "7", "globex/triage/1", "m-1", nine.Add(time.Microsecond)) // another tenant's
		sum := func(n int64) agent.Usage {
			return agent.Usage{Input: n, CacheRead: 2 * n, CacheWrite: 3 * n, Output: 4 * n, Reasoning: 5 * n}
		}
		got, err := s.Spent(ctx, "acme", store.SpentFilter{From: nine, To: nine.Add(2 * time.Hour), Step: time.Hour})
		require.NoError(t, err)
		require.Equal(t, []store.Spent{{At: nine, Agent: "refund", Model: "m-1", Calls: 3, Usage: sum(3)}, {At: nine, Agent: "refund", Model: "m-2", Calls: 1, Usage: sum(1)},
			{At: nine.Add(time.Hour), Agent: "triage", Model: "m-1", Calls: 1, Usage: sum(1)}}, got)
		day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		got, err = s.Spent(ctx, "acme", store.SpentFilter{From: day, To: day.Add(24 * time.Hour), Step: 24 * time.Hour})
		require.NoError(t, err)
		require.Equal(t, store.Spent{At: day, Agent: "triage", Model: "m-1", Calls: 3, Usage: sum(3)}, got[2])
		for _, wrong := range []store.SpentFilter{{From: nine, To: nine, Step: time.Hour}, {From: nine, To: nine.Add(time.Hour), Step: time.Second},
			{From: nine, To: nine.Add(90 * 24 * time.Hour), Step: time.Hour}, {From: nine, To: nine.Add(time.Hour)}} {
			_, err := s.Spent(ctx, "acme", wrong)
			requireCode(t, agent.CodeInvalid, err)
		}
	}},
	{"gates are narrowed by kind", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		h := NewHistory(t, "acme", "1", "r1").Open("2.1", "refunds")
		h.Add(agent.EventGateOpened, agent.GateOpenedData{Gate: agent.Gate{ID: "2.2-doubt", Step: "2.2", Kind: agent.KindDoubt, Tool: "pay", Args: agent.JSON(`{}`),
			Digest: "d", OpenedAt: Epoch.Add(time.Hour), Status: agent.GateOpen}})
		appendAll(t, s, h)
		rows, err := s.GateRows(ctx, "acme", store.GateFilter{Kind: agent.KindDoubt, Status: agent.GateOpen})
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Equal(t, "2.2-doubt", rows[0].Gate.ID)
		rows, err = s.GateRows(ctx, "acme", store.GateFilter{Kind: agent.KindMove})
		require.NoError(t, err)
		require.Empty(t, rows)
	}},
}
