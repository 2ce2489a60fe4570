package store

import (
	"context"
	"slices"
	"time"

	"interlock/agent"
)

// Assignment says who looks at a gate, so that two people do not read the same one.
// It is for people only: it gives no right and takes none, and a verdict of somebody
// else is judged as ever. It ends by itself.
type Assignment struct {
	Chain
	Gate    string
	Subject string // who looks at it
	By      string // who said so
	At      time.Time
	Until   time.Time
}

// Check refuses an assignment that no store takes.
func (a Assignment) Check() error {
	if a.FirstRunID == "" {
		return agent.Errorf(agent.CodeInvalid, "an assignment names the run whose gate it is, by its first run id")
	}
	if !a.Until.After(a.At) {
		return agent.Errorf(agent.CodeInvalid, "an assignment ends after it begins")
	}
	return CheckNamed("tenant", a.Tenant, "address", a.Address, "first run id", a.FirstRunID, "gate", a.Gate, "subject", a.Subject, "name of who assigns", a.By)
}

// Absence says who looks after a person's gates while they are away. It gives the
// cover no role.
type Absence struct {
	Tenant      string
	Subject     string
	Cover       string
	From, Until time.Time
	By          string // who said so
}

// Check refuses an absence that no store takes.
func (a Absence) Check() error {
	if !a.Until.After(a.From) {
		return agent.Errorf(agent.CodeInvalid, "an absence ends after it begins")
	}
	if a.Subject == a.Cover {
		return agent.Errorf(agent.CodeInvalid, "%s cannot stand in for themself", a.Subject)
	}
	return CheckNamed("tenant", a.Tenant, "subject", a.Subject, "cover", a.Cover, "name of who says so", a.By)
}

// Assignments tell who looks at which gate, and who is away.
type Assignments interface {
	// Assign makes an assignment where the gate has none, one that has ended, or one of
	// the same person's or of from ("": nobody's): it is handed over then. Else that
	// which stands is returned with CodeConflict. Times are to the microsecond.
	Assign(ctx context.Context, a Assignment, from string) (stands Assignment, err error)
	// Unassign ends the assignment of a person, CodeNotFound where they have none.
	Unassign(ctx context.Context, run Chain, gate, subject string) error
	// Assigned lists a tenant's assignments that have not ended at a time.
	Assigned(ctx context.Context, tenant string, at time.Time) ([]Assignment, error)
	// SetAbsence makes the absence of a person, or changes the one that they have.
	SetAbsence(ctx context.Context, a Absence) error
	// EndAbsence takes it away, CodeNotFound where there is none.
	EndAbsence(ctx context.Context, tenant, subject string) error
	// Absent lists a tenant's absences that have not ended at a time, those that are to
	// begin too.
	Absent(ctx context.Context, tenant string, at time.Time) ([]Absence, error)
}

// Covering is who looks after a person's gates at a time: they themself, or whoever
// stands in for them; where that one is away too, whoever stands in for that one.
func Covering(absences []Absence, subject string, at time.Time) string {
	for range absences { // a circle ends somewhere
		i := slices.IndexFunc(absences, func(a Absence) bool {
			return a.Subject == subject && !at.Before(a.From) && at.Before(a.Until)
		})
		if i < 0 {
			break
		}
		subject = absences[i].Cover
	}
	return subject
}
