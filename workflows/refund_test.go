package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/config"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/llm"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/worker"
)

// world is a shop, a mail service, a store, a worker and a starter of one test.
type world struct {
	t       *testing.T
	ctx     context.Context
	shop    *shop.Shop
	mail    *mail.Server
	store   store.Store
	starter *starter.Starter
	worker  *worker.Worker
	config  worker.Config
}

func newWorld(t *testing.T, model llm.Model, agents ...*agent.Definition) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, ctx: context.Background()}
	var err error
	w.store, err = sqlite.Open(w.ctx, filepath.Join(dir, "interlock.db"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	if len(agents) == 0 {
		w.shop, err = shop.Open(w.ctx, filepath.Join(dir, "shop.db"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.shop.Close() })
		w.mail, err = mail.Serve(w.ctx, "127.0.0.1:0", filepath.Join(dir, "mail.db"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.mail.Close() })
		agents = []*agent.Definition{refund.Agent(w.shop, mail.Client{BaseURL: w.mail.URL()})}
	}
	settings := config.Default()
	settings.TaskQueue = t.Name()
	w.config = worker.Config{Settings: settings, Client: temporalClient(), Store: w.store, Model: model, Log: slog.New(slog.DiscardHandler)}
	if testing.Verbose() {
		w.config.Log = slog.Default()
	}
	w.worker, err = worker.New(w.config, agents...)
	require.NoError(t, err)
	require.NoError(t, w.worker.Start(w.ctx))
	t.Cleanup(w.worker.Stop)
	w.starter = starter.New(temporalClient(), starter.WithReader(w.store), starter.WithTaskQueue(settings.TaskQueue))
	return w
}

var customer = agent.Principal{Subject: "c-017"}

func (w *world) start(key string) string {
	w.t.Helper()
	s, err := w.starter.Start(w.ctx, starter.Start{Agent: "refund", Tenant: "acme", Key: key, Principal: customer, Body: refund.Start{CustomerID: "c-017"}})
	require.NoError(w.t, err)
	require.True(w.t, s.New)
	return s.Address
}

var sent int

func (w *world) say(address, text string) agent.Receipt {
	w.t.Helper()
	sent++
	r, err := w.starter.Message(w.ctx, address, signals.Message{ID: fmt.Sprintf("m%d", sent), Principal: customer, Text: text})
	require.NoError(w.t, err)
	return r
}

// until waits for the run to be in a state that pred accepts.
func (w *world) until(address string, what string, pred func(*agent.Run) bool) *agent.Run {
	w.t.Helper()
	var run *agent.Run
	require.Eventually(w.t, func() bool {
		var err error
		run, err = w.starter.Get(w.ctx, address)
		return err == nil && pred(run)
	}, 60*time.Second, 20*time.Millisecond, "%s: %s", what, lazy{&run})
	return run
}

type lazy struct{ run **agent.Run }

func (l lazy) String() string { j, _ := json.MarshalIndent(*l.run, "", " "); return string(j) }

func waiting(reason string) func(*agent.Run) bool {
	return func(r *agent.Run) bool { return r.Status == agent.RunWaiting && r.Reason == reason }
}

func ended(r *agent.Run) bool { return r.Status.Ended() }

// toGate brings a run to the open gate of its refund.
func (w *world) toGate(address string) agent.Gate {
	w.say(address, "Please refund order 1042, it broke")
	w.until(address, "asked", func(r *agent.Run) bool { return waiting("user")(r) && len(r.Shown) == 2 })
	w.say(address, "yes, that one")
	run := w.until(address, "gate", waiting("gate"))
	return run.Gates[len(run.Gates)-1]
}

func (w *world) decide(address string, g agent.Gate, v agent.VerdictValue, reason string) agent.Receipt {
	w.t.Helper()
	sent++
	r, err := w.starter.Decide(w.ctx, address, signals.Verdict{ID: fmt.Sprintf("v%d", sent), Gate: g.ID, Digest: g.Digest, Verdict: v, Reason: reason,
		Principal: agent.Principal{Subject: "ann", Roles: []string{"refunds"}}})
	require.NoError(w.t, err)
	return r
}

// requireJournal checks that the journal reduces to the run.
func (w *world) requireJournal(run *agent.Run) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		row, err := w.store.RunRow(w.ctx, "acme", run.Address())
		return err == nil && row.Seq == run.Seq
	}, 10*time.Second, 10*time.Millisecond)
	events, err := w.store.Events(w.ctx, "acme", run.Address(), 1, 0)
	require.NoError(w.t, err)
	reduced, err := agent.Reduce(events)
	require.NoError(w.t, err)
	want, _ := json.Marshal(run)
	got, _ := json.Marshal(reduced)
	require.JSONEq(w.t, string(want), string(got))
}

func TestRefund_Approved(t *testing.T) {
	w := newWorld(t, refund.Model())
	address := w.start("k1")
	gate := w.toGate(address)
	require.Equal(t, "Refund 89.90 EUR for order 1042", gate.Title)
	r := w.decide(address, gate, agent.Approve, "")
	require.Equal(t, agent.Accepted, r.Status)
	run := w.until(address, "end", ended)
	require.Equal(t, agent.RunCompleted, run.Status)
	require.Equal(t, "done", run.Phase)
	w.requireJournal(run)
	refunds, err := w.shop.Refunds(w.ctx)
	require.NoError(t, err)
	require.Len(t, refunds, 1)
	require.Equal(t, "1042", refunds[0].OrderID)
	sent, err := w.mail.Messages(w.ctx)
	require.NoError(t, err)
	require.Len(t, sent, 1)
}
