package starter_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"interlock/agent"
	"interlock/starter"
	"interlock/store"
)

// watched collects what a watch yields.
func watched(ctx context.Context, s *starter.Starter, after int64, each func(agent.Event)) (seqs []int64, err error) {
	for e, failed := range s.Watch(ctx, address, after) {
		if failed != nil {
			return seqs, failed
		}
		seqs = append(seqs, e.Seq)
		each(e)
	}
	return seqs, nil
}

func nothing(agent.Event) {}

func TestWatch(t *testing.T) {
	t.Parallel()
	j := started(t, "first", "", noon).message("m", "hi")
	m := stored(j)
	s := starter.New(&fake{}, starter.WithReader(m))
	grow := func(e agent.Event) {
		switch e.Seq {
		case 2:
			time.AfterFunc(300*time.Millisecond, func() { m.change(func() { j.turn().reply("Hello.") }) })
		case 5:
			time.AfterFunc(300*time.Millisecond, func() { m.change(func() { j.completed() }) })
		}
	}
	seqs, err := watched(t.Context(), s, 0, grow)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3, 4, 5, 6}, seqs)
	seqs, err = watched(t.Context(), s, 4, nothing)
	require.NoError(t, err)
	require.Equal(t, []int64{5, 6}, seqs)
	seqs, err = watched(t.Context(), s, 6, nothing)
	require.NoError(t, err, "there is nothing after the last event")
	require.Empty(t, seqs)
	for e := range s.Watch(t.Context(), address, 0) {
		require.EqualValues(t, 1, e.Seq)
		break // nobody listens any more
	}
}

// A long journal comes in parts, without a gap.
func TestWatch_Long(t *testing.T) {
	t.Parallel()
	j := started(t, "first", "", noon)
	for range 500 {
		j.add(agent.EventInputRefused, "", agent.InputRefusedData{Name: "message", Reason: "bad"})
	}
	j.completed()
	seqs, err := watched(t.Context(), starter.New(&fake{}, starter.WithReader(stored(j))), 0, nothing)
	require.NoError(t, err)
	require.Len(t, seqs, 502)
	for i, seq := range seqs {
		require.EqualValues(t, i+1, seq)
	}
}

func TestWatch_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	m := stored(started(t, "first", "", noon))
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	seqs, err := watched(ctx, starter.New(&fake{}, starter.WithReader(m)), 0, nothing)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, []int64{1}, seqs)
}

// branched is a memory with branches.
type branched struct {
	*memory
	branches []store.Branch
}

func (b branched) Branches(context.Context, store.Chain) ([]store.Branch, error) {
	return b.branches, nil
}

// A reset that makes the journal shorter ends the watch; of one that made it
// longer, what comes next is shown.
func TestWatch_Reset(t *testing.T) {
	t.Parallel()
	j := started(t, "first", "", noon).message("m", "hi").turn().reply("Hello.")
	m := stored(j)
	s := starter.New(&fake{}, starter.WithReader(branched{m, []store.Branch{{RunID: "old", First: 1, Last: 5, Superseded: 3, SupersededBy: "new"}, {RunID: "new", First: 3, Last: 3}}}))
	seqs, err := watched(t.Context(), s, 0, func(e agent.Event) {
		if e.Seq == 5 {
			m.change(func() {
				j.events = j.events[:2]
				j.turn()
			})
		}
	})
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "reset to event 2")
	require.Equal(t, []int64{1, 2, 3, 4, 5}, seqs)
	_, err = watched(t.Context(), s, 5, nothing)
	require.ErrorContains(t, err, "reset to event 2", "whoever goes on later learns it too")
}

// The store is behind what the run itself has told: that is no reset.
func TestWatch_Behind(t *testing.T) {
	t.Parallel()
	j := started(t, "first", "", noon).message("m", "hi")
	m := stored(j)
	time.AfterFunc(600*time.Millisecond, func() { m.change(func() { j.turn().reply("Hello.").completed() }) })
	seqs, err := watched(t.Context(), starter.New(&fake{}, starter.WithReader(branched{m, []store.Branch{{RunID: "run", First: 1, Last: 2}}})), 5, nothing)
	require.NoError(t, err)
	require.Equal(t, []int64{6}, seqs)
}

// A number beyond the last event of a run that has ended: nothing can follow it.
func TestWatch_BeyondTheEnd(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	m := stored(started(t, "first", "", noon).message("m", "hi"))
	s := starter.New(&fake{}, starter.WithReader(branched{m, []store.Branch{{RunID: "run", First: 1, Last: 3}}}))
	time.AfterFunc(300*time.Millisecond, func() { m.change(func() { m.chains[0].completed() }) })
	for range 2 { // while it goes on, and when it has ended
		seqs, err := watched(ctx, s, 99, nothing)
		require.NoError(t, err)
		require.Empty(t, seqs)
	}
}

// The run that stood at the address is watched, not the one that follows it.
func TestWatch_Followed(t *testing.T) {
	t.Parallel()
	m := stored(started(t, "first", "", noon).message("m", "hi")) // terminated: it has no end
	s := starter.New(&fake{}, starter.WithReader(m))
	seqs, err := watched(t.Context(), s, 0, func(e agent.Event) {
		if e.Seq == 2 {
			m.change(func() { m.chains = append(m.chains, started(t, "second", "first", noon).completed()) })
		}
	})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2}, seqs)
}

func TestWatch_NotRecordedYet(t *testing.T) {
	t.Parallel()
	m := stored()
	f := &fake{}
	f.describe = func(string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return execution("run", "first", enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil), nil
	}
	s := starter.New(f, starter.WithReader(m))
	time.AfterFunc(300*time.Millisecond, func() {
		m.change(func() { m.chains = append(m.chains, started(t, "first", "", noon).completed()) })
	})
	seqs, err := watched(t.Context(), s, 0, nothing)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2}, seqs)

	f.describe = func(string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return nil, serviceerror.NewNotFound("workflow not found")
	}
	_, err = watched(t.Context(), starter.New(f, starter.WithReader(stored())), 0, nothing)
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err), "%v", err)
}

// A store that fails for a moment is asked again.
func TestWatch_StoreFails(t *testing.T) {
	t.Parallel()
	m := stored(started(t, "first", "", noon).completed())
	m.err = errors.New("the store is locked")
	time.AfterFunc(400*time.Millisecond, func() { m.change(func() { m.err = nil }) })
	seqs, err := watched(t.Context(), starter.New(&fake{}, starter.WithReader(m)), 0, nothing)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2}, seqs)
}

// telling is a store that tells of appends.
type telling struct {
	*memory
	wake  chan struct{}
	reads atomic.Int32
}

func (m *telling) Follow(_ context.Context, scope store.Scope) <-chan struct{} {
	if scope != (store.Scope{Tenant: "acme", Address: address}) {
		return nil
	}
	return m.wake
}

func (m *telling) Events(ctx context.Context, c store.Chain, from int64, limit int) ([]agent.Event, error) {
	m.reads.Add(1)
	return m.memory.Events(ctx, c, from, limit)
}

// A store that tells of appends is read when it does, and not again and again.
func TestWatch_Told(t *testing.T) {
	t.Parallel()
	j := started(t, "first", "", noon).message("m", "hi")
	m := &telling{memory: stored(j), wake: make(chan struct{}, 1)}
	seqs, err := watched(t.Context(), starter.New(&fake{}, starter.WithReader(m)), 0, func(e agent.Event) {
		if e.Seq == 2 {
			time.AfterFunc(3*time.Second, func() { // polling would have looked several times
				m.change(func() { j.turn().reply("Hello.").completed() })
				m.wake <- struct{}{}
			})
		}
	})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3, 4, 5, 6}, seqs)
	require.LessOrEqual(t, m.reads.Load(), int32(3), "what was there, that there is no more, and what came")
}
