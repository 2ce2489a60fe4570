package api

import (
	"context"
	"net/http"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/store"
)

// RunCount is how many runs stand alike.
type RunCount struct {
	Agent  string          `json:"agent"`
	Status agent.RunStatus `json:"status"`
	Reason string          `json:"reason,omitempty" doc:"what their reason begins with, up to its first colon: gate, user, model"`
	Runs   int             `json:"runs"`
}

// RunCounts are those of a tenant.
type RunCounts struct {
	Counts []RunCount `json:"counts"`
}

// Spent is what one agent's calls of one model took in one step of time.
type Spent struct {
	At    time.Time   `json:"at" doc:"when the step began"`
	Agent string      `json:"agent"`
	Model string      `json:"model"`
	Calls int         `json:"calls" doc:"all that were billed"`
	Usage agent.Usage `json:"usage"`
}

// SpentList is what a tenant's model calls took.
type SpentList struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Spent []Spent   `json:"spent" doc:"what there was no call of is not in it"`
}

type countInput struct {
	Ended int `query:"ended_hours" minimum:"0" maximum:"8760" default:"168" doc:"ended runs of so many hours are counted, too"`
}

type spentInput struct {
	By    string `query:"by" enum:"hour,day" default:"hour"`
	Steps int    `query:"steps" minimum:"1" maximum:"744" default:"24" doc:"hours or days, the present one included; in UTC"`
}

func (s *Server) opsRoutes() {
	handle(s, Route{Method: http.MethodGet, Path: "/v1/ops/runs", ID: "count-runs", Tag: "ops", Summary: "Count the tenant's runs by agent, status and reason", Act: access.Ops}, s.countRuns)
	handle(s, Route{Method: http.MethodGet, Path: "/v1/ops/spent", ID: "sum-spent", Tag: "ops", Summary: "Sum the tenant's model calls by time, agent and model", Act: access.Ops}, s.sumSpent)
}

func (s *Server) countRuns(ctx context.Context, c *call, in *countInput) (*body[RunCounts], error) {
	rows, err := s.reads.CountRuns(ctx, c.caller.Tenant, s.now().Add(-time.Duration(in.Ended)*time.Hour))
	out := RunCounts{Counts: []RunCount{}}
	for _, r := range rows {
		out.Counts = append(out.Counts, RunCount{r.Agent, r.Status, r.Kind, r.Runs})
	}
	return &body[RunCounts]{out}, err
}

func (s *Server) sumSpent(ctx context.Context, c *call, in *spentInput) (*body[SpentList], error) {
	step := map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour}[in.By]
	to := s.now().UTC().Truncate(step).Add(step)
	out := SpentList{From: to.Add(-time.Duration(in.Steps) * step), To: to, Spent: []Spent{}}
	rows, err := s.reads.Spent(ctx, c.caller.Tenant, store.SpentFilter{From: out.From, To: to, Step: step})
	for _, r := range rows {
		out.Spent = append(out.Spent, Spent{r.At, r.Agent, r.Model, r.Calls, r.Usage})
	}
	return &body[SpentList]{out}, err
}
