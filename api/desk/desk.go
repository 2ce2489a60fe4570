// Package desk says who looks at which gate, and who is away: what the HTTP API and
// the pages tell of it, and by which rules it changes. It gives no right and takes
// none: anybody who may can decide a gate all the same.
package desk

import (
	"context"
	"slices"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/store"
)

// Usual is for how long somebody looks at a gate who does not say for how long, and
// Most is the longest.
const (
	Usual = 15 * time.Minute
	Most  = 8 * time.Hour
)

// Desk is who looks at which gate at a time.
type Desk struct {
	At       time.Time
	Assigned []store.Assignment
	Absences []store.Absence
}

// Open reads a tenant's.
func Open(ctx context.Context, s store.Assignments, tenant string, now time.Time) (d Desk, err error) {
	d.At = now.UTC().Truncate(time.Microsecond)
	if d.Assigned, err = s.Assigned(ctx, tenant, d.At); err != nil {
		return d, err
	}
	d.Absences, err = s.Absent(ctx, tenant, d.At)
	return d, err
}

// Look is who looks at a gate.
type Look struct {
	To    string
	By    string // who said so
	For   string // who is away, and whom they stand in for
	At    time.Time
	Until time.Time
}

// Of is who looks at a gate; nil where nobody does.
func (d Desk) Of(run store.Chain, gate string) *Look {
	i := slices.IndexFunc(d.Assigned, func(a store.Assignment) bool {
		return a.Address == run.Address && a.FirstRunID == run.FirstRunID && a.Gate == gate
	})
	if i < 0 {
		return nil
	}
	l := d.look(d.Assigned[i])
	return &l
}

func (d Desk) look(a store.Assignment) Look {
	out := Look{To: store.Covering(d.Absences, a.Subject, d.At), By: a.By, At: a.At, Until: a.Until}
	if out.To != a.Subject {
		out.For = a.Subject
	}
	return out
}

// Covering is who looks after a person's gates now.
func (d Desk) Covering(subject string) string { return store.Covering(d.Absences, subject, d.At) }

// May reports whether a caller may take a gate, hand it over or let it go as far as
// others are concerned: nobody looks at it, they do, they stand in for who does, or
// they are an operator.
func (d Desk) May(c access.Caller, run store.Chain, gate string) bool {
	l := d.Of(run, gate)
	return l == nil || l.To == c.Subject || l.For == c.Subject || c.Is(access.Operator)
}

// giver is from whom a caller may take a gate away: from themself, from whom they
// stand in for, and an operator from anybody.
func (d Desk) giver(c access.Caller, run store.Chain, gate string) string {
	for _, now := range d.Assigned {
		if now.Chain == run && now.Gate == gate && (c.Is(access.Operator) || store.Covering(d.Absences, now.Subject, d.At) == c.Subject) {
			return now.Subject
		}
	}
	return c.Subject
}

// Assign lets somebody look at a gate: the caller where to is empty, else whom it is
// handed over to. CodeConflict: somebody else looks at it. CodeGateClosed: there is
// nothing to look at any more.
func (d Desk) Assign(ctx context.Context, s store.Assignments, c access.Caller, run store.Chain, g agent.Gate, to string, lasts time.Duration) (Look, error) {
	if g.Status != agent.GateOpen {
		return Look{}, agent.Errorf(agent.CodeGateClosed, "the gate is %s: there is nothing to look at any more", g.Status)
	}
	if to == "" {
		to = c.Subject
	}
	if lasts == 0 {
		lasts = Usual
	}
	if err := named(to); err != nil {
		return Look{}, err
	}
	a := store.Assignment{Chain: run, Gate: g.ID, Subject: to, By: c.Subject, At: d.At, Until: d.At.Add(lasts)}
	stands, err := s.Assign(ctx, a, d.giver(c, run, g.ID))
	if agent.ErrorCode(err) == agent.CodeConflict {
		return Look{}, agent.Errorf(agent.CodeConflict, "%s looks at it until %s: they can hand it over, and so can an operator", stands.Subject, stands.Until.Format(time.RFC3339))
	}
	return d.look(stands), err
}

// named refuses what is nobody's name: it would stand on everybody's pages.
func named(who string) error {
	if !access.IsName(who) {
		return agent.Errorf(agent.CodeInvalid, "a name has 1 to 200 bytes, without control characters and without spaces around it: give the one that they are signed in by")
	}
	return nil
}

// Unassign lets a gate go. Where it is not the caller's to let go nothing changes.
func (d Desk) Unassign(ctx context.Context, s store.Assignments, c access.Caller, run store.Chain, gate string) error {
	err := s.Unassign(ctx, run, gate, d.giver(c, run, gate))
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return nil
	}
	return err
}

// Whose is the person of whose absence a caller speaks: themself where subject is
// empty, and of others an operator only.
func Whose(c access.Caller, subject string) (string, error) {
	switch {
	case subject == "":
		return c.Subject, nil
	case subject != c.Subject && !c.Is(access.Operator):
		return subject, agent.Errorf(agent.CodeDenied, "only an operator says of others that they are away")
	}
	return subject, nil
}

// SetAbsence says that a person is away from a time on (zero: now), and who stands
// in.
func SetAbsence(ctx context.Context, s store.Assignments, c access.Caller, subject, cover string, from, until, now time.Time) (store.Absence, error) {
	if from.IsZero() {
		from = now
	}
	for _, who := range []string{subject, cover} {
		if err := named(who); err != nil {
			return store.Absence{}, err
		}
	}
	a := store.Absence{Tenant: c.Tenant, Subject: subject, Cover: cover, From: from.UTC().Truncate(time.Microsecond), Until: until.UTC().Truncate(time.Microsecond), By: c.Subject}
	return a, s.SetAbsence(ctx, a)
}

// EndAbsence says that a person is there again. One who was not away is there.
func EndAbsence(ctx context.Context, s store.Assignments, c access.Caller, subject string) error {
	err := s.EndAbsence(ctx, c.Tenant, subject)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return nil
	}
	return err
}
