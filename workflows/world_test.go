package workflows_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
	"interlock/config"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/llm"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/store/pgtest"
	"interlock/store/postgres"
	"interlock/store/sqlite"
	"interlock/worker"
	"interlock/workflows"
)

// patience is for what must happen, on a machine that does much else.
const patience = 90 * time.Second

// world is a shop, a mail service, a store, a worker and a starter of one test.
type world struct {
	t       *testing.T
	ctx     context.Context
	dir     string
	dsn     string  // of the store
	db      *sql.DB // of the lab's pay, where a test looks into it
	shop    *shop.Shop
	mail    *mail.Server
	store   store.Store
	starter *starter.Starter
	worker  *worker.Worker
	config  worker.Config
	agents  []*agent.Definition
	sent    atomic.Int64
	nth     int64
}

var worlds atomic.Int64

// newWorld makes a world and starts its worker. Without agents it has the
// sample agent, with its shop and its mail.
func newWorld(t *testing.T, model llm.Model, agents ...*agent.Definition) *world {
	t.Helper()
	w := idleWorld(t, len(agents) == 0)
	if len(agents) == 0 {
		agents = []*agent.Definition{w.refundAgent()}
	}
	w.serve(model, agents...)
	return w
}

// effects are the ledger's rows of a run.
func (w *world) effects(address string) ([]store.Effect, error) {
	return w.store.Effects(w.ctx, "acme", store.EffectFilter{Address: address})
}

// openStore opens a SQLite file, or the PostgreSQL that a URL names.
func openStore(ctx context.Context, dsn string) (store.Store, error) {
	return openStoreAt(ctx, dsn, nil)
}

// openStoreAt opens a store that goes by another clock.
func openStoreAt(ctx context.Context, dsn string, now func() time.Time) (store.Store, error) {
	if strings.HasPrefix(dsn, "postgres") {
		return postgres.Open(ctx, dsn, &postgres.Options{MaxConns: 8, Now: now})
	}
	return sqlite.Open(ctx, dsn, &sqlite.Options{Now: now})
}

// idleWorld has no worker yet.
func idleWorld(t *testing.T, withShop bool) *world {
	t.Helper()
	w := &world{t: t, ctx: context.Background(), dir: t.TempDir(), nth: worlds.Add(1)}
	var err error
	w.dsn = w.file("interlock.db")
	if this.Postgres {
		w.dsn = pgtest.NewFrom(t, func(ctx context.Context, dsn string) error { _, _, err := postgres.Migrate(ctx, dsn); return err })
	}
	w.store, err = openStore(w.ctx, w.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	if withShop {
		w.shop, err = shop.Open(w.ctx, w.file("shop.db"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.shop.Close() })
		w.mail, err = mail.Serve(w.ctx, "127.0.0.1:0", w.file("mail.db"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.mail.Close() })
	}
	settings := config.Default()
	settings.TaskQueue = w.name()
	settings.ShutdownTimeout = 2 * time.Second
	if this.Uncached {
		settings.Worker.CacheSize = 0
	}
	w.config = worker.Config{Settings: settings, Client: temporalClient, Store: w.store, Log: slog.New(slog.DiscardHandler)}
	w.starter = starter.New(temporalClient, starter.WithReader(w.store), starter.WithTaskQueue(settings.TaskQueue))
	return w
}

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

// name is unique on the server: of the test, and of its run.
func (w *world) name() string {
	name := strings.NewReplacer("/", ".", "#", "-").Replace(w.t.Name())
	if this.Uncached {
		name += ".uncached"
	}
	if this.Postgres {
		name += ".postgres"
	}
	return fmt.Sprintf("%s.%d", name, w.nth)
}

func (w *world) refundAgent() *agent.Definition {
	return refund.Agent(w.shop, mail.Client{BaseURL: w.mail.URL()})
}

// serve replaces the worker by a new one.
func (w *world) serve(model llm.Model, agents ...*agent.Definition) {
	w.t.Helper()
	w.stop()
	w.config.Model, w.agents = model, agents
	var err error
	w.worker, err = worker.New(w.config, agents...)
	require.NoError(w.t, err)
	require.NoError(w.t, w.worker.Start(w.ctx))
	w.t.Cleanup(w.worker.Stop)
}

func (w *world) stop() {
	if w.worker != nil {
		w.worker.Stop()
	}
}

var customer = agent.Principal{Subject: "c-017"}

// start starts a run of the world's agent.
func (w *world) start(key string) string {
	w.t.Helper()
	s, err := w.starter.Start(w.ctx, w.startInput(key))
	require.NoError(w.t, err)
	require.True(w.t, s.New)
	return s.Address
}

func (w *world) startInput(key string) starter.Start {
	in := starter.Start{Agent: "refund", Tenant: "acme", Key: w.name() + "." + key, Principal: customer, Body: refund.Start{CustomerID: "c-017"}}
	if w.shop == nil {
		in.Agent, in.Body = "lab", labStart{Name: "c-017"}
	}
	return in
}

func (w *world) id(kind string) string { return fmt.Sprintf("%s%d", kind, w.sent.Add(1)) }

func (w *world) say(address, text string) agent.Receipt {
	w.t.Helper()
	r, err := w.starter.Message(w.ctx, address, signals.Message{ID: w.id("m"), Principal: customer, Text: text})
	require.NoError(w.t, err)
	return r
}

// chat says something and waits until the run has nothing left to do.
func (w *world) chat(address, text string) *agent.Run {
	w.t.Helper()
	r := w.say(address, text)
	return w.until(address, "an answer to "+text, func(run *agent.Run) bool {
		return run.Seq > r.Seq && run.Status != agent.RunRunning && run.Owed == 0
	})
}

// until waits for the run to be in a state that pred accepts.
func (w *world) until(address string, what string, pred func(*agent.Run) bool) *agent.Run {
	w.t.Helper()
	var run *agent.Run
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(25 * time.Millisecond) {
		if run, err = w.starter.Get(w.ctx, address); err == nil && pred(run) {
			return run
		}
	}
	if run == nil {
		run = &agent.Run{}
	}
	j, _ := json.MarshalIndent(map[string]any{"status": run.Status, "reason": run.Reason, "phase": run.Phase, "turn": run.Turn, "state": run.State,
		"steps": run.Steps, "gates": run.Gates, "turns": run.Turns[max(0, len(run.Turns)-3):]}, "", " ")
	require.FailNow(w.t, "waited in vain for: "+what, "%v\n%s\n%s", err, w.failures(address), j)
	return nil
}

// eventually waits for something outside a run.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, patience, 25*time.Millisecond, what)
}

func waiting(reason string) func(*agent.Run) bool {
	return func(r *agent.Run) bool { return r.Status == agent.RunWaiting && r.Reason == reason }
}

func paused(r *agent.Run) bool { return r.Status == agent.RunPaused }

func ended(r *agent.Run) bool { return r.Status.Ended() }

// toGate brings a run to the open gate of its refund.
func (w *world) toGate(address string) agent.Gate {
	w.t.Helper()
	w.say(address, "Please refund order 1042, it broke")
	w.until(address, "asked", func(r *agent.Run) bool { return waiting("user")(r) && len(r.Shown) == 2 })
	w.say(address, "yes, that one")
	return lastGate(w.until(address, "gate", waiting("gate")))
}

func lastGate(r *agent.Run) agent.Gate { return r.Gates[len(r.Gates)-1] }

var ann = agent.Principal{Subject: "ann", Roles: []string{"refunds"}}

func (w *world) verdict(g agent.Gate, v agent.VerdictValue, reason string) signals.Verdict {
	return signals.Verdict{ID: w.id("v"), Gate: g.ID, Digest: g.Digest, Verdict: v, Reason: reason, Principal: ann}
}

func (w *world) decide(address string, g agent.Gate, v agent.VerdictValue, reason string) agent.Receipt {
	w.t.Helper()
	r, err := w.starter.Decide(w.ctx, address, w.verdict(g, v, reason))
	require.NoError(w.t, err)
	return r
}

func (w *world) refunds() []shop.Refund {
	w.t.Helper()
	all, err := w.shop.Refunds(w.ctx)
	require.NoError(w.t, err)
	return all
}

func (w *world) receipts() []mail.Stored {
	w.t.Helper()
	all, err := w.mail.Messages(w.ctx)
	require.NoError(w.t, err)
	return all
}

func (w *world) events(address string) []agent.Event {
	w.t.Helper()
	events, err := w.store.Events(w.ctx, store.Chain{Tenant: "acme", Address: address}, 1, 0)
	require.NoError(w.t, err)
	return events
}

// recorded are the data of the journal's events of one type.
func recorded[T any](w *world, address string, kind agent.EventType) []T {
	w.t.Helper()
	var out []T
	for _, e := range w.events(address) {
		if e.Type == kind {
			var d T
			require.NoError(w.t, json.Unmarshal(e.Data, &d))
			out = append(out, d)
		}
	}
	return out
}

// finished waits for the workflow's end, and checks all that holds of every
// run: the journal reduces to the run, and its history replays.
func (w *world) finished(address string, status agent.RunStatus) *agent.Run {
	w.t.Helper()
	run := w.until(address, "end", ended)
	w.until(address, "the workflow's end", func(*agent.Run) bool { return w.status(address) != enums.WORKFLOW_EXECUTION_STATUS_RUNNING })
	require.Equal(w.t, status, run.Status, run.Reason)
	w.requireJournal(run)
	w.requireReplay(address)
	for _, s := range run.Steps {
		require.False(w.t, s.Status.Open(), "step %s %s is %s", s.ID, s.Tool, s.Status)
	}
	return run
}

// requireJournal checks that the journal reduces to the run.
func (w *world) requireJournal(run *agent.Run) {
	w.t.Helper()
	eventually(w.t, "the journal is complete", func() bool {
		row, err := w.store.RunRow(w.ctx, store.Chain{Tenant: "acme", Address: run.Address()})
		return err == nil && row.Seq >= run.Seq
	})
	reduced, err := agent.Reduce(w.events(run.Address()))
	require.NoError(w.t, err)
	want, _ := json.Marshal(run)
	got, _ := json.Marshal(reduced)
	require.JSONEq(w.t, string(want), string(got))
	row, err := w.store.RunRow(w.ctx, store.Chain{Tenant: "acme", Address: run.Address()})
	require.NoError(w.t, err)
	require.Equal(w.t, run.Status, row.Head.Status)
	require.Equal(w.t, run.Phase, row.Head.Phase)
}

// requireReplay replays the run's history, whole: that of each Temporal run of
// its chain.
func (w *world) requireReplay(address string) {
	w.t.Helper()
	registry, err := agent.NewRegistry(w.agents...)
	require.NoError(w.t, err)
	replayer := sdk.NewWorkflowReplayer()
	for name, f := range workflows.New(registry).Registered() {
		replayer.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: name})
	}
	for _, run := range w.chain(address) {
		h := &history.History{Events: w.history(address, run)}
		require.NoError(w.t, replayer.ReplayWorkflowHistoryWithOptions(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), h,
			sdk.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: address, RunID: run}}), "Temporal run %s", run)
	}
}

// chain are the Temporal runs that a run was continued over, newest first.
func (w *world) chain(address string) (runs []string) {
	w.t.Helper()
	for run := w.runID(address); run != ""; {
		runs = append(runs, run)
		run = w.history(address, run)[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	}
	return runs
}

func (w *world) history(address, runID string) []*history.HistoryEvent {
	w.t.Helper()
	var out []*history.HistoryEvent
	it := temporalClient.GetWorkflowHistory(w.ctx, address, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		require.NoError(w.t, err)
		out = append(out, e)
	}
	return out
}

func (w *world) describe(address string) *client.WorkflowExecutionDescription {
	w.t.Helper()
	d, err := temporalClient.DescribeWorkflow(w.ctx, address, "")
	require.NoError(w.t, err)
	return d
}

func (w *world) status(address string) enums.WorkflowExecutionStatus {
	return w.describe(address).Status
}

func (w *world) runID(address string) string { return w.describe(address).WorkflowExecution.RunID }

// describe is what Temporal says of a run.
func describe(ctx context.Context, address string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d, err := temporalClient.DescribeWorkflow(ctx, address, "")
	if err != nil {
		return nil, err
	}
	return d.RawResponse, nil
}

// failures are those of the activities that the run waits for.
func (w *world) failures(address string) string {
	d, err := describe(w.ctx, address)
	require.NoError(w.t, err)
	var out []string
	for _, a := range d.GetPendingActivities() {
		if f := a.GetLastFailure(); f != nil {
			out = append(out, a.GetActivityType().GetName()+": "+f.GetMessage())
		}
	}
	return strings.Join(out, "\n")
}

// watched keeps the requests of a model, and checks each.
type watched struct {
	llm.Model
	mu       sync.Mutex
	requests []llm.Request
	invalid  []error
}

func watch(m llm.Model) *watched { return &watched{Model: m} }

func (m *watched) Generate(ctx context.Context, req llm.Request) (llm.Response, error) {
	m.mu.Lock()
	m.requests = append(m.requests, req)
	if err := llm.Validate(req.Messages); err != nil {
		m.invalid = append(m.invalid, err)
	}
	m.mu.Unlock()
	return m.Model.Generate(ctx, req)
}

// seen are the requests so far; all of them were valid.
func (m *watched) seen(t *testing.T) []llm.Request {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Empty(t, m.invalid)
	return append([]llm.Request(nil), m.requests...)
}

// calls counts the calls for one turn.
func (m *watched) calls(turn int) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.requests {
		if r.View.Turn == turn {
			n++
		}
	}
	return n
}
