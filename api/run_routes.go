package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
)

// RunLine is a run in a list.
type RunLine struct {
	Address    string          `json:"address"`
	FirstRunID string          `json:"first_run_id"`
	Agent      string          `json:"agent"`
	Version    int             `json:"version"`
	Key        string          `json:"key"`
	User       string          `json:"user" doc:"the subject that the run serves"`
	Status     agent.RunStatus `json:"status"`
	Reason     string          `json:"reason,omitempty" doc:"what it waits for, or why it is paused or ended"`
	Phase      string          `json:"phase,omitempty"`
	Turn       int             `json:"turn"`
	Seq        int64           `json:"seq" doc:"of its last event"`
	StartedAt  time.Time       `json:"started_at"`
	UpdatedAt  time.Time       `json:"updated_at"`
	EndedAt    *time.Time      `json:"ended_at,omitempty"`
}

func lineOf(r store.RunRow) RunLine {
	return RunLine{r.Address, r.FirstRunID, r.Agent, r.Version, r.Key, r.User, r.Head.Status, r.Head.Reason, r.Head.Phase, r.Head.Turn, r.Seq,
		r.StartedAt, r.UpdatedAt, r.EndedAt}
}

// RunPage is a page of runs.
type RunPage struct {
	Runs []RunLine `json:"runs"`
	Next string    `json:"next_page_token,omitempty" doc:"absent on the last page"`
}

// ShownRun is a run as it stands, sensitive fields masked.
type ShownRun struct {
	agent.Run
	Address string          `json:"address"`
	Waits   []agent.Waiting `json:"waits,omitempty" doc:"what it waits for: since when, until when, for whom"`
	Bill    *Bill           `json:"bill,omitempty"`
}

// Bill is what the model's provider billed for a run.
type Bill struct {
	Calls int         `json:"calls"`
	Twice int         `json:"twice" doc:"of them, those whose answer was not used"`
	Usage agent.Usage `json:"usage"`
}

// ShownWhy is what a run waits for, in a sentence, and what to do.
type ShownWhy struct {
	Address      string            `json:"address"`
	FirstRunID   string            `json:"first_run_id,omitempty"`
	Status       agent.RunStatus   `json:"status,omitempty"`
	Reason       string            `json:"reason,omitempty"`
	Phase        string            `json:"phase,omitempty"`
	Turn         int               `json:"turn,omitempty"`
	Seq          int64             `json:"seq,omitempty"`
	UpdatedAt    time.Time         `json:"updated_at,omitzero"`
	Sentence     string            `json:"sentence"`
	Next         string            `json:"next" doc:"which command comes next, or what to do"`
	Waits        []agent.Waiting   `json:"waits,omitempty"`
	Activities   []starter.Pending `json:"activities,omitempty"`
	TaskFailures int               `json:"task_failures,omitempty"`
	TaskFailure  string            `json:"task_failure,omitempty"`
	Unseen       []string          `json:"unseen,omitempty" doc:"what could not be looked at"`
	RepairedBy   []starter.Repair  `json:"repaired_by,omitempty" doc:"the runs that undo steps of it, since it has ended"`
}

type listInput struct {
	Paged
	Agent  string `query:"agent" maxLength:"64" doc:"only runs of this agent"`
	Status string `query:"status" enum:"running,waiting,paused,completed,cancelled,failed"`
	Reason string `query:"reason" maxLength:"200" doc:"what the reason begins with, such as budget:"`
	User   string `query:"user" maxLength:"200" doc:"only runs that serve this subject"`
	Key    string `query:"key" maxLength:"200" doc:"only the runs under this key; with agent"`
}

type body[T any] struct{ Body T }

func (s *Server) runRoutes() {
	handle(s, Route{Method: http.MethodGet, Path: "/v1/runs", ID: "list-runs", Tag: "runs", Summary: "List the tenant's runs, newest first", Act: access.RunList}, s.listRuns)
	handle(s, Route{Method: http.MethodGet, Path: "/v1/runs/{agent}/{key}", ID: "get-run", Tag: "runs", Summary: "Get a run as it stands", Act: access.RunGet}, s.getRun)
	handle(s, Route{Method: http.MethodGet, Path: "/v1/runs/{agent}/{key}/why", ID: "why-run", Tag: "runs", Summary: "Say what a run waits for, and what to do", Act: access.RunWhy}, s.whyRun)
	handle(s, Route{Method: http.MethodGet, Path: "/v1/runs/{agent}/{key}/news", ID: "wait-run", Tag: "runs", Summary: "Wait for a reply, a gate, a pause or the end", Act: access.RunGet}, s.newsOfRun)
}

func (s *Server) listRuns(ctx context.Context, c *call, in *listInput) (*body[RunPage], error) {
	f := store.RunFilter{Agent: in.Agent, Status: agent.RunStatus(in.Status), Reason: in.Reason, User: in.User, After: in.Token, Limit: in.Size + 1}
	if in.Key != "" {
		if in.Agent == "" {
			return nil, agent.Errorf(agent.CodeInvalid, "a key is one of an agent: give agent too")
		}
		address, err := c.address(in.Agent, in.Key)
		if err != nil {
			return &body[RunPage]{RunPage{Runs: []RunLine{}}}, nil
		}
		f.Address = address
	}
	// Whoever sees their own runs only is shown those, whatever they ask for.
	if access.Check(c.caller, c.act, access.On{Run: "*", User: f.User}) != nil {
		if f.User != "" {
			return &body[RunPage]{RunPage{Runs: []RunLine{}}}, nil
		}
		f.User = c.caller.Subject
	}
	rows, err := s.reads.RunRows(ctx, c.caller.Tenant, f)
	if err != nil {
		return nil, err
	}
	rows, more := cut(rows, in.Size)
	page := RunPage{Runs: []RunLine{}}
	all := &store.Redactions{Reader: s.reads}
	for _, r := range rows {
		page.Runs = append(page.Runs, lineOf(all.Row(ctx, c.caller.Tenant, r)))
	}
	if more {
		page.Next = rows[len(rows)-1].Cursor
	}
	return &body[RunPage]{page}, nil
}

func (s *Server) getRun(ctx context.Context, c *call, in *RunPath) (*body[ShownRun], error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	run, err := s.runs.Get(ctx, address)
	if err != nil {
		return nil, err
	}
	shown := ShownRun{Run: *run, Address: address, Waits: run.Waits()}
	if usage, err := s.reads.ModelUsage(ctx, c.caller.Tenant, address); err == nil {
		shown.Bill = &Bill{usage.Calls, usage.Twice, usage.Usage}
	}
	return &body[ShownRun]{shown}, nil
}

func (s *Server) whyRun(ctx context.Context, c *call, in *RunPath) (*body[ShownWhy], error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	w, err := s.runs.Why(ctx, address)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(c.caller.May, access.Operator) {
		w = w.Plain()
	}
	return &body[ShownWhy]{ShownWhy{Address: w.Address, FirstRunID: w.FirstRunID, Status: w.Status, Reason: w.Reason, Phase: w.Phase, Turn: w.Turn, Seq: w.Seq,
		UpdatedAt: w.UpdatedAt, Sentence: w.Sentence, Next: w.Next, Waits: w.Waits, Activities: w.Activities, TaskFailures: w.TaskFailures,
		TaskFailure: w.TaskFailure, Unseen: w.Unseen, RepairedBy: w.RepairedBy}}, nil
}

type newsInput struct {
	RunPath
	After int64 `query:"after" minimum:"0" doc:"the seq up to which everything is known"`
}

// waitFor bounds one wait, below the time that proxies give a request.
const waitFor = 15 * time.Second

// newsOfRun answers as soon as there is something new, and else that there is
// nothing yet.
func (s *Server) newsOfRun(ctx context.Context, c *call, in *newsInput) (*body[signals.News], error) {
	address, err := s.run(ctx, c, in.Agent, in.Key, access.On{})
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, waitFor)
	defer cancel()
	news, err := s.runs.Wait(waiting, address, in.After)
	if err != nil && !(news.Again && agent.ErrorCode(err) == agent.CodeUnavailable) {
		return nil, err
	}
	return &body[signals.News]{news}, nil
}
