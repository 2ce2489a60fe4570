package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/store"
)

// Assigned says who looks at a gate at the moment. It decides nothing: anybody who
// may can decide the gate all the same.
type Assigned struct {
	To    string    `json:"to"`
	By    string    `json:"by" doc:"who said so: the same, where they took it themself"`
	For   string    `json:"for,omitempty" doc:"who is away, and whom they stand in for"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
}

// AssignBody says who is to look at a gate.
type AssignBody struct {
	To      string `json:"to,omitempty" maxLength:"200" doc:"a colleague, to whom it is handed over; none: the caller"`
	Minutes int    `json:"minutes,omitempty" minimum:"1" maximum:"480" default:"15"`
}

// AssignedGate is a gate and who looks at it now.
type AssignedGate struct {
	Address  string    `json:"address"`
	Gate     string    `json:"gate"`
	Assigned *Assigned `json:"assigned,omitempty"`
}

// Absence says who looks after a person's gates while they are away.
type Absence struct {
	Subject string    `json:"subject"`
	Cover   string    `json:"cover"`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until"`
	By      string    `json:"by"`
}

// AbsenceList are those that last, and those that are to begin.
type AbsenceList struct {
	Absences []Absence `json:"absences"`
}

// AbsenceBody makes an absence, or changes it.
type AbsenceBody struct {
	Subject string     `json:"subject,omitempty" maxLength:"200" doc:"an operator may say it for others; none: the caller"`
	Cover   string     `json:"cover" minLength:"1" maxLength:"200" doc:"who stands in; it gives them no role"`
	From    *time.Time `json:"from,omitempty" doc:"none: now"`
	Until   time.Time  `json:"until"`
}

type assignInput struct {
	GatePath
	Keyed
	Body *AssignBody
}

type unassignInput struct {
	GatePath
	Keyed
}

type absenceInput struct {
	Keyed
	Body AbsenceBody
}

type absenceEndInput struct {
	Keyed
	Subject string `path:"subject" maxLength:"200"`
}

func (s *Server) assignRoutes() {
	gate := "/v1/runs/{agent}/{key}/gates/{gate}"
	handle(s, Route{Method: http.MethodPost, Path: gate + "/assign", ID: "assign-gate", Tag: "gates", Summary: "Take a gate to look at, or hand it over", Act: access.GateAssign, Acts: true}, s.assign)
	handle(s, Route{Method: http.MethodPost, Path: gate + "/unassign", ID: "unassign-gate", Tag: "gates", Summary: "Let a gate go that was taken", Act: access.GateAssign, Acts: true}, s.unassign)
	handle(s, Route{Method: http.MethodGet, Path: "/v1/absences", ID: "list-absences", Tag: "gates", Summary: "List who is away, and who stands in", Act: access.Absences}, s.listAbsences)
	handle(s, Route{Method: http.MethodPost, Path: "/v1/absences", ID: "set-absence", Tag: "gates", Summary: "Say who stands in while somebody is away", Act: access.Absences, Acts: true}, s.setAbsence)
	handle(s, Route{Method: http.MethodPost, Path: "/v1/absences/{subject}/end", ID: "end-absence", Tag: "gates", Summary: "End an absence", Act: access.Absences, Acts: true}, s.endAbsence)
}

// desk knows who looks at which gate at a time.
type desk struct {
	at       time.Time
	assigned []store.Assignment
	absences []store.Absence
}

func (s *Server) desk(ctx context.Context, tenant string) (d desk, err error) {
	d.at = s.now().UTC().Truncate(time.Microsecond)
	if d.assigned, err = s.reads.Assigned(ctx, tenant, d.at); err != nil {
		return d, err
	}
	d.absences, err = s.reads.Absent(ctx, tenant, d.at)
	return d, err
}

// of is who looks at a gate; nil where nobody does.
func (d desk) of(run store.Chain, gate string) *Assigned {
	i := slices.IndexFunc(d.assigned, func(a store.Assignment) bool {
		return a.Address == run.Address && a.FirstRunID == run.FirstRunID && a.Gate == gate
	})
	if i < 0 {
		return nil
	}
	return d.shown(d.assigned[i])
}

func (d desk) shown(a store.Assignment) *Assigned {
	out := &Assigned{To: store.Covering(d.absences, a.Subject, d.at), By: a.By, At: a.At, Until: a.Until}
	if out.To != a.Subject {
		out.For = a.Subject
	}
	return out
}

func (s *Server) assign(ctx context.Context, c *call, in *assignInput) (*body[AssignedGate], error) {
	address, row, err := s.gate(ctx, c, in.GatePath, "")
	if err != nil {
		return nil, err
	}
	if row.Gate.Status != agent.GateOpen {
		p := problem(agent.CodeGateClosed, "The gate is "+string(row.Gate.Status)+": there is nothing to look at any more.")
		return nil, p
	}
	d, err := s.desk(ctx, c.caller.Tenant)
	if err != nil {
		return nil, err
	}
	b := given(in.Body)
	to, minutes := b.To, b.Minutes
	if to == "" {
		to = c.caller.Subject
	}
	if minutes == 0 {
		minutes = 15
	}
	a := store.Assignment{Chain: store.Chain{Tenant: c.caller.Tenant, Address: address, FirstRunID: row.FirstRunID}, Gate: row.Gate.ID,
		Subject: to, By: c.caller.Subject, At: d.at, Until: d.at.Add(time.Duration(minutes) * time.Minute)}
	stands, err := s.reads.Assign(ctx, a, s.giver(d, c, a))
	if agent.ErrorCode(err) == agent.CodeConflict {
		return nil, problem(agent.CodeConflict, stands.Subject+" looks at it until "+stands.Until.Format(time.RFC3339)+": they can hand it over, and so can an operator.")
	}
	return &body[AssignedGate]{AssignedGate{address, row.Gate.ID, d.shown(stands)}}, err
}

// giver is from whom a caller may take a gate away: from themself, from whom they
// stand in for, and an operator from anybody.
func (s *Server) giver(d desk, c *call, a store.Assignment) string {
	for _, now := range d.assigned {
		if now.Chain == a.Chain && now.Gate == a.Gate && (c.caller.Is(access.Operator) || store.Covering(d.absences, now.Subject, d.at) == c.caller.Subject) {
			return now.Subject
		}
	}
	return c.caller.Subject
}

func (s *Server) unassign(ctx context.Context, c *call, in *unassignInput) (*body[AssignedGate], error) {
	address, row, err := s.gate(ctx, c, in.GatePath, "")
	if err != nil {
		return nil, err
	}
	d, err := s.desk(ctx, c.caller.Tenant)
	if err != nil {
		return nil, err
	}
	chain := store.Chain{Tenant: c.caller.Tenant, Address: address, FirstRunID: row.FirstRunID}
	from := s.giver(d, c, store.Assignment{Chain: chain, Gate: row.Gate.ID})
	if err := s.reads.Unassign(ctx, chain, row.Gate.ID, from); err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
		return nil, err
	}
	if d, err = s.desk(ctx, c.caller.Tenant); err != nil {
		return nil, err
	}
	return &body[AssignedGate]{AssignedGate{address, row.Gate.ID, d.of(chain, row.Gate.ID)}}, nil
}

func (s *Server) listAbsences(ctx context.Context, c *call, _ *struct{}) (*body[AbsenceList], error) {
	all, err := s.reads.Absent(ctx, c.caller.Tenant, s.now())
	out := AbsenceList{Absences: []Absence{}}
	for _, a := range all {
		out.Absences = append(out.Absences, Absence{a.Subject, a.Cover, a.From, a.Until, a.By})
	}
	return &body[AbsenceList]{out}, err
}

// absent checks whose absence a caller may speak of.
func (c *call) absent(subject string) (string, error) {
	if subject == "" {
		subject = c.caller.Subject
	}
	if c.target = subject; subject != c.caller.Subject && !c.caller.Is(access.Operator) {
		return "", agent.Errorf(agent.CodeDenied, "only an operator says of others that they are away")
	}
	return subject, nil
}

func (s *Server) setAbsence(ctx context.Context, c *call, in *absenceInput) (*body[Absence], error) {
	subject, err := c.absent(in.Body.Subject)
	if err != nil {
		return nil, err
	}
	from := s.now()
	if in.Body.From != nil {
		from = *in.Body.From
	}
	a := store.Absence{Tenant: c.caller.Tenant, Subject: subject, Cover: in.Body.Cover, From: from.UTC().Truncate(time.Microsecond),
		Until: in.Body.Until.UTC().Truncate(time.Microsecond), By: c.caller.Subject}
	if err := s.reads.SetAbsence(ctx, a); err != nil {
		return nil, err
	}
	return &body[Absence]{Absence{a.Subject, a.Cover, a.From, a.Until, a.By}}, nil
}

func (s *Server) endAbsence(ctx context.Context, c *call, in *absenceEndInput) (*body[AbsenceList], error) {
	subject, err := c.absent(in.Subject)
	if err != nil {
		return nil, err
	}
	if err := s.reads.EndAbsence(ctx, c.caller.Tenant, subject); err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
		return nil, err
	}
	return s.listAbsences(ctx, c, nil)
}
