// Command bench measures what a turn costs: Interlock beside a bare Temporal
// workflow that runs the same number of activities with payloads as large. It
// prints one JSON object on stdout and its progress on stderr.
//
// A turn is one model call that makes one tool call; model and tool answer at
// once, so that all that is measured is machinery.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"interlock/localtemporal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	main := func() error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) }
	if job := os.Getenv(waitingVariable); job != "" {
		main = func() error { return waits(ctx, job, os.Stdout) }
	}
	if database := os.Getenv(loadVariable); database != "" {
		main = func() error { return serveLoad(ctx, database, os.Stdin, os.Stdout) }
	}
	if err := main(); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	turns   []int
	rounds  int
	effects int
	waiting int
	load    loadJob
	quick   bool
	profile string
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	turns := f.String("turns", "10,50,100,200", "numbers of turns, separated by commas")
	f.IntVar(&o.rounds, "rounds", 5, "rounds for each number of turns; each runs every variant once")
	f.IntVar(&o.effects, "effects", 300, "effects that are claimed and settled in each database (0: none)")
	f.IntVar(&o.waiting, "waiting", 2000, "runs that wait at gates on one worker (0: none)")
	o.load = loadJob{Runs: 200, Active: 20, Reads: 190, Acts: 10}
	f.IntVar(&o.load.Readers, "streams", 500, "streams that follow runs and the inbox while the HTTP API is under load")
	f.DurationVar(&o.load.For, "load", time.Minute, "how long the HTTP API is under load (0: not at all)")
	f.BoolVar(&o.quick, "quick", true, "measure the quick tool too (-quick=false: not)")
	f.StringVar(&o.profile, "profile", "", "write a CPU profile of one more run, of the most turns, to this file")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	for part := range strings.SplitSeq(*turns, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return o, fmt.Errorf("-turns: %q is no number of turns", part)
		}
		o.turns = append(o.turns, n)
	}
	if o.rounds < 1 {
		return o, errors.New("-rounds must be at least 1")
	}
	if o.effects < 0 || o.waiting < 0 || o.load.Readers < 0 || o.load.For < 0 {
		return o, errors.New("-effects, -waiting, -streams and -load must not be negative")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "interlock-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w, err := newWorld(ctx, filepath.Join(dir, "interlock.db"))
	if err != nil {
		return err
	}
	defer w.stop()
	r := report{Rounds: o.rounds, Store: storeInfo{Driver: "sqlite", Synchronous: synchronous},
		Machine:  machineInfo{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()},
		Temporal: temporalInfo{CLI: cliVersion(ctx), Storage: "memory", Flags: localtemporal.Flags()}}
	b := &bench{world: w, options: o, progress: stderr}
	for _, turns := range o.turns {
		one, err := b.compare(ctx, turns)
		if err != nil {
			return err
		}
		r.Runs = append(r.Runs, one)
	}
	r.Limits = limitsOf(r.Runs, o.quick)
	if r.Effects, err = measureEffects(ctx, dir, o.effects, stderr); err != nil {
		return err
	}
	if r.Waiting, err = measureWaiting(ctx, dir, o.waiting, stderr); err != nil {
		return err
	}
	if r.Load, err = measureLoad(ctx, dir, o.load, stderr); err != nil {
		return err
	}
	if o.profile != "" {
		if err := b.profiled(ctx, o.profile, slices.Max(o.turns)); err != nil {
			return err
		}
	}
	out := json.NewEncoder(stdout)
	out.SetIndent("", "  ")
	return out.Encode(r)
}

func cliVersion(ctx context.Context) string {
	cli, err := localtemporal.FindCLI("")
	if err != nil {
		return err.Error()
	}
	out, err := exec.CommandContext(ctx, cli, "--version").Output()
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(out))
}

type bench struct {
	*world
	options
	progress io.Writer
}

// compare measures every variant at one number of turns. A run that does not
// count comes first: it says how large the bare workflow's payloads must be,
// and warms all up.
func (b *bench) compare(ctx context.Context, turns int) (runReport, error) {
	out := runReport{Turns: turns}
	first, err := b.measure(ctx, ordinary, turns, bareInput{})
	if err != nil {
		return out, err
	}
	like := bareInput{Text: filler(first.chain.payload), Model: first.chain.average("CallModel"), Tool: first.chain.average(ordinary + ".look_up")}
	out.BareLike = sizesBy{like.Model, like.Tool}
	variants := []string{ordinary, bare}
	if b.quick {
		variants = append(variants, quick)
	}
	samples := map[string][]sample{}
	for round := range b.rounds {
		for i := range variants {
			name := variants[(round+i)%len(variants)] // no variant always comes first
			s, err := b.measure(ctx, name, turns, like)
			if err != nil {
				return out, err
			}
			samples[name] = append(samples[name], s)
			fmt.Fprintf(b.progress, "%d turns, round %d of %d: %-11s %7.2f ms a turn\n", turns, round+1, b.rounds, name, ms(s.turn))
		}
	}
	out.Ordinary, out.Bare = variantOf(samples[ordinary]), variantOf(samples[bare])
	out.OverBare = ratiosOf(samples[ordinary], samples[bare])
	if b.quick {
		out.Quick, out.QuickBare = variantOf(samples[quick]), ratiosOf(samples[quick], samples[bare])
	}
	alone, err := machineTime(turns)
	out.Machine = ms(alone)
	return out, err
}

// profiled makes one more run, which counts in no number.
func (b *bench) profiled(ctx context.Context, path string, turns int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = b.measure(ctx, ordinary, turns, bareInput{})
	pprof.StopCPUProfile()
	return errors.Join(err, f.Close())
}
