package tool

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"interlock/agent"
)

// installEffects makes the table that a tool's own database records its
// effects in. The statements are plain enough for SQLite and PostgreSQL.
const installEffects = `CREATE TABLE IF NOT EXISTS interlock_effects (
  tenant     TEXT NOT NULL,
  key        TEXT NOT NULL,
  scope      TEXT NOT NULL,
  tool       TEXT NOT NULL,
  step       TEXT NOT NULL,
  args       TEXT NOT NULL,
  refused    TEXT NOT NULL DEFAULT '',
  result     TEXT NOT NULL DEFAULT '',
  whole_ref  TEXT NOT NULL DEFAULT '',
  whole_size BIGINT NOT NULL DEFAULT 0,
  at         TEXT NOT NULL,
  undone_by  TEXT NOT NULL DEFAULT '',
  undone_at  TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, key)
)`

// InstallEffects makes the table interlock_effects where it is missing. Tools
// do it at first use; a product whose tool may not create tables does it once
// with a user who may.
func InstallEffects(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, installEffects); err != nil {
		return fmt.Errorf("table interlock_effects: %w", err)
	}
	return nil
}

// transactional runs claim, effect and settlement as one transaction in the
// tool's database: a crash at any point leaves all of it or nothing. A second
// attempt at the same time waits at the primary key, or is told that the
// database is busy, and then finds the row.
func (t *Tool[S, A, R]) transactional(ctx context.Context, task agent.Task, args A, p Ports) (Result, error) {
	if r, ok, err := t.standingInTx(ctx, task); err != nil || ok {
		if err != nil {
			return Result{}, asFailure(err)
		}
		return r, nil
	}
	bounded, cancel := context.WithTimeout(ctx, TxTimeout)
	defer cancel()
	tx, err := t.db.BeginTx(bounded, nil)
	if err != nil {
		return Result{}, rolledBack("begin", err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := insertEffect(bounded, tx, task); err != nil {
		return Result{}, rolledBack("claim", err)
	}
	r, err := t.call(bounded, "", tx, args)
	if IsRefused(err) {
		_ = tx.Rollback()
		return Result{}, t.refuse(ctx, task, err)
	}
	if err != nil {
		return Result{}, rolledBack("effect", err)
	}
	out, err := t.result(bounded, r, task.Limit, p)
	if err != nil {
		return Result{}, rolledBack("result", err)
	}
	ref, size := "", 0
	if out.Whole != nil {
		ref, size = out.Whole.Ref, out.Whole.Bytes
	}
	if _, err := tx.ExecContext(bounded, `UPDATE interlock_effects SET result = $1, whole_ref = $2, whole_size = $3 WHERE tenant = $4 AND key = $5`,
		string(out.Stored()), ref, size, task.Tenant, task.Key); err != nil {
		return Result{}, rolledBack("settle", err)
	}
	if err := tx.Commit(); err != nil {
		// The commit may have reached the database: the next attempt finds out.
		return Result{}, &Failure{Kind: FailedUnknown, Err: fmt.Errorf("commit: %w", err), Open: true}
	}
	return out, nil
}

func insertEffect(ctx context.Context, tx *sql.Tx, task agent.Task) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO interlock_effects (tenant, key, scope, tool, step, args, at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		task.Tenant, task.Key, task.Scope, task.Tool, task.Step, string(task.Args), time.Now().UTC().Format(time.RFC3339Nano))
	return err
}

// refuse records a refusal for good, so that a later attempt of the same key
// is told the same.
func (t *Tool[S, A, R]) refuse(ctx context.Context, task agent.Task, cause error) error {
	done, cancel := after(ctx)
	defer cancel()
	_, err := t.db.ExecContext(done, `INSERT INTO interlock_effects (tenant, key, scope, tool, step, args, at, refused) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		task.Tenant, task.Key, task.Scope, task.Tool, task.Step, string(task.Args), time.Now().UTC().Format(time.RFC3339Nano), text(cause.Error()))
	if err != nil {
		return rolledBack("refusal", errors.Join(cause, err))
	}
	return &Failure{Kind: FailedRefused, Err: cause}
}

// rolledBack is a failed attempt of which nothing stands.
func rolledBack(what string, err error) error {
	return &Failure{Kind: FailedNotApplied, Err: fmt.Errorf("%s: %w", what, err)}
}

func asFailure(err error) error {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return &Failure{Kind: FailedStore, Err: err}
}

// standingInTx reads the effect's row in the tool's database, where its only
// truth is.
func (t *Tool[S, A, R]) standingInTx(ctx context.Context, task agent.Task) (Result, bool, error) {
	if err := t.install(ctx); err != nil {
		return Result{}, false, err
	}
	var s Settlement
	var result, ref string
	var size int
	err := t.db.QueryRowContext(ctx, `SELECT refused, result, whole_ref, whole_size, undone_by FROM interlock_effects WHERE tenant = $1 AND key = $2`,
		task.Tenant, task.Key).Scan(&s.Refused, &result, &ref, &size, &s.Undone)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Result{}, false, nil
	case err != nil:
		return Result{}, false, fmt.Errorf("look-up of the effect: %w", err)
	case s.Ended() != nil:
		return Result{}, false, &Failure{Kind: FailedRefused, Err: s.Ended()}
	}
	var whole *agent.Blob
	if ref != "" {
		whole = &agent.Blob{Ref: ref, Bytes: size}
	}
	return FromStored(agent.JSON(result), whole), true, nil
}

// undoneInTx marks the effect's row as undone, unless another key was first.
func (t *Tool[S, A, R]) undoneInTx(ctx context.Context, task agent.Task, by string) error {
	if err := t.install(ctx); err != nil {
		return err
	}
	if _, err := t.db.ExecContext(ctx, `UPDATE interlock_effects SET undone_by = $1, undone_at = $2 WHERE tenant = $3 AND key = $4 AND refused = '' AND undone_by = ''`,
		by, time.Now().UTC().Format(time.RFC3339Nano), task.Tenant, task.Key); err != nil {
		return fmt.Errorf("record that the effect was undone: %w", err)
	}
	var s Settlement
	err := t.db.QueryRowContext(ctx, `SELECT refused, undone_by FROM interlock_effects WHERE tenant = $1 AND key = $2`, task.Tenant, task.Key).Scan(&s.Refused, &s.Undone)
	found := &s
	switch {
	case errors.Is(err, sql.ErrNoRows):
		found = nil
	case err != nil:
		return fmt.Errorf("look-up of the effect: %w", err)
	}
	_, err = Undo(found, task.Key, by)
	return err
}

// install makes the table once a process; a failure is tried again next time.
func (t *Tool[S, A, R]) install(ctx context.Context) error {
	if t.db == nil {
		return &Failure{Kind: FailedRefused, Err: errors.New("the tool was made without a database")}
	}
	if t.installed.Load() {
		return nil
	}
	if err := InstallEffects(ctx, t.db); err != nil {
		return err
	}
	t.installed.Store(true)
	return nil
}
