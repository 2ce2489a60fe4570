package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/config"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/localtemporal"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/tool"
	"interlock/worker"
)

// waitingCost is what runs cost that wait at a gate, on one worker.
type waitingCost struct {
	Runs    int     `json:"runs"`
	Cache   int     `json:"cache"`          // runs that the worker keeps in memory
	Memory  float64 `json:"kb_a_run"`       // of the process's heap and stacks, over all runs
	Median  float64 `json:"start_ms"`       // from a verdict's sending to its step's start
	P99     float64 `json:"start_p99_ms"`   // the same, the 99th percentile
	Decided int     `json:"decided"`        // runs whose gate was approved, to measure it
	Took    float64 `json:"start_all_secs"` // until all waited
}

// waitingVariable makes a process the worker of one measurement: the cache is the
// process's, so that each needs one of its own.
const waitingVariable = "INTERLOCK_BENCH_WAITING"

// caches are the sizes of the workflow cache that are measured.
var caches = []int{10_000, 500}

// measureWaiting measures n runs at gates, with each size of the cache.
func measureWaiting(ctx context.Context, dir string, n int, progress io.Writer) ([]waitingCost, error) {
	out := []waitingCost{}
	if n == 0 {
		return out, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, cache := range caches {
		in, err := json.Marshal(waitingJob{Runs: n, Cache: cache, Database: filepath.Join(dir, fmt.Sprintf("waiting-%d.db", cache))})
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), waitingVariable+"="+string(in))
		cmd.Stderr = progress
		answer, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("waiting runs with a cache of %d: %w", cache, err)
		}
		var one waitingCost
		if err := json.Unmarshal(answer, &one); err != nil {
			return nil, err
		}
		fmt.Fprintf(progress, "%d runs wait, cache %d: %.1f KB a run, %.1f ms from verdict to step (99th percentile %.1f)\n", one.Runs, one.Cache, one.Memory, one.Median, one.P99)
		out = append(out, one)
	}
	return out, nil
}

type waitingJob struct {
	Runs, Cache int
	Database    string
}

// waits is the process of one measurement.
func waits(ctx context.Context, text string, stdout io.Writer) error {
	var job waitingJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return err
	}
	server, err := localtemporal.Start(ctx, localtemporal.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.DialContext(ctx, client.Options{HostPort: server.Address(), Logger: quiet})
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := sqlite.Open(ctx, job.Database, nil)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	w := &waitingWorld{store: s, starter: starter.New(c, starter.WithReader(s), starter.WithTaskQueue(queue), starter.WithDeadline(time.Minute)), began: map[string]time.Time{}}
	settings := config.Default()
	settings.TaskQueue, settings.Worker.CacheSize = queue, job.Cache
	work, err := worker.New(worker.Config{Settings: settings, Client: c, Store: s, Model: proposesPay(), Log: quiet}, w.definition())
	if err != nil {
		return err
	}
	if err := work.Start(ctx); err != nil {
		return err
	}
	defer work.Stop()
	out, err := w.measure(ctx, job)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(out)
}

// waitingWorld is one worker, whose runs all wait at a gate.
type waitingWorld struct {
	store   store.Store
	starter *starter.Starter

	mu    sync.Mutex
	began map[string]time.Time // steps, by the run's user
}

type waitingState struct {
	Note string `json:"note" set:"tool"`
}

type transfer struct {
	To string `json:"to"`
}

func (w *waitingWorld) definition() *agent.Definition {
	pay := tool.Keyed("pay", func(ctx context.Context, _ tool.Key, t transfer) (transfer, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.began[tool.CallerOf(ctx).User] = time.Now()
		return t, nil
	}, func(s *waitingState, _, t transfer) error { s.Note = t.To; return nil }).
		Gate(tool.Gate[waitingState, transfer]{Roles: []string{"boss"}, Reads: []string{"note"}, Expires: 24 * time.Hour})
	return agent.Define(agent.Spec[struct{}, waitingState]{Name: "waiting", Version: 1, Instructions: "Pay.",
		Init:   func(struct{}) (waitingState, error) { return waitingState{}, nil },
		Phases: []agent.Phase[waitingState]{{Name: "work", Tools: []agent.Tool[waitingState]{pay}, Moves: []agent.Move[waitingState]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// proposesPay is a model that asks for the tool, and then has no more to say.
func proposesPay() llm.Model {
	return scripted.Func("scripted", func(req llm.Request) llm.Response {
		if req.View.Turn == 1 {
			return scripted.Call("pay", transfer{"somebody"})
		}
		return scripted.Say("Done.")
	})
}

func (w *waitingWorld) measure(ctx context.Context, job waitingJob) (waitingCost, error) {
	out := waitingCost{Runs: job.Runs, Cache: job.Cache}
	// A few first: what the process needs once, whatever waits, is no run's.
	if err := w.startAll(ctx, 0, warmRuns); err != nil {
		return out, err
	}
	if _, err := w.gates(ctx, warmRuns); err != nil {
		return out, err
	}
	before, began := memory(), time.Now()
	if err := w.startAll(ctx, warmRuns, warmRuns+job.Runs); err != nil {
		return out, err
	}
	gates, err := w.gates(ctx, warmRuns+job.Runs)
	if err != nil {
		return out, err
	}
	out.Took = time.Since(began).Seconds()
	out.Memory = float64(memory()-before) / 1024 / float64(job.Runs)
	var took []float64
	for _, g := range gates[:min(200, job.Runs, len(gates))] {
		d, err := w.decide(ctx, g)
		if err != nil {
			return out, err
		}
		took = append(took, ms(d))
	}
	slices.Sort(took)
	out.Decided, out.Median, out.P99 = len(took), took[len(took)/2], took[len(took)*99/100]
	return out, nil
}

// memory is what the process's heap and stacks hold, once what is garbage is gone and
// stacks have shrunk, which takes a collection for each half.
func memory() int64 {
	for range 5 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// warmRuns wait too, and count in no number.
const warmRuns = 20

func (w *waitingWorld) startAll(ctx context.Context, from, to int) error {
	var all sync.WaitGroup
	keys, errs := make(chan int), make(chan error, 16)
	for range 16 {
		all.Go(func() {
			for i := range keys {
				user := fmt.Sprint("u", i)
				_, err := w.starter.Start(ctx, starter.Start{Agent: "waiting", Tenant: tenant, Key: user, User: user, Principal: agent.Principal{Subject: user},
					Body: struct{}{}, Message: &signals.Message{ID: "m", Principal: agent.Principal{Subject: user}, Text: "pay"}})
				if err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for i := from; i < to; i++ {
		keys <- i
	}
	close(keys)
	all.Wait()
	close(errs)
	return errors.Join(<-errs)
}

// gates waits until every run is at its gate.
func (w *waitingWorld) gates(ctx context.Context, n int) ([]store.GateRow, error) {
	for deadline := time.Now().Add(10 * time.Minute); ; {
		waiting, after := 0, ""
		for {
			rows, err := w.store.RunRows(ctx, tenant, store.RunFilter{Status: agent.RunWaiting, After: after, Limit: 500})
			if err != nil {
				return nil, err
			}
			waiting += len(rows)
			if len(rows) < 500 {
				break
			}
			after = rows[len(rows)-1].Cursor
		}
		if waiting == n {
			return w.store.GateRows(ctx, tenant, store.GateFilter{Status: agent.GateOpen, Limit: 500})
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("only %d of %d runs wait", waiting, n)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// decide approves a gate and is told when its step began.
func (w *waitingWorld) decide(ctx context.Context, g store.GateRow) (time.Duration, error) {
	_, _, user, _ := signals.SplitAddress(g.Address)
	sent := time.Now()
	_, err := w.starter.Decide(ctx, g.Address, signals.Verdict{ID: "v", Gate: g.Gate.ID, Digest: g.Gate.Digest, Verdict: agent.Approve,
		Principal: agent.Principal{Subject: "ann", Roles: []string{"boss"}}})
	if err != nil {
		return 0, err
	}
	for deadline := sent.Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		w.mu.Lock()
		at, ok := w.began[user]
		w.mu.Unlock()
		if ok {
			return at.Sub(sent), nil
		}
	}
	return 0, fmt.Errorf("the step of %s has not begun within a minute", g.Address)
}
