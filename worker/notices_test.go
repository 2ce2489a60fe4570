package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"interlock/agent"
	"interlock/config"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/localtemporal"
	"interlock/notice"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/worker"
)

// hookSecret has a word in it that may be in no log, no history and no error.
const hookSecret = "whsec_S3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR"

// listener is a target: it counts what it is told, by type and event.
type listener struct {
	url    string
	answer func(n int) int // the status of the nth attempt of one notice; nil: 204

	mu       sync.Mutex
	attempts map[string]int // by webhook-id
	taken    map[string]int // by type, run and seq
	errs     []error
}

func listen(t *testing.T) *listener {
	t.Helper()
	l := &listener{attempts: map[string]int{}, taken: map[string]int{}}
	w, err := standardwebhooks.NewWebhook(hookSecret)
	require.NoError(t, err)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var p struct {
			Type string
			Data notice.Notice
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errs = append(l.errs, w.Verify(body, r.Header), json.Unmarshal(body, &p))
		id := r.Header.Get("webhook-id")
		l.attempts[id]++
		code := http.StatusNoContent
		if l.answer != nil {
			code = l.answer(l.attempts[id])
		}
		if code == http.StatusNoContent {
			l.taken[fmt.Sprint(p.Type, " ", p.Data.Address, " ", p.Data.Seq)]++
		}
		rw.WriteHeader(code)
	}))
	t.Cleanup(srv.Close)
	l.url = srv.URL
	return l
}

func (l *listener) got(t *testing.T) map[string]int {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.NoError(t, errors.Join(l.errs...))
	out := map[string]int{}
	for k, n := range l.taken {
		out[k] = n
	}
	return out
}

func (l *listener) answers(f func(n int) int) { l.mu.Lock(); defer l.mu.Unlock(); l.answer = f }

// telling is a world whose workers tell notices.
type telling struct {
	t       *testing.T
	cfg     config.Config
	server  *localtemporal.Server
	store   store.Store
	runs    *starter.Starter
	def     *agent.Definition
	targets string // the file
	log     safe
}

func newTelling(t *testing.T, targets string) *telling {
	t.Helper()
	w := &telling{t: t, cfg: migrated(t)}
	var err error
	w.server, err = localtemporal.Start(t.Context(), localtemporal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.server.Stop() })
	w.cfg.ShutdownTimeout = time.Second
	w.store, err = worker.OpenStore(t.Context(), w.cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.store.Close() })
	dir := filepath.Dir(w.cfg.Store.Path)
	s, err := shop.Open(t.Context(), filepath.Join(dir, "shop.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	m, err := mail.Serve(context.WithoutCancel(t.Context()), "127.0.0.1:0", filepath.Join(dir, "mail.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	w.def = refund.Agent(s, mail.Client{BaseURL: m.URL()})
	t.Setenv("HOOK_SECRET", hookSecret)
	w.targets = filepath.Join(dir, "targets.yaml")
	w.cfg.Notices.Targets = w.targets
	w.names(targets)
	w.runs = starter.New(w.server.Client(), starter.WithReader(w.store))
	return w
}

func (w *telling) names(targets string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(w.targets, []byte("targets:\n"+targets), 0o600))
}

// hook is an entry of the file.
func hook(name, url string, more ...string) string {
	return "  - {name: " + name + ", kind: webhook, url: '" + url + "', secrets: ['env:HOOK_SECRET'], allow_private: true" + strings.Join(append([]string{""}, more...), ", ") + "}\n"
}

// serve starts a worker on a store, and waits until it follows the feed.
func (w *telling) serve(st store.Store) (stop func()) {
	w.t.Helper()
	wk, err := worker.New(worker.Config{Settings: w.cfg, Client: w.server.Client(), Store: st, Model: refund.Model(),
		Notices: worker.NoticeOptions{FirstRetry: 20 * time.Millisecond}, Log: slog.New(slog.NewTextHandler(&w.log, nil))}, w.def)
	require.NoError(w.t, err)
	require.NoError(w.t, wk.Start(w.t.Context()))
	w.t.Cleanup(wk.Stop)
	w.eventually("it has begun", func() bool {
		place, err := w.store.Place(w.t.Context(), "notices/"+w.cfg.TaskQueue)
		return err == nil && place != ""
	})
	return wk.Stop
}

func (w *telling) eventually(what string, f func() bool) {
	w.t.Helper()
	require.Eventually(w.t, f, 60*time.Second, 20*time.Millisecond, what)
}

// refund plays a refund to its end.
func (w *telling) refund(key, order string) (address string) {
	w.t.Helper()
	ctx, t, ann := w.t.Context(), w.t, agent.Principal{Subject: "c-017"}
	run, err := w.runs.Start(ctx, starter.Start{Agent: "refund", Tenant: "acme", Key: key, Principal: ann, Body: refund.Start{CustomerID: "c-017"},
		Message: &signals.Message{ID: "1", Principal: ann, Text: "Please refund order " + order + ", it broke"}})
	require.NoError(t, err)
	w.gate(run.Address, "ask")
	_, err = w.runs.Message(ctx, run.Address, signals.Message{ID: "2", Principal: ann, Text: "yes, that one"})
	require.NoError(t, err)
	g := w.gate(run.Address, "tool")
	_, err = w.runs.Decide(ctx, run.Address, signals.Verdict{ID: "v", Gate: g.ID, Digest: g.Digest, Verdict: agent.Approve, Principal: agent.Principal{Subject: "rita", Roles: []string{"refunds"}}})
	require.NoError(t, err)
	w.eventually("it ends", func() bool {
		row, err := w.store.RunRow(ctx, store.Chain{Tenant: "acme", Address: run.Address})
		return err == nil && row.Head.Status == agent.RunCompleted
	})
	return run.Address
}

// gate waits for an open gate of a kind.
func (w *telling) gate(address string, kind agent.StepKind) (found agent.Gate) {
	w.t.Helper()
	w.eventually("a gate opens", func() bool {
		rows, err := w.store.GateRows(w.t.Context(), "acme", store.GateFilter{Address: address, Status: agent.GateOpen})
		i := slices.IndexFunc(rows, func(r store.GateRow) bool { return r.Gate.Kind == kind })
		if err == nil && i >= 0 {
			found = rows[i].Gate
		}
		return err == nil && i >= 0
	})
	return found
}

// wanted are the notices of the run's journal, once each, of these kinds (none: all).
func (w *telling) wanted(address string, kinds ...notice.Kind) map[string]int {
	w.t.Helper()
	events, err := w.store.Events(w.t.Context(), store.Chain{Tenant: "acme", Address: address}, 1, 0)
	require.NoError(w.t, err)
	all := map[string]int{}
	for _, e := range events {
		n, ok := notice.Of(store.Appended{Event: e})
		if ok && (len(kinds) == 0 || slices.Contains(kinds, n.Kind)) {
			all[fmt.Sprint(n.Kind, " ", address, " ", e.Seq)]++
		}
	}
	return all
}

func (w *telling) told(l *listener, want map[string]int) {
	w.t.Helper()
	w.eventually("all is told", func() bool { return len(l.got(w.t)) >= len(want) })
	w.settled()
	require.Equal(w.t, want, l.got(w.t))
}

// settled waits until no notice is under way.
func (w *telling) settled() {
	w.t.Helper()
	w.eventually("no notice is under way", func() bool { return !w.underWay() })
}

func (w *telling) underWay() bool {
	open := false
	w.each(func(_ string, status enums.WorkflowExecutionStatus) {
		open = open || status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	})
	return open
}

// Two workers, and a target that is down for two attempts: each notice is told once,
// and filters hold. What happened before there were targets is told to nobody. No
// secret is in any history or log.
func TestNotices_EachOnce(t *testing.T) {
	all, some := listen(t), listen(t)
	all.answers(func(n int) int { return map[bool]int{true: 503, false: 204}[n < 3] })
	w := newTelling(t, hook("all", all.url+"/S3CR3T?S3CR3T")+
		hook("some", some.url, "roles: [refunds]", "kinds: [gate.opened, gate.closed]")+
		hook("nobody", some.url+"/nobody", "tenants: [globex]"))
	before := w.cfg.Notices.Targets
	w.cfg.Notices.Targets = ""
	stop := w.serveSilent()
	w.refund("before", "1042")
	stop()
	w.cfg.Notices.Targets = before

	w.serve(w.store)
	w.serve(w.store)
	address := w.refund("k", "1043")
	want := w.wanted(address)
	kinds := map[string]int{}
	for k := range want {
		kind, _, _ := strings.Cut(k, " ")
		kinds[kind]++
	}
	require.Equal(t, map[string]int{"gate.opened": 2, "gate.closed": 2, "run.replied": 1, "run.ended": 1}, kinds)
	w.told(all, want)
	for _, n := range all.attempts {
		require.Equal(t, 3, n)
	}
	tool := map[string]int{}
	events, err := w.store.Events(t.Context(), store.Chain{Tenant: "acme", Address: address}, 1, 0)
	require.NoError(t, err)
	for _, e := range events {
		if n, ok := notice.Of(store.Appended{Event: e}); ok && n.Gate == "3.1" {
			tool[fmt.Sprint(n.Kind, " ", address, " ", e.Seq)] = 1
		}
	}
	require.Len(t, tool, 2)
	w.told(some, tool)
	w.noSecret()
}

// A worker that stops after it has started the workflows, and before it has moved
// the place, has told nothing twice; nor has it lost anything.
func TestNotices_StoppedBeforeThePlaceMoves(t *testing.T) {
	l := listen(t)
	w := newTelling(t, hook("all", l.url))
	st := &stuck{Store: w.store}
	stop := w.serve(st)
	st.on.Store(true)
	address := w.refund("k", "1042")
	w.eventually("it was to move", func() bool { return st.tried.Load() > 1 })
	w.eventually("all is told", func() bool { return len(l.got(t)) == len(w.wanted(address)) })
	stop()
	place, err := w.store.Place(t.Context(), "notices/"+w.cfg.TaskQueue)
	require.NoError(t, err)
	w.serve(w.store)
	w.eventually("the place moves", func() bool {
		now, err := w.store.Place(t.Context(), "notices/"+w.cfg.TaskQueue)
		return err == nil && now != place
	})
	second := w.refund("k2", "1043")
	want := w.wanted(address)
	for k, n := range w.wanted(second) {
		want[k] = n
	}
	w.told(l, want)
	require.Contains(t, w.log.String(), "notices wait")
}

// stuck is a store that moves no place.
type stuck struct {
	store.Store
	on    atomic.Bool
	tried atomic.Int64
}

func (s *stuck) MovePlace(ctx context.Context, reader, from, to string) error {
	if !s.on.Load() {
		return s.Store.MovePlace(ctx, reader, from, to)
	}
	s.tried.Add(1)
	return agent.Errorf(agent.CodeUnavailable, "the store is away")
}

// What no target takes any more is dead: listed, told again, and then sent. A target
// that was taken out of the file is told nothing more.
func TestNotices_Dead(t *testing.T) {
	l, away := listen(t), listen(t)
	l.answers(func(int) int { return http.StatusGone })
	away.answers(func(int) int { return http.StatusInternalServerError })
	keep := hook("ops", l.url+"/S3CR3T", "kinds: [run.ended]")
	w := newTelling(t, keep+hook("away", away.url, "kinds: [run.ended]"))
	w.serve(w.store)
	address := w.refund("k", "1042")
	dead := func(target string) (all []store.DeadNotice) {
		all, err := w.store.DeadNotices(t.Context(), "acme", store.DeadFilter{Target: target})
		require.NoError(t, err)
		return all
	}
	w.eventually("it is buried", func() bool { return len(dead("ops")) == 1 })
	d := dead("ops")[0]
	require.Equal(t, []any{"run.ended", address, "410 Gone: it wants no notices any more", 0}, []any{d.Kind, d.Address, d.Reason, d.Retry})
	w.names(keep)
	w.eventually("the other one is taken out", func() bool { return len(dead("away")) == 1 })
	require.Contains(t, dead("away")[0].Reason, "names no away any more")

	require.NoError(t, w.runs.TellAgain(t.Context(), d, time.Minute, "olga"))
	w.eventually("in vain", func() bool { return dead("ops")[0].Retry == 1 })
	l.answers(nil)
	require.Equal(t, agent.CodeConflict, agent.ErrorCode(w.runs.TellAgain(t.Context(), d, 0, "olga")), "by what was listed before the first retry")
	require.NoError(t, w.runs.TellAgain(t.Context(), dead("ops")[0], time.Minute, "olga"))
	w.eventually("it is sent", func() bool { return len(dead("ops")) == 0 })
	require.Equal(t, w.wanted(address, notice.RunEnded), l.got(t))
	ended, err := w.store.DeadNotices(t.Context(), "acme", store.DeadFilter{Target: "ops", Ended: true})
	require.NoError(t, err)
	require.Equal(t, []any{store.DeadSent, "olga"}, []any{ended[0].End, ended[0].EndedBy})
	w.noSecret()
}

// A worker whose targets are wrong does not start, and says why.
func TestNotices_WrongTargets(t *testing.T) {
	cfg := config.Default()
	cfg.Notices.Targets = filepath.Join(t.TempDir(), "absent.yaml")
	st, err := worker.OpenStore(t.Context(), migrated(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	err = worker.Serve(t.Context(), worker.Config{Settings: cfg, Store: st, Model: refund.Model(), Client: nothing{}}, refund.Agent(&shop.Shop{}, mail.Client{}))
	require.ErrorContains(t, err, "there is no file of targets")
}
