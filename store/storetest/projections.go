package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

var projectionTests = []contract{
	{"the run's row says what its start and the newest head say", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Say(2, "hi")
		h.Head = agent.Head{Status: agent.RunWaiting, Reason: "user", Phase: "collect", Turn: 3}
		appendAll(t, s, h)
		row := runRow(t, s, h)
		require.NotEmpty(t, row.Cursor)
		row.Cursor = ""
		require.Equal(t, store.RunRow{Tenant: "acme", Address: h.Ref.Address, FirstRunID: "r1", Agent: "refund", Key: "1", Version: 1,
			User: "ann", Head: h.Head, Body: "body-1", Seq: 3, StartedAt: Epoch, UpdatedAt: Epoch.Add(2 * time.Second)}, row)
	}},
	{"an older head does not count", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(3, "hi")
		older := h.Batch(1, 2)
		h.Head = agent.Head{Status: agent.RunPaused, Reason: "operator", Phase: "pay", Turn: 7}
		appendAll(t, s, h)
		require.NoError(t, s.Append(ctx, h.Ref, older))
		require.Equal(t, h.Head, runRow(t, s, h).Head)
		h.Head = agent.Head{Status: agent.RunRunning, Phase: "pay", Turn: 7}
		require.NoError(t, s.Append(ctx, h.Ref, h.Batch(4, 4)))
		require.Equal(t, h.Head, runRow(t, s, h).Head, "a batch that reaches the newest event")
	}},
	{"an end is on the row, and goes when it is superseded", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(2, "hi")
		h.Add(agent.EventCompleted, agent.EndedData{Reason: "done"})
		h.Head = agent.Head{Status: agent.RunCompleted, Phase: "done", Turn: 2}
		appendAll(t, s, h)
		row := runRow(t, s, h)
		require.NotNil(t, row.EndedAt)
		require.Equal(t, Epoch.Add(3*time.Second), *row.EndedAt)
		r2 := h.Reset("r2", 2).Say(1, "otherwise")
		r2.Head = agent.Head{Status: agent.RunRunning, Phase: "collect", Turn: 2}
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(3, 3)))
		row = runRow(t, s, h)
		require.Nil(t, row.EndedAt)
		require.Equal(t, r2.Head, row.Head)
	}},
	{"a gate's row is the gate, open and closed", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Open("1.1", "refunds")
		appendAll(t, s, h)
		var opened agent.GateOpenedData
		decode(t, h.Events[1], &opened)
		rows := gateRows(t, s, "acme", store.GateFilter{})
		require.Len(t, rows, 1)
		require.Equal(t, store.GateRow{Address: h.Ref.Address, FirstRunID: "r1", Agent: "refund", Gate: opened.Gate, Cursor: rows[0].Cursor}, rows[0])
		require.Equal(t, awkward, opened.Gate.Args.String())

		h.CloseGate("1.1", agent.GateApproved)
		require.NoError(t, s.Append(ctx, h.Ref, h.Batch(2, 3)))
		want, closedAt := opened.Gate, h.Events[2].At
		want.Status, want.Reason, want.Verdict, want.Verified, want.ClosedAt = agent.GateApproved, "seen & <checked>", "approve", true, &closedAt
		want.By = &agent.Principal{Subject: "rita", Roles: []string{"refunds"}}
		require.Equal(t, []store.GateRow{{Address: h.Ref.Address, FirstRunID: "r1", Agent: "refund", Gate: want, Cursor: rows[0].Cursor}}, gateRows(t, s, "acme", store.GateFilter{}))
	}},
	{"gates opened and closed in one batch", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Open("1.1").CloseGate("1.1", agent.GateVoid).Open("1.2").CloseGate("no such gate", agent.GateVoid)
		appendAll(t, s, h)
		require.Equal(t, map[string]agent.GateStatus{"1.1": agent.GateVoid, "1.2": agent.GateOpen}, gateStatuses(t, s))
	}},
	{"after a supersede the gates are what the live events say", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Open("1.1", "refunds").Open("1.2").CloseGate("1.2", agent.GateApproved)
		h.CloseGate("1.1", agent.GateRejected).Open("2.1").CloseGate("2.1", agent.GateExpired) // 5, 6, 7
		appendAll(t, s, h)
		r2 := h.Reset("r2", 4).Say(1, "otherwise").Open("2.2")
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(4, 6)))
		require.Equal(t, map[string]agent.GateStatus{"1.1": agent.GateOpen, "1.2": agent.GateApproved, "2.2": agent.GateOpen}, gateStatuses(t, s))
		var opened agent.GateOpenedData
		decode(t, h.Events[1], &opened)
		require.Equal(t, opened.Gate, gateRows(t, s, "acme", store.GateFilter{Role: "refunds"})[0].Gate, "as it was when it opened")

		r3 := h.Reset("r3", 1).Say(1, "from the start").Open("1.1")
		require.NoError(t, s.Append(ctx, r3.Ref, r3.Batch(2, 3)))
		require.Equal(t, map[string]agent.GateStatus{"1.1": agent.GateOpen}, gateStatuses(t, s))
	}},
	{"a gate's row has the verdict that waits to take effect, also after a supersede", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Open("1.1", "refunds")
		pending := func(h *History, by string) {
			h.Add(agent.EventGatePending, agent.GatePendingData{Gate: "1.1", Pending: &agent.PendingVerdict{Verdict: agent.Approve, By: agent.Principal{Subject: by}, At: Epoch, Until: Epoch.Add(time.Minute)}})
		}
		waits := func() string {
			row := gateRows(t, s, "acme", store.GateFilter{})[0].Gate
			if row.Pending == nil {
				return string(row.Status)
			}
			return string(row.Status) + " " + row.Pending.By.Subject
		}
		pending(h, "ann")                                                 // 3
		h.Add(agent.EventGatePending, agent.GatePendingData{Gate: "1.1"}) // 4
		pending(h, "bob")                                                 // 5
		h.CloseGate("1.1", agent.GateApproved)                            // 6
		for last, want := range []string{3: "open ann", 4: "open", 5: "open bob", 6: "approved"} {
			if want != "" {
				require.NoError(t, s.Append(ctx, h.Ref, h.Batch(1, int64(last))))
				require.Equal(t, want, waits())
			}
		}
		r2 := h.Reset("r2", 3).Say(1, "otherwise")
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(4, 4)))
		require.Equal(t, "open ann", waits())
	}},
	{"a gate's row counts its approvals and has the roles of its escalation, also after a supersede", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Open("1.1", "refunds").Open("1.2", "refunds")
		approval := func(who ...string) (all []agent.Approval) {
			for _, w := range who {
				all = append(all, agent.Approval{By: agent.Principal{Subject: w}, At: Epoch})
			}
			return all
		}
		count := func(h *History, gate string, who ...string) {
			h.Add(agent.EventGateCounted, agent.GateCountedData{Gate: gate, Approvals: approval(who...)})
		}
		count(h, "1.1", "ann") // 4
		h.Add(agent.EventGateEscalated, agent.GateEscalatedData{Gate: "1.1", Roles: []string{"chief"}})
		count(h, "1.1", "ann", "bob") // 6
		count(h, "1.2", "ann")
		h.CloseGate("1.1", agent.GateApproved)     // 8
		for _, last := range []int64{3, 4, 7, 8} { // in one batch, and in later ones
			require.NoError(t, s.Append(ctx, h.Ref, h.Batch(1, last)))
		}
		rows := func(role string) (out []string) {
			for _, r := range gateRows(t, s, "acme", store.GateFilter{Role: role}) {
				text := r.Gate.ID + " " + string(r.Gate.Status)
				for _, a := range r.Gate.Approvals {
					text += " " + a.By.Subject
				}
				out = append(out, text)
			}
			return out
		}
		require.Equal(t, []string{"1.1 approved ann bob", "1.2 open ann"}, rows("refunds"))
		require.Equal(t, []string{"1.1 approved ann bob"}, rows("chief"))

		r2 := h.Reset("r2", 5).Say(1, "otherwise")
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(6, 6)))
		require.Equal(t, []string{"1.1 open ann", "1.2 open"}, rows("refunds"))
		require.Equal(t, []string{"1.1 open ann"}, rows("chief"))
		r3 := h.Reset("r3", 3).Say(1, "from there")
		require.NoError(t, s.Append(ctx, r3.Ref, r3.Batch(4, 4)))
		require.Equal(t, []string{"1.1 open", "1.2 open"}, rows("refunds"))
		require.Empty(t, rows("chief"))
	}},
	{"a refused batch leaves run and gates as they are", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Open("1.1")
		appendAll(t, s, h)
		before := runRow(t, s, h)
		other := h.Reset("r1", 1).CloseGate("1.1", agent.GateVoid).Open("1.2")
		other.Head.Status = agent.RunPaused
		requireRefusal(t, store.Diverged, s.Append(context.Background(), other.Ref, other.Batch(2, 3)))
		require.Equal(t, before, runRow(t, s, h))
		require.Equal(t, map[string]agent.GateStatus{"1.1": agent.GateOpen}, gateStatuses(t, s))
	}},
}

func runRow(t testing.TB, s store.Store, h *History) store.RunRow {
	t.Helper()
	row, err := s.RunRow(context.Background(), store.Chain{Tenant: h.Ref.Tenant, Address: h.Ref.Address})
	require.NoError(t, err)
	return row
}

func gateRows(t testing.TB, s store.Store, tenant string, f store.GateFilter) []store.GateRow {
	t.Helper()
	rows, err := s.GateRows(context.Background(), tenant, f)
	require.NoError(t, err)
	return rows
}

func gateStatuses(t testing.TB, s store.Store) map[string]agent.GateStatus {
	t.Helper()
	all := map[string]agent.GateStatus{}
	for _, r := range gateRows(t, s, "acme", store.GateFilter{}) {
		all[r.Gate.ID] = r.Gate.Status
	}
	return all
}
