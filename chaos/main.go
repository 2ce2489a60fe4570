// Command chaos kills what an agent runs on, and says whether a side effect
// happened twice, was lost, or never came to an end.
//
// Worker processes, Temporal and the database are real, and so are the faults:
// SIGKILL, SIGSTOP for longer than an attempt may act, SIGTERM. A fault waits until
// an attempt is in a certain window of a certain effect (its claim, its effect, its
// settlement, its answer), and strikes there; some strike by the clock. Half of the
// runs have users, who interrupt, amend, pause and cancel them, and reviewers, who
// decide at their gates. Meanwhile the other side of the tools counts what happens. In
// the end the journal, the ledger, Temporal, the users' receipts and the other side
// must agree on every effect and every input of every run.
//
// The seed decides which faults there are, and what users do. Which attempt each meets
// depends on the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"interlock/agent"
)

func main() {
	err := role(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// role is what this process is to be.
func role(args []string) error {
	if text := os.Getenv(workerVariable); text != "" {
		return serve(text)
	}
	if text := os.Getenv(holderVariable); text != "" {
		return hold(text)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "interlock-chaos-"); err != nil {
			return err
		}
	}
	r, err := o.run(ctx)
	r.print(os.Stdout)
	if err != nil || r.failed() {
		return errors.Join(err, fmt.Errorf("seed %d has failed; the workers' logs are in %s", o.seed, o.dir))
	}
	return os.RemoveAll(o.dir)
}

// options are the command line.
type options struct {
	faults int
	seed   uint64
	stores []string
	how    breakage
	size   size
	dir    string
	// planned takes the place of the plan that the seed makes, and acts of what it has
	// the users of all runs do.
	planned []*fault
	acts    []act
}

func parse(args []string, out io.Writer) (o options, err error) {
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.SetOutput(out)
	f.IntVar(&o.faults, "faults", 200, "how many faults count")
	f.Uint64Var(&o.seed, "seed", 0, "0 draws one")
	stores := f.String("store", "both", "sqlite, postgres or both")
	how := f.String("break", "", fmt.Sprintf("switch a part of the protocol off, to see it reported: one of %v", breakages))
	f.IntVar(&o.size.workers, "workers", 4, "worker processes of each store")
	f.IntVar(&o.size.runs, "runs", 12, "runs at a time of each store")
	f.IntVar(&o.size.users, "users", 5, "runs of ten that have users, who interrupt them")
	f.StringVar(&o.dir, "dir", "", "folder for logs and files, a temporary one where empty; it is left where something failed")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch *stores {
	case "both":
		o.stores = []string{sqliteKind, postgresKind}
	case sqliteKind, postgresKind:
		o.stores = []string{*stores}
	default:
		return o, fmt.Errorf("-store: %q is neither sqlite nor postgres nor both", *stores)
	}
	if o.how = breakage(*how); o.how != whole && !slices.Contains(breakages, o.how) {
		return o, fmt.Errorf("-break: %q is none of %v", *how, breakages)
	}
	if f.NArg() > 0 || o.size.users < 0 || o.size.users > 10 || o.faults < 1 || o.size.workers < 1 || o.size.runs < 1 {
		return o, errors.New("faults, workers and runs are at least 1, users from 0 to 10, and there are no arguments beside flags")
	}
	for o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000)
	}
	o.size.first = o.how != whole
	return o, nil
}

// least is how often each cell must be hit, for so many faults.
func least(faults int) int {
	switch {
	case faults >= 200:
		return 5
	case faults >= len(cells)*5/4:
		return 1
	}
	return 0
}

// run drives a world for each store, side by side.
func (o *options) run(ctx context.Context) (*report, error) {
	began := time.Now()
	faults := o.planned
	if faults == nil {
		faults = plan(o.seed, o.faults)
	}
	fmt.Fprintf(os.Stderr, "chaos: seed %d, %d faults, stores %v\n", o.seed, len(faults), o.stores)
	r := &report{seed: o.seed, wanted: len(faults), least: least(len(faults)), first: o.size.first,
		counts: map[string]map[kind]int{}, hits: map[cell]int{}, decided: map[string]int{}, deeds: map[deed]map[string]int{}, fates: map[agent.StepStatus]int{}}
	shares := make([][]*fault, len(o.stores))
	for i, f := range faults {
		shares[i%len(shares)] = append(shares[i%len(shares)], f)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	var errs []error
	for i, kind := range o.stores {
		all.Go(func() {
			w, err := newWorld(ctx, kind, filepath.Join(o.dir, kind), o.seed+uint64(i), shares[i], o.how, o.size)
			if err == nil {
				w.acts = o.acts
				err = w.play(ctx)
				mu.Lock()
				r.add(w)
				mu.Unlock()
				w.close()
			}
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	all.Wait()
	r.took = time.Since(began)
	return r, errors.Join(errs...)
}

// play drives a world to its end, and judges what came of it.
func (w *world) play(ctx context.Context) error {
	stop := w.progress()
	err := w.drive(ctx)
	stop()
	if err != nil || w.size.first && w.violated() {
		return err
	}
	w.injector.pending.Wait()
	for _, r := range w.runs {
		if !r.ended {
			w.violate(stuck, r.id, w.why(ctx, r))
			continue
		}
		if err := w.verify(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", r.address, err)
		}
	}
	return nil
}

// why says what a run that has not ended waits for.
func (w *world) why(ctx context.Context, r *run) string {
	row, err := w.store.RunRow(ctx, r.chain())
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %s in turn %d", row.Head.Status, row.Head.Reason, row.Head.Turn)
}

// progress says every ten seconds how far a world is.
func (w *world) progress() (stop func()) {
	done := make(chan struct{})
	go func() {
		t := time.NewTicker(10 * time.Second)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				fmt.Fprintf(os.Stderr, "chaos: %s: %d faults are to be\n", w.kind, w.injector.remaining())
			}
		}
	}()
	return func() { close(done) }
}
