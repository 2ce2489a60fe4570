package starter

import (
	"context"
	"strings"
	"sync"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// ResumeAll says which paused runs are to go on.
type ResumeAll struct {
	Agent     string // none: every agent
	Reason    string // a prefix of what they are paused for: "model:", "budget:"; none: whatever it is
	Principal agent.Principal
	ID        string // the same again resumes no run a second time
	Note      string // the reason of each resume
	TraceID   string
}

// Resumed is what came of one run.
type Resumed struct {
	Address string        `json:"address"`
	Reason  string        `json:"reason"` // what it was paused for
	Receipt agent.Receipt `json:"receipt"`
	Err     error         `json:"-"`
}

// resumesAtOnce bounds how many runs are resumed at a time.
const resumesAtOnce = 8

// ResumeAll resumes a tenant's paused runs, page after page, and goes on where
// one of them fails. Each has a deadline of its own; ctx's bounds all. The error
// is of the list: the results up to there are returned with it. A repeat with
// the same ID is harmless.
func (s *Starter) ResumeAll(ctx context.Context, tenant string, in ResumeAll) ([]Resumed, error) {
	if err := s.canRead(tenant); err != nil {
		return nil, err
	}
	if _, err := (input{name: "resume-all", id: in.ID, who: in.Principal}).check(); err != nil {
		return nil, err
	}
	var all []Resumed
	for f := (store.RunFilter{Agent: in.Agent, Status: agent.RunPaused, Reason: in.Reason, Limit: maxPage}); ; {
		rows, err := s.List(ctx, tenant, f)
		if err != nil {
			return all, err
		}
		all = append(all, s.resumePage(ctx, in, rows)...)
		if len(rows) < f.Limit {
			return all, nil
		}
		if err := ctx.Err(); err != nil {
			return all, &agent.Error{Code: agent.CodeUnavailable, Message: "resume all: the time was up; the same again goes on", Err: err}
		}
		f.After = rows[len(rows)-1].Cursor
	}
}

func (s *Starter) resumePage(ctx context.Context, in ResumeAll, rows []store.RunRow) []Resumed {
	found := make([]*Resumed, len(rows))
	slots := make(chan struct{}, resumesAtOnce)
	var wg sync.WaitGroup
	for i, row := range rows {
		if row.Head.Status != agent.RunPaused || !strings.HasPrefix(row.Head.Reason, in.Reason) {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			found[i] = s.resumeRow(ctx, in, row)
		})
	}
	wg.Wait()
	var out []Resumed
	for _, r := range found {
		if r != nil {
			out = append(out, *r)
		}
	}
	return out
}

// resumeRow resumes the run of a row; nil where another stands at its address
// now, which the resume would reach.
func (s *Starter) resumeRow(ctx context.Context, in ResumeAll, row store.RunRow) *Resumed {
	out := &Resumed{Address: row.Address, Reason: row.Head.Reason}
	now, err := s.reader.RunRow(ctx, store.Chain{Tenant: row.Tenant, Address: row.Address})
	switch {
	case err != nil:
		out.Err = err
		return out
	case now.FirstRunID != row.FirstRunID:
		return nil
	}
	id, err := agent.Encode([]string{in.ID, row.Address})
	if err != nil {
		out.Err = err
		return out
	}
	out.Receipt, out.Err = s.Resume(ctx, row.Address, signals.Resume{ID: "resume-all:" + agent.DigestOf(id), Principal: in.Principal, Reason: in.Note, TraceID: in.TraceID})
	return out
}
