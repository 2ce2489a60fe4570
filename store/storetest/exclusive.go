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

// exclusive is a claim whose attempt may not overlap the one before.
func exclusive(attempt, grace time.Duration) store.Claim {
	c := claim("acme", "k")
	c.Attempt, c.Grace, c.Exclusive = attempt, grace, true
	return c
}

var exclusiveTests = []contract{
	{"while an attempt may run, another waits and is not counted", func(t *testing.T, s store.Store) {
		first := mustClaim(t, s, exclusive(time.Hour, time.Minute), true)
		require.Zero(t, first.Wait)
		require.Equal(t, first.ClaimedAt, first.AttemptAt)
		require.Equal(t, first.AttemptAt.Add(time.Hour), first.Deadline)
		again := mustClaim(t, s, exclusive(time.Hour, time.Minute), false)
		require.Greater(t, again.Wait, 59*time.Minute)
		require.LessOrEqual(t, again.Wait, 61*time.Minute)
		again.Wait = 0
		require.Equal(t, first, again)
		require.Equal(t, first, effect(t, s, "acme", "k"))
		long := mustClaim(t, s, exclusive(time.Second, 24*time.Hour), false) // the grace is the claimant's own
		require.Greater(t, long.Wait, 24*time.Hour)
	}},
	{"one that may overlap never waits, and its deadline is the next one's to wait for", func(t *testing.T, s store.Store) {
		first := mustClaim(t, s, exclusive(time.Hour, 0), true)
		c := claim("acme", "k")
		c.Attempt = 2 * time.Hour
		second := mustClaim(t, s, c, false)
		require.Equal(t, []any{2, time.Duration(0)}, []any{second.Attempts, second.Wait})
		require.Equal(t, second.AttemptAt.Add(2*time.Hour), second.Deadline)
		require.False(t, second.AttemptAt.Before(first.AttemptAt))
		require.Equal(t, first.ClaimedAt, second.ClaimedAt)
		require.Equal(t, second, effect(t, s, "acme", "k"))
		require.Greater(t, mustClaim(t, s, exclusive(time.Hour, 0), false).Wait, time.Hour)
	}},
	{"an attempt that certainly had no effect is not waited for", func(t *testing.T, s store.Store) {
		c := exclusive(time.Hour, time.Hour)
		mustClaim(t, s, c, true)
		require.Positive(t, mustClaim(t, s, c, false).Wait)
		require.Zero(t, release(t, s, 1).Deadline)
		second := mustClaim(t, s, c, false)
		require.Equal(t, []any{2, time.Duration(0), false}, []any{second.Attempts, second.Wait, second.Unknown})
		require.Equal(t, second.AttemptAt.Add(time.Hour), second.Deadline)
		require.Positive(t, mustClaim(t, s, c, false).Wait)
	}},
	{"a late release does not end the wait for another attempt", func(t *testing.T, s store.Store) {
		c := claim("acme", "k")
		c.Attempt = time.Hour
		mustClaim(t, s, c, true)
		second := mustClaim(t, s, c, false) // it overlaps
		require.Equal(t, second.Deadline, release(t, s, 1).Deadline)
		require.Equal(t, second.Deadline, release(t, s, 1).Deadline, "and twice neither")
		require.Positive(t, mustClaim(t, s, exclusive(time.Hour, 0), false).Wait)
	}},
	{"of attempts that overlapped, the last that may still act is waited for", func(t *testing.T, s store.Store) {
		c := claim("acme", "k")
		c.Attempt = 3 * time.Hour
		first := mustClaim(t, s, c, true)
		c.Attempt = time.Hour // a deploy made it shorter
		second := mustClaim(t, s, c, false)
		require.Equal(t, first.Deadline, second.Deadline)
		require.Equal(t, second.AttemptAt.Add(time.Hour), release(t, s, 1).Deadline, "the second's own")
		require.Zero(t, release(t, s, 2).Deadline)
	}},
	{"an attempt that was overtaken claims nothing", func(t *testing.T, s store.Store) {
		ctx, now := context.Background(), time.Date(2026, 3, 1, 9, 0, 0, 123456789, time.FixedZone("", 3600))
		at := func(began time.Time) store.Claim {
			c := claim("acme", "k")
			c.Began = began
			return c
		}
		first := mustClaim(t, s, at(now), true)
		require.Equal(t, now.UTC().Truncate(time.Microsecond), first.BeganAt)
		mustClaim(t, s, at(now), false) // the same one again
		later := mustClaim(t, s, at(now.Add(time.Minute)), false)
		release(t, s, later.Attempts)
		_, _, err := s.Claim(ctx, at(now.Add(59*time.Second)))
		requireCode(t, agent.CodeUnavailable, err)
		unordered := mustClaim(t, s, claim("acme", "k"), false)
		require.Equal(t, []any{4, later.BeganAt}, []any{unordered.Attempts, unordered.BeganAt})
		require.NoError(t, s.Settle(ctx, "acme", "k", applied))
		require.Equal(t, applied, mustClaim(t, s, at(now), false).Outcome, "what is settled is told")
	}},
	{"one that ended unknown is waited for: the other side may still act on it", func(t *testing.T, s store.Store) {
		c := exclusive(time.Hour, time.Hour)
		first := mustClaim(t, s, c, true)
		requireUnknown(t, s, "k", 1, "lost")
		again := mustClaim(t, s, c, false)
		require.Greater(t, again.Wait, 119*time.Minute)
		require.Equal(t, []any{1, true, first.Deadline}, []any{again.Attempts, again.Unknown, again.Deadline})
	}},
	{"one that died is waited for until deadline and grace have passed", func(t *testing.T, s store.Store) {
		c := exclusive(200*time.Millisecond, 100*time.Millisecond)
		first := mustClaim(t, s, c, true)
		e := mustClaim(t, s, c, false)
		require.Positive(t, e.Wait)
		require.LessOrEqual(t, e.Wait, 300*time.Millisecond)
		for start := time.Now(); e.Wait > 0; e = mustClaim(t, s, c, false) {
			require.Equal(t, 1, e.Attempts)
			require.Less(t, time.Since(start), 5*time.Second)
			time.Sleep(e.Wait)
		}
		require.Equal(t, 2, e.Attempts)
		require.False(t, e.AttemptAt.Before(first.Deadline.Add(100*time.Millisecond)), "by the database's clock")
	}},
	{"what is settled is told at once", func(t *testing.T, s store.Store) {
		mustClaim(t, s, exclusive(time.Hour, time.Hour), true)
		require.NoError(t, s.Settle(context.Background(), "acme", "k", applied))
		e := mustClaim(t, s, exclusive(time.Hour, time.Hour), false)
		require.Equal(t, []any{applied, time.Duration(0), 1}, []any{e.Outcome, e.Wait, e.Attempts})
	}},
	{"of many at once exactly one runs", func(t *testing.T, s store.Store) {
		for attempt := range 2 { // a new row, and one that was released
			var wg sync.WaitGroup
			got, errs := make([]store.Effect, 12), make([]error, 12)
			for i := range got {
				wg.Go(func() { got[i], _, errs[i] = s.Claim(context.Background(), exclusive(time.Hour, time.Minute)) })
			}
			wg.Wait()
			granted := 0
			for i, e := range got {
				require.NoError(t, errs[i])
				if e.Wait == 0 {
					granted++
				}
			}
			require.Equal(t, 1, granted)
			release(t, s, attempt+1)
		}
		require.Equal(t, 2, effect(t, s, "acme", "k").Attempts)
	}},
	{"a key of another call, and a negative time, are no claim", func(t *testing.T, s store.Store) {
		mustClaim(t, s, exclusive(time.Hour, 0), true)
		c := exclusive(time.Hour, 0)
		c.Args = nil
		_, _, err := s.Claim(context.Background(), c)
		requireCode(t, agent.CodeConflict, err)
		for _, c := range []store.Claim{exclusive(-1, 0), exclusive(0, -1)} {
			_, _, err := s.Claim(context.Background(), c)
			requireCode(t, agent.CodeInvalid, err)
		}
	}},
}

func mustClaim(t testing.TB, s store.Store, c store.Claim, fresh bool) store.Effect {
	t.Helper()
	e, isFresh, err := s.Claim(context.Background(), c)
	require.NoError(t, err)
	require.Equal(t, fresh, isFresh)
	return e
}
