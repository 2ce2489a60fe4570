package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/tool"
)

func (a *app) effectsCommand() *cobra.Command {
	return group("effects", "Installs and lists the effects in a product's own database", `Installs and lists interlock_effects: the table in a product's own database in
which Transactional tools record what they did, in the same transaction.

DSN names that database: a postgres:// URL, the path of a SQLite file, or its
file: URL. Every user of a machine sees the arguments of a command: leave the
password to PGPASSWORD or a passfile, or put the DSN into a file and name that
by --dsn-file. No password is ever printed.`,
		a.effectsInstallCommand(), a.effectsListCommand())
}

// installed is what was done to the table.
type installed struct {
	Database string   `json:"database"` // "SQLite" or "PostgreSQL"
	Schema   string   `json:"schema"`
	Made     bool     `json:"made"`
	Added    []string `json:"added"` // columns
}

func (a *app) effectsInstallCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "install [DSN]", Short: "Makes the table interlock_effects, or brings it up to date", Args: cobra.MaximumNArgs(1),
		Long: `Makes the table interlock_effects where there is none, or adds the columns that
one of an older Interlock lacks; no row is lost. Doing it twice, or from several
machines at once, is harmless.

Tools do it by themselves at first use. Where their database user may not, run
this as one who may, and give theirs what it needs:

  GRANT SELECT, INSERT, UPDATE ON interlock_effects TO the_user

In PostgreSQL the table is the one that the search_path finds, else a new one in
the first schema on it; ?search_path=NAME in the DSN names another. A SQLite file
must be there; --create makes it.

JSON: {"database": "PostgreSQL", "schema": "public", "made": true, "added": []}`,
		Example: `  interlock effects install postgres://owner@db.internal/shop
  interlock effects install --dsn-file /run/secrets/shop -o json
  interlock effects install ./shop.db`,
	}
	output := outputFlag(cmd)
	file := cmd.Flags().String("dsn-file", "", "`file` that holds the DSN")
	create := cmd.Flags().Bool("create", false, "make the SQLite file where there is none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withDatabase(cmd.Context(), args, *file, *create, func(db *sql.DB) error {
			t, err := tool.InstallEffects(cmd.Context(), db)
			if err != nil {
				return err
			}
			done := installed{t.Database, t.Schema, t.Made, append([]string{}, t.Added...)}
			return a.show(output, done, done.print)
		})
	}
	return cmd
}

// withDatabase opens the database for f. What has no code of its own is the
// database's: it does not do what is asked now.
func withDatabase(ctx context.Context, args []string, file string, create bool, f func(*sql.DB) error) error {
	dsn, err := dsnOf(args, file)
	if err != nil {
		return err
	}
	d, err := parseDSN(dsn, create)
	if err != nil {
		return err
	}
	db, err := d.open(create)
	if err == nil {
		err = f(db)
		_ = db.Close()
	}
	if err != nil && agent.ErrorCode(err) == agent.CodeInternal && ctx.Err() == nil {
		err = agent.Errorf(agent.CodeUnavailable, "%w", err)
	}
	return err
}

func (d installed) print(w io.Writer) (err error) {
	where := "in the " + d.Database + " database"
	if d.Database == "PostgreSQL" {
		where = "in schema " + d.Schema + " of the PostgreSQL database"
	}
	switch {
	case d.Made:
		_, err = fmt.Fprintf(w, "The table interlock_effects was made %s.\n", where)
	case len(d.Added) > 0:
		_, err = fmt.Fprintf(w, "The table interlock_effects %s was brought up to date; it got %s.\n", where, strings.Join(d.Added, ", "))
	default:
		_, err = fmt.Fprintf(w, "The table interlock_effects %s is up to date.\n", where)
	}
	return err
}

// effectLine is an effect in a list, and all of it.
type effectLine struct {
	Tenant     string     `json:"tenant"`
	Key        string     `json:"key"`
	Address    string     `json:"address"`
	FirstRunID string     `json:"first_run_id"`
	Agent      string     `json:"agent"`
	Version    int        `json:"version"` // 0: not recorded
	Tool       string     `json:"tool"`
	Step       string     `json:"step"`
	Ordinal    int        `json:"ordinal"`
	Args       agent.JSON `json:"args"`
	Status     string     `json:"status"`
	// Why: refused with it, or the result was not kept for it.
	Why      string      `json:"why,omitempty"`
	Result   agent.JSON  `json:"result,omitempty"`
	Whole    *agent.Blob `json:"whole,omitempty"`
	At       time.Time   `json:"at"`
	UndoneBy string      `json:"undone_by,omitempty"`
	UndoneAt *time.Time  `json:"undone_at,omitempty"`
}

func effectLineOf(e tool.RecordedEffect) effectLine {
	return effectLine{Tenant: e.Tenant, Key: e.Key, Address: e.Address, FirstRunID: strings.TrimPrefix(strings.TrimPrefix(e.Scope, e.Address), "/"),
		Agent: e.Agent, Version: e.Version, Tool: e.Tool, Step: e.Step, Ordinal: e.Ordinal, Args: e.Args, Status: string(e.Status),
		Why: e.Refused + e.Unkept, Result: e.Result, Whole: e.Whole, At: e.At, UndoneBy: e.UndoneBy, UndoneAt: e.UndoneAt}
}

func (a *app) effectsListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list [DSN]", Short: "Lists what Transactional tools did in a database, newest first", Args: cobra.MaximumNArgs(1),
		Long: `Lists the effects that interlock_effects records, newest first: of all tenants,
but where --tenant names one. It changes nothing and needs SELECT on the table.

A status is applied, refused (for good), undone (by another effect, whose key it
tells), or in_doubt: the tool's function committed the transaction itself and
then failed.

JSON: {"effects": [{"tenant", "key", "address", "first_run_id", "agent",
"version", "tool", "step", "ordinal", "args", "status", "why", "result", "whole",
"at", "undone_by", "undone_at"}]}; what does not apply is left out. why is the
refusal, or why a result was not kept; version 0 is not recorded. With -o jsonl
each effect is a line.`,
		Example: `  interlock effects list ./shop.db --tool issue_refund --since 24h
  interlock effects list --dsn-file /run/secrets/shop --tenant acme --since 2026-03-01 --until 2026-04-01 -o jsonl`,
	}
	output := outputFlag(cmd)
	file := cmd.Flags().String("dsn-file", "", "`file` that holds the DSN")
	var f tool.EffectFilter
	cmd.Flags().StringVar(&f.Tenant, "tenant", "", "only effects of this `tenant`")
	cmd.Flags().StringVar(&f.Tool, "tool", "", "only effects of this `tool`")
	cmd.Flags().StringVar(&f.Agent, "agent", "", "only effects of this `agent`'s runs")
	cmd.Flags().IntVar(&f.Version, "agent-version", 0, "only effects of this version of the agent")
	limitFlag(cmd, &f.Limit, "effects at most")
	between := betweenFlags(cmd, "recorded")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := checkLimit(f.Limit, "list"); err != nil {
			return err
		}
		if cmd.Flags().Changed("agent-version") && f.Version < 1 {
			return usagef("--agent-version %d is no version: the first is 1", f.Version)
		}
		if f.Since, f.Until, err = between.times(); err != nil {
			return err
		}
		return withDatabase(cmd.Context(), args, *file, false, func(db *sql.DB) error { return a.listEffects(cmd.Context(), db, f, output) })
	}
	return cmd
}

func (a *app) listEffects(ctx context.Context, db *sql.DB, f tool.EffectFilter, output *choice) error {
	rows, err := tool.ListEffects(ctx, db, f)
	if err != nil {
		return err
	}
	lines := []effectLine{}
	for _, e := range rows {
		lines = append(lines, effectLineOf(e))
	}
	if len(lines) == f.Limit {
		defer fmt.Fprintf(a.err, "There may be more: narrow the list, or give a --limit up to 500\n")
	}
	return list(a, output, map[string]any{"effects": lines}, lines, func(w io.Writer) error { return printEffects(w, lines) })
}

func printEffects(w io.Writer, lines []effectLine) error {
	p := &printer{w: w}
	if len(lines) == 0 {
		p.line("There are no such effects.")
		return p.err
	}
	rows := [][]string{{"AT", "STATUS", "TOOL", "ADDRESS", "STEP", "AGENT", "ARGUMENTS", ""}}
	for _, l := range lines {
		note := l.Why
		if l.UndoneBy != "" {
			note = "by effect " + l.UndoneBy
		}
		version := l.Agent
		if l.Version > 0 {
			version = fmt.Sprintf("%s/v%d", l.Agent, l.Version)
		}
		rows = append(rows, []string{stamp(l.At), l.Status, l.Tool, inline(l.Address), inline(l.Step), version, inline(l.Args.String()), inline(note)})
	}
	p.table(rows)
	return p.err
}
