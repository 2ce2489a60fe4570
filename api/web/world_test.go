package web_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
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
	t       *testing.T
	store   store.Store
	runs    *runs
	pages   http.Handler
	people  map[string]access.Entry // by access token
	tokens  map[string]string       // by subject
	audit   *lines
	now     time.Time
	reading *reading
}

// runs stands for a starter: what is sent to a run reaches its machine at once,
// and its journal.
type runs struct {
	mu    sync.Mutex
	t     *testing.T
	store store.Store
	all   map[string]*agenttest.Run
	down  error // of everything that needs Temporal
	lag   bool  // the journal does not get what comes
	calls int   // inputs that were sent
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
	sessions, err := access.NewSessions(nil, w)
	require.NoError(t, err)
	log := slog.New(slog.NewJSONHandler(w.audit, nil))
	pages, err := web.New(web.Config{Starter: w.runs, Reader: w.reading, Auth: w, Sessions: sessions, Audit: access.NewAudit(log), Log: log, Now: func() time.Time { return w.now }})
	require.NoError(t, err)
	w.pages = pages.Handler()
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

// Authenticate implements [access.Authenticator].
func (w *world) Authenticate(_ context.Context, bearer string) (access.Caller, error) {
	if e, ok := w.people[bearer]; ok {
		return e.Caller(), nil
	}
	return access.Caller{}, access.ErrUnauthenticated
}

// Named implements [access.Credentials].
func (w *world) Named(_ context.Context, id string) (access.Caller, error) {
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
	why := starter.Why{Address: address, Status: run.Run().Status, Sentence: "waits, as the test says", Next: "interlock run get " + address, Waits: run.Run().Waits()}
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

// browser is somebody who looks at the pages.
type browser struct {
	w       *world
	t       *testing.T
	cookies []*http.Cookie
}

// answer is a page as it came.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
	at     string // where a redirect leads to
}

// as is a browser of somebody who has signed in.
func (w *world) as(subject string) *browser {
	w.t.Helper()
	b := &browser{w: w, t: w.t}
	a := b.post("/login", url.Values{"token": {w.tokens[subject]}})
	require.Equal(w.t, http.StatusSeeOther, a.status, a.body)
	return b
}

func (b *browser) do(r *http.Request) answer {
	b.t.Helper()
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	rec := httptest.NewRecorder()
	b.w.pages.ServeHTTP(rec, r)
	res := rec.Result()
	for _, c := range res.Cookies() {
		b.cookies = nil
		if c.MaxAge >= 0 {
			b.cookies = []*http.Cookie{c}
		}
	}
	body, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	return answer{b.t, res.StatusCode, res.Header, string(body), res.Header.Get("Location")}
}

func (b *browser) get(path string) answer {
	b.t.Helper()
	return b.do(httptest.NewRequest(http.MethodGet, path, nil))
}

func (b *browser) post(path string, form url.Values) answer {
	b.t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.do(r)
}

// form is what the form with this action and marker would send, as the page made
// it: its hidden and its filled fields.
func (a answer) form(marker string) url.Values {
	a.t.Helper()
	out := url.Values{}
	found := false
	for _, f := range regexp.MustCompile(`(?s)<form[^>]*>.*?</form>`).FindAllString(a.body, -1) {
		if !strings.Contains(f, marker) {
			continue
		}
		found = true
		for _, in := range regexp.MustCompile(`<input[^>]*>`).FindAllString(f, -1) {
			name, kind := attribute(in, "name"), attribute(in, "type")
			if name == "" || (kind == "checkbox" || kind == "radio") && !strings.Contains(in, " checked") {
				continue
			}
			out.Add(name, attribute(in, "value"))
		}
		for _, m := range regexp.MustCompile(`(?s)<textarea[^>]*name="([^"]*)"[^>]*>\n?(.*?)</textarea>`).FindAllStringSubmatch(f, -1) {
			out.Add(m[1], strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n").Replace(unescape(m[2]))) // as browsers send it
		}
		for _, m := range regexp.MustCompile(`(?s)<select[^>]*name="([^"]*)"[^>]*>(.*?)</select>`).FindAllStringSubmatch(f, -1) {
			out.Add(unescape(m[1]), selected(m[2]))
		}
		break
	}
	require.True(a.t, found, "no form with %s in %s", marker, a.body)
	return out
}

func selected(options string) string {
	all := regexp.MustCompile(`(?s)<option([^>]*)>(.*?)</option>`).FindAllStringSubmatch(options, -1)
	pick := all[0]
	for _, o := range all {
		if strings.Contains(o[1], "selected") {
			pick = o
		}
	}
	if strings.Contains(pick[1], "value=") {
		return attribute("<option"+pick[1]+">", "value")
	}
	return unescape(pick[2])
}

func attribute(tag, name string) string {
	m := regexp.MustCompile(`\s` + name + `="([^"]*)"`).FindStringSubmatch(tag)
	if m == nil {
		return ""
	}
	return unescape(m[1])
}

func unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&#43;", "+", "&#x3D;", "=", "&amp;", "&").Replace(s)
}

// with is a form with other values.
func with(form url.Values, pairs ...string) url.Values {
	out := url.Values{}
	for k, v := range form {
		out[k] = append([]string(nil), v...)
	}
	for i := 0; i < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
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
