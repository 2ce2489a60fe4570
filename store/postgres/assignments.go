package postgres

import (
	"context"
	"errors"
	"time"

	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	assignmentColumns = `tenant, address, first_run_id, gate, subject, by, at, until`
	upsertAssignment  = `INSERT INTO interlock.assignments (tenant, address, first_run_id, gate, subject, by, at, until) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant, address, first_run_id, gate) DO UPDATE SET subject = excluded.subject, by = excluded.by, at = excluded.at, until = excluded.until
WHERE assignments.until <= excluded.at OR assignments.subject IN (excluded.subject, $9)`
	selectAssignment = `SELECT ` + assignmentColumns + ` FROM interlock.assignments WHERE tenant = $1 AND address = $2 AND first_run_id = $3 AND gate = $4`
	deleteAssignment = `DELETE FROM interlock.assignments WHERE tenant = $1 AND address = $2 AND first_run_id = $3 AND gate = $4 AND subject = $5`
	selectAssigned   = `SELECT ` + assignmentColumns + ` FROM interlock.assignments WHERE tenant = $1 AND until > $2 ORDER BY until, address, gate`
	upsertAbsence    = `INSERT INTO interlock.absences (tenant, subject, cover, begins, until, by) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, subject) DO UPDATE SET cover = excluded.cover, begins = excluded.begins, until = excluded.until, by = excluded.by`
	deleteAbsence = `DELETE FROM interlock.absences WHERE tenant = $1 AND subject = $2`
	selectAbsent  = `SELECT tenant, subject, cover, begins, until, by FROM interlock.absences WHERE tenant = $1 AND until > $2 ORDER BY subject`
)

// Assign implements [store.Assignments].
func (s *Store) Assign(ctx context.Context, a store.Assignment, from string) (stands store.Assignment, err error) {
	const operation = "assignment of a gate"
	if err := errors.Join(a.Check(), store.CheckText("from", from)); err != nil {
		return stands, fail(operation, err)
	}
	changed := int64(0)
	err = s.write(ctx, operation, func(t *transaction) error {
		t.count(&changed, upsertAssignment, a.Tenant, a.Address, a.FirstRunID, a.Gate, a.Subject, a.By, a.At, a.Until, from)
		t.rows(func(r row) (err error) { stands, err = scanAssignment(r); return err }, selectAssignment, a.Tenant, a.Address, a.FirstRunID, a.Gate)
		return nil
	})
	if err == nil && changed == 0 {
		err = fail(operation, rules.AssignedTo(stands))
	}
	return stands, err
}

// Unassign implements [store.Assignments].
func (s *Store) Unassign(ctx context.Context, run store.Chain, gate, subject string) error {
	const operation = "end of an assignment"
	if err := errors.Join(run.Check(), store.CheckNamed("first run id", run.FirstRunID, "gate", gate, "subject", subject)); err != nil {
		return fail(operation, err)
	}
	return s.ended(ctx, operation, rules.NotAssigned(gate, subject), deleteAssignment, run.Tenant, run.Address, run.FirstRunID, gate, subject)
}

// ended runs a statement that ends something, and fails where there was nothing.
func (s *Store) ended(ctx context.Context, operation string, nothing error, statement string, args ...any) error {
	changed := int64(0)
	err := s.write(ctx, operation, func(t *transaction) error {
		t.count(&changed, statement, args...)
		return nil
	})
	if err == nil && changed == 0 {
		err = fail(operation, nothing)
	}
	return err
}

// Assigned implements [store.Assignments].
func (s *Store) Assigned(ctx context.Context, tenant string, at time.Time) (all []store.Assignment, err error) {
	const operation = "list of assignments"
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, selectAssigned, []any{tenant, at}, func(r row) error {
		a, err := scanAssignment(r)
		all = append(all, a)
		return err
	})
	return all, err
}

func scanAssignment(r row) (a store.Assignment, err error) {
	err = r.Scan(&a.Tenant, &a.Address, &a.FirstRunID, &a.Gate, &a.Subject, &a.By, &a.At, &a.Until)
	a.At, a.Until = a.At.UTC(), a.Until.UTC()
	return a, err
}

// SetAbsence implements [store.Assignments].
func (s *Store) SetAbsence(ctx context.Context, a store.Absence) error {
	const operation = "absence"
	if err := a.Check(); err != nil {
		return fail(operation, err)
	}
	return s.write(ctx, operation, func(t *transaction) error {
		t.exec(upsertAbsence, a.Tenant, a.Subject, a.Cover, a.From, a.Until, a.By)
		return nil
	})
}

// EndAbsence implements [store.Assignments].
func (s *Store) EndAbsence(ctx context.Context, tenant, subject string) error {
	const operation = "end of an absence"
	if err := store.CheckNamed("tenant", tenant, "subject", subject); err != nil {
		return fail(operation, err)
	}
	return s.ended(ctx, operation, rules.NotAbsent(subject), deleteAbsence, tenant, subject)
}

// Absent implements [store.Assignments].
func (s *Store) Absent(ctx context.Context, tenant string, at time.Time) (all []store.Absence, err error) {
	const operation = "list of absences"
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, selectAbsent, []any{tenant, at}, func(r row) error {
		var a store.Absence
		err := r.Scan(&a.Tenant, &a.Subject, &a.Cover, &a.From, &a.Until, &a.By)
		a.From, a.Until = a.From.UTC(), a.Until.UTC()
		all = append(all, a)
		return err
	})
	return all, err
}
