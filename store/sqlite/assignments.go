package sqlite

import (
	"context"
	"errors"
	"time"

	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	assignmentColumns = `tenant, address, first_run_id, gate, subject, by, at, until`
	upsertAssignment  = `INSERT INTO assignments (tenant, address, first_run_id, gate, subject, by, at, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, address, first_run_id, gate) DO UPDATE SET subject = excluded.subject, by = excluded.by, at = excluded.at, until = excluded.until
WHERE assignments.until <= excluded.at OR assignments.subject IN (excluded.subject, ?)`
	selectAssignment = `SELECT ` + assignmentColumns + ` FROM assignments WHERE tenant = ? AND address = ? AND first_run_id = ? AND gate = ?`
	deleteAssignment = `DELETE FROM assignments WHERE tenant = ? AND address = ? AND first_run_id = ? AND gate = ? AND subject = ?`
	upsertAbsence    = `INSERT INTO absences (tenant, subject, cover, begins, until, by) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, subject) DO UPDATE SET cover = excluded.cover, begins = excluded.begins, until = excluded.until, by = excluded.by`
	deleteAbsence = `DELETE FROM absences WHERE tenant = ? AND subject = ?`
)

// Assign implements [store.Assignments].
func (s *Store) Assign(ctx context.Context, a store.Assignment, from string) (stands store.Assignment, err error) {
	const operation = "assignment of a gate"
	if err := errors.Join(a.Check(), store.CheckText("from", from)); err != nil {
		return stands, fail(operation, err)
	}
	changed := int64(0)
	err = s.write(ctx, operation, func(t transaction) error {
		changed, err = t.exec(ctx, upsertAssignment, a.Tenant, a.Address, a.FirstRunID, a.Gate, a.Subject, a.By, micros(a.At), micros(a.Until), from)
		if err != nil {
			return err
		}
		stands, err = scanAssignment(t.row(ctx, selectAssignment, a.Tenant, a.Address, a.FirstRunID, a.Gate))
		return err
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
	return s.write(ctx, operation, func(t transaction) error {
		changed, err := t.exec(ctx, deleteAssignment, run.Tenant, run.Address, run.FirstRunID, gate, subject)
		if err == nil && changed == 0 {
			err = rules.NotAssigned(gate, subject)
		}
		return err
	})
}

// Assigned implements [store.Assignments].
func (s *Store) Assigned(ctx context.Context, tenant string, at time.Time) (all []store.Assignment, err error) {
	const operation = "list of assignments"
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, `SELECT `+assignmentColumns+` FROM assignments WHERE tenant = ? AND until > ? ORDER BY until, address, gate`,
		[]any{tenant, micros(at)}, func(r row) error {
			a, err := scanAssignment(r)
			all = append(all, a)
			return err
		})
	return all, err
}

func scanAssignment(r row) (a store.Assignment, err error) {
	var at, until int64
	err = r.Scan(&a.Tenant, &a.Address, &a.FirstRunID, &a.Gate, &a.Subject, &a.By, &at, &until)
	a.At, a.Until = fromMicros(at), fromMicros(until)
	return a, err
}

// SetAbsence implements [store.Assignments].
func (s *Store) SetAbsence(ctx context.Context, a store.Absence) error {
	const operation = "absence"
	if err := a.Check(); err != nil {
		return fail(operation, err)
	}
	return s.write(ctx, operation, func(t transaction) error {
		_, err := t.exec(ctx, upsertAbsence, a.Tenant, a.Subject, a.Cover, micros(a.From), micros(a.Until), a.By)
		return err
	})
}

// EndAbsence implements [store.Assignments].
func (s *Store) EndAbsence(ctx context.Context, tenant, subject string) error {
	const operation = "end of an absence"
	if err := store.CheckNamed("tenant", tenant, "subject", subject); err != nil {
		return fail(operation, err)
	}
	return s.write(ctx, operation, func(t transaction) error {
		changed, err := t.exec(ctx, deleteAbsence, tenant, subject)
		if err == nil && changed == 0 {
			err = rules.NotAbsent(subject)
		}
		return err
	})
}

// Absent implements [store.Assignments].
func (s *Store) Absent(ctx context.Context, tenant string, at time.Time) (all []store.Absence, err error) {
	const operation = "list of absences"
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	err = s.read(ctx, operation, `SELECT tenant, subject, cover, begins, until, by FROM absences WHERE tenant = ? AND until > ? ORDER BY subject`,
		[]any{tenant, micros(at)}, func(r row) error {
			var a store.Absence
			var from, until int64
			err := r.Scan(&a.Tenant, &a.Subject, &a.Cover, &from, &until, &a.By)
			a.From, a.Until = fromMicros(from), fromMicros(until)
			all = append(all, a)
			return err
		})
	return all, err
}
