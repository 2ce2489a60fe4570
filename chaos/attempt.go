package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"interlock/agent"
	"interlock/llm"
	"interlock/signals"
)

// harness is the harness as a worker reaches it.
type harness struct {
	url    string
	worker string
	client *http.Client
}

// post sends something and waits for the answer, whatever becomes of an attempt:
// where the harness strikes, that is never. Without a harness there is nothing to
// work for.
func (h *harness) post(path string, v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	resp, err := h.client.Post(h.url+path, "application/json", bytes.NewReader(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, "the harness is gone:", err)
		os.Exit(1)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(resp.Body)
	return answer
}

// attempt is one attempt of an activity.
type attempt struct {
	harness *harness
	id      string
	at      point
}

type attemptKey struct{}

// attemptOf is the attempt that a context belongs to.
func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// reach says that the attempt has come to a window. A fault may strike here.
func (a *attempt) reach(w window) { a.tell(point{Window: w}) }

// pass says the same where no fault strikes.
func (a *attempt) pass(w window) { a.tell(point{Window: w, Passed: true}) }

func (a *attempt) tell(p point) {
	full := a.at
	full.Window, full.Over, full.Passed, full.Failed = p.Window, p.Over, p.Passed, p.Failed
	a.harness.post("/point", full)
}

// observer makes an attempt of every activity but Record, and reaches its first
// and its last window.
type observer struct {
	interceptor.InterceptorBase
	harness *harness
}

func (o *observer) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &observed{harness: o.harness}
	i.Next = next
	return i
}

type observed struct {
	interceptor.ActivityInboundInterceptorBase
	harness *harness
}

func (o *observed) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	a := o.attempt(ctx, in)
	if a == nil {
		return o.Next.ExecuteActivity(ctx, in)
	}
	if a.at.Effect == model {
		a.pass(toProvider)
	} else {
		a.reach(beforeClaim)
	}
	out, err := o.Next.ExecuteActivity(context.WithValue(ctx, attemptKey{}, a), in)
	a.tell(point{Window: toAnswer, Over: true, Passed: err != nil, Failed: err != nil})
	return out, err
}

func (o *observed) attempt(ctx context.Context, in *interceptor.ExecuteActivityInput) *attempt {
	info := activity.GetInfo(ctx)
	p := point{Worker: o.harness.worker, Address: info.WorkflowExecution.ID}
	switch x := in.Args[0].(type) {
	case signals.ToolInput:
		p.Tool, p.Step, p.Effect = x.Task.Tool, x.Task.Step, x.Task.Effect
	case signals.CallModelInput:
		p.Step, p.Effect = fmt.Sprint(x.View.Turn), model
	default:
		return nil
	}
	p.Attempt = strings.Join([]string{p.Worker, p.Address, string(p.Effect), p.Step, info.ActivityID, fmt.Sprint(info.Attempt)}, "|")
	return &attempt{harness: o.harness, id: p.Attempt, at: p}
}

// provided is a model whose provider is the harness: what it answers is decided
// here, but it is asked there, and so counts.
type provided struct {
	llm.Model
	harness *harness
}

func (m provided) Generate(ctx context.Context, req llm.Request) (llm.Response, error) {
	a := attemptOf(ctx)
	if err := llm.Validate(req.Messages); err != nil {
		m.harness.post("/invalid", point{Address: a.at.Address, Step: a.at.Step, Wrong: err.Error()})
	}
	a.reach(toProvider)
	m.harness.post("/model", a.at)
	resp, err := m.Model.Generate(context.WithoutCancel(ctx), req)
	a.reach(toRecord)
	return resp, err
}

// carrier is the header that names the attempt that a request is of.
const carrier = "Chaos-Attempt"

func carried(ctx context.Context) (http.Header, error) {
	return http.Header{carrier: {attemptOf(ctx).id}}, nil
}

// placeOf is the place of an attempt by its id.
func placeOf(attempt string) place {
	parts := strings.Split(attempt, "|")
	if len(parts) < 4 {
		return place{}
	}
	return place{parts[1], agent.Effect(parts[2]), parts[3]}
}
