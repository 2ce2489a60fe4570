package tool

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"interlock/agent"
)

// effectsTable is the table interlock_effects in one database.
type effectsTable struct {
	db     *sql.DB
	engine engine
	// name is qualified by the schema in which the table was found: whatever a
	// connection's search_path becomes, all effects of a tool are in one table.
	name string
	// bounds is the statement that bounds a transaction on the server.
	bounds string
}

type engine string

const (
	sqliteEngine   engine = "SQLite"
	postgresEngine engine = "PostgreSQL"
)

const tableName = "interlock_effects"

// column is one of interlock_effects. Since 0: the first Interlock had it; others
// are added to a table that lacks them, so they need a default.
type column struct {
	name, kind string
	since      int
}

var effectColumns = []column{
	{"tenant", "TEXT NOT NULL", 0},
	{"key", "TEXT NOT NULL", 0},
	{"scope", "TEXT NOT NULL", 0},
	{"tool", "TEXT NOT NULL", 0},
	{"step", "TEXT NOT NULL", 0},
	{"args", "TEXT NOT NULL", 0},
	{"refused", "TEXT NOT NULL DEFAULT ''", 0},
	{"result", "TEXT NOT NULL DEFAULT ''", 0}, // '' and not refused: the claim's own transaction has not settled it
	{"whole_ref", "TEXT NOT NULL DEFAULT ''", 0},
	{"whole_size", "BIGINT NOT NULL DEFAULT 0", 0},
	{"at", "TEXT NOT NULL", 0},
	{"agent", "TEXT NOT NULL DEFAULT ''", 1},
	{"version", "INTEGER NOT NULL DEFAULT 0", 1},
	{"address", "TEXT NOT NULL DEFAULT ''", 1},
	{"ordinal", "INTEGER NOT NULL DEFAULT 0", 1},
	{"undone_by", "TEXT NOT NULL DEFAULT ''", 1},
	{"undone_at", "TEXT NOT NULL DEFAULT ''", 1},
	{"fenced", "INTEGER NOT NULL DEFAULT 0", 1}, // 1: refused says why it was stopped before it began
}

// EffectsTable says what [InstallEffects] found and did.
type EffectsTable struct {
	Database string   // "SQLite" or "PostgreSQL"
	Schema   string   // in which the table is; "main" in SQLite
	Made     bool     // there was none
	Added    []string // columns that an older Interlock's table lacked
}

// InstallEffects makes the table interlock_effects, in which Transactional tools
// record their effects, or adds what one of an older Interlock lacks; no row is
// lost. Where it is up to date it only reads. Doing it twice, or from several
// processes at once, is harmless.
//
// Tools do it at first use. A product whose tools may not create tables does it
// once with a user who may; the tools' own user needs SELECT, INSERT and UPDATE
// on the table. In PostgreSQL the table is the one that the connection's
// search_path finds, else a new one in the first schema on it.
func InstallEffects(ctx context.Context, db *sql.DB) (EffectsTable, error) {
	_, done, err := installEffects(ctx, db, true)
	return done, err
}

// installs bounds how often an installation is tried that others disturb.
const installs = 10

// installEffects: deliberate is false for a tool's first use, which makes no
// second table beside one that its search_path does not reach.
func installEffects(ctx context.Context, db *sql.DB, deliberate bool) (*effectsTable, EffectsTable, error) {
	engine, err := engineOf(ctx, db)
	if err != nil {
		return nil, EffectsTable{}, err
	}
	done := EffectsTable{Database: string(engine)}
	var failed error
	for try := range installs {
		schema, have, err := lookAt(ctx, db, engine)
		if err != nil {
			return nil, done, fmt.Errorf("look at table %s: %w", tableName, err)
		}
		missing, err := missingIn(have)
		if err != nil {
			return nil, done, err
		}
		if len(missing) == 0 {
			done.Schema = schema
			t := &effectsTable{db: db, engine: engine, name: qualified(schema)}
			return t, done, t.learnBounds(ctx)
		}
		if isState(failed, noPrivilege) {
			break // nobody has done it for us meanwhile
		}
		if failed != nil {
			select { // another process is at it, or holds the database
			case <-ctx.Done():
				return nil, done, ctx.Err()
			case <-time.After(time.Duration(try) * 20 * time.Millisecond):
			}
		}
		failed = mend(ctx, db, engine, have, missing, deliberate, &done)
		if refused := (*agent.Error)(nil); errors.As(failed, &refused) {
			return nil, done, refused
		}
	}
	code := agent.CodeUnavailable
	if isState(failed, noPrivilege) {
		code = agent.CodeDenied
	}
	return nil, done, agent.Errorf(code, "table %s cannot be made or brought up to date%s: %w", tableName, mayNot(ctx, db, failed), failed)
}

// engineOf asks a database what it is: its driver does not tell.
func engineOf(ctx context.Context, db *sql.DB) (engine, error) {
	var version, lite string
	err := db.QueryRowContext(ctx, `SELECT version()`).Scan(&version)
	if err == nil && strings.HasPrefix(version, "PostgreSQL ") {
		return postgresEngine, nil
	}
	if e := db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&lite); e == nil {
		return sqliteEngine, nil
	}
	if err == nil {
		return "", agent.Errorf(agent.CodeInvalid, "the database of a Transactional tool must be SQLite or PostgreSQL, and this one says that it is %q: give the tool another effect", version)
	}
	return "", agent.Errorf(agent.CodeUnavailable, "the tool's database does not answer, or is neither SQLite nor PostgreSQL: %w", err)
}

const (
	columnsInPostgres = `SELECT n.nspname, a.attname FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass('` + tableName + `') AND a.attnum > 0 AND NOT a.attisdropped`
	columnsInSQLite = `SELECT 'main', name FROM pragma_table_info('` + tableName + `', 'main')`
	// elsewhere finds tables that the search_path does not reach.
	elsewhere = `SELECT coalesce(string_agg(n.nspname, ', '), ''), coalesce(bool_or(pg_table_is_visible(c.oid)), false) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = '` + tableName + `' AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't'`
)

// lookAt reads the table's columns; none where there is no table. It needs no
// right on the table.
func lookAt(ctx context.Context, db *sql.DB, e engine) (schema string, have []string, err error) {
	query := columnsInPostgres
	if e == sqliteEngine {
		query = columnsInSQLite
	}
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&schema, &name); err != nil {
			return "", nil, err
		}
		have = append(have, name)
	}
	return schema, have, rows.Err()
}

// missingIn are the columns that a table lacks.
func missingIn(have []string) (missing []column, err error) {
	for _, c := range effectColumns {
		switch {
		case slices.Contains(have, c.name):
		case len(have) > 0 && c.since == 0:
			return nil, agent.Errorf(agent.CodeConflict, "there is another table of the name %s, without the column %s: it is not Interlock's", tableName, c.name)
		default:
			missing = append(missing, c)
		}
	}
	return missing, nil
}

// mend makes the table, or adds columns to it.
func mend(ctx context.Context, db *sql.DB, e engine, have []string, missing []column, deliberate bool, done *EffectsTable) error {
	if len(have) > 0 {
		for _, c := range missing {
			if err := addColumn(ctx, db, e, c); err != nil {
				return err
			}
			done.Added = append(done.Added, c.name)
		}
		return nil
	}
	if e == postgresEngine && !deliberate {
		var schemas string
		var visible bool
		if err := db.QueryRowContext(ctx, elsewhere).Scan(&schemas, &visible); err != nil {
			return err
		}
		switch {
		case visible:
			return errors.New("another process makes it")
		case schemas != "":
			return agent.Errorf(agent.CodeUnavailable, "table %s is in the schema %s, which the search_path of the tool's connection does not reach, and what has been done is recorded there: "+
				"let the search_path name it; or, where this schema shall have effects of its own, run `interlock effects install DSN` once", tableName, schemas)
		}
	}
	var defs []string
	for _, c := range effectColumns {
		defs = append(defs, c.name+" "+c.kind)
	}
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS `+tableName+` (`+strings.Join(defs, ", ")+`, PRIMARY KEY (tenant, key))`)
	done.Made = done.Made || err == nil
	return err
}

// addColumn waits 2 seconds at most for whoever reads the table: claims queue up
// behind it.
func addColumn(ctx context.Context, db *sql.DB, e engine, c column) error {
	ctx, cancel := context.WithTimeout(ctx, TxTimeout)
	defer cancel()
	add := ` ADD COLUMN `
	if e == postgresEngine {
		add += `IF NOT EXISTS `
	}
	_, err := db.ExecContext(ctx, `ALTER TABLE `+tableName+add+c.name+" "+c.kind)
	return err
}

func qualified(schema string) string {
	return `"` + strings.ReplaceAll(schema, `"`, `""`) + `".` + tableName
}

// learnBounds makes the statement that bounds a transaction where the server can:
// a worker that stands still cannot end its transaction, and whoever tries the
// effect next waits for it. The server's bound is longer than ours, since ours
// spares the connection.
func (t *effectsTable) learnBounds(ctx context.Context) error {
	if t.engine != postgresEngine {
		return nil
	}
	var whole bool // PostgreSQL 17 and newer
	if err := t.db.QueryRowContext(ctx, `SELECT current_setting('transaction_timeout', true) IS NOT NULL`).Scan(&whole); err != nil {
		return err
	}
	names := []string{"statement_timeout", "idle_in_transaction_session_timeout"}
	if whole {
		names = append(names, "transaction_timeout")
	}
	var calls []string
	for _, n := range names {
		calls = append(calls, fmt.Sprintf("set_config('%s', '%d', true)", n, (TxTimeout+serverSlack).Milliseconds()))
	}
	t.bounds = `SELECT ` + strings.Join(calls, ", ")
	return nil
}

const serverSlack = time.Second

// SQLSTATEs that are told apart. Drivers of PostgreSQL have them in their errors.
const (
	noPrivilege = "42501"
	readOnlyTx  = "25006"
)

func isState(err error, state string) bool { return err != nil && sqlState(err) == state }

// sqlState is the server's code for an error; "" where there is none.
func sqlState(err error) string {
	var s interface{ SQLState() string }
	if errors.As(err, &s) {
		return s.SQLState()
	}
	return ""
}

// mayNot says what to do where the database user lacks a right.
func mayNot(ctx context.Context, db *sql.DB, err error) string {
	if !isState(err, noPrivilege) {
		return ""
	}
	user := "the tool's user"
	var name string
	if e := db.QueryRowContext(ctx, `SELECT quote_ident(current_user)`).Scan(&name); e == nil {
		user = name
	}
	return fmt.Sprintf(", since %s may not: run `interlock effects install DSN` as a user who may, and then GRANT SELECT, INSERT, UPDATE ON %s TO %s", user, tableName, user)
}
