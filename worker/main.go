package worker

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"interlock/agent"
	"interlock/config"
)

// Exit codes of [Main]. A second signal ends the process at once, with 128 and
// the number of the signal.
const (
	ExitStopped = 0 // by SIGINT or SIGTERM, in order
	ExitFailed  = 1 // it could not start, or ended by itself
	ExitUsage   = 2 // a flag or the configuration is wrong; nothing was started
)

// Main is the whole of a worker process. It reads the settings from flags,
// INTERLOCK_* variables and the file that --config names, serves the agents
// until SIGINT or SIGTERM, and returns the exit code:
//
//	func main() {
//		os.Exit(worker.Main(context.Background(), refund.Agent(shop, mail)))
//	}
//
// The store must have been migrated (`interlock migrate`), and the model is the
// one that the settings name. A main that needs anything else calls [Serve] or
// [New].
func Main(ctx context.Context, agents ...*agent.Definition) (exitCode int) {
	p := process{args: os.Args, environ: os.Environ(), err: os.Stderr, exit: os.Exit}
	return p.run(ctx, agents)
}

// process is the process as Main sees it, so that tests can play it.
type process struct {
	args, environ []string
	err           io.Writer
	exit          func(code int)
}

func (p process) run(ctx context.Context, agents []*agent.Definition) int {
	settings, err := p.settings()
	if errors.Is(err, flag.ErrHelp) {
		return ExitStopped
	}
	if err != nil {
		fmt.Fprintln(p.err, err)
		return ExitUsage
	}
	ctx, stop := p.interruptible(ctx)
	defer stop()
	err = Serve(ctx, Config{Settings: settings, Log: settings.Log.Logger(p.err)}, agents...)
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) { // stopped, if need be while it started
		return ExitStopped
	}
	fmt.Fprintln(p.err, err)
	if _, ok := errors.AsType[*config.Error](err); ok {
		return ExitUsage
	}
	return ExitFailed
}

// settings merges the configuration. A secret has no flag: every user of the
// machine could read it.
func (p process) settings() (config.Config, error) {
	flags := flag.NewFlagSet(filepath.Base(p.args[0]), flag.ContinueOnError)
	flags.SetOutput(p.err)
	file := flags.String("config", "", "YAML `file` of settings")
	overrides := map[string]string{}
	for _, k := range config.Keys() {
		if !k.Secret {
			flags.Func(k.Flag, k.Doc+" ("+k.Env+")", func(v string) error { overrides[k.Name] = v; return nil })
		}
	}
	if err := flags.Parse(p.args[1:]); err != nil {
		return config.Config{}, err
	}
	if flags.NArg() > 0 {
		return config.Config{}, fmt.Errorf("there are no arguments, only flags: %s", strings.Join(flags.Args(), " "))
	}
	return config.Load(config.Source{File: *file, Env: p.environ, Overrides: overrides})
}

// interruptible is a context that the first signal ends.
func (p process) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for s := range signals {
			if ctx.Err() != nil {
				number, _ := s.(syscall.Signal)
				p.exit(128 + int(number))
				return
			}
			fmt.Fprintf(p.err, "%v: stopping; once more ends it at once\n", s)
			cancel()
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(); close(signals) }
}
