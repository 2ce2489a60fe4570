package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/sse/ssetest"
	"interlock/store"
)

// restarted is an API whose process is killed and started anew, at one address.
type restarted struct {
	t      *testing.T
	args   []string
	url    string
	tokens map[string]string
	p      *process
	kills  int
}

func (w *world) restarted(t *testing.T) *restarted {
	t.Helper()
	r := &restarted{t: t, tokens: map[string]string{}}
	file := filepath.Join(t.TempDir(), "access.yaml")
	for _, e := range []access.Entry{{ID: "backend", Subject: "shop", May: []access.Role{access.Starter}}, {ID: "ann", Subject: "ann", May: []access.Role{access.Reviewer}, Roles: reviewer.Roles}} {
		e.Tenant = "acme"
		token, entry := access.New(e)
		require.NoError(t, access.Add(file, entry))
		r.tokens[e.ID] = token
	}
	address := "127.0.0.1:" + freePort(t)
	r.url = "http://" + address
	r.args = []string{"serve", "--api-access", file, "--api-listen", address, "--api-admin-listen", "127.0.0.1:0", "--api-rate", "1000", "--store-path", w.settings.Store.Path}
	t.Setenv("TEMPORAL_ADDRESS", w.temporal.Address())
	r.p = start(t, r.args...)
	r.up()
	return r
}

// up waits until it answers.
func (r *restarted) up() {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		res, err := http.Get(r.url + "/openapi.json")
		if err == nil {
			_ = res.Body.Close()
		}
		return err == nil
	}, wait, tick, &r.p.err)
}

// kill takes the process away, as a crash does, and starts another.
func (r *restarted) kill() {
	r.t.Helper()
	require.NoError(r.t, r.p.Process.Signal(syscall.SIGKILL))
	_ = r.p.Wait()
	r.kills++
	r.p = start(r.t, r.args...)
	r.up()
}

// post sends one act, whose process is killed after a while, and sends it again with
// its key until it is answered.
func (r *restarted) post(as, path, key, body string, killAfter time.Duration) (status int, answer map[string]any) {
	r.t.Helper()
	killed := make(chan struct{})
	time.AfterFunc(killAfter, func() { r.kill(); close(killed) })
	for {
		request, err := http.NewRequest(http.MethodPost, r.url+path, strings.NewReader(body))
		require.NoError(r.t, err)
		request.Header.Set("Authorization", "Bearer "+r.tokens[as])
		request.Header.Set("Idempotency-Key", key)
		request.Close = true
		res, err := http.DefaultClient.Do(request)
		if err == nil {
			err = json.NewDecoder(res.Body).Decode(&answer)
			_ = res.Body.Close()
		}
		if err == nil {
			<-killed
			return res.StatusCode, answer
		}
		time.Sleep(tick)
	}
}

// follow reads a run's stream to its end, whatever becomes of the server meanwhile,
// and returns the ids in the order in which they came.
func (r *restarted) follow(path string) (ids []string, connections int) {
	for last := ""; ; {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, r.url+path+"/stream", nil)
		require.NoError(r.t, err)
		request.Header.Set("Authorization", "Bearer "+r.tokens["backend"])
		if last != "" {
			request.Header.Set("Last-Event-ID", last)
		}
		res, err := http.DefaultClient.Do(request)
		if err != nil || res.StatusCode != http.StatusOK {
			if err == nil {
				_ = res.Body.Close()
			}
			time.Sleep(tick)
			continue
		}
		connections++
		ended := false
		for e := range ssetest.Read(res.Body) {
			if e.ID != "" {
				ids, last = append(ids, e.ID), e.ID
			}
			ended = ended || e.Event == "end"
		}
		_ = res.Body.Close()
		if ended {
			return ids, connections
		}
	}
}

// The server is killed in the middle of starts, messages and verdicts. Whoever sends
// the same again with its key has it once; streams go on without a gap or a repeat.
func TestServe_KilledInTheMiddle(t *testing.T) {
	w := newWorld(t)
	r := w.restarted(t)
	order := w.order(t, "7301")
	path := "/v1/runs/refund/killed"
	status, _ := r.post("backend", "/v1/runs", "start-1", `{"agent":"refund","key":"killed","user":"c-017","body":{"customer_id":"c-017"}}`, 0)
	require.Contains(t, []int{http.StatusOK, http.StatusCreated}, status)
	type seen struct {
		ids         []string
		connections int
	}
	streams := make([]seen, 4)
	var all sync.WaitGroup
	for i := range streams {
		all.Go(func() { streams[i].ids, streams[i].connections = r.follow(path) })
	}
	var gate agent.Gate
	for i, text := range []string{"Please refund order " + order + ", it broke", "yes, that one"} {
		status, body := r.post("backend", path+"/messages", fmt.Sprint("m-", i), fmt.Sprintf(`{"text":%q,"as_user":"c-017"}`, text), time.Duration(i)*15*time.Millisecond)
		require.Equal(t, http.StatusOK, status, body)
		gate = w.opens(t, "acme/refund/killed", []agent.StepKind{agent.KindAsk, agent.KindTool}[i])
	}
	status, body := r.post("ann", path+"/gates/"+gate.ID+"/verdict", "v-1", fmt.Sprintf(`{"digest":%q,"verdict":"approve"}`, gate.Digest), 10*time.Millisecond)
	require.Equal(t, http.StatusOK, status, body)
	all.Wait()

	events, err := w.store.Events(t.Context(), store.Chain{Tenant: "acme", Address: "acme/refund/killed"}, 1, 0)
	require.NoError(t, err)
	row, err := w.store.RunRow(t.Context(), store.Chain{Tenant: "acme", Address: "acme/refund/killed"})
	require.NoError(t, err)
	count := func(kind agent.EventType) int {
		return len(slices.DeleteFunc(slices.Clone(events), func(e agent.Event) bool { return e.Type != kind }))
	}
	require.Equal(t, []int{1, 2, 1, 1}, []int{count(agent.EventStarted), count(agent.EventMessage), count(agent.EventVerdict), count(agent.EventCompleted)})
	var want []string
	for i := range events {
		want = append(want, fmt.Sprintf("%d.%s", i+1, row.FirstRunID))
	}
	for _, s := range streams {
		require.Equal(t, want, s.ids)
		require.Greater(t, s.connections, 1, "it was cut off and came again")
	}
	require.Equal(t, 4, r.kills)
	var refunds int
	require.NoError(t, w.shop.DB().QueryRow(`SELECT count(*) FROM refunds WHERE order_id = ?`, order).Scan(&refunds))
	require.Equal(t, 1, refunds)
}

// opens waits until a run has an open gate of a kind.
func (w *world) opens(t *testing.T, address string, kind agent.StepKind) (g agent.Gate) {
	t.Helper()
	require.Eventually(t, func() bool {
		rows, err := w.store.GateRows(t.Context(), "acme", store.GateFilter{Address: address, Status: agent.GateOpen})
		i := slices.IndexFunc(rows, func(r store.GateRow) bool { return r.Gate.Kind == kind })
		if err == nil && i >= 0 {
			g = rows[i].Gate
		}
		return g.ID != ""
	}, wait, tick)
	return g
}
