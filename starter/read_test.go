package starter_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

func TestListAndGates(t *testing.T) {
	t.Parallel()
	m := stored(started(t, "first", "", noon).message("m", "hi").turn().gate("1.1", "Refund").gate("1.2", "Refund again").
		add(agent.EventGateClosed, "1.1", agent.GateClosedData{Gate: "1.1", Status: agent.GateApproved}))
	m.pages = [][]store.RunRow{{{Address: address}}}
	s := starter.New(&fake{}, starter.WithReader(m))
	rows, err := s.List(t.Context(), "acme", store.RunFilter{Agent: "lab"})
	require.NoError(t, err)
	require.Equal(t, address, rows[0].Address)
	gates, err := s.Gates(t.Context(), "acme", store.GateFilter{Status: agent.GateOpen})
	require.NoError(t, err)
	require.Len(t, gates, 1)
	for id, status := range map[string]agent.GateStatus{"1.1": agent.GateApproved, "1.2": agent.GateOpen} {
		g, err := s.Gate(t.Context(), address, id)
		require.NoError(t, err)
		require.Equal(t, status, g.Gate.Status)
	}
	just := &fake{query: func(string) (*agent.Run, error) {
		return &agent.Run{FirstRunID: "first", Gates: []agent.Gate{{ID: "2.1", Status: agent.GateOpen}}}, nil
	}}
	g, err := starter.New(just, starter.WithReader(m)).Gate(t.Context(), address, "2.1")
	require.NoError(t, err, "the store does not have it yet")
	require.Equal(t, agent.GateOpen, g.Gate.Status)
	_, err = s.Gate(t.Context(), address, "9.9")
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err), "%v", err)

	for _, f := range []string{"other/lab/k", "acme/lab"} {
		_, err = s.List(t.Context(), "acme", store.RunFilter{Address: f})
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%v", err)
		_, err = s.Gates(t.Context(), "acme", store.GateFilter{Address: f})
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%v", err)
	}
}

// Calls that read the store say so where there is none.
func TestWithoutAReader(t *testing.T) {
	t.Parallel()
	s := starter.New(&fake{})
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"list":  func() error { _, err := s.List(ctx, "acme", store.RunFilter{}); return err },
		"gates": func() error { _, err := s.Gates(ctx, "acme", store.GateFilter{}); return err },
		"gate":  func() error { _, err := s.Gate(ctx, address, "1.1"); return err },
		"watch": func() error { _, err := watched(ctx, s, 0, nothing); return err },
		"resume all": func() error {
			_, err := s.ResumeAll(ctx, "acme", starter.ResumeAll{ID: "r", Principal: ann})
			return err
		},
	} {
		err := call()
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "starter.WithReader is needed", name)
	}
}

// Each paused run that matches is resumed once, whatever becomes of another.
func TestResumeAll(t *testing.T) {
	t.Parallel()
	row := func(key, firstRunID, reason string) store.RunRow {
		return store.RunRow{Tenant: "acme", Address: "acme/lab/" + key, FirstRunID: firstRunID, Cursor: key,
			Head: agent.Head{Status: agent.RunPaused, Reason: reason}}
	}
	rows := []store.RunRow{row("k", "first", "model: down"), row("l", "first", "model: down"), row("m", "first", "budget:turns"), row("n", "older", "model: down")}
	list := func() *paged { return &paged{memory: &memory{}, now: rows} }
	var ids []string
	f := &fake{updating: func(o client.UpdateWorkflowOptions) (any, error) {
		if o.WorkflowID == "acme/lab/l" {
			return agent.Receipt{Status: agent.Refused, Code: agent.CodeConflict, Reason: "the run is not paused"}, nil
		}
		ids = append(ids, o.UpdateID)
		require.Equal(t, signals.NameResume, o.UpdateName)
		return agent.Receipt{Status: agent.Accepted, Seq: 9}, nil
	}}
	for range 2 {
		l := list()
		got, err := starter.New(f, starter.WithReader(l)).ResumeAll(t.Context(), "acme",
			starter.ResumeAll{Agent: "lab", Reason: "model:", Principal: ann, ID: "r1", Note: "it is up again"})
		require.NoError(t, err)
		require.Len(t, got, 2, "another stands at n now")
		require.Equal(t, starter.Resumed{Address: "acme/lab/k", Reason: "model: down", Receipt: agent.Receipt{Status: agent.Accepted, Seq: 9}}, got[0])
		require.Equal(t, agent.CodeConflict, agent.ErrorCode(got[1].Err))
		require.Equal(t, store.RunFilter{Agent: "lab", Status: agent.RunPaused, Reason: "model:", Limit: 500}, l.filters[0])
	}
	require.Len(t, ids, 2)
	require.Equal(t, ids[0], ids[1], "a repeat has the same id")
	require.Less(t, len(strings.Split(ids[0], ":")[2]), 200)
}

// paged is a store with rows of several runs.
type paged struct {
	*memory
	now []store.RunRow
}

func (p *paged) RunRows(_ context.Context, _ string, f store.RunFilter) ([]store.RunRow, error) {
	p.filters = append(p.filters, f)
	return p.now, nil
}

func (p *paged) RunRow(_ context.Context, c store.Chain) (store.RunRow, error) {
	for _, r := range p.now {
		if r.Address == c.Address {
			if r.FirstRunID == "older" {
				r.FirstRunID = "newer"
			}
			return r, nil
		}
	}
	return store.RunRow{}, agent.Errorf(agent.CodeNotFound, "there is no such run")
}
