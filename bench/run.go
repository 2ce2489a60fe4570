package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/config"
	"interlock/localtemporal"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/worker"
)

const (
	tenant      = "bench"
	ordinary    = "bench"       // the agent with an ordinary tool, and its variant
	quick       = "bench_quick" // the same with a quick tool
	bare        = "bare"
	queue       = "bench"
	message     = "Read the catalogue, all of it."
	synchronous = "FULL" // what a production store has
)

// world is one Temporal, one store, and a worker for each side.
type world struct {
	client  client.Client
	store   *timedStore
	starter *starter.Starter
	rpcs    *rpcs
	runs    int
	close   []func()
}

// newWorld starts all of it in this process, but for the Temporal server.
func newWorld(ctx context.Context, database string) (w *world, err error) {
	w = &world{rpcs: newRPCs()}
	defer func() {
		if err != nil {
			w.stop()
		}
	}()
	server, err := localtemporal.Start(ctx, localtemporal.Options{})
	if err != nil {
		return w, err
	}
	w.close = append(w.close, func() { _ = server.Stop() })
	quiet := slog.New(slog.DiscardHandler)
	if w.client, err = client.DialContext(ctx, client.Options{HostPort: server.Address(), Logger: quiet, MetricsHandler: w.rpcs}); err != nil {
		return w, err
	}
	w.close = append(w.close, w.client.Close)
	s, err := sqlite.Open(ctx, database, &sqlite.Options{Synchronous: synchronous})
	if err != nil {
		return w, err
	}
	w.store = &timedStore{Store: s}
	w.close = append(w.close, func() { _ = s.Close() })
	settings := config.Default()
	settings.TaskQueue = queue
	ours, err := worker.New(worker.Config{Settings: settings, Client: w.client, Store: w.store, Model: model(), Log: quiet},
		definition(ordinary, false), definition(quick, true))
	if err != nil {
		return w, err
	}
	if err := ours.Start(ctx); err != nil {
		return w, err
	}
	w.close = append(w.close, ours.Stop)
	other := newBareWorker(w.client)
	if err := other.Start(); err != nil {
		return w, err
	}
	w.close = append(w.close, other.Stop)
	w.starter = starter.New(w.client, starter.WithReader(w.store), starter.WithTaskQueue(queue))
	return w, nil
}

func (w *world) stop() {
	for _, f := range slices.Backward(w.close) {
		f()
	}
}

// sample is one run, measured.
type sample struct {
	turns   int
	turn    time.Duration // a turn, of the turns' window
	whole   time.Duration // a turn, of the run from its start to its end
	cpu     time.Duration // a turn, of this process
	stored  time.Duration // a turn, in the store
	commits int
	rpcs    map[string]int64
	chain   *chain
	usage   store.ModelUsage
}

// measure makes one run of a variant.
func (w *world) measure(ctx context.Context, variant string, turns int, like bareInput) (sample, error) {
	w.runs++
	s := sample{turns: turns, rpcs: w.rpcs.snapshot()}
	stored, commits := w.store.snapshot()
	cpu, began := cpuTime(), time.Now()
	id, err := w.once(ctx, variant, turns, like)
	if err != nil {
		return s, fmt.Errorf("%s, %d turns: %w", variant, turns, err)
	}
	n := time.Duration(turns)
	s.whole, s.cpu = time.Since(began)/n, (cpuTime()-cpu)/n
	after := w.rpcs.snapshot()
	for operation := range maps.Keys(after) {
		after[operation] -= s.rpcs[operation]
	}
	s.rpcs = after
	spent, all := w.store.snapshot()
	s.stored, s.commits = (spent-stored)/n, all-commits
	if s.chain, err = w.history(ctx, id); err != nil {
		return s, err
	}
	s.turn = s.chain.window() / n
	if variant != bare {
		s.usage, err = w.store.ModelUsage(ctx, tenant, id)
	}
	return s, err
}

func (w *world) history(ctx context.Context, id string) (*chain, error) {
	d, err := w.client.DescribeWorkflow(ctx, id, "")
	if err != nil {
		return nil, err
	}
	return readChain(ctx, w.client, id, d.RawResponse.GetWorkflowExecutionInfo().GetFirstRunId())
}

// once starts a run and waits for its end.
func (w *world) once(ctx context.Context, variant string, turns int, like bareInput) (id string, err error) {
	key := fmt.Sprintf("r%d", w.runs)
	if variant == bare {
		like.Turns = turns
		run, err := w.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "bare-" + key, TaskQueue: bareQueue}, bareType, like)
		if err != nil {
			return "", err
		}
		return run.GetID(), run.Get(ctx, nil)
	}
	who := agent.Principal{Subject: "bench"}
	started, err := w.starter.Start(ctx, starter.Start{Agent: variant, Tenant: tenant, Key: key, Principal: who, Body: begin{Turns: turns},
		Message: &signals.Message{ID: "m1", Principal: who, Text: message}})
	if err != nil {
		return "", err
	}
	var end signals.End
	// A run that pauses would be waited for without end.
	bounded, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(turns)*2*time.Second)
	defer cancel()
	if err := w.client.GetWorkflow(ctx, started.Address, "").Get(bounded, &end); err != nil {
		if run, e := w.starter.Get(ctx, started.Address); e == nil {
			err = fmt.Errorf("the run is %s %s in turn %d: %w", run.Status, run.Reason, run.Turn, err)
		}
		return "", err
	}
	if end.Status != agent.RunCompleted {
		return "", fmt.Errorf("the run ended as %s: %s", end.Status, end.Reason)
	}
	return started.Address, nil
}
