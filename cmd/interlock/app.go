package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"interlock/config"
)

// app is the process as its commands see it, so that tests can play it.
type app struct {
	in       io.Reader
	terminal bool // somebody sits at in
	out, err io.Writer
	env      []string

	scratch scratch // removed also when the process must end at once
	began   bool    // a command has begun: what fails from now on is no usage error
	file    string  // of the configuration

	overrides map[string]string // settings that a command makes from flags of its own
}

func newApp(in *os.File, out, err io.Writer, env []string) *app {
	return &app{in: in, terminal: isatty.IsTerminal(in.Fd()), out: out, err: err, env: env}
}

// run executes a command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.command()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if i, ok := errors.AsType[*interrupt](context.Cause(ctx)); ok && a.began {
		fmt.Fprintf(a.err, "interlock: %v; all that was started is stopped\n", i)
		return i.code()
	}
	fmt.Fprintf(screen{a.err}, "interlock: %s\n", strings.TrimPrefix(err.Error(), "interlock: "))
	if !a.began {
		fmt.Fprintf(a.err, "Run `%s --help` for its usage.\n", cmd.CommandPath())
		return exitUsage
	}
	return exitCode(err)
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "interlock",
		Short: "Runs LLM agents as durable workflows: the model proposes, code disposes",
		Long: `Interlock runs LLM agents as durable Temporal workflows: the model proposes,
code disposes.

Begin with ` + "`interlock demo`" + `: it needs no account and leaves nothing behind.

Settings come from flags, INTERLOCK_* variables and the file that --config
names; the former win over the latter. How to reach Temporal is in TEMPORAL_*
variables and temporal.toml, as for the temporal CLI. Results go to stdout, in
the form that -o names; everything else goes to stderr. Nothing is coloured.

` + exitCodes(),
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(*cobra.Command, []string) { a.began = true },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.AddCommand(a.demoCommand(), a.devCommand(), a.workerCommand(), a.serveCommand(), a.accessCommand(), a.migrateCommand(), a.storeCommand(), a.runCommand(), a.gateCommand(), a.rulingCommand(),
		a.stepCommand(), a.ledgerCommand(), a.holdCommand(), a.effectsCommand(), a.keyCommand(), a.noticeCommand(),
		a.configCommand(), a.versionCommand())
	return root
}

// group is a command that only holds others.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var names []string
		for _, c := range commands {
			names = append(names, c.Name())
		}
		what := "a command is missing"
		if len(args) > 0 && strings.Contains(args[0], "://") { // it may hold a password
			what = "a URL is no command"
		} else if len(args) > 0 {
			what = fmt.Sprintf("unknown command %q", args[0])
		}
		return usagef("%s: %s has %s", what, cmd.CommandPath(), strings.Join(names, ", "))
	}
	cmd.AddCommand(commands...)
	return cmd
}

// Keys that several commands take.
var (
	storeKeys    = []string{"store.path", "store.dsn_file"}
	temporalKeys = []string{"temporal.config_file", "temporal.profile"}
	modelKeys    = []string{"model.provider", "model.name", "model.base_url", "model.api_key_file", "model.stream", "model.max_output"}
	logKeys      = []string{"log.level", "log.format"}
)

// flags are those of one command, or those that its sub-commands have too.
type flags interface {
	String(name, value, usage string) *string
	StringVar(p *string, name, value, usage string)
}

// configured adds the flags of the configuration to a command: one for each of
// the keys, with a description made from it. A secret has none: every user of
// the machine could read it.
func (a *app) configured(flags flags, keys ...string) {
	flags.StringVar(&a.file, "config", "", "YAML `file` of settings")
	for _, k := range config.Keys() {
		if slices.Contains(keys, k.Name) {
			flags.String(k.Flag, "", k.Doc+" ("+k.Env+")")
		}
	}
}

// settings merges the configuration. Without a file, a variable and a flag the
// log level is the command's own.
func (a *app) settings(cmd *cobra.Command, level string) (config.Config, error) {
	cfg, _, err := a.explained(cmd, level)
	return cfg, err
}

// explained is settings, with where each comes from.
func (a *app) explained(cmd *cobra.Command, level string) (config.Config, []config.Setting, error) {
	env := a.env
	if a.file == "" && level != "" {
		env = append([]string{config.EnvPrefix + "LOG_LEVEL=" + level}, env...) // a later one wins
	}
	overrides := maps.Clone(a.overrides)
	if overrides == nil {
		overrides = map[string]string{}
	}
	for _, k := range config.Keys() {
		if f := cmd.Flags().Lookup(k.Flag); f != nil && f.Changed {
			overrides[k.Name] = f.Value.String()
		}
	}
	return config.Explain(config.Source{File: a.file, Env: env, Overrides: overrides})
}
