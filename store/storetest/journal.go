package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

var journalTests = []contract{
	{"new events are appended and read back byte for byte", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Say(2, "<b>&</b> 👩‍🚀")
		h.Add(agent.EventStateSet, canonical(t, awkward))
		h.Events = append(h.Events, agent.Event{Seq: h.Last() + 1, At: Epoch.Add(time.Hour), Type: agent.EventTrimmed, V: 2, Tenant: "acme", Data: agent.JSON("null")})
		appendAll(t, s, h)
		requireEvents(t, s, h)
		require.Equal(t, awkward, h.Events[3].Data.String())
	}},
	{"an empty batch does nothing", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1")
		require.NoError(t, s.Append(context.Background(), h.Ref, agent.Batch{}))
		_, err := s.RunRow(context.Background(), store.Chain{Tenant: "acme", Address: h.Ref.Address})
		requireCode(t, agent.CodeNotFound, err)
	}},
	{"equal events are acknowledged", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(4, "hi")
		appendAll(t, s, h)
		appendAll(t, s, h)
		require.NoError(t, s.Append(ctx, h.Ref, h.Batch(2, 3)))
		require.NoError(t, s.Append(ctx, h.Ref, h.Batch(5, 5)))
		requireEvents(t, s, h)
	}},
	{"a batch may be part old and part new", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Say(2, "hi")
		appendAll(t, s, h)
		h.Say(3, "more")
		require.NoError(t, s.Append(context.Background(), h.Ref, h.Batch(2, 5)))
		require.NoError(t, s.Append(context.Background(), h.Ref, h.Batch(5, 6)))
		requireEvents(t, s, h)
	}},
	{"a gap is diverged, and nothing is written", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(5, "hi")
		r := requireRefusal(t, store.Diverged, s.Append(ctx, h.Ref, h.Batch(2, 3)))
		require.EqualValues(t, 2, r.Seq)
		require.NoError(t, s.Append(ctx, h.Ref, h.Batch(1, 2)))
		r = requireRefusal(t, store.Diverged, s.Append(ctx, h.Ref, h.Batch(5, 6)))
		require.EqualValues(t, 5, r.Seq)
		requireEvents(t, s, h.Reset("r1", 2))
	}},
	{"another history before the batch is diverged", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(2, "hi")
		appendAll(t, s, h)
		for name, other := range map[string]*History{
			"its own branch": h.Reset("r1", 1).Say(3, "other"), "another branch": h.Reset("r2", 1).Say(3, "other")} {
			r := requireRefusal(t, store.Diverged, s.Append(ctx, other.Ref, other.Batch(4, 4)))
			require.EqualValues(t, 4, r.Seq, name)
			r = requireRefusal(t, store.Diverged, s.Append(ctx, other.Ref, other.Batch(3, 3)))
			require.EqualValues(t, 3, r.Seq, name)
		}
		b := h.Batch(1, 3)
		b.Before = h.Hash(2)
		requireRefusal(t, store.Diverged, s.Append(ctx, h.Ref, b))
		requireEvents(t, s, h)
	}},
	{"another event of its own branch is diverged", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(4, "hi")
		appendAll(t, s, h)
		other := h.Reset("r1", 2).Add(agent.EventPaused, agent.PausedData{Reason: "by hand"}).Say(3, "hi")
		r := requireRefusal(t, store.Diverged, s.Append(ctx, other.Ref, other.Batch(2, 6)))
		require.EqualValues(t, 3, r.Seq)
		require.Contains(t, r.Message, string(agent.EventMessage), "the type that stands")
		require.Contains(t, r.Message, string(agent.EventPaused), "the type that is offered")
		requireEvents(t, s, h)
	}},
	{"equal batches at once", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Say(5, "hi")
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() { errs[i] = s.Append(context.Background(), h.Ref, h.Batch(1, h.Last()-int64(i%3))) })
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		requireEvents(t, s, h)
	}},
	{"a batch that is no batch is invalid", func(t *testing.T, s store.Store) {
		for name, spoil := range map[string]func(*agent.Batch, *store.RunRef){
			"sequence":     func(b *agent.Batch, _ *store.RunRef) { b.Events[1].Seq = 7 },
			"first":        func(b *agent.Batch, _ *store.RunRef) { b.First = 2 },
			"tenant":       func(b *agent.Batch, _ *store.RunRef) { b.Events[1].Tenant = "other" },
			"fine time":    func(b *agent.Batch, _ *store.RunRef) { b.Events[1].At = b.Events[1].At.Add(time.Nanosecond) },
			"start":        func(b *agent.Batch, _ *store.RunRef) { b.Events[0].Type = agent.EventMessage },
			"second start": func(b *agent.Batch, _ *store.RunRef) { b.Events[1].Type = agent.EventStarted },
			"canonical":    func(b *agent.Batch, _ *store.RunRef) { b.Events[1].Data = agent.JSON(`{"b":1, "a":2}`) },
			"no JSON":      func(b *agent.Batch, _ *store.RunRef) { b.Events[1].Data = agent.JSON(`{`) },
			"no branch":    func(_ *agent.Batch, r *store.RunRef) { r.Branch = "" },
			"no tenant":    func(_ *agent.Batch, r *store.RunRef) { r.Tenant = "" },
			"no address":   func(_ *agent.Batch, r *store.RunRef) { r.Address = "" },
			"no chain":     func(_ *agent.Batch, r *store.RunRef) { r.FirstRunID = "" },
			"no start":     func(b *agent.Batch, _ *store.RunRef) { b.Events[0].Data = agent.JSON(`{"version":"one"}`) },
			"other salt":   func(b *agent.Batch, _ *store.RunRef) { b.Salt = "other" },
			"no gate": func(b *agent.Batch, _ *store.RunRef) {
				b.Events[1].Type, b.Events[1].Data = agent.EventGateOpened, agent.JSON(`{"gate":7}`)
			},
		} {
			h := NewHistory(t, "acme", "1", "r1").Say(2, "hi")
			b, ref := h.Batch(1, 3), h.Ref
			spoil(&b, &ref)
			err := s.Append(context.Background(), ref, b)
			require.Error(t, err, name)
			requireCode(t, agent.CodeInvalid, err)
			requireEvents(t, s, &History{Ref: h.Ref})
		}
	}},
}

var identityTests = []contract{
	{"another chain with the same body: key used", func(t *testing.T, s store.Store) {
		h, other := NewHistory(t, "acme", "1", "r1").Say(1, "hi"), NewHistory(t, "acme", "1", "r9").Say(3, "other")
		appendAll(t, s, h)
		r := requireRefusal(t, store.KeyUsed, s.Append(context.Background(), other.Ref, other.Batch(1, 4)))
		require.Equal(t, "r1", r.FirstRunID)
		requireEvents(t, s, h)
	}},
	{"another chain with another body: conflict", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Say(1, "hi")
		appendAll(t, s, h)
		other := NewHistoryOf(t, "acme", "r9", Epoch, agent.StartedData{Agent: "refund", Key: "1", BodyDigest: "body-2"})
		r := requireRefusal(t, store.Conflict, s.Append(context.Background(), other.Ref, other.Batch(1, 1)))
		require.Equal(t, "r1", r.FirstRunID)
		requireEvents(t, s, h)
	}},
	{"a later batch of another chain is diverged", func(t *testing.T, s store.Store) {
		h, other := NewHistory(t, "acme", "1", "r1").Say(1, "hi"), NewHistory(t, "acme", "1", "r9").Say(3, "other")
		appendAll(t, s, h)
		requireRefusal(t, store.Diverged, s.Append(context.Background(), other.Ref, other.Batch(3, 4)))
		requireEvents(t, s, h)
	}},
}
