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

// patience bounds the wait for a hint, which is there to be soon: a driver that
// gives none fails by it.
const patience = 20 * time.Second

var feedTests = []contract{
	{"a feed has all runs in the order of their appends, in pages", func(t *testing.T, s store.Store) {
		a, b := NewHistory(t, "acme", "1", "r1").Say(2, "a"), NewHistory(t, "globex", "1", "r2").Say(1, "b")
		appendAll(t, s, a)
		appendAll(t, s, b)
		a.Say(2, "more")
		appendAll(t, s, a)
		want := append(append(feedOf(a, 1, 3), feedOf(b, 1, 2)...), feedOf(a, 4, 5)...)
		for _, limit := range []int{0, 1, 2, 7} {
			require.Equal(t, want, readFeed(t, s, store.FeedFilter{Limit: limit}), "by %d", limit)
		}
		require.Equal(t, feedOf(b, 1, 2), readFeed(t, s, store.FeedFilter{Tenant: "globex", Limit: 1}))
		require.Empty(t, readFeed(t, s, store.FeedFilter{Tenant: "initech"}))
	}},
	{"a feed of some types goes on behind what it has left out", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Say(3, "a").Open("1.1", "refunds").Say(2, "b").CloseGate("1.1", agent.GateApproved).Say(1, "c")
		appendAll(t, s, h)
		f := store.FeedFilter{Types: []agent.EventType{agent.EventGateOpened, agent.EventGateClosed}}
		found, next, err := s.Appended(context.Background(), f)
		require.NoError(t, err)
		require.Len(t, found, 2)
		require.Equal(t, []agent.EventType{agent.EventGateOpened, agent.EventGateClosed}, []agent.EventType{found[0].Event.Type, found[1].Event.Type})
		all, _, err := s.Appended(context.Background(), store.FeedFilter{After: next})
		require.NoError(t, err)
		require.Empty(t, all, "the place is behind the last event, of whatever type")
		f.After = found[0].Place
		again, _, err := s.Appended(context.Background(), f)
		require.NoError(t, err)
		require.Equal(t, found[1:], again, "a place in the middle")
	}},
	{"a feed goes on from its end", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Say(2, "a")
		appendAll(t, s, h)
		end := feedEnd(t, s)
		found, next, err := s.Appended(context.Background(), store.FeedFilter{After: end})
		require.NoError(t, err)
		require.Empty(t, found)
		h.Say(1, "b")
		appendAll(t, s, h)
		require.Equal(t, feedOf(h, 4, 4), readFeed(t, s, store.FeedFilter{After: end}))
		require.Equal(t, feedOf(h, 4, 4), readFeed(t, s, store.FeedFilter{After: next}))
	}},
	{"a feed keeps what was superseded, and says so", func(t *testing.T, s store.Store) {
		h := NewHistory(t, "acme", "1", "r1").Say(4, "a")
		appendAll(t, s, h)
		place := readFeedPlaces(t, s)[2]
		reset := h.Reset("r9", 3).Say(2, "another")
		appendAll(t, s, reset)
		var got []string
		for _, a := range readFeed(t, s, store.FeedFilter{After: place}) {
			got = append(got, fmt.Sprintf("%d%t", a.Event.Seq, a.Superseded))
		}
		require.Equal(t, []string{"4true", "5true", "4false", "5false"}, got)
	}},
	{"a place that no feed has named is refused", func(t *testing.T, s store.Store) {
		for _, place := range []string{"x", "-1", "1.", "1.x", "1 ", "1e3", "\x00", "99999999999999999999"} {
			_, _, err := s.Appended(context.Background(), store.FeedFilter{After: place})
			requireCode(t, agent.CodeInvalid, err)
		}
	}},
	{"a place behind the end is of another feed, and refused", func(t *testing.T, s store.Store) {
		appendAll(t, s, NewHistory(t, "acme", "1", "r1").Say(2, "a"))
		end := feedEnd(t, s)
		_, _, err := s.Appended(context.Background(), store.FeedFilter{After: end})
		require.NoError(t, err)
		_, _, err = s.Appended(context.Background(), store.FeedFilter{After: "9" + end}) // of a store that had more
		requireCode(t, agent.CodeInvalid, err)
	}},
	{"who follows is woken, by what it follows", func(t *testing.T, s store.Store) {
		ctx, stop := context.WithCancel(context.Background())
		h := NewHistory(t, "acme", "1", "r1")
		for _, scope := range []store.Scope{{}, {Tenant: "acme"}, {Tenant: "acme", Address: h.Ref.Address}} {
			wake := s.Follow(ctx, scope)
			drained(wake)
			h.Say(1, "a")
			appendAll(t, s, h)
			select {
			case <-wake:
			case <-time.After(patience):
				require.FailNow(t, "no hint", "%+v", scope)
			}
		}
		stop()
		wake := s.Follow(ctx, store.Scope{})
		h.Say(1, "b")
		appendAll(t, s, h)
		require.Empty(t, wake, "nobody follows any more")
	}},
}

// drained takes a hint that was there before.
func drained(wake <-chan struct{}) {
	select {
	case <-wake:
	default:
	}
}

// feedEnd waits until the feed has all that was appended, and is its end.
func feedEnd(t *testing.T, s store.Store) string {
	t.Helper()
	var end string
	require.Eventually(t, func() bool {
		var err error
		end, err = s.FeedEnd(context.Background())
		require.NoError(t, err)
		all, _, err := s.Appended(context.Background(), store.FeedFilter{After: end})
		require.NoError(t, err)
		return len(all) == 0
	}, patience, 10*time.Millisecond)
	return end
}

// feedOf is a run's part of a feed, without places.
func feedOf(h *History, first, last int) (out []store.Appended) {
	for _, e := range h.Events[first-1 : last] {
		out = append(out, store.Appended{Chain: store.Chain{Tenant: h.Ref.Tenant, Address: h.Ref.Address, FirstRunID: h.Ref.FirstRunID}, Event: e})
	}
	return out
}

// readFeed reads to the end, page by page, and takes the places out.
func readFeed(t *testing.T, s store.Store, f store.FeedFilter) (out []store.Appended) {
	t.Helper()
	for {
		page, next, err := s.Appended(context.Background(), f)
		require.NoError(t, err)
		if f.Limit > 0 {
			require.LessOrEqual(t, len(page), f.Limit)
		}
		for _, a := range page {
			a.Place = ""
			out = append(out, a)
		}
		if len(page) == 0 {
			return out
		}
		f.After = next
	}
}

func readFeedPlaces(t *testing.T, s store.Store) (out []string) {
	t.Helper()
	page, _, err := s.Appended(context.Background(), store.FeedFilter{})
	require.NoError(t, err)
	for _, a := range page {
		out = append(out, a.Place)
	}
	return out
}

var deltaTests = []contract{
	{"who hears gets the pieces in order, of what it hears of", func(t *testing.T, s store.Store) {
		ctx, stop := context.WithCancel(context.Background())
		of := func(tenant, address string, n int) store.Delta {
			return store.Delta{Tenant: tenant, Address: address, FirstRunID: "r1", Turn: 3, Attempt: 2, N: n, Text: "größer <b>\x00\u2028"}
		}
		run, tenant, all := s.Hear(ctx, store.Scope{Tenant: "acme", Address: "acme/a/1"}), s.Hear(ctx, store.Scope{Tenant: "acme"}), s.Hear(ctx, store.Scope{})
		told := []store.Delta{of("acme", "acme/a/1", 1), of("acme", "acme/a/2", 1), of("globex", "globex/a/1", 1), of("acme", "acme/a/1", 2)}
		for _, d := range told {
			s.Tell(d)
		}
		require.Equal(t, []store.Delta{told[0], told[3]}, heard(t, run, 2))
		require.Equal(t, []store.Delta{told[0], told[1], told[3]}, heard(t, tenant, 3))
		require.Equal(t, told, heard(t, all, 4))
		stop()
		require.Empty(t, run)
	}},
	{"who does not take its pieces holds nobody up", func(t *testing.T, s store.Store) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		slow := s.Hear(ctx, store.Scope{})
		for n := range 10_000 {
			s.Tell(store.Delta{Tenant: "acme", Address: "acme/a/1", N: n + 1, Text: "x"})
		}
		require.Less(t, len(slow), 1000, "nothing is gathered for it without a bound")
		require.Equal(t, 1, (<-slow).N)
	}},
}

func heard(t *testing.T, c <-chan store.Delta, n int) (out []store.Delta) {
	t.Helper()
	for range n {
		select {
		case d := <-c:
			out = append(out, d)
		case <-time.After(patience):
			require.FailNow(t, "a piece did not come")
		}
	}
	require.Empty(t, c)
	return out
}
