package web_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/web"
	"interlock/config"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/localtemporal"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/worker"
)

// stage is the refund agent with all that it works with, and the pages over it.
type stage struct {
	t       *testing.T
	shop    *shop.Shop
	store   store.Store
	starter *starter.Starter
	url     string
	tokens  map[string]string
	nth     int
}

func newStage(t *testing.T) *stage {
	t.Helper()
	chromium(t)
	ctx, dir, log := context.Background(), t.TempDir(), slog.New(slog.DiscardHandler)
	s := &stage{t: t, tokens: map[string]string{}}
	server, err := localtemporal.Start(ctx, localtemporal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	c, err := client.Dial(client.Options{HostPort: server.Address(), Logger: sdklog.NewStructuredLogger(log)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	s.store, err = sqlite.Open(ctx, filepath.Join(dir, "interlock.db"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.store.Close()) })
	s.shop, err = shop.Open(ctx, filepath.Join(dir, "shop.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.shop.Close()) })
	m, err := mail.Serve(ctx, "127.0.0.1:0", filepath.Join(dir, "mail.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	w, err := worker.New(worker.Config{Settings: config.Default(), Client: c, Store: s.store, Model: refund.Model(), Log: log}, refund.Agent(s.shop, mail.Client{BaseURL: m.URL()}))
	require.NoError(t, err)
	require.NoError(t, w.Start(ctx))
	t.Cleanup(w.Stop)
	s.starter = starter.New(c, starter.WithReader(s.store))
	s.open(filepath.Join(dir, "access.yaml"), log)
	return s
}

// open serves the pages, for a reviewer, an operator and the customer.
func (s *stage) open(file string, log *slog.Logger) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(file, []byte("tokens: []\n"), 0o600))
	for _, e := range []access.Entry{
		{ID: "r", Tenant: "acme", Subject: "ann", May: []access.Role{access.Reviewer}, Roles: []string{"refunds"}},
		{ID: "o", Tenant: "acme", Subject: "olga", May: []access.Role{access.Operator}, Roles: []string{"operator", "refunds"}},
		{ID: "u", Tenant: "acme", Subject: "c-017", May: []access.Role{access.User}},
	} {
		token, entry := access.New(e)
		require.NoError(s.t, access.Add(file, entry))
		s.tokens[e.Subject] = token
	}
	tokens, err := access.OpenTokens(file, log)
	require.NoError(s.t, err)
	sessions, err := access.NewSessions(nil, tokens)
	require.NoError(s.t, err)
	pages, err := web.New(web.Config{Starter: s.starter, Reader: s.store, Auth: tokens, Sessions: sessions, Audit: access.NewAudit(log), Log: log})
	require.NoError(s.t, err)
	s.url = serve(s.t, pages.Handler())
}

var customer = agent.Principal{Subject: "c-017"}

// asked starts a run about an order of its own, and brings it to its question.
func (s *stage) asked() (key string) {
	s.t.Helper()
	s.nth++
	key = fmt.Sprintf("ticket-%d", s.nth)
	order := fmt.Sprint(4000 + s.nth)
	_, err := s.shop.DB().Exec(`INSERT INTO orders SELECT ?, customer_id, item, total_minor, currency, ordered_on, 'delivered' FROM orders WHERE id = '1042'`, order)
	require.NoError(s.t, err)
	_, err = s.starter.Start(s.t.Context(), starter.Start{Agent: "refund", Tenant: "acme", Key: key, Principal: customer, Body: refund.Start{CustomerID: "c-017"}})
	require.NoError(s.t, err)
	s.say(key, "m-1", "Please refund order "+order+", it broke")
	s.until(key, func(r *agent.Run) bool { return r.Status == agent.RunWaiting && len(r.Shown) == 2 })
	return key
}

// atGate brings a run to the gate of its refund, 3.1.
func (s *stage) atGate() (key string) {
	s.t.Helper()
	key = s.asked()
	s.say(key, "m-2", "yes, that one")
	s.until(key, func(r *agent.Run) bool { return r.Status == agent.RunWaiting && r.Reason == "gate" })
	return key
}

func (s *stage) say(key, id, text string) {
	s.t.Helper()
	_, err := s.starter.Message(s.t.Context(), "acme/refund/"+key, signals.Message{ID: id, Principal: customer, Text: text})
	require.NoError(s.t, err)
}

// until waits until the journal says so.
func (s *stage) until(key string, ok func(*agent.Run) bool) (run *agent.Run) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		events, err := s.store.Events(s.t.Context(), store.Chain{Tenant: "acme", Address: "acme/refund/" + key}, 1, 0)
		if err != nil || len(events) == 0 {
			return false
		}
		run, err = agent.Reduce(events)
		return err == nil && ok(run)
	}, patience, 50*time.Millisecond)
	return run
}

func (s *stage) gate(key, id string) func(agent.GateStatus) {
	return func(want agent.GateStatus) {
		s.t.Helper()
		s.until(key, func(r *agent.Run) bool {
			for _, g := range r.Gates {
				if g.ID == id && g.Status == want {
					return true
				}
			}
			return false
		})
	}
}

func at(key, gate string) string { return "/runs/refund/" + key + "/gates/" + gate }

// Everything that the pages can do is done in a browser, against a real Temporal,
// with and without JavaScript, on a phone and a desk.
func TestBrowser_Acts(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		screen  screen
		scripts bool
		dark    bool
	}{{phone, true, false}, {phone, false, true}, {desk, true, true}, {desk, false, false}} {
		t.Run(fmt.Sprintf("%s scripts=%v dark=%v", c.screen.name, c.scripts, c.dark), func(t *testing.T) {
			s := *s
			s.t = t
			s.nth = map[bool]int{true: 100, false: 200}[c.scripts] + int(c.screen.width)
			b := openTab(t, s.url)
			b.on(c.screen, c.dark)
			b.scripts(c.scripts)
			for _, act := range []func(*stage, *tab){actApprove, actReject, actReturn, actEdit, actAnswer, actSeveral, actSteer, actSignOut} {
				act(&s, b)
			}
		})
	}
}

func actApprove(s *stage, b *tab) {
	key := s.atGate()
	b.as(s.tokens["ann"])
	b.click(fmt.Sprintf(`a[href="%s"]`, at(key, "3.1")))
	require.Contains(b.t, b.text(), "Interlock will run issue_refund of agent refund for c-017.")
	b.shoot("gate-" + key)
	b.click(`button[value="approve"]`)
	require.Contains(b.t, b.text(), "decided by ann")
	run := s.until(key, func(r *agent.Run) bool { return r.Status.Ended() })
	require.Equal(b.t, agent.RunCompleted, run.Status)
	b.open("/runs/refund/" + key)
	require.Contains(b.t, b.text(), "completed")
	b.shoot("run-" + key)
}

func actReject(s *stage, b *tab) {
	key := s.atGate()
	b.open(at(key, "3.1"))
	b.fill("#why", "wrong amount")
	b.fill("#reject-reason", "the photo shows no damage")
	b.click(`button[value="reject"]`)
	require.Contains(b.t, b.text(), "wrong amount: the photo shows no damage")
	s.gate(key, "3.1")(agent.GateRejected)
}

func actReturn(s *stage, b *tab) {
	key := s.atGate()
	b.open(at(key, "3.1"))
	b.fill("#note", "ask for a photo first")
	b.click(`button[value="return"]`)
	require.Contains(b.t, b.text(), "returned")
	s.gate(key, "3.1")(agent.GateReturned)
}

func actEdit(s *stage, b *tab) {
	key := s.atGate()
	b.open(at(key, "3.1"))
	b.click(`a[href$="/edit"]`)
	b.fill("#vargs-amount-minor", "9007199254740993")
	b.fill("#reason", "the voucher is part of it")
	b.click(".editing button")
	require.Contains(b.t, b.text(), "9007199254740993")
	b.shoot("difference-" + key)
	b.click(`button[value="edit"]`)
	require.Contains(b.t, b.text(), "edited")
	run := s.until(key, func(r *agent.Run) bool { return r.Gates[len(r.Gates)-1].Status != agent.GateOpen && len(r.Steps) > 2 })
	for _, step := range run.Steps {
		if step.Replaces == "3.1" {
			require.Contains(b.t, step.Args.String(), `"minor":9007199254740993`)
			return
		}
	}
	require.Fail(b.t, "no step took the place of the one that was edited")
}

func actAnswer(s *stage, b *tab) {
	key := s.asked()
	b.as(s.tokens["c-017"])
	b.click(fmt.Sprintf(`a[href="%s"]`, at(key, "2.1")))
	b.press(`input[name="confirm"][value="yes"]`)
	b.click(`button[value="answer"]`)
	s.gate(key, "2.1")(agent.GateAnswered)
	b.open("/runs/refund/" + key)
	b.press("details.act summary")
	b.fill("#m-text", "never mind")
	b.click(`form[action$="/message"] button`)
	s.until(key, func(r *agent.Run) bool { return r.Phase == "declined" })
}

func actSeveral(s *stage, b *tab) {
	one, two := s.atGate(), s.atGate()
	b.as(s.tokens["ann"])
	for _, key := range []string{one, two} {
		b.press(fmt.Sprintf(`li:has(a[href="%s"]) input[type=checkbox]`, at(key, "3.1")))
	}
	b.click(`button[value="approve"]`)
	require.Contains(b.t, b.text(), "2 of 2 were taken.")
	b.shoot("several-" + one)
	s.gate(one, "3.1")(agent.GateApproved)
	s.gate(two, "3.1")(agent.GateApproved)
}

func actSteer(s *stage, b *tab) {
	key := s.atGate()
	b.as(s.tokens["olga"])
	b.open("/runs/refund/" + key)
	b.press(`details.act:has(form[action$="/pause"]) > summary`)
	b.fill("#p-reason", "look at it first")
	b.click(`form[action$="/pause"] button`)
	require.Contains(b.t, b.text(), "paused")
	s.until(key, func(r *agent.Run) bool { return r.Status == agent.RunPaused })
	b.open("/runs/refund/" + key)
	b.press(`details.act:has(form[action$="/resume"]) > summary`)
	b.click(`form[action$="/resume"] button`)
	s.until(key, func(r *agent.Run) bool { return r.Status == agent.RunWaiting })
	b.open("/runs/refund/" + key)
	b.click(`a[href$="/cancel"]`)
	b.fill("#reason", "a test")
	b.click(`form[action$="/cancel"] button`)
	s.until(key, func(r *agent.Run) bool { return r.Status == agent.RunCancelled })
}

func actSignOut(_ *stage, b *tab) {
	b.click(`form[action="/logout"] button`)
	require.Contains(b.t, b.text(), "Access token")
	b.open("/")
	require.Contains(b.t, b.text(), "Access token")
}
