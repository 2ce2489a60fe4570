package api_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/api"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/store/sqlite"
)

// runs are real machines in the place of Temporal; their journals are in the store.
type runs struct {
	api.Runs // nil: what is not used here
	t        *testing.T
	store    *sqlite.Store
	mu       sync.Mutex
	of       map[string]*agenttest.Run
	saved    map[string]*saved
	starts   map[string]string
	down     error // what every call answers
	resolved signals.Resolution
}

// saved is how far a journal is.
type saved struct {
	seq  int64
	hash string
}

func (f *runs) save(address string) {
	run, at := f.of[address], f.saved[address]
	var fresh []agent.Event
	b := agent.Batch{First: at.seq + 1, Before: at.hash, Head: agent.Head{Status: run.Run().Status, Reason: run.Run().Reason, Phase: run.Run().Phase, Turn: run.Run().Turn}}
	for _, e := range run.Events() {
		if e.Seq > at.seq {
			fresh = append(fresh, e)
			at.hash = e.Chain(b.Salt, at.hash)
		}
	}
	if b.Events = fresh; len(fresh) > 0 {
		at.seq = fresh[len(fresh)-1].Seq
		tenant, _, _, _ := signals.SplitAddress(address)
		require.NoError(f.t, f.store.Append(context.Background(), store.RunRef{Tenant: tenant, Address: address, FirstRunID: run.Run().FirstRunID, Branch: "b"}, b))
	}
}

// propose lets the model answer.
func (f *runs) propose(address string, do func(*agenttest.Run)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f.of[address])
	f.save(address)
}

// noTemporal knows no run.
type noTemporal struct{ client.Client }

func (noTemporal) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	return nil, serviceerror.NewNotFound("no such run")
}

func (f *runs) WatchRun(ctx context.Context, run *store.Chain, afterSeq int64) iter.Seq2[agent.Event, error] {
	return starter.New(noTemporal{}, starter.WithReader(f.store)).WatchRun(ctx, run, afterSeq)
}

func (f *runs) find(address string) (*agenttest.Run, error) {
	if f.down != nil {
		return nil, f.down
	}
	if r, ok := f.of[address]; ok {
		return r, nil
	}
	return nil, agent.Errorf(agent.CodeNotFound, "there is no run %s", address)
}

func (f *runs) input(address string, in agent.Input) (agent.Receipt, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(address)
	if err != nil {
		return agent.Receipt{}, err
	}
	receipt := r.Input(in)
	f.save(address)
	if receipt.Status == agent.Refused {
		return receipt, agent.Errorf(receipt.Code, "%s", receipt.Reason)
	}
	return receipt, nil
}

func (f *runs) Start(_ context.Context, in starter.Start) (starter.Started, error) {
	if in.Agent != "desk" {
		return starter.Started{}, agent.Errorf(agent.CodeNotFound, "no worker serves agent %s/v%d", in.Agent, in.Version)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	address := signals.Address(in.Tenant, in.Agent, in.Key)
	what := fmt.Sprint(in.User, in.Body, in.Message)
	if had, ok := f.starts[address]; ok {
		if had != what {
			return starter.Started{}, agent.Errorf(agent.CodeConflict, "%s was started with another body", address)
		}
		return starter.Started{Address: address, FirstRunID: "first-" + in.Key}, nil
	}
	run := agenttest.Options{Tenant: in.Tenant, Key: in.Key, User: in.User}.Start(f.t, desk(), in.Body)
	f.starts[address], f.of[address], f.saved[address] = what, run, &saved{}
	f.save(address)
	return starter.Started{Address: address, FirstRunID: "first-" + in.Key, New: true}, nil
}

func (f *runs) Get(_ context.Context, address string) (*agent.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(address)
	if err != nil {
		return nil, err
	}
	run := *r.Run()
	return &run, nil
}

func (f *runs) Gate(_ context.Context, address, id string) (store.GateRow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(address)
	if err != nil {
		return store.GateRow{}, err
	}
	for _, g := range r.Run().Gates {
		if g.ID == id {
			return store.GateRow{Address: address, FirstRunID: r.Run().FirstRunID, Agent: "desk", Gate: g}, nil
		}
	}
	return store.GateRow{}, agent.Errorf(agent.CodeNotFound, "run %s has no gate %q", address, id)
}

func (f *runs) Why(_ context.Context, address string) (starter.Why, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.find(address)
	return starter.Why{Address: address, Sentence: "waits", Next: "look"}, err
}

func (f *runs) Wait(_ context.Context, address string, after int64) (signals.News, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(address)
	if err != nil {
		return signals.News{}, err
	}
	n := signals.NewsOf(r.Run(), after)
	if n.Again {
		err = agent.Errorf(agent.CodeUnavailable, "nothing new in time")
	}
	return n, err
}

func (f *runs) Converse(ctx context.Context, in starter.Converse) (starter.Conversed, error) {
	address := signals.Address(in.Tenant, in.Agent, in.Key)
	f.mu.Lock()
	_, stands := f.of[address]
	f.mu.Unlock()
	if !stands {
		if _, err := f.Start(ctx, starter.Start{Agent: in.Agent, Tenant: in.Tenant, Key: in.Key, User: in.User, Body: in.Body}); err != nil {
			return starter.Conversed{}, err
		}
	}
	r, err := f.Message(ctx, address, in.Message)
	return starter.Conversed{Address: address, New: !stands, Receipt: r}, err
}

func (f *runs) Message(_ context.Context, address string, m signals.Message) (agent.Receipt, error) {
	return f.input(address, agent.Message{ID: m.ID, Principal: m.Principal, Text: m.Text, Policy: m.Policy})
}

func (f *runs) Cancel(_ context.Context, address string, c signals.Cancel) (agent.Receipt, error) {
	return f.input(address, agent.CancelRun{ID: c.ID, Principal: c.Principal, Reason: c.Reason, Undo: c.Undo})
}

func (f *runs) Amend(_ context.Context, address string, a signals.Amend) (agent.Receipt, error) {
	return f.input(address, agent.AmendRun{ID: a.ID, Principal: a.Principal, Fields: a.Fields, Reason: a.Reason})
}

func (f *runs) Pause(_ context.Context, address string, p signals.Pause) (agent.Receipt, error) {
	return f.input(address, agent.PauseRun{ID: p.ID, Principal: p.Principal, Reason: p.Reason})
}

func (f *runs) Resume(_ context.Context, address string, r signals.Resume) (agent.Receipt, error) {
	return f.input(address, agent.ResumeRun{ID: r.ID, Principal: r.Principal, Reason: r.Reason})
}

func (f *runs) Undo(_ context.Context, address string, u signals.Undo) (starter.Undone, error) {
	r, err := f.input(address, agent.UndoSteps{ID: u.ID, Principal: u.Principal, Steps: u.Steps, Reason: u.Reason})
	return starter.Undone{Receipt: r}, err
}

func (f *runs) Decide(_ context.Context, address string, v signals.Verdict) (agent.Receipt, error) {
	return f.input(address, agent.VerdictGiven{Verdict: agent.Verdict{ID: v.ID, Gate: v.Gate, Digest: v.Digest, Verdict: v.Verdict, Reason: v.Reason, Args: v.Args,
		Answer: v.Answer, Result: v.Result, Again: v.Again, Principal: v.Principal}})
}

func (f *runs) LiftRuling(_ context.Context, address string, r signals.LiftRuling) (agent.Receipt, error) {
	return f.input(address, agent.LiftRuling{ID: r.ID, Ruling: r.Ruling, Principal: r.Principal, Reason: r.Reason})
}

func (f *runs) ConfirmRuling(_ context.Context, address string, r signals.ConfirmRuling) (agent.Receipt, error) {
	return f.input(address, agent.ConfirmRuling{ID: r.ID, Ruling: r.Ruling, Principal: r.Principal, Reason: r.Reason})
}

func (f *runs) ResolveEffect(_ context.Context, in signals.Resolution) error {
	f.resolved = in
	return agent.Errorf(agent.CodeConflict, "its run is under way")
}
