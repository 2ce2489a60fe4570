package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

// knowing is a batch of a run that knows of acknowledged events.
func knowing(b agent.Batch, acked int64, id string) agent.Batch {
	b.Acked, b.Store = acked, id
	return b
}

// once is an exclusive claim of a run's, scheduled when the store was the one of id.
func once(h *History, key, id string) store.Claim {
	c := claim("acme", key)
	c.Address, c.Branch, c.Store = h.Ref.Address, h.Ref.Branch, id
	c.Attempt, c.Exclusive = time.Minute, true
	return c
}

func generation(t testing.TB, s store.Store) int64 {
	t.Helper()
	id, err := s.Identity(context.Background())
	require.NoError(t, err)
	return id.Generation
}

var lossTests = []contract{
	{"an append is acknowledged by the store's identity", func(t *testing.T, s store.Store) {
		appendAll(t, s, NewHistory(t, "acme", "1", "r1"))
		id, err := s.Identity(context.Background())
		require.NoError(t, err)
		require.Equal(t, id.String(), s.Acknowledges())
		require.NotEmpty(t, id.ID)
		require.NoError(t, s.Probe(context.Background()))
	}},
	{"a journal that ends before what was acknowledged has lost events, with and without a batch", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(6, "hi")
		require.NoError(t, s.Append(ctx, h.Ref, h.Batch(1, 3)))
		told, before := s.Acknowledges(), generation(t, s)
		for _, b := range []agent.Batch{h.Batch(6, 7), {}, h.Batch(6, 6)} {
			r := requireRefusal(t, store.Lost, s.Append(ctx, h.Ref, knowing(b, 5, told)))
			require.EqualValues(t, 3, r.Seq, "the last event that the journal has")
			require.Equal(t, before+1, generation(t, s), "the loss is noticed once")
		}
		requireRefusal(t, store.Lost, s.Append(ctx, h.Ref, knowing(h.Batch(6, 7), 5, "another/7")))
		require.EqualValues(t, 8, generation(t, s), "later than any that a run was told of")
		requireEvents(t, s, h.Reset("r1", 3))
	}},
	{"a journal without the run has lost all of it", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(3, "hi")
		r := requireRefusal(t, store.Lost, s.Append(ctx, h.Ref, knowing(h.Batch(4, 4), 3, s.Acknowledges())))
		require.Zero(t, r.Seq)
		requireRefusal(t, store.Lost, s.Append(ctx, h.Ref, knowing(agent.Batch{}, 4, s.Acknowledges())))
	}},
	{"what was acknowledged and stands, or is superseded, is not lost", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(5, "hi")
		appendAll(t, s, h)
		told, before := s.Acknowledges(), generation(t, s)
		require.NoError(t, s.Append(ctx, h.Ref, knowing(agent.Batch{}, 6, told)))
		r2 := h.Reset("r2", 2).Say(1, "otherwise")
		require.NoError(t, s.Append(ctx, r2.Ref, knowing(r2.Batch(3, 3), 2, told)))
		r3 := h.Reset("r3", 6) // of the run that r2 has superseded
		require.NoError(t, s.Append(ctx, r3.Ref, knowing(agent.Batch{}, 6, told)))
		r3.Say(1, "on")
		require.NoError(t, s.Append(ctx, r3.Ref, knowing(r3.Batch(7, 7), 6, told)))
		requireEvents(t, s, r3)
		require.Equal(t, before, generation(t, s))
	}},
	{"changed code is diverged, and raises nothing", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(4, "hi")
		appendAll(t, s, h)
		before := generation(t, s)
		other := h.Reset("r1", 2).Say(3, "other")
		requireRefusal(t, store.Diverged, s.Append(ctx, other.Ref, knowing(other.Batch(5, 5), 4, s.Acknowledges())))
		require.Equal(t, before, generation(t, s))
	}},
	{"an effect without a row that was scheduled before a restore may have happened", func(t *testing.T, s store.Store) {
		ctx, h := context.Background(), NewHistory(t, "acme", "1", "r1").Say(1, "hi")
		appendAll(t, s, h)
		told := s.Acknowledges()
		require.True(t, mustClaim(t, s, once(h, "before", told), true).Open(), "its own attempt")
		id, err := s.Restored(ctx, "a test")
		require.NoError(t, err)
		require.NotEqual(t, told, id.String())
		require.Equal(t, "a test", id.Reason)
		e := mustClaim(t, s, once(h, "doubted", told), false)
		require.Equal(t, 2, e.Attempts, "one that may have run, and this one")
		require.True(t, e.Unknown)
		e, err = s.Release(ctx, "acme", "doubted", 2, 2)
		require.NoError(t, err)
		require.True(t, e.Open(), "this one did nothing; of the other nobody knows")
		keyed := once(h, "keyed", told)
		keyed.Exclusive = false
		mustClaim(t, s, keyed, true)
		appendAll(t, s, h)
		mustClaim(t, s, once(h, "after", s.Acknowledges()), true)
	}},
	{"a run that was reset after a restore cannot know what it did before", func(t *testing.T, s store.Store) {
		ctx, h, whole := context.Background(), NewHistory(t, "acme", "1", "r1").Say(2, "hi"), NewHistory(t, "acme", "2", "r2")
		appendAll(t, s, h)
		_, err := s.Restored(ctx, "a test")
		require.NoError(t, err)
		appendAll(t, s, h)
		mustClaim(t, s, once(h, "same run", s.Acknowledges()), true)
		r2 := h.Reset("r1b", 2).Say(1, "otherwise")
		require.NoError(t, s.Append(ctx, r2.Ref, r2.Batch(3, 3)))
		mustClaim(t, s, once(r2, "reset", s.Acknowledges()), false)
		appendAll(t, s, whole)
		again := whole.Reset("r2b", 1).Say(1, "otherwise")
		require.NoError(t, s.Append(ctx, again.Ref, again.Batch(2, 2)))
		mustClaim(t, s, once(again, "began after it", s.Acknowledges()), true)
		gone := NewHistory(t, "acme", "3", "r3").Reset("r3b", 1) // the copy had none of it
		require.NoError(t, s.Append(ctx, gone.Ref, gone.Batch(1, 1)))
		gone.Ref.Branch = "r3c"
		mustClaim(t, s, once(gone, "none of it", s.Acknowledges()), false)
	}},
}
