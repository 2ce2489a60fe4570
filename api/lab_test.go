package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
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

	"interlock/agent"
	"interlock/agenttest"
	"interlock/api"
	"interlock/api/access"
	"interlock/llm/scripted"
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
		Gate(tool.Gate[deskState, payArgs]{Roles: []string{"refunds"}, Edit: []string{agent.EveryArgument}, Reads: []string{"customer_id"}, Policy: "every payment"})
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
