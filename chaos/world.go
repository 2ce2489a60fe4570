package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/starter"
	"interlock/store"
	"interlock/worker"
)

// Violations are of three kinds.
const (
	repeated = "repeated" // an effect has happened more often than the run knows
	lost     = "lost"     // the run or the ledger does not know what has happened, or knows what has not
	stuck    = "stuck"    // a run has not ended in time
	invalid  = "invalid"  // a model was asked with what is no request
)

// violation is what must not be.
type violation struct {
	Kind, Run, Text string
}

func (v violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Kind, v.Run, v.Text) }

// size is how much there is of a world.
type size struct {
	workers, runs int // runs at a time
	users         int // runs of ten that have users
	// first ends everything at the first violation.
	first bool
}

// world is one Temporal, one database, worker processes, and the other side of
// their tools.
type world struct {
	kind     string
	dir      string
	size     size
	seed     uint64
	acts     []act           // of every run that has users; nil: as the seed decides
	ctx      context.Context // of what users do
	temporal *temporal
	database database
	product  *sql.DB
	store    store.Store
	client   client.Client
	starter  *starter.Starter
	fleet    *fleet
	injector *injector
	side     *side
	server   *http.Server
	url      string

	mu         sync.Mutex
	violations []violation
	troubles   []error // of the harness itself
	runs       []*run
	decided    map[string]int           // doubts, by what the operator said
	deeds      map[deed]map[string]int  // what users did, by what became of it
	fates      map[agent.StepStatus]int // how the steps of their runs ended
	refusing   bool                     // the latest fire that did not happen was given up
	closers    []func()
}

// newWorld starts one. Its faults begin when attempts reach their windows.
func newWorld(ctx context.Context, kind, dir string, seed uint64, faults []*fault, how breakage, s size) (w *world, err error) {
	w = &world{kind: kind, dir: dir, size: s, seed: seed, decided: map[string]int{}, deeds: map[deed]map[string]int{}, fates: map[agent.StepStatus]int{}}
	var leave context.CancelFunc
	w.ctx, leave = context.WithCancel(ctx)
	w.closers = append(w.closers, leave)
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return w, err
	}
	w.injector = newInjector(w, seed, faults)
	w.side = newSide(w.injector, func(tool, id string, n int) {
		w.violate(repeated, id, fmt.Sprintf("%s happened %d times", tool, n))
	}, func(address, text string) { w.violate(invalid, address, text) })
	if err := w.listen(); err != nil {
		return w, err
	}
	if w.temporal, err = startTemporal(ctx, dir); err != nil {
		return w, err
	}
	w.closers = append(w.closers, func() { w.temporal.close() })
	if w.database, err = openDatabase(kind, dir); err != nil {
		return w, err
	}
	w.closers = append(w.closers, w.database.close)
	if err := w.connect(ctx, how); err != nil {
		return w, err
	}
	w.closers = append(w.closers, w.fleet.close)
	return w, w.fleet.open(s.workers)
}

func (w *world) listen() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.url, w.server = "http://"+l.Addr().String(), &http.Server{Handler: w.side.handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = w.server.Serve(l) }()
	w.closers = append(w.closers, func() { _ = w.server.Close() })
	return nil
}

// connect makes the schema and the harness's own connections.
func (w *world) connect(ctx context.Context, how breakage) (err error) {
	of := func(name string) workerConfig {
		return workerConfig{Name: name, Harness: w.url, Temporal: w.temporal.address(), Database: w.database.config(), Break: how}
	}
	settings := of("").settings()
	if _, _, err := worker.Migrate(ctx, settings); err != nil {
		return err
	}
	if w.store, err = worker.OpenStore(ctx, settings); err != nil {
		return err
	}
	w.closers = append(w.closers, func() { _ = w.store.Close() })
	if w.product, err = w.database.config().open(); err != nil {
		return err
	}
	w.closers = append(w.closers, func() { _ = w.product.Close() })
	if w.client, err = dial(ctx, w.temporal.address(), slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	w.closers = append(w.closers, w.client.Close)
	w.starter = starter.New(w.client, starter.WithReader(w.store), starter.WithTaskQueue(agentName))
	w.fleet = &fleet{dir: w.dir, config: of, gone: w.injector.gone, trouble: w.trouble, procs: map[string]*proc{}}
	return nil
}

// close ends all of it, the latest first, once nothing is to be started again.
func (w *world) close() {
	if w.injector != nil {
		close(w.injector.closing)
		w.injector.pending.Wait()
	}
	for _, r := range w.runs {
		r.closed.Store(true)
		r.playing.Wait()
	}
	for _, f := range slices.Backward(w.closers) {
		f()
	}
	w.closers = nil
}

// violate notes a violation, once.
func (w *world) violate(kind, run, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := (violation{kind, w.kind + " " + run, text}); !slices.Contains(w.violations, v) {
		w.violations = append(w.violations, v)
	}
}

func (w *world) violated() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.violations) > 0
}

// trouble notes that the harness could not do what it had to.
func (w *world) trouble(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubles = append(w.troubles, fmt.Errorf("%s: %w", w.kind, err))
}

// happenings are all that has happened for a run, on the other side and in the
// product's database.
func (w *world) happenings(ctx context.Context, id string) ([]happening, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	paid, err := payments(ctx, w.product, id)
	return append(w.side.happenings(id), paid...), err
}

// counts notes what became of the inputs and the steps of a run that has users.
func (w *world) counts(r *run, steps []*step, got map[string]*taken) {
	if !hasUsers(r.id) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, in := range r.inputs.all {
		if w.deeds[in.deed] == nil {
			w.deeds[in.deed] = map[string]int{}
		}
		w.deeds[in.deed][in.took(got[in.id])]++
	}
	for _, s := range steps {
		w.fates[s.status]++
	}
}
