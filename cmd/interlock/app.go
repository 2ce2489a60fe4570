package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"interlock/config"
)

// Exit codes. An interrupt is 128 and the number of the signal, as in a shell.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
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
}

func newApp(in *os.File, out, err io.Writer, env []string) *app {
	return &app{in: in, terminal: isatty.IsTerminal(in.Fd()), out: out, err: err, env: env}
}

// usageError is a mistake in what the process was told: nothing was begun.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

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
	fmt.Fprintf(a.err, "interlock: %s\n", strings.TrimPrefix(err.Error(), "interlock: "))
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if !a.began {
		fmt.Fprintf(a.err, "Run `%s --help` for its usage.\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailure
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "interlock",
		Short: "Runs LLM agents as durable workflows: the model proposes, code disposes",
		Long: `Interlock runs LLM agents as durable Temporal workflows: the model proposes,
code disposes.

Begin with ` + "`interlock demo`" + `: it needs no account and leaves nothing behind.

Settings come from flags, INTERLOCK_* variables and the file that --config
names; the former win over the latter.

Exit codes: 0 all went well, 1 it failed, 2 the command line or the
configuration is wrong and nothing was started, 130 interrupted by Ctrl-C
(in general 128 and the number of the signal).`,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(*cobra.Command, []string) { a.began = true },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(a.demoCommand(), a.devCommand(), a.versionCommand())
	return root
}

// configured adds the flags of the configuration to a command: one for each of
// the keys, with a description made from it.
func (a *app) configured(cmd *cobra.Command, keys ...string) {
	cmd.Flags().StringVar(&a.file, "config", "", "YAML `file` of settings")
	for _, k := range config.Keys() {
		if slices.Contains(keys, k.Name) {
			cmd.Flags().String(flagOf(k), "", k.Doc+" ("+k.Env+")")
		}
	}
}

func flagOf(k config.Key) string { return strings.NewReplacer(".", "-", "_", "-").Replace(k.Name) }

// settings merges the configuration. Without a file, a variable and a flag the
// log level is the command's own.
func (a *app) settings(cmd *cobra.Command, level string) (config.Config, error) {
	env := a.env
	if a.file == "" {
		env = append([]string{config.EnvPrefix + "LOG_LEVEL=" + level}, env...) // a later one wins
	}
	overrides := map[string]string{}
	for _, k := range config.Keys() {
		if f := cmd.Flags().Lookup(flagOf(k)); f != nil && f.Changed {
			overrides[k.Name] = f.Value.String()
		}
	}
	cfg, err := config.Load(config.Source{File: a.file, Env: env, Overrides: overrides})
	if err != nil {
		return cfg, usageError{err}
	}
	return cfg, nil
}

// logger writes to stderr, in the form that the configuration asks for.
func (a *app) logger(c config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // the configuration is valid
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(a.err, options))
	}
	return slog.New(slog.NewTextHandler(a.err, options))
}

// choice is a flag that takes one of a few words.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.allowed, "|") }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		return fmt.Errorf("want one of %s", strings.Join(c.allowed, ", "))
	}
	c.value = s
	return nil
}

func (a *app) outputFlag(cmd *cobra.Command) *choice {
	c := &choice{"text", []string{"text", "json"}}
	cmd.Flags().VarP(c, "output", "o", "form of what is written to stdout")
	return c
}
