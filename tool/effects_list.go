package tool

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"interlock/agent"
)

// RecordedEffect is a row of interlock_effects: an effect of a Transactional tool.
type RecordedEffect struct {
	Tenant  string
	Key     string
	Address string // of the run
	Scope   string // the address and the first run id
	Agent   string
	Version int // 0: recorded by an Interlock that did not tell
	Tool    string
	Step    string
	Ordinal int
	Args    agent.JSON
	Status  RecordedStatus
	Refused string      // why
	Result  agent.JSON  // of an effect that happened; "" where Unkept says why
	Unkept  string      //
	Whole   *agent.Blob // where Result is a part of it
	At      time.Time   // by the worker's clock
	// UndoneBy is the key of the effect that undid it, at UndoneAt.
	UndoneBy string
	UndoneAt *time.Time
}

// RecordedStatus is where a [RecordedEffect] stands.
type RecordedStatus string

const (
	RecordedApplied RecordedStatus = "applied"
	RecordedRefused RecordedStatus = "refused"
	RecordedUndone  RecordedStatus = "undone"
	// RecordedInDoubt: the tool's function committed the transaction itself, and then
	// failed. Nobody knows how much of the effect stands.
	RecordedInDoubt RecordedStatus = "in_doubt"
)

// EffectFilter narrows a list of effects. Zero fields do not filter.
type EffectFilter struct {
	Tenant  string
	Tool    string
	Agent   string
	Version int
	Since   time.Time // recorded at it or after
	Until   time.Time // recorded before it
	Limit   int       // 0: 50
}

// ListEffects lists what the table interlock_effects of a database records, newest
// first. It needs SELECT on the table, and changes nothing: a table that is
// missing, or is an older Interlock's, is an error that says so.
func ListEffects(ctx context.Context, db *sql.DB, f EffectFilter) ([]RecordedEffect, error) {
	engine, err := engineOf(ctx, db)
	if err != nil {
		return nil, err
	}
	schema, have, err := lookAt(ctx, db, engine)
	if err != nil {
		return nil, fmt.Errorf("look at table %s: %w", tableName, err)
	}
	switch missing, err := missingIn(have); {
	case err != nil:
		return nil, err
	case len(have) == 0:
		return nil, agent.Errorf(agent.CodeNotFound, "the database has no table %s that this connection finds: no Transactional tool has used it, and `interlock effects install DSN` has not been run", tableName)
	case len(missing) > 0:
		return nil, agent.Errorf(agent.CodeUnavailable, "table %s is of an older Interlock: run `interlock effects install DSN` first", tableName)
	}
	query, args := listQuery(qualified(schema), engine, f)
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list of effects%s: %w", mayNot(ctx, db, err), err)
	}
	defer func() { _ = rows.Close() }()
	var out []RecordedEffect
	for rows.Next() {
		e, err := recorded(rows)
		if err != nil {
			return nil, fmt.Errorf("list of effects: %w", err)
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// listQuery: times are text, which PostgreSQL sorts by a language's rules unless it
// is told not to. The agent of a row that does not tell it is in its scope.
func listQuery(table string, e engine, f EffectFilter) (string, []any) {
	at := `at`
	if e == postgresEngine {
		at = `at COLLATE "C"`
	}
	var where []string
	var args []any
	add := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where = append(where, condition)
	}
	if f.Tenant != "" {
		add(`tenant = ?`, f.Tenant)
	}
	if f.Tool != "" {
		add(`tool = ?`, f.Tool)
	}
	if f.Agent != "" {
		add(`(agent = ? OR agent = '' AND substr(scope, 1, length(tenant) + ?) = tenant || ?)`, f.Agent, len(f.Agent)+2, "/"+f.Agent+"/")
	}
	if f.Version != 0 {
		add(`version = ?`, f.Version)
	}
	if !f.Since.IsZero() {
		add(at+` >= ?`, moment(f.Since))
	}
	if !f.Until.IsZero() {
		add(at+` < ?`, moment(f.Until))
	}
	query := `SELECT tenant, key, address, scope, agent, version, tool, step, ordinal, args, refused, result, whole_ref, whole_size, at, undone_by, undone_at FROM ` + table
	if len(where) > 0 {
		query += ` WHERE ` + strings.Join(where, ` AND `)
	}
	if f.Limit <= 0 {
		f.Limit = 50
	}
	args = append(args, f.Limit)
	return query + fmt.Sprintf(` ORDER BY %s DESC, tenant, key LIMIT $%d`, at, len(args)), args
}

func recorded(row interface{ Scan(...any) error }) (e RecordedEffect, err error) {
	var args, result, ref, at, undoneAt string
	var size int
	if err := row.Scan(&e.Tenant, &e.Key, &e.Address, &e.Scope, &e.Agent, &e.Version, &e.Tool, &e.Step, &e.Ordinal, &args, &e.Refused, &result,
		&ref, &size, &at, &e.UndoneBy, &undoneAt); err != nil {
		return e, err
	}
	e.Args = agent.JSON(args)
	if e.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
		return e, fmt.Errorf("effect %s: column at: %w", e.Key, err)
	}
	if undoneAt != "" {
		t, err := time.Parse(time.RFC3339Nano, undoneAt)
		if err != nil {
			return e, fmt.Errorf("effect %s: column undone_at: %w", e.Key, err)
		}
		e.UndoneAt = &t
	}
	if e.Address == "" {
		e.Address = addressOf(e.Scope)
	}
	if parts := strings.Split(e.Address, "/"); e.Agent == "" && len(parts) == 3 {
		e.Agent = parts[1]
	}
	switch {
	case e.Refused != "":
		e.Status = RecordedRefused
		return e, nil
	case result == "":
		e.Status = RecordedInDoubt
		return e, nil
	case e.UndoneBy != "":
		e.Status = RecordedUndone
	default:
		e.Status = RecordedApplied
	}
	if ref != "" {
		e.Whole = &agent.Blob{Ref: ref, Bytes: size}
	}
	r := FromStored(agent.JSON(result), e.Whole)
	e.Result, e.Unkept = r.JSON, r.Unkept
	return e, nil
}
