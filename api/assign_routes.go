package api

import (
	"context"
	"net/http"
	"time"

	"interlock/api/access"
	"interlock/api/desk"
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

func (s *Server) desk(ctx context.Context, tenant string) (desk.Desk, error) {
	return desk.Open(ctx, s.reads, tenant, s.now())
}

// assignedOf is who looks at a gate; nil where nobody does.
func assignedOf(d desk.Desk, run store.Chain, gate string) *Assigned {
	return (*Assigned)(d.Of(run, gate))
}

func (s *Server) assign(ctx context.Context, c *call, in *assignInput) (*body[AssignedGate], error) {
	address, row, err := s.gate(ctx, c, in.GatePath, "")
	if err != nil {
		return nil, err
	}
	d, err := s.desk(ctx, c.caller.Tenant)
	if err != nil {
		return nil, err
	}
	b := given(in.Body)
	look, err := d.Assign(ctx, s.reads, c.caller, store.Chain{Tenant: c.caller.Tenant, Address: address, FirstRunID: row.FirstRunID}, row.Gate, b.To, time.Duration(b.Minutes)*time.Minute)
	return &body[AssignedGate]{AssignedGate{address, row.Gate.ID, (*Assigned)(&look)}}, err
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
	if err := d.Unassign(ctx, s.reads, c.caller, chain, row.Gate.ID); err != nil {
		return nil, err
	}
	if d, err = s.desk(ctx, c.caller.Tenant); err != nil {
		return nil, err
	}
	return &body[AssignedGate]{AssignedGate{address, row.Gate.ID, assignedOf(d, chain, row.Gate.ID)}}, nil
}

func (s *Server) listAbsences(ctx context.Context, c *call, _ *struct{}) (*body[AbsenceList], error) {
	all, err := s.reads.Absent(ctx, c.caller.Tenant, s.now())
	out := AbsenceList{Absences: []Absence{}}
	for _, a := range all {
		out.Absences = append(out.Absences, Absence{a.Subject, a.Cover, a.From, a.Until, a.By})
	}
	return &body[AbsenceList]{out}, err
}

func (s *Server) setAbsence(ctx context.Context, c *call, in *absenceInput) (*body[Absence], error) {
	subject, err := desk.Whose(c.caller, in.Body.Subject)
	if c.target = subject; err != nil {
		return nil, err
	}
	a, err := desk.SetAbsence(ctx, s.reads, c.caller, subject, in.Body.Cover, given(in.Body.From), in.Body.Until, s.now())
	return &body[Absence]{Absence{a.Subject, a.Cover, a.From, a.Until, a.By}}, err
}

func (s *Server) endAbsence(ctx context.Context, c *call, in *absenceEndInput) (*body[AbsenceList], error) {
	subject, err := desk.Whose(c.caller, in.Subject)
	if c.target = subject; err != nil {
		return nil, err
	}
	if err := desk.EndAbsence(ctx, s.reads, c.caller, subject); err != nil {
		return nil, err
	}
	return s.listAbsences(ctx, c, nil)
}
