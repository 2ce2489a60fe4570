package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

func dead(tenant, id, target string) store.DeadNotice {
	return store.DeadNotice{Tenant: tenant, ID: id, Target: target, Kind: "gate.opened", Address: tenant + "/refund/1", FirstRunID: "r1",
		Notice: agent.JSON(`{"id":"` + id + `","roles":["<b> 🦊"]}`), Reason: "it's down: 503 <b>"}
}

// bury buries one, and returns it as it is listed then.
func bury(t testing.TB, s store.Store, d store.DeadNotice) store.DeadNotice {
	t.Helper()
	require.NoError(t, s.Bury(context.Background(), d))
	all := deadNotices(t, s, d.Tenant, store.DeadFilter{ID: d.ID, Target: d.Target, Ended: true})
	require.Len(t, all, 1)
	return all[0]
}

func deadNotices(t testing.TB, s store.Store, tenant string, f store.DeadFilter) []store.DeadNotice {
	t.Helper()
	all, err := s.DeadNotices(context.Background(), tenant, f)
	require.NoError(t, err)
	return all
}

var noticeTests = []contract{
	{"a reader's place is moved from where it stands, and by one only", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		requirePlace(t, s, "a", "")
		require.NoError(t, s.MovePlace(ctx, "a", "", "1"))
		requireCode(t, agent.CodeConflict, s.MovePlace(ctx, "a", "", "7"))
		requireCode(t, agent.CodeConflict, s.MovePlace(ctx, "a", "2", "7"))
		requireCode(t, agent.CodeConflict, s.MovePlace(ctx, "b", "1", "7"))
		requirePlace(t, s, "a", "1")
		requirePlace(t, s, "b", "")
		require.NoError(t, s.MovePlace(ctx, "b", "", "9.0"))
		require.NoError(t, s.MovePlace(ctx, "a", "1", "1"), "it may stay")

		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = s.MovePlace(ctx, "a", "1", fmt.Sprint(10+i)) })
		}
		wg.Wait()
		moved := 0
		for i, err := range errs {
			if err == nil {
				moved++
				requirePlace(t, s, "a", fmt.Sprint(10+i))
				continue
			}
			requireCode(t, agent.CodeConflict, err)
		}
		require.Equal(t, 1, moved)
		requirePlace(t, s, "b", "9.0")
	}},
	{"a place needs a reader, and is one word", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		_, err := s.Place(ctx, "")
		requireCode(t, agent.CodeInvalid, err)
		for _, c := range [][3]string{{"", "", "1"}, {"a", "", ""}, {"a", "", "1 2"}, {"a", "x\n", "1"}, {"a\x00", "", "1"}} {
			requireCode(t, agent.CodeInvalid, s.MovePlace(ctx, c[0], c[1], c[2]))
		}
	}},
	{"a dead notice is kept as it is, and again changes nothing", func(t *testing.T, s store.Store) {
		d := dead("acme", "n1", "ops")
		got := bury(t, s, d)
		require.False(t, got.BuriedAt.IsZero())
		want := d
		want.BuriedAt, want.Cursor = got.BuriedAt, got.Cursor
		require.Equal(t, want, got)
		again := d
		again.Reason = "another"
		require.Equal(t, got, bury(t, s, again))

		again.Retry = 2
		later := bury(t, s, again)
		require.Equal(t, []any{"another", 2, got.Cursor}, []any{later.Reason, later.Retry, later.Cursor})
		require.Equal(t, later, bury(t, s, d), "a repeat that comes late")
	}},
	{"dead notices are listed by tenant, in pages", func(t *testing.T, s store.Store) {
		var all []store.DeadNotice
		for i := range 5 {
			all = append(all, bury(t, s, dead("acme", fmt.Sprint("n", i), []string{"ops", "chat"}[i%2])))
		}
		other := bury(t, s, dead("globex", "n0", "ops"))
		require.Equal(t, all, deadNotices(t, s, "acme", store.DeadFilter{}))
		require.Equal(t, []store.DeadNotice{other}, deadNotices(t, s, "globex", store.DeadFilter{}))
		require.Empty(t, deadNotices(t, s, "initech", store.DeadFilter{ID: "n0"}))
		require.Equal(t, []store.DeadNotice{all[1], all[3]}, deadNotices(t, s, "acme", store.DeadFilter{Target: "chat"}))
		require.Equal(t, all[2:3], deadNotices(t, s, "acme", store.DeadFilter{ID: "n2"}))
		var paged []store.DeadNotice
		f := store.DeadFilter{Limit: 2}
		for page := deadNotices(t, s, "acme", f); len(page) > 0; page = deadNotices(t, s, "acme", f) {
			require.LessOrEqual(t, len(page), 2)
			paged = append(paged, page...)
			f.After = page[len(page)-1].Cursor
		}
		require.Equal(t, all, paged)
		for _, after := range []string{"x", "-1", "1.5"} {
			_, err := s.DeadNotices(context.Background(), "acme", store.DeadFilter{After: after})
			requireCode(t, agent.CodeInvalid, err)
		}
	}},
	{"a dead notice is settled once", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		first, second := bury(t, s, dead("acme", "n1", "ops")), bury(t, s, dead("acme", "n1", "chat"))
		ended, err := s.SettleDead(ctx, "acme", "n1", "ops", store.DeadSent, "olga")
		require.NoError(t, err)
		require.NotNil(t, ended.EndedAt)
		first.End, first.EndedBy, first.EndedAt = store.DeadSent, "olga", ended.EndedAt
		require.Equal(t, first, ended)
		_, err = s.SettleDead(ctx, "acme", "n1", "ops", store.DeadDropped, "bob")
		requireCode(t, agent.CodeConflict, err)
		require.ErrorContains(t, err, "olga")
		again := dead("acme", "n1", "ops")
		again.Retry = 3
		require.Equal(t, first, bury(t, s, again), "it stays as it is")

		require.Equal(t, []store.DeadNotice{second}, deadNotices(t, s, "acme", store.DeadFilter{}))
		require.Equal(t, []store.DeadNotice{first, second}, deadNotices(t, s, "acme", store.DeadFilter{Ended: true}))
		_, err = s.SettleDead(ctx, "globex", "n1", "chat", store.DeadDropped, "olga")
		requireCode(t, agent.CodeNotFound, err)
		_, err = s.SettleDead(ctx, "acme", "n1", "chat", store.DeadDropped, "olga")
		require.NoError(t, err)
	}},
	{"what no tenant, target or person has is refused", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		for _, d := range []store.DeadNotice{dead("", "n", "ops"), dead("acme", "", "ops"), dead("acme", "n", ""), dead("acme", "n", "o\x00"),
			{Tenant: "acme", ID: "n", Target: "ops", Notice: agent.JSON(`{"b":1, "a":2}`)}} {
			requireCode(t, agent.CodeInvalid, s.Bury(ctx, d))
		}
		_, err := s.DeadNotices(ctx, "", store.DeadFilter{})
		requireCode(t, agent.CodeInvalid, err)
		for _, c := range [][5]string{{"", "n", "ops", "sent", "a"}, {"acme", "", "ops", "sent", "a"}, {"acme", "n", "", "sent", "a"},
			{"acme", "n", "ops", "lost", "a"}, {"acme", "n", "ops", "sent", ""}} {
			_, err := s.SettleDead(ctx, c[0], c[1], c[2], store.DeadEnd(c[3]), c[4])
			requireCode(t, agent.CodeInvalid, err)
		}
	}},
}

func requirePlace(t testing.TB, s store.Store, reader, want string) {
	t.Helper()
	place, err := s.Place(context.Background(), reader)
	require.NoError(t, err)
	require.Equal(t, want, place)
}
