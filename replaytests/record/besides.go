package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"interlock/agent"
	"interlock/llm/scripted"
	"interlock/notice"
	"interlock/replaytests/internal/freight"
	"interlock/signals"
	"interlock/store"
	"interlock/worker"
)

// What is here are histories of the workflows that are no runs.

// target has the world's workers tell a target of gates. It answers with the statuses
// in turn, and hands on the ids of what it is told.
func (w *world) target(statuses ...int) (<-chan string, error) {
	ids, answers := make(chan string, 100), make(chan int, len(statuses))
	for _, s := range statuses {
		answers <- s
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		ids <- r.Header.Get("webhook-id")
		rw.WriteHeader(<-answers)
	}))
	w.later(func() error { server.Close(); return nil })
	targets, secret := w.file("targets.yaml"), w.file("secret")
	w.config = func(c *worker.Config) { c.Settings.Notices.Targets = targets }
	text := fmt.Sprintf("targets:\n  - {name: desk, kind: webhook, url: %q, secrets: [%q], kinds: [%s], allow_private: true}\n",
		server.URL, "file:"+secret, notice.GateOpened)
	return ids, errors.Join(os.WriteFile(secret, []byte("whsec_"+strings.Repeat("cmVjb3Jk", 5)), 0o600), os.WriteFile(targets, []byte(text), 0o600))
}

// noticed tells a target of a gate: the notice is the dispatcher's, as in production.
func (w *world) noticed(ctx context.Context, statuses ...int) (address string, err error) {
	ids, err := w.target(statuses...)
	if err != nil {
		return "", err
	}
	if _, err := w.freightRun(ctx, freight.World{}, scripted.Call("pay", boxes)); err != nil {
		return "", err
	}
	select {
	case id := <-ids:
		address = signals.Telling{Target: "desk", ID: id}.WorkflowID()
		return address, w.client.GetWorkflow(ctx, address, "").Get(ctx, nil)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func noticeTold(ctx context.Context, w *world) (string, error) {
	return w.noticed(ctx, http.StatusNoContent)
}

// noticeDead is of a target that wants no notices any more.
func noticeDead(ctx context.Context, w *world) (string, error) {
	return w.noticed(ctx, http.StatusGone)
}

// noticeRetold is of one that an operator has told again.
func noticeRetold(ctx context.Context, w *world) (string, error) {
	if _, err := w.noticed(ctx, http.StatusGone, http.StatusNoContent); err != nil {
		return "", err
	}
	dead, err := w.store.DeadNotices(ctx, "acme", store.DeadFilter{})
	if err != nil {
		return "", err
	}
	if len(dead) != 1 {
		return "", fmt.Errorf("there are %d dead notices", len(dead))
	}
	if err := w.starter.TellAgain(ctx, dead[0], 0, operator.Subject); err != nil {
		return "", err
	}
	address := signals.Telling{Target: "desk", ID: dead[0].ID, Retry: 1}.WorkflowID()
	return address, w.client.GetWorkflow(ctx, address, "").Get(ctx, nil)
}

// stranded leaves a step in doubt whose run was terminated, so long ago that no attempt
// can be at it any more.
func (w *world) stranded(ctx context.Context) (key string, err error) {
	address, err := w.doubtful(ctx)
	if err != nil {
		return "", err
	}
	if _, err := w.resting(ctx, address, "operator", 1); err != nil {
		return "", err
	}
	if err := w.client.TerminateWorkflow(ctx, address, "", "by mistake"); err != nil {
		return "", err
	}
	w.ahead.Store(int64(time.Hour))
	effects, err := w.store.Effects(ctx, "acme", store.EffectFilter{Address: address})
	if err == nil && len(effects) != 1 {
		err = fmt.Errorf("there are %d effects", len(effects))
	}
	if err != nil {
		return "", err
	}
	return effects[0].Key, nil
}

// sweep looks after a step that its run has left in doubt.
func sweep(ctx context.Context, w *world) (string, error) {
	if _, err := w.stranded(ctx); err != nil {
		return "", err
	}
	report, err := w.starter.Sweep(ctx)
	if err == nil && report.Looked != 1 {
		err = fmt.Errorf("the sweep has looked at %d effects", report.Looked)
	}
	return signals.WorkflowSweep + "/" + w.name, err
}

// resolved settles what no sweep can find out: a person has.
func resolved(ctx context.Context, w *world) (string, error) {
	key, err := w.stranded(ctx)
	if err != nil {
		return "", err
	}
	if err := w.starter.ResolveEffect(ctx, signals.Resolution{Tenant: "acme", Key: key, Happened: true, Result: agent.JSON(`{"mark":"u-4"}`),
		Principal: operator, Reason: "they said so"}); err != nil {
		return "", err
	}
	return w.ofType(ctx, signals.WorkflowResolve)
}

// ofType is the id of the world's one workflow of a type, once Temporal lists it.
func (w *world) ofType(ctx context.Context, name string) (string, error) {
	for ctx.Err() == nil {
		list, err := w.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowType = %q AND TaskQueue = %q", name, w.name)})
		if err != nil {
			return "", err
		}
		if found := list.GetExecutions(); len(found) > 0 {
			return found[0].GetExecution().GetWorkflowId(), nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "", ctx.Err()
}
