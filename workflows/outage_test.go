package workflows_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

// goroutines counts those that have a text in their stack.
func goroutines(what string) (n int) {
	b := make([]byte, 8<<20)
	for g := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
		if strings.Contains(g, what) {
			n++
		}
	}
	return n
}

// A store that is locked for longer than a write waits stops the run, and no
// longer than it is locked.
func TestStore_Locked(t *testing.T) {
	t.Parallel()
	if this.Postgres {
		t.Skip("a lock of the whole file is SQLite's")
	}
	w := newWorld(t, refund.Model())
	address := w.start("k")
	gate := w.toGate(address)
	w.quiet(address)
	db, err := sql.Open("sqlite", "file:"+w.dsn+"?_txlock=immediate&_pragma=busy_timeout(9000)")
	require.NoError(t, err)
	defer db.Close()
	tx, err := db.Begin()
	require.NoError(t, err)
	require.Equal(t, agent.Accepted, w.decide(address, gate, agent.Approve, "").Status, "verdicts need no store")
	eventually(t, "the pending activity says why", func() bool { return strings.Contains(w.failures(address), "locked by another process") })
	require.Empty(t, w.refunds(), "nothing runs that is not recorded")
	run, err := w.starter.Get(w.ctx, address)
	require.NoError(t, err)
	require.Equal(t, agent.RunRunning, run.Status)
	require.NoError(t, tx.Rollback())
	w.finished(address, agent.RunCompleted)
	require.Len(t, w.refunds(), 1)
	require.Len(t, w.receipts(), 1)
}

// broken is a store that cannot be written to for as long as it is told.
type broken struct {
	store.Store
	readOnly atomic.Bool
	claims   atomic.Bool // only claims and what follows them
	refused  atomic.Int64
}

func (b *broken) fails(claim bool) error {
	if b.readOnly.Load() || claim && b.claims.Load() {
		b.refused.Add(1)
		return agent.Errorf(agent.CodeUnavailable, "the database is read-only")
	}
	return nil
}

func (b *broken) Append(ctx context.Context, ref store.RunRef, batch agent.Batch) error {
	if err := b.fails(false); err != nil {
		return err
	}
	return b.Store.Append(ctx, ref, batch)
}

func (b *broken) AppendSoon(ctx context.Context, ref store.RunRef, batch agent.Batch) error {
	if err := b.fails(false); err != nil {
		return err
	}
	return b.Store.AppendSoon(ctx, ref, batch)
}

func (b *broken) Claim(ctx context.Context, c store.Claim) (store.Effect, bool, error) {
	if err := b.fails(true); err != nil {
		return store.Effect{}, false, err
	}
	return b.Store.Claim(ctx, c)
}

func (b *broken) Settle(ctx context.Context, tenant, key string, o store.Outcome) error {
	if err := b.fails(true); err != nil {
		return err
	}
	return b.Store.Settle(ctx, tenant, key, o)
}

func (b *broken) MarkUnknown(ctx context.Context, tenant, key string, attempt int, reason string) (store.Effect, error) {
	if err := b.fails(true); err != nil {
		return store.Effect{}, err
	}
	return b.Store.MarkUnknown(ctx, tenant, key, attempt, reason)
}

func (b *broken) RecordModelCall(ctx context.Context, m store.ModelCall) (store.ModelCall, error) {
	if err := b.fails(false); err != nil {
		return store.ModelCall{}, err
	}
	return b.Store.RecordModelCall(ctx, m)
}

// brokenWorld is a refund whose store can be made read-only.
func brokenWorld(t *testing.T) (*world, *broken) {
	t.Helper()
	w := idleWorld(t, true)
	b := &broken{Store: w.store}
	w.config.Store = b
	w.serve(refund.Model(), w.refundAgent())
	return w, b
}

func TestStore_ReadOnly(t *testing.T) {
	t.Parallel()
	w, b := brokenWorld(t)
	address := w.start("k")
	gate := w.toGate(address)
	b.readOnly.Store(true)
	w.decide(address, gate, agent.Approve, "")
	eventually(t, "the pending activity says why", func() bool {
		return strings.Contains(w.failures(address), "refund.issue_refund: the database is read-only")
	})
	require.Empty(t, w.refunds())
	b.readOnly.Store(false)
	w.finished(address, agent.RunCompleted)
	require.Len(t, w.refunds(), 1)
	require.Len(t, w.receipts(), 1)
}

// However much arrives while the store is down, the run's history grows with it
// only: Temporal ends a run whose history is too long. All of it stands afterwards.
func TestStore_DownWhileSignalsArrive(t *testing.T) {
	t.Parallel()
	w := idleWorld(t, false)
	b := &broken{Store: w.store}
	w.config.Store = b
	w.serve(says(scripted.Say("Hello.")), lab{db: labDB(t), limits: agent.Limits{Message: 64 << 10}}.agent())
	address := w.start("k")
	w.chat(address, "hi")
	w.quiet(address)
	b.readOnly.Store(true)
	d, err := describe(w.ctx, address)
	require.NoError(t, err)
	before := d.GetWorkflowExecutionInfo().GetHistorySizeBytes()
	var sent []string
	for n := range 200 {
		m := signals.Message{ID: fmt.Sprintf("s%d", n), Principal: customer, Text: fmt.Sprintf("message %d", n)}
		w.signal(address, signals.NameMessage, m)
		sent = append(sent, m.ID)
	}
	w.until(address, "all are taken", func(r *agent.Run) bool { return len(r.Handled) == 1+len(sent) })
	eventually(t, "the store is asked in vain", func() bool { return b.refused.Load() > 2 })
	d, err = describe(w.ctx, address)
	require.NoError(t, err)
	require.LessOrEqual(t, len(d.GetPendingActivities()), 2, "the model's call, and one record")
	require.Less(t, d.GetWorkflowExecutionInfo().GetHistorySizeBytes()-before, int64(2000*len(sent)), "bytes of history")
	b.readOnly.Store(false)
	eventually(t, "all are recorded", func() bool {
		return len(recorded[agent.MessageData](w, address, agent.EventMessage)) == 1+len(sent)
	})
	for i, m := range recorded[agent.MessageData](w, address, agent.EventMessage)[1:] {
		require.Equal(t, sent[i], m.ID)
	}
	w.cancelled(address)
	w.requireReplay(address)
}

// The ledger goes away between the claim of the receipt and its settlement, and
// before the claim: one receipt all the same.
func TestStore_LedgerReadOnly(t *testing.T) {
	t.Parallel()
	w, b := brokenWorld(t)
	address := w.start("k")
	gate := w.toGate(address)
	b.claims.Store(true)
	w.decide(address, gate, agent.Approve, "")
	eventually(t, "the claim fails", func() bool { return strings.Contains(w.failures(address), "claim: the database is read-only") })
	require.Empty(t, w.receipts(), "nothing is sent without a claim")
	w.mail.Delay(time.Second)
	b.claims.Store(false)
	eventually(t, "the receipt is stored", func() bool { return len(w.receipts()) == 1 })
	b.claims.Store(true)
	w.mail.Delay(0)
	eventually(t, "the settlement fails", func() bool { return strings.Contains(w.failures(address), "it happened, but could not be recorded") })
	b.claims.Store(false)
	w.finished(address, agent.RunCompleted)
	require.Len(t, w.receipts(), 1)
}

// A provider that is down is waited for: the run does not end, and one call
// counts.
func TestModel_Unavailable(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	down.Store(true)
	model := watch(scripted.Func("scripted", func(llm.Request) llm.Response { return scripted.Say("Here I am.") }).Failing(func(llm.Request) error {
		if down.Load() {
			return &llm.Error{Kind: llm.KindRateLimited, Message: "come back later", RetryAfter: 100 * time.Millisecond}
		}
		return nil
	}))
	w := newWorld(t, model, lab{db: labDB(t)}.agent())
	address := w.start("k")
	w.say(address, "hello")
	eventually(t, "several attempts", func() bool { return model.calls(1) > 2 })
	require.Contains(t, w.failures(address), "come back later")
	down.Store(false)
	run := w.until(address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 1 })
	require.Equal(t, 1, run.Used.ModelCalls)
	usage, err := w.store.ModelUsage(w.ctx, "acme", address)
	require.NoError(t, err)
	require.Equal(t, 1, usage.Calls)
}

// A key that is wrong is an outage: when an operator has mended it, a resume
// lets the run go on. Here the policy waits for less time than until the next
// look at the key.
func TestModel_Unauthorized(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	model := watch(scripted.Func("scripted", func(llm.Request) llm.Response { return scripted.Say("Here I am.") }).Failing(func(llm.Request) error {
		if mended.Load() {
			return nil
		}
		return &llm.Error{Kind: llm.KindUnauthorized, Message: "the key is wrong"}
	}))
	w := newWorld(t, model, lab{db: labDB(t), limits: agent.Limits{Outage: 10 * time.Second}}.agent())
	address := w.start("k")
	w.say(address, "hello")
	run := w.until(address, "pause", paused)
	require.Contains(t, run.Reason, "model: ")
	require.Contains(t, run.Reason, "the key is wrong")
	require.Equal(t, 1, model.calls(1))
	w.requireJournal(run)
	mended.Store(true)
	w.signal(address, signals.NameResume, signals.Resume{ID: "r1", Principal: ops})
	run = w.until(address, "an answer", func(r *agent.Run) bool { return r.Reply != nil })
	require.Equal(t, "hello", run.Turns[0].Opening[0].Text, "the message is still there to be answered")
	w.cancelled(address)
}

// A provider that is down for longer than the policy waits pauses the run, and
// its time does not count: neither while it was waited for, nor when it came
// back.
func TestModel_DownForLonger(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	down.Store(true)
	model := watch(scripted.Func("scripted", func(llm.Request) llm.Response { return scripted.Say("Here I am.") }).Failing(func(llm.Request) error {
		if down.Load() {
			return &llm.Error{Kind: llm.KindUnavailable, Message: "503"}
		}
		return nil
	}))
	w := newWorld(t, model, lab{db: labDB(t), limits: agent.Limits{Outage: 5 * time.Second}, budget: agent.Budget{Active: 8 * time.Second}}.agent())
	address := w.start("k")
	w.say(address, "hello")
	run := w.until(address, "pause", paused)
	require.Contains(t, run.Reason, "503")
	w.signal(address, signals.NameResume, signals.Resume{ID: "r1", Principal: ops})
	eventually(t, "a second attempt of the second call", func() bool { return model.calls(2) >= 2 })
	down.Store(false)
	run = w.until(address, "an answer", func(r *agent.Run) bool { return r.Reply != nil || r.Status == agent.RunPaused })
	require.Equal(t, agent.RunWaiting, run.Status, run.Reason)
	require.Less(t, run.Used.ActiveMS, int64(6500))
	w.cancelled(address)
}

// Temporal is down: the caller learns it within its deadline, with what to do.
func TestTemporal_Down(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := l.Addr().String()
	require.NoError(t, l.Close())
	c, err := client.NewLazyClient(client.Options{HostPort: nobody})
	require.NoError(t, err)
	defer c.Close()
	s := starter.New(c, starter.WithDeadline(2*time.Second))
	_, err = s.Start(context.Background(), starter.Start{Agent: "lab", Tenant: "acme", Key: "k", Principal: customer, Body: labStart{}})
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.Contains(t, err.Error(), "again")
	_, err = s.Message(context.Background(), "acme/lab/k", signals.Message{ID: "m", Principal: customer, Text: "hi"})
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	_, err = s.Get(context.Background(), "acme/lab/k")
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
}

// No worker is up: the caller learns that, and the run waits.
func TestWorker_NobodyPolls(t *testing.T) {
	t.Parallel()
	w := idleWorld(t, false)
	in := w.startInput("k")
	started, err := w.starter.Start(w.ctx, in)
	require.NoError(t, err, "a start needs no worker")
	_, err = w.impatient().Message(w.ctx, started.Address, signals.Message{ID: "m", Principal: customer, Text: "hi"})
	require.Equal(t, agent.CodeUnavailable, agent.ErrorCode(err), "%v", err)
	require.Contains(t, err.Error(), "no worker polls task queue")
	w.serve(turns(scripted.Say("Hello.")), lab{db: labDB(t)}.agent())
	r, err := w.starter.Message(w.ctx, started.Address, signals.Message{ID: "m", Principal: customer, Text: "hi"})
	require.NoError(t, err)
	require.Contains(t, []agent.ReceiptStatus{agent.Accepted, agent.Repeated}, r.Status)
	w.until(started.Address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 1 })
}
