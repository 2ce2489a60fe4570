package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/api"
	"interlock/api/access"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/tool"
)

// lab is a server over real machines and a real store, without Temporal.
type lab struct {
	t      *testing.T
	server *api.Server
	http   *httptest.Server
	store  *sqlite.Store
	tokens map[string]string // by id
	access string            // the file of them
	log    *safe
	fake   *runs
}

// safe is a buffer of several goroutines.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.b.Write(p) }
func (s *safe) String() string              { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

// people are the tokens of a lab.
var people = []access.Entry{
	{ID: "backend", Tenant: "acme", Subject: "backend", May: []access.Role{access.Starter}},
	{ID: "cust", Tenant: "acme", Subject: "cust", May: []access.Role{access.User}},
	{ID: "other-cust", Tenant: "acme", Subject: "other-cust", May: []access.Role{access.User}},
	{ID: "ann", Tenant: "acme", Subject: "ann", May: []access.Role{access.Reviewer}, Roles: []string{"refunds"}},
	{ID: "bob", Tenant: "acme", Subject: "bob", May: []access.Role{access.Reviewer}, Roles: []string{"refunds"}},
	{ID: "nurse", Tenant: "acme", Subject: "nurse", May: []access.Role{access.Reviewer}, Roles: []string{"nurses"}},
	{ID: "op", Tenant: "acme", Subject: "op", May: []access.Role{access.Operator}, Roles: []string{"operator", "refunds"}},
	{ID: "evil", Tenant: "other", Subject: "evil", May: []access.Role{access.Operator, access.Starter}, Roles: []string{"refunds", "operator"}},
}

func newLab(t *testing.T, change ...func(*api.Config)) *lab {
	t.Helper()
	ctx, folder := context.Background(), t.TempDir()
	l := &lab{t: t, tokens: map[string]string{}, log: &safe{}}
	file := filepath.Join(folder, "access.yaml")
	l.access = file
	require.NoError(t, os.WriteFile(file, []byte("tokens: []\n"), 0o600))
	past := time.Now().Add(-time.Hour)
	expired := people[6]
	expired.ID, expired.Expires = "expired", &past
	for _, e := range append(append([]access.Entry(nil), people...), expired) {
		token, e := access.New(e)
		require.NoError(t, access.Add(file, e))
		l.tokens[e.ID] = token
	}
	log := slog.New(slog.NewJSONHandler(l.log, nil))
	auth, err := access.OpenTokens(file, log)
	require.NoError(t, err)
	path := filepath.Join(folder, "store.db")
	_, _, err = sqlite.Migrate(ctx, path)
	require.NoError(t, err)
	l.store, err = sqlite.Open(ctx, path, nil)
	require.NoError(t, err)
	l.fake = &runs{t: t, store: l.store, of: map[string]*agenttest.Run{}, saved: map[string]*saved{}, starts: map[string]string{}}
	c := api.Config{Runs: l.fake, Reads: l.store, Auth: auth, Log: log, Limits: api.Limits{Rate: 10000}}
	for _, f := range change {
		f(&c)
	}
	l.server, err = api.New(c)
	require.NoError(t, err)
	l.http = httptest.NewServer(l.server.Handler())
	t.Cleanup(func() { l.http.Close(); _ = l.store.Close() })
	return l
}

// answer is a response, read.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// ask sends a request as somebody; a body is JSON text, or what encodes to it.
func (l *lab) ask(as, method, path string, body any, header ...string) answer {
	l.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		data, err := json.Marshal(b)
		require.NoError(l.t, err)
		reader = bytes.NewReader(data)
	}
	r, err := http.NewRequest(method, l.http.URL+path, reader)
	require.NoError(l.t, err)
	if token, ok := l.tokens[as]; ok {
		r.Header.Set("Authorization", "Bearer "+token)
	} else if as != "" {
		r.Header.Set("Authorization", as)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(l.t, err)
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	require.NoError(l.t, err)
	if strings.HasPrefix(path, "/v1/") && !strings.ContainsAny(path, "%") {
		require.Empty(l.t, l.server.Conforms(method, path, res.StatusCode, data), "%s %s answers what the document does not say: %s", method, path, data)
	}
	return answer{l.t, res.StatusCode, res.Header, string(data)}
}

func (l *lab) get(as, path string) answer { l.t.Helper(); return l.ask(as, http.MethodGet, path, nil) }

func (l *lab) post(as, path, id string, body any) answer {
	l.t.Helper()
	return l.ask(as, http.MethodPost, path, body, "Idempotency-Key", id)
}

func (a answer) ok(status int) answer {
	a.t.Helper()
	require.Equal(a.t, status, a.status, a.body)
	return a
}

// problem checks that the answer is one of a code.
func (a answer) problem(status int, code agent.Code) api.Problem {
	a.t.Helper()
	var p api.Problem
	require.Equal(a.t, status, a.status, a.body)
	require.Equal(a.t, "application/problem+json", a.header.Get("Content-Type"), a.body)
	require.NoError(a.t, json.Unmarshal([]byte(a.body), &p))
	require.Equal(a.t, code, p.Code, a.body)
	require.Equal(a.t, status, p.Status)
	require.Equal(a.t, "urn:interlock:problem:"+string(code), p.Type)
	require.Equal(a.t, a.header.Get("X-Request-Id"), p.Instance)
	require.NotEmpty(a.t, p.Title)
	return p
}

func into[T any](a answer) (v T) {
	a.t.Helper()
	require.NoError(a.t, json.Unmarshal([]byte(a.body), &v), a.body)
	return v
}

// desk is the lab's agent: it pays any amount, with approval, and asks for a port.
type deskStart struct {
	CustomerID string `json:"customer_id"`
}

type deskState struct {
	CustomerID string `json:"customer_id" set:"start"`
	Pin        string `json:"pin" set:"start" sensitive:"true"`
	Hidden     string `json:"hidden" set:"start" view:"-"`
	Port       int64  `json:"port" set:"user"`
	Flag       bool   `json:"flag" set:"user"`
	Word       string `json:"word" set:"user"`
	Paid       string `json:"paid" set:"tool"`
}

type payArgs struct {
	Amount int64  `json:"amount"`
	To     string `json:"to"`
}

type paid struct {
	ID string `json:"id"`
}

func desk() *agent.Definition {
	pay := tool.Keyed("pay", func(context.Context, tool.Key, payArgs) (paid, error) { return paid{"p-1"}, nil },
		func(s *deskState, _ payArgs, r paid) error { s.Paid = r.ID; return nil }).
		Gate(tool.Gate[deskState, payArgs]{Roles: []string{"refunds"}, Reads: []string{"customer_id"}, Policy: "every payment"})
	return agent.Define(agent.Spec[deskStart, deskState]{Name: "desk", Version: 1, Instructions: "x",
		Init: func(in deskStart) (deskState, error) {
			return deskState{CustomerID: in.CustomerID, Pin: "S3CRET", Hidden: "H1DDEN"}, nil
		},
		Phases: []agent.Phase[deskState]{{Name: "work", Tools: []agent.Tool[deskState]{pay}, Moves: []agent.Move[deskState]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// run starts a run of a customer.
func (l *lab) run(key string) string {
	l.t.Helper()
	l.post("backend", "/v1/runs", "start-"+key, map[string]any{"agent": "desk", "key": key, "user": "cust", "body": map[string]string{"customer_id": "c-1"}}).ok(http.StatusCreated)
	return "/v1/runs/desk/" + key
}

// atGate brings a run to a payment that waits for approval.
func (l *lab) atGate(key string) (path string, g agent.Gate) {
	l.t.Helper()
	path = l.run(key)
	l.post("cust", path+"/messages", "m-1", map[string]string{"text": "pay"}).ok(http.StatusOK)
	l.fake.propose("acme/desk/"+key, func(r *agenttest.Run) { r.Propose(scripted.Raw("pay", `{"amount":9007199254740993,"to":"x"}`)) })
	page := into[api.GatePage](l.get("ann", "/v1/gates").ok(http.StatusOK))
	for _, line := range page.Gates {
		if line.Key == key {
			return path, line.Gate
		}
	}
	l.t.Fatalf("run %s has no open gate", key)
	return
}

// asking brings a run to a question.
func (l *lab) asking(key string, fields ...string) (path string, g agent.Gate) {
	l.t.Helper()
	path = l.run(key)
	l.post("cust", path+"/messages", "m-1", map[string]string{"text": "go"}).ok(http.StatusOK)
	l.fake.propose("acme/desk/"+key, func(r *agenttest.Run) { r.Propose(scripted.Ask("Which?", fields...)) })
	return path, into[api.GateLine](l.get("cust", path+"/gates/1.1").ok(http.StatusOK)).Gate
}

// runs are real machines in the place of Temporal; their journals are in the store.
type runs struct {
	api.Runs // nil: what is not used here
	t        *testing.T
	store    *sqlite.Store
	mu       sync.Mutex
	of       map[string]*agenttest.Run
	saved    map[string]*saved
	starts   map[string]string
	down     error // what every call answers
}

// saved is how far a journal is.
type saved struct {
	seq  int64
	hash string
}

func (f *runs) save(address string) {
	run, at := f.of[address], f.saved[address]
	var fresh []agent.Event
	b := agent.Batch{First: at.seq + 1, Before: at.hash, Head: agent.Head{Status: run.Run().Status, Reason: run.Run().Reason, Phase: run.Run().Phase, Turn: run.Run().Turn}}
	for _, e := range run.Events() {
		if e.Seq > at.seq {
			fresh = append(fresh, e)
			at.hash = e.Chain(at.hash)
		}
	}
	if b.Events = fresh; len(fresh) > 0 {
		at.seq = fresh[len(fresh)-1].Seq
		tenant, _, _, _ := signals.SplitAddress(address)
		require.NoError(f.t, f.store.Append(context.Background(), store.RunRef{Tenant: tenant, Address: address, FirstRunID: run.Run().FirstRunID, Branch: "b"}, b))
	}
}

// propose lets the model answer.
func (f *runs) propose(address string, do func(*agenttest.Run)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f.of[address])
	f.save(address)
}

// noTemporal knows no run.
type noTemporal struct{ client.Client }

func (noTemporal) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	return nil, serviceerror.NewNotFound("no such run")
}

func (f *runs) Watch(ctx context.Context, address string, afterSeq int64) iter.Seq2[agent.Event, error] {
	return starter.New(noTemporal{}, starter.WithReader(f.store)).Watch(ctx, address, afterSeq)
}

func (f *runs) find(address string) (*agenttest.Run, error) {
	if f.down != nil {
		return nil, f.down
	}
	if r, ok := f.of[address]; ok {
		return r, nil
	}
	return nil, agent.Errorf(agent.CodeNotFound, "there is no run %s", address)
}

func (f *runs) input(address string, in agent.Input) (agent.Receipt, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(address)
	if err != nil {
		return agent.Receipt{}, err
	}
	receipt := r.Input(in)
	f.save(address)
	if receipt.Status == agent.Refused {
		return receipt, agent.Errorf(receipt.Code, "%s", receipt.Reason)
	}
	return receipt, nil
}

func (f *runs) Start(_ context.Context, in starter.Start) (starter.Started, error) {
	if in.Agent != "desk" {
		return starter.Started{}, agent.Errorf(agent.CodeNotFound, "no worker serves agent %s/v%d", in.Agent, in.Version)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	address := signals.Address(in.Tenant, in.Agent, in.Key)
	what := fmt.Sprint(in.User, in.Body, in.Message)
	if had, ok := f.starts[address]; ok {
		if had != what {
			return starter.Started{}, agent.Errorf(agent.CodeConflict, "%s was started with another body", address)
		}
		return starter.Started{Address: address, FirstRunID: "first-" + in.Key}, nil
	}
	run := agenttest.Options{Tenant: in.Tenant, Key: in.Key, User: in.User}.Start(f.t, desk(), in.Body)
	f.starts[address], f.of[address], f.saved[address] = what, run, &saved{}
	f.save(address)
	return starter.Started{Address: address, FirstRunID: "first-" + in.Key, New: true}, nil
}

func (f *runs) Get(_ context.Context, address string) (*agent.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(address)
	if err != nil {
		return nil, err
	}
	run := *r.Run()
	return &run, nil
}

func (f *runs) Gate(_ context.Context, address, id string) (store.GateRow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(address)
	if err != nil {
		return store.GateRow{}, err
	}
	for _, g := range r.Run().Gates {
		if g.ID == id {
			return store.GateRow{Address: address, Agent: "desk", Gate: g}, nil
		}
	}
	return store.GateRow{}, agent.Errorf(agent.CodeNotFound, "run %s has no gate %q", address, id)
}

func (f *runs) Why(_ context.Context, address string) (starter.Why, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.find(address)
	return starter.Why{Address: address, Sentence: "waits", Next: "look"}, err
}

func (f *runs) Wait(_ context.Context, address string, after int64) (signals.News, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(address)
	if err != nil {
		return signals.News{}, err
	}
	n := signals.NewsOf(r.Run(), after)
	if n.Again {
		err = agent.Errorf(agent.CodeUnavailable, "nothing new in time")
	}
	return n, err
}

func (f *runs) Converse(ctx context.Context, in starter.Converse) (starter.Conversed, error) {
	address := signals.Address(in.Tenant, in.Agent, in.Key)
	f.mu.Lock()
	_, stands := f.of[address]
	f.mu.Unlock()
	if !stands {
		if _, err := f.Start(ctx, starter.Start{Agent: in.Agent, Tenant: in.Tenant, Key: in.Key, User: in.User, Body: in.Body}); err != nil {
			return starter.Conversed{}, err
		}
	}
	r, err := f.Message(ctx, address, in.Message)
	return starter.Conversed{Address: address, New: !stands, Receipt: r}, err
}

func (f *runs) Message(_ context.Context, address string, m signals.Message) (agent.Receipt, error) {
	return f.input(address, agent.Message{ID: m.ID, Principal: m.Principal, Text: m.Text, Policy: m.Policy})
}

func (f *runs) Cancel(_ context.Context, address string, c signals.Cancel) (agent.Receipt, error) {
	return f.input(address, agent.CancelRun{ID: c.ID, Principal: c.Principal, Reason: c.Reason, Undo: c.Undo})
}

func (f *runs) Amend(_ context.Context, address string, a signals.Amend) (agent.Receipt, error) {
	return f.input(address, agent.AmendRun{ID: a.ID, Principal: a.Principal, Fields: a.Fields, Reason: a.Reason})
}

func (f *runs) Pause(_ context.Context, address string, p signals.Pause) (agent.Receipt, error) {
	return f.input(address, agent.PauseRun{ID: p.ID, Principal: p.Principal, Reason: p.Reason})
}

func (f *runs) Resume(_ context.Context, address string, r signals.Resume) (agent.Receipt, error) {
	return f.input(address, agent.ResumeRun{ID: r.ID, Principal: r.Principal, Reason: r.Reason})
}

func (f *runs) Undo(_ context.Context, address string, u signals.Undo) (starter.Undone, error) {
	r, err := f.input(address, agent.UndoSteps{ID: u.ID, Principal: u.Principal, Steps: u.Steps, Reason: u.Reason})
	return starter.Undone{Receipt: r}, err
}

func (f *runs) Decide(_ context.Context, address string, v signals.Verdict) (agent.Receipt, error) {
	return f.input(address, agent.VerdictGiven{Verdict: agent.Verdict{ID: v.ID, Gate: v.Gate, Digest: v.Digest, Verdict: v.Verdict, Reason: v.Reason, Args: v.Args,
		Answer: v.Answer, Result: v.Result, Again: v.Again, Principal: v.Principal}})
}

func (f *runs) LiftRuling(_ context.Context, address string, r signals.LiftRuling) (agent.Receipt, error) {
	return f.input(address, agent.LiftRuling{ID: r.ID, Ruling: r.Ruling, Principal: r.Principal, Reason: r.Reason})
}

func (f *runs) ConfirmRuling(_ context.Context, address string, r signals.ConfirmRuling) (agent.Receipt, error) {
	return f.input(address, agent.ConfirmRuling{ID: r.ID, Ruling: r.Ruling, Principal: r.Principal, Reason: r.Reason})
}

func (f *runs) ResolveEffect(context.Context, signals.Resolution) error {
	return agent.Errorf(agent.CodeConflict, "its run is under way")
}
