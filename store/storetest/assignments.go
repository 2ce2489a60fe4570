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

// assigned is an assignment of a gate for ten minutes.
func assigned(tenant, gate, subject string, at time.Time) store.Assignment {
	return store.Assignment{Chain: store.Chain{Tenant: tenant, Address: tenant + "/refund/1", FirstRunID: "r1"}, Gate: gate, Subject: subject, By: subject,
		At: at, Until: at.Add(10 * time.Minute)}
}

var assignmentTests = []contract{
	{"a gate is assigned to one person, until they end it, hand it over or their time is up", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		first := assigned("acme", "1.1", "ann", Epoch)
		stands, err := s.Assign(ctx, first, "")
		require.NoError(t, err)
		require.Equal(t, first, stands)
		stands, err = s.Assign(ctx, assigned("acme", "1.1", "bob", Epoch.Add(time.Minute)), "")
		requireCode(t, agent.CodeConflict, err)
		require.Contains(t, err.Error(), "ann looks at gate 1.1 until 2026-")
		require.Equal(t, first, stands)
		longer := assigned("acme", "1.1", "ann", Epoch.Add(time.Minute))
		stands, err = s.Assign(ctx, longer, "")
		require.NoError(t, err, "one's own is made longer")
		require.Equal(t, longer, stands)
		handed := assigned("acme", "1.1", "bob", Epoch.Add(2*time.Minute))
		handed.By = "ann"
		_, err = s.Assign(ctx, handed, "cyd")
		requireCode(t, agent.CodeConflict, err)
		stands, err = s.Assign(ctx, handed, "ann")
		require.NoError(t, err)
		require.Equal(t, handed, stands)
		late := assigned("acme", "1.1", "cyd", handed.Until)
		stands, err = s.Assign(ctx, late, "")
		require.NoError(t, err, "its time is up")
		require.Equal(t, late, stands)
		requireCode(t, agent.CodeNotFound, s.Unassign(ctx, late.Chain, "1.1", "bob"))
		require.NoError(t, s.Unassign(ctx, late.Chain, "1.1", "cyd"))
		requireCode(t, agent.CodeNotFound, s.Unassign(ctx, late.Chain, "1.1", "cyd"))
	}},
	{"assignments are listed by tenant, while they last", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		a, b, other := assigned("acme", "1.1", "ann", Epoch), assigned("acme", "1.2", "<bob> 🦊", Epoch.Add(time.Minute)), assigned("globex", "1.1", "ann", Epoch)
		for _, x := range []store.Assignment{b, a, other} {
			_, err := s.Assign(ctx, x, "")
			require.NoError(t, err)
		}
		all, err := s.Assigned(ctx, "acme", Epoch)
		require.NoError(t, err)
		require.Equal(t, []store.Assignment{a, b}, all)
		all, err = s.Assigned(ctx, "acme", a.Until)
		require.NoError(t, err)
		require.Equal(t, []store.Assignment{b}, all)
		again := a
		again.FirstRunID = "r2"
		_, err = s.Assign(ctx, again, "")
		require.NoError(t, err, "the same gate of another run under the address")
	}},
	{"of people who take a gate at once, one has it", func(t *testing.T, s store.Store) {
		var all sync.WaitGroup
		had := make([]bool, 8)
		for i := range had {
			all.Go(func() {
				_, err := s.Assign(context.Background(), assigned("acme", "1.1", string(rune('a'+i)), Epoch), "")
				had[i] = err == nil
			})
		}
		all.Wait()
		n := 0
		for _, ok := range had {
			if ok {
				n++
			}
		}
		require.Equal(t, 1, n)
	}},
	{"a person is away once, until they are back", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		a := store.Absence{Tenant: "acme", Subject: "ann", Cover: "bob", From: Epoch, Until: Epoch.Add(time.Hour), By: "ann"}
		require.NoError(t, s.SetAbsence(ctx, a))
		a.Cover, a.Until, a.By = "cyd", Epoch.Add(2*time.Hour), "olga"
		require.NoError(t, s.SetAbsence(ctx, a))
		require.NoError(t, s.SetAbsence(ctx, store.Absence{Tenant: "globex", Subject: "ann", Cover: "x", From: Epoch, Until: Epoch.Add(time.Hour), By: "x"}))
		all, err := s.Absent(ctx, "acme", Epoch.Add(-time.Hour))
		require.NoError(t, err)
		require.Equal(t, []store.Absence{a}, all)
		all, err = s.Absent(ctx, "acme", a.Until)
		require.NoError(t, err)
		require.Empty(t, all)
		require.NoError(t, s.EndAbsence(ctx, "acme", "ann"))
		requireCode(t, agent.CodeNotFound, s.EndAbsence(ctx, "acme", "ann"))
	}},
	{"what is no assignment or absence is refused", func(t *testing.T, s store.Store) {
		ctx := context.Background()
		for _, change := range []func(*store.Assignment){
			func(a *store.Assignment) { a.Tenant = "" }, func(a *store.Assignment) { a.FirstRunID = "" }, func(a *store.Assignment) { a.Gate = "" },
			func(a *store.Assignment) { a.Subject = "a\x00b" }, func(a *store.Assignment) { a.By = "" }, func(a *store.Assignment) { a.Until = a.At },
		} {
			a := assigned("acme", "1.1", "ann", Epoch)
			change(&a)
			_, err := s.Assign(ctx, a, "")
			requireCode(t, agent.CodeInvalid, err)
		}
		for _, a := range []store.Absence{{Tenant: "acme", Subject: "ann", Cover: "ann", From: Epoch, Until: Epoch.Add(1), By: "ann"},
			{Tenant: "acme", Subject: "ann", Cover: "bob", From: Epoch, Until: Epoch, By: "ann"}, {Tenant: "acme", Subject: "ann", From: Epoch, Until: Epoch.Add(1), By: "ann"}} {
			requireCode(t, agent.CodeInvalid, s.SetAbsence(ctx, a))
		}
	}},
}
