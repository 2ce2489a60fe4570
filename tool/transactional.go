package tool

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"interlock/agent"
)

// transactional runs claim, effect and settlement as one transaction in the
// tool's database: a crash at any point leaves all of it or nothing. A second
// attempt at the same time waits at the primary key, or is told that the
// database is busy, and then finds the row.
//
// The claim is the transaction's first statement. In SQLite it takes the write
// lock: a transaction that has read before it writes may not wait for that. Until
// it stands nothing is known, since the commit of an earlier attempt may still be
// under way: such a failure is FailedStore. Once it stands, no earlier attempt has
// had the effect.
func (t *Tool[S, A, R]) transactional(ctx context.Context, task agent.Task, args A, p Ports) (Result, error) {
	table, err := t.effects(ctx)
	if err != nil {
		return Result{}, asFailure(err)
	}
	bounded, cancel := context.WithTimeout(ctx, TxTimeout)
	defer cancel()
	tx, err := table.begin(bounded, task, p.NotAfter)
	if err != nil {
		return table.instead(ctx, task, err)
	}
	defer func() { _ = tx.Rollback() }() // where the function ends its goroutine
	r, err := t.call(bounded, "", tx, args)
	if err != nil {
		return table.rollBack(ctx, tx, task, tooLong(bounded, err))
	}
	out, err := t.result(bounded, r, task.Limit, p)
	if err != nil {
		return table.rollBack(ctx, tx, task, tooLong(bounded, fmt.Errorf("result: %w", err)))
	}
	switch settled, err := table.settle(bounded, tx, task, out); {
	case errors.Is(err, sql.ErrTxDone):
		return table.settleLate(ctx, task, out, tooLong(bounded, fmt.Errorf("the function ended its transaction, which it must leave to Interlock: %w", err)))
	case err != nil:
		return table.rollBack(ctx, tx, task, tooLong(bounded, fmt.Errorf("settle: %w", err)))
	case !settled:
		return Result{}, inDoubt(task, "ended the transaction by a statement of its own, or changed "+tableName)
	}
	if err := tx.Commit(); err != nil {
		return table.uncommitted(ctx, task, tooLong(bounded, fmt.Errorf("commit: %w", err)))
	}
	return out, nil
}

// tooLong adds that the transaction was cut off, where it was.
func tooLong(bounded context.Context, err error) error {
	if errors.Is(bounded.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the transaction was longer than %s: %w", TxTimeout, err)
	}
	return err
}

// errTaken is a claim that another transaction has won.
var errTaken = errors.New("another attempt holds it")

// begin opens a transaction that has claimed the key. There is none where it
// fails, or comes too late: what is claimed here has not begun before.
func (e *effectsTable) begin(ctx context.Context, task agent.Task, notAfter time.Time) (_ *sql.Tx, err error) {
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback()
		}
	}()
	if e.bounds != "" {
		if _, err := tx.ExecContext(ctx, e.bounds); err != nil {
			return nil, fmt.Errorf("begin: %w", err)
		}
	}
	claimed, err := e.insert(ctx, tx, task, refusedRow{})
	if err == nil && !claimed {
		err = errTaken
	}
	if err == nil && !notAfter.IsZero() {
		var now time.Time
		if now, err = e.clock(ctx, tx); err == nil && now.After(notAfter) {
			return nil, late()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return tx, nil
}

// clock is the database's; SQLite's is the process's.
func (e *effectsTable) clock(ctx context.Context, tx *sql.Tx) (now time.Time, err error) {
	if e.engine == sqliteEngine {
		return time.Now(), nil
	}
	err = tx.QueryRowContext(ctx, `SELECT clock_timestamp()`).Scan(&now)
	return now, err
}

// refusedRow is a row that says from its beginning that the effect does not happen;
// the zero value is a claim.
type refusedRow struct {
	reason string
	fenced bool
}

// insert makes the row, unless there is one.
func (e *effectsTable) insert(ctx context.Context, on interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, task agent.Task, refused refusedRow) (bool, error) {
	fenced := 0
	if refused.fenced {
		fenced = 1
	}
	return changed(on.ExecContext(ctx, `INSERT INTO `+e.name+` (tenant, key, scope, tool, step, args, at, agent, version, address, ordinal, refused, fenced)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT DO NOTHING`,
		task.Tenant, task.Key, task.Scope, task.Tool, task.Step, string(task.Args), moment(time.Now()), task.Agent, task.Version,
		addressOf(task.Scope), task.Ordinal, refused.reason, fenced))
}

// addressOf is the address of the run whose effects have a scope.
func addressOf(scope string) string {
	if i := strings.LastIndexByte(scope, '/'); i >= 0 {
		return scope[:i]
	}
	return scope
}

// moment is a time as the table has it: all of one length, so that they sort.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// settle writes the result into the claim; false where there is none to write to.
func (e *effectsTable) settle(ctx context.Context, on interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, task agent.Task, out Result) (bool, error) {
	ref, size := "", 0
	if out.Whole != nil {
		ref, size = out.Whole.Ref, out.Whole.Bytes
	}
	return changed(on.ExecContext(ctx, `UPDATE `+e.name+` SET result = $1, whole_ref = $2, whole_size = $3 WHERE tenant = $4 AND key = $5 AND result = '' AND refused = ''`,
		string(out.Stored()), ref, size, task.Tenant, task.Key))
}

func changed(r sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// instead is what an attempt that has no claim answers: what stands, or that
// nothing was run.
func (e *effectsTable) instead(ctx context.Context, task agent.Task, cause error) (Result, error) {
	s, err := e.settlement(ctx, task)
	switch {
	case errors.As(err, new(*Failure)):
		return Result{}, err
	case errors.As(cause, new(*Failure)) && s == nil: // it came too late
		return Result{}, cause
	case err == nil && s != nil && s.Ended() != nil:
		return Result{}, ended(s)
	case err == nil && s != nil:
		return s.Result, nil
	case isState(cause, noPrivilege):
		cause = fmt.Errorf("table %s%s: %w", tableName, mayNot(ctx, e.db, cause), cause)
	case isState(cause, readOnlyTx):
		cause = fmt.Errorf("the tool's database takes no writes (a standby, or default_transaction_read_only): %w", cause)
	}
	return Result{}, &Failure{Kind: FailedStore, Err: cause}
}

// rollBack ends an attempt whose function failed: nothing of it stands, unless the
// function has ended the transaction itself, or another attempt came in between
// when the time was up.
func (e *effectsTable) rollBack(ctx context.Context, tx *sql.Tx, task agent.Task, cause error) (Result, error) {
	done, cancel := after(ctx)
	defer cancel()
	if errors.Is(tx.Rollback(), sql.ErrTxDone) {
		s, err := e.settlement(done, task)
		if err != nil {
			f := &Failure{Kind: FailedUnknown, Err: errors.Join(cause, err), Open: true, Wait: retryWait(cause)}
			if asFailure(err).Kind == FailedInDoubt {
				f.Kind = FailedInDoubt
			}
			return Result{}, f
		}
		if s != nil && s.Ended() == nil {
			return s.Result, nil
		}
	}
	if IsRefused(cause) {
		return Result{}, e.refuse(done, task, cause)
	}
	return Result{}, rolledBack(cause)
}

// refuse records a refusal for good, so that a later attempt of the same key is
// told the same. Where another attempt was faster, what it did counts.
func (e *effectsTable) refuse(ctx context.Context, task agent.Task, cause error) error {
	recorded, err := e.insert(ctx, e.db, task, refusedRow{reason: text(cause.Error())})
	if err == nil && !recorded {
		err = errTaken
	}
	if err != nil {
		return &Failure{Kind: FailedNotApplied, Err: fmt.Errorf("refusal: %w", errors.Join(cause, err)), Open: true}
	}
	return &Failure{Kind: FailedRefused, Err: cause}
}

// settleLate is for a transaction that was over before it was settled. Where the
// function has committed it, all stands but the result.
func (e *effectsTable) settleLate(ctx context.Context, task agent.Task, out Result, cause error) (Result, error) {
	done, cancel := after(ctx)
	defer cancel()
	settled, err := e.settle(done, e.db, task, out)
	switch {
	case err != nil:
		return Result{}, &Failure{Kind: FailedUnknown, Err: errors.Join(cause, err), Open: true}
	case settled:
		return out, nil
	}
	return e.unless(done, task, rolledBack(cause))
}

// uncommitted finds out about a commit that failed. It may have reached a server,
// which is still at it: then nobody knows, until the next attempt has a claim.
func (e *effectsTable) uncommitted(ctx context.Context, task agent.Task, cause error) (Result, error) {
	done, cancel := after(ctx)
	defer cancel()
	unknown := &Failure{Kind: FailedUnknown, Err: cause, Open: true}
	if e.engine == sqliteEngine || refusesCommit(sqlState(cause)) {
		return e.unless(done, task, rolledBack(cause))
	}
	return e.unless(done, task, unknown)
}

// refusesCommit: by these the server says that it has rolled back. By others, as of
// a shutdown, it may have committed.
func refusesCommit(state string) bool {
	if len(state) != 5 || state == "40003" {
		return false
	}
	switch state[:2] {
	case "23", "25", "40", "P0": // constraints, invalid or timed-out transaction, serialization and deadlock, a trigger's own
		return true
	}
	return false
}

// unless is what stands, or else the failure.
func (e *effectsTable) unless(ctx context.Context, task agent.Task, f *Failure) (Result, error) {
	s, err := e.settlement(ctx, task)
	switch {
	case errors.As(err, new(*Failure)):
		return Result{}, err
	case err != nil:
		return Result{}, &Failure{Kind: FailedUnknown, Err: errors.Join(f, err), Open: true, Wait: f.Wait}
	case s != nil && s.Ended() == nil:
		return s.Result, nil
	case s != nil:
		return Result{}, ended(s)
	}
	return Result{}, f
}

// settlement reads how the effect ended; nil where there is no row. Its error is a
// [*Failure] where the row was read and says so.
func (e *effectsTable) settlement(ctx context.Context, task agent.Task) (*Settlement, error) {
	var s Settlement
	var scope, tool, args, result, ref string
	var size, fenced int
	err := e.db.QueryRowContext(ctx, `SELECT scope, tool, args, refused, result, whole_ref, whole_size, undone_by, fenced FROM `+e.name+` WHERE tenant = $1 AND key = $2`,
		task.Tenant, task.Key).Scan(&scope, &tool, &args, &s.Refused, &result, &ref, &size, &s.Undone, &fenced)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look-up of the effect%s: %w", mayNot(ctx, e.db, err), err)
	case scope != task.Scope || tool != task.Tool || args != string(task.Args):
		return nil, &Failure{Kind: FailedStore, Err: agent.Errorf(agent.CodeConflict,
			"the key %s is another effect's in %s: of tool %s in %s", task.Key, tableName, tool, scope)}
	case s.Refused == "" && result == "":
		return nil, inDoubt(task, "committed the transaction itself")
	}
	var whole *agent.Blob
	if ref != "" {
		whole = &agent.Blob{Ref: ref, Bytes: size}
	}
	s.Result, s.Fenced = FromStored(agent.JSON(result), whole), fenced != 0
	return &s, nil
}

// inDoubt is a function that broke the rules: what it did may stand by halves.
func inDoubt(task agent.Task, did string) error {
	return &Failure{Kind: FailedInDoubt, Open: true, Err: fmt.Errorf("the function of tool %s %s, which it must leave to Interlock: what it did may stand. "+
		"It is not run again; find out, and delete its row in %s (key %s) if nothing stands", task.Tool, did, tableName, task.Key)}
}

// rolledBack is a failed attempt of which nothing stands.
func rolledBack(err error) *Failure {
	return &Failure{Kind: FailedNotApplied, Err: err, Wait: retryWait(err)}
}

func asFailure(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return &Failure{Kind: FailedStore, Err: err}
}

// standingInTx reads the effect's row in the tool's database, where its only
// truth is.
func (t *Tool[S, A, R]) standingInTx(ctx context.Context, task agent.Task) (Result, bool, error) {
	table, err := t.effects(ctx)
	if err != nil {
		if f := asFailure(err); f.Kind == FailedRefused || agent.ErrorCode(f.Err) == agent.CodeInvalid {
			return Result{}, false, nil // no effect can have happened there
		}
		return Result{}, false, err
	}
	s, err := table.settlement(ctx, task)
	if err != nil && asFailure(err).Kind == FailedInDoubt {
		return Result{}, false, nil
	}
	if err != nil || s == nil || s.Ended() != nil {
		return Result{}, false, err
	}
	return s.Result, true, nil
}

// undoneInTx marks the effect's row as undone, unless another key was first.
func (t *Tool[S, A, R]) undoneInTx(ctx context.Context, task agent.Task, by string) error {
	table, err := t.effects(ctx)
	if err != nil {
		return err
	}
	if _, err := t.db.ExecContext(ctx, `UPDATE `+table.name+` SET undone_by = $1, undone_at = $2
WHERE tenant = $3 AND key = $4 AND scope = $5 AND result <> '' AND refused = '' AND undone_by = ''`, by, moment(time.Now()), task.Tenant, task.Key, task.Scope); err != nil {
		return fmt.Errorf("record that the effect was undone%s: %w", mayNot(ctx, t.db, err), err)
	}
	s, err := table.settlement(ctx, task)
	if err != nil {
		if f := asFailure(err); f.Kind == FailedInDoubt {
			s = nil
		} else {
			return err
		}
	}
	_, err = Undo(s, task.Key, by)
	return err
}

// effects is the table, made or brought up to date once a process; a failure is
// tried again next time.
func (t *Tool[S, A, R]) effects(ctx context.Context) (*effectsTable, error) {
	if t.db == nil {
		return nil, &Failure{Kind: FailedRefused, Err: errors.New("the tool was made without a database")}
	}
	if table := t.table.Load(); table != nil {
		return table, nil
	}
	table, _, err := installEffects(ctx, t.db, false)
	if err != nil {
		return nil, &Failure{Kind: FailedStore, Err: err}
	}
	t.table.Store(table)
	return table, nil
}
