package web_test

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/api/access"
	"interlock/api/web"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/store/sqlite"
)

// noon is when the tests' runs begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a store with runs that the real machine plays, and the pages over it.
type world struct {
	t        *testing.T
	store    store.Store
	runs     *runs
	pages    http.Handler
	web      *web.Pages
	sessions *access.Sessions
	mu       sync.Mutex              // of people
	people   map[string]access.Entry // by access token
	tokens   map[string]string       // by subject
	audit    *lines
	now      time.Time
	reading  *reading
	away     error // of the file of access tokens
}

// runs stands for a starter: what is sent to a run reaches its machine at once,
// and its journal.
type runs struct {
	mu    sync.Mutex
	t     *testing.T
	store store.Store
	all   map[string]*agenttest.Run
	down  error            // of everything that needs Temporal
	lag   bool             // the journal does not get what comes
	mends []starter.Repair // of every run
	calls int              // inputs that were sent
	told  []string
}

// reading is the store's reader, which can fail.
type reading struct {
	store.Store
	down error
}

func (r *reading) Events(ctx context.Context, c store.Chain, from int64, limit int) ([]agent.Event, error) {
	if r.down != nil {
		return nil, r.down
	}
	return r.Store.Events(ctx, c, from, limit)
}

func (r *reading) GateRows(ctx context.Context, tenant string, f store.GateFilter) ([]store.GateRow, error) {
	if r.down != nil {
		return nil, r.down
	}
	return r.Store.GateRows(ctx, tenant, f)
}

func (r *reading) RunRows(ctx context.Context, tenant string, f store.RunFilter) ([]store.RunRow, error) {
	if r.down != nil {
		return nil, r.down
	}
	return r.Store.RunRows(ctx, tenant, f)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "interlock.db"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	w := &world{t: t, store: s, runs: &runs{t: t, store: s, all: map[string]*agenttest.Run{}}, people: map[string]access.Entry{}, tokens: map[string]string{},
		audit: &lines{}, now: noon.Add(time.Minute), reading: &reading{Store: s}}
	w.sessions, err = access.NewSessions(nil, w)
	require.NoError(t, err)
	w.slow(1e6)
	for _, e := range []access.Entry{
		{ID: "t1", Tenant: "acme", Subject: "ann", May: []access.Role{access.Reviewer}, Roles: []string{"refunds"}},
		{ID: "t2", Tenant: "acme", Subject: "bob", May: []access.Role{access.Reviewer}, Roles: []string{"refunds", "lead"}},
		{ID: "t3", Tenant: "acme", Subject: "mail", May: []access.Role{access.Reviewer}, Roles: []string{"mail"}},
		{ID: "t4", Tenant: "acme", Subject: "oda", May: []access.Role{access.Operator}, Roles: []string{"operator"}},
		{ID: "t5", Tenant: "acme", Subject: "c-017", May: []access.Role{access.User}},
		{ID: "t6", Tenant: "acme", Subject: "c-018", May: []access.Role{access.User}},
		{ID: "t7", Tenant: "other", Subject: "eve", May: []access.Role{access.Operator, access.Reviewer}, Roles: []string{"refunds", "operator"}},
	} {
		token, entry := access.New(e)
		w.people[token], w.tokens[e.Subject] = entry, token
	}
	return w
}

// slow serves the pages with another rate.
func (w *world) slow(rate float64) {
	log := slog.New(slog.NewJSONHandler(w.audit, nil))
	pages, err := web.New(web.Config{Starter: w.runs, Reader: w.reading, Auth: w, Sessions: w.sessions, Audit: access.NewAudit(log), Log: log, Now: func() time.Time { return w.now }, Rate: rate})
	require.NoError(w.t, err)
	w.web, w.pages = pages, pages.Handler()
}

// revoke takes somebody's access token away.
func (w *world) revoke(subject string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.people, w.tokens[subject])
}

// Authenticate implements [access.Authenticator].
func (w *world) Authenticate(_ context.Context, bearer string) (access.Caller, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away != nil {
		return access.Caller{}, w.away
	}
	if e, ok := w.people[bearer]; ok {
		return e.Caller(), nil
	}
	return access.Caller{}, access.ErrUnauthenticated
}

// Named implements [access.Credentials].
func (w *world) Named(_ context.Context, id string) (access.Caller, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away != nil {
		return access.Caller{}, w.away
	}
	for _, e := range w.people {
		if e.Caller().Credential == id {
			return e.Caller(), nil
		}
	}
	return access.Caller{}, access.ErrUnauthenticated
}

// start starts a run of an agent, for c-017 where options say nothing else.
func (w *world) start(def *agent.Definition, key string, body any) *agenttest.Run {
	w.t.Helper()
	run := agenttest.Options{Now: noon, Tenant: "acme", Key: key, User: "c-017"}.Start(quiet{w.t}, def, body)
	description, err := agent.Encode(def.Description())
	require.NoError(w.t, err)
	require.NoError(w.t, w.store.Deployed(w.t.Context(), store.Deployment{Agent: def.Name, Version: def.Version, Fingerprint: def.Fingerprint(), Description: description}))
	w.runs.all["acme/"+def.Name+"/"+key] = run
	w.keep(run)
	return run
}

// quiet is a test that does not write its runs as scripts where it has failed: they
// are not what is tested here.
type quiet struct{ testing.TB }

func (quiet) Failed() bool { return false }

// keep brings a run's journal into the store.
func (w *world) keep(run *agenttest.Run) { w.runs.keep(run) }

func (r *runs) keep(run *agenttest.Run) {
	r.t.Helper()
	now := run.Run()
	ref := store.RunRef{Tenant: now.Tenant, Address: now.Address(), FirstRunID: now.FirstRunID, Branch: now.FirstRunID}
	batch := agent.Batch{First: 1, Events: run.Events(), Head: agent.Head{Status: now.Status, Reason: now.Reason, Phase: now.Phase, Turn: now.Turn}}
	require.NoError(r.t, r.store.Append(context.Background(), ref, batch))
}

func (r *runs) send(address string, in agent.Input) (agent.Receipt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.down != nil {
		return agent.Receipt{}, r.down
	}
	run := r.all[address]
	if run == nil {
		return agent.Receipt{}, agent.Errorf(agent.CodeNotFound, "there is no run %s", address)
	}
	if run.Run().Status.Ended() {
		return agent.Receipt{}, agent.Errorf(agent.CodeEnded, "run %s has ended", address)
	}
	receipt := run.Input(in)
	if !r.lag {
		r.keep(run)
	}
	if receipt.Status == agent.Refused {
		return receipt, agent.Errorf(receipt.Code, "%s", receipt.Reason)
	}
	return receipt, nil
}

func (r *runs) Gate(ctx context.Context, address, id string) (store.GateRow, error) {
	tenant, _, _, _ := signals.SplitAddress(address)
	rows, err := r.store.GateRows(ctx, tenant, store.GateFilter{Address: address})
	if err != nil {
		return store.GateRow{}, err
	}
	for _, g := range rows {
		if g.Gate.ID == id {
			return g, nil
		}
	}
	return store.GateRow{}, agent.Errorf(agent.CodeNotFound, "run %s has no gate %s", address, id)
}

func (r *runs) Get(_ context.Context, address string) (*agent.Run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down != nil {
		return nil, r.down
	}
	if run := r.all[address]; run != nil {
		return agent.Reduce(run.Events())
	}
	return nil, agent.Errorf(agent.CodeNotFound, "there is no run %s", address)
}

func (r *runs) Why(_ context.Context, address string) (starter.Why, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.all[address]
	if run == nil {
		return starter.Why{}, agent.Errorf(agent.CodeNotFound, "there is no run %s", address)
	}
	why := starter.Why{Address: address, Status: run.Run().Status, Sentence: "waits, as the test says", Next: "interlock run get " + address, Waits: run.Run().Waits(), RepairedBy: r.mends}
	if r.down != nil {
		why.Unseen = []string{"Temporal: " + r.down.Error()}
	}
	return why, nil
}

func (r *runs) Decide(_ context.Context, address string, v signals.Verdict) (agent.Receipt, error) {
	return r.send(address, agent.VerdictGiven{Verdict: agent.Verdict{ID: v.ID, Gate: v.Gate, Digest: v.Digest, Verdict: v.Verdict, Reason: v.Reason,
		Args: v.Args, Answer: v.Answer, Result: v.Result, Again: v.Again, Principal: v.Principal}})
}

func (r *runs) Message(_ context.Context, address string, m signals.Message) (agent.Receipt, error) {
	return r.send(address, agent.Message{ID: m.ID, Principal: m.Principal, Text: m.Text, Policy: m.Policy})
}

func (r *runs) Cancel(_ context.Context, address string, c signals.Cancel) (agent.Receipt, error) {
	return r.send(address, agent.CancelRun{ID: c.ID, Principal: c.Principal, Reason: c.Reason, Undo: c.Undo})
}

func (r *runs) Pause(_ context.Context, address string, p signals.Pause) (agent.Receipt, error) {
	return r.send(address, agent.PauseRun{ID: p.ID, Principal: p.Principal, Reason: p.Reason})
}

func (r *runs) Resume(_ context.Context, address string, p signals.Resume) (agent.Receipt, error) {
	return r.send(address, agent.ResumeRun{ID: p.ID, Principal: p.Principal, Reason: p.Reason})
}

func (r *runs) LiftRuling(_ context.Context, address string, p signals.LiftRuling) (agent.Receipt, error) {
	return r.send(address, agent.LiftRuling{ID: p.ID, Ruling: p.Ruling, Principal: p.Principal, Reason: p.Reason})
}

func (r *runs) ConfirmRuling(_ context.Context, address string, p signals.ConfirmRuling) (agent.Receipt, error) {
	return r.send(address, agent.ConfirmRuling{ID: p.ID, Ruling: p.Ruling, Principal: p.Principal, Reason: p.Reason})
}

func (r *runs) TellAgain(_ context.Context, d store.DeadNotice, _ time.Duration, by string) error {
	if d.End != "" {
		return agent.Errorf(agent.CodeConflict, "it was %s before", d.End)
	}
	r.told = append(r.told, d.ID+" for "+d.Target+" by "+by)
	return nil
}

// lines keeps a log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

func (l *lines) last(marker string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.all) - 1; i >= 0; i-- {
		if strings.Contains(l.all[i], marker) {
			return l.all[i]
		}
	}
	return ""
}

// of are the lines with a marker.
func (l *lines) of(marker string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, marker) {
			found = append(found, line)
		}
	}
	return found
}
