// Package workflows is the durable part of a run: a small interpreter that
// feeds inputs to [agent.Machine] and turns its commands into activities and
// timers. Nothing is decided here.
package workflows

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
	"interlock/signals"
)

// Runs is the workflow of every agent of a registry; each is registered under
// its agent's name.
type Runs struct{ agents *agent.Registry }

// New makes the workflows of a registry.
func New(agents *agent.Registry) *Runs { return &Runs{agents} }

// Registered is what a workflow of a given type runs: every agent's runs, what
// looks after the ledger, and what tells notices. It is for workers and replayers.
func (r *Runs) Registered() map[string]any {
	out := map[string]any{signals.WorkflowSweep: Sweep, signals.WorkflowResolve: Resolve, signals.WorkflowNotice: Notice}
	for _, name := range r.agents.Names() {
		out[name] = r.Run
	}
	return out
}

// pins are what decisions rest on beside the inputs. They are read once, in the
// first task, so that a later build or configuration cannot change them under
// a run.
type pins struct {
	Version     int          `json:"version"`
	Rules       int          `json:"rules"`
	Salt        string       `json:"salt"` // of the journal's chain
	Fingerprint string       `json:"fingerprint"`
	Limits      agent.Limits `json:"limits"`
	// State is what the state looks like: a change under the same version blocks the run.
	State agent.StateShape `json:"state"`
}

var pinned = agent.NewDecoder[pins]()

// Run is one execution of an agent, or a part of a long one: then before is
// where the part before it stopped.
//
// A panic in the agent's code, and an agent version that this worker lacks,
// block the workflow's task until a worker with the right code takes it; the
// run itself never fails of it.
func (r *Runs) Run(root workflow.Context, raw, before converter.RawValue) (signals.End, error) {
	// Everything runs on a disconnected context: Temporal's cancel is an input
	// like any other, and what a cancelled run must still do can be done.
	ctx, stop := workflow.NewDisconnectedContext(root)
	defer stop()
	in := &inbox{}
	in.listen(ctx)
	l := &loop{inbox: in, root: root, free: ctx, info: workflow.GetInfo(root), stops: map[string]workflow.CancelFunc{},
		trials: map[string]*trial{}, stopping: map[string]agent.StopStep{}}
	if err := errors.Join(workflow.SetQueryHandler(ctx, signals.QueryRun, l.query), workflow.SetQueryHandler(ctx, signals.QueryWaiting, l.waiting)); err != nil {
		return signals.End{}, err
	}
	if err := in.handle(ctx, l); err != nil {
		return signals.End{}, err
	}
	start, err := readStart(raw, l.info)
	if err != nil {
		l.failure = temporal.NewNonRetryableApplicationError(err.Error(), signals.ErrInvalid, err) // queries say so too
		return signals.End{}, l.failure
	}
	l.began = signals.StartChain(start.ID)
	if before.Payload() == nil {
		err = l.first(ctx, r.agents, start, raw)
	} else if err = l.reopen(ctx, r.agents, before); err != nil {
		err = temporal.NewNonRetryableApplicationError("the run cannot go on: "+err.Error(), signals.ErrInvalid, nil)
		l.failure = err
	}
	if err != nil {
		return signals.End{}, err
	}
	if err := l.run(ctx); err != nil {
		return signals.End{}, err
	}
	if l.ending == "" {
		return signals.End{}, l.next(ctx, raw)
	}
	return l.end(root)
}

// readStart decodes the start input and checks that the workflow has the
// address that it must have.
func readStart(raw converter.RawValue, info *workflow.Info) (signals.Start, error) {
	start, err := decode(signals.Starts, raw)
	if err != nil {
		return start, err
	}
	if err := signals.CheckStart(start); err != nil {
		return start, err
	}
	if want := signals.Address(start.Tenant, start.Agent, start.Key); want != info.WorkflowExecution.ID {
		return start, agent.Errorf(agent.CodeInvalid, "the workflow id is %q; this start input belongs under %q", info.WorkflowExecution.ID, want)
	}
	if start.Agent != info.WorkflowType.Name {
		return start, agent.Errorf(agent.CodeInvalid, "the workflow type is %q, the start input names agent %q", info.WorkflowType.Name, start.Agent)
	}
	return start, nil
}

// decode reads a payload that must be JSON.
func decode[T any](d agent.Decoder[T], raw converter.RawValue) (T, error) {
	var zero T
	p := raw.Payload()
	if enc := string(p.GetMetadata()[converter.MetadataEncoding]); enc != converter.MetadataEncodingJSON {
		return zero, agent.Errorf(agent.CodeInvalid, "the payload is %q; send JSON", enc)
	}
	return d.Decode(p.GetData())
}

// first opens a run, unless its start is not believed.
func (l *loop) first(ctx workflow.Context, agents *agent.Registry, s signals.Start, raw converter.RawValue) error {
	s, err := l.begunBy(ctx, s, raw)
	if err != nil {
		l.failure = temporal.NewNonRetryableApplicationError(err.Error(), signals.ErrInvalid, nil)
		return l.failure
	}
	return l.open(ctx, agents, s)
}

// open reads the pins and gives the machine its first inputs.
func (l *loop) open(ctx workflow.Context, agents *agent.Registry, s signals.Start) error {
	var raw converter.RawValue
	fresh := workflow.SideEffect(ctx, func(workflow.Context) any {
		def, err := agents.Get(s.Agent, s.Version)
		if err != nil {
			panic(err) // blocks the task; nothing is recorded
		}
		return pins{Version: def.Version, Rules: agent.Rules, Salt: newSalt(), Fingerprint: def.Fingerprint(), Limits: def.Limits(), State: def.StateShape()}
	})
	if err := fresh.Get(&raw); err != nil {
		return err
	}
	p, err := readPins(raw.Payload().GetData())
	if err != nil {
		return blocks(err)
	}
	def, err := agents.Get(s.Agent, p.Version)
	if err != nil {
		panic(fmt.Sprintf("%v: the task waits for a worker that has it", err))
	}
	if err := def.CheckState(p.State); err != nil {
		return blocks(err)
	}
	l.def, l.machine = def, agent.NewMachine(def)
	user := s.User
	if user == "" {
		user = s.Principal.Subject
	}
	inputs := []agent.Input{agent.Started{Tenant: s.Tenant, Key: s.Key, FirstRunID: l.info.FirstRunID, Version: p.Version, Rules: p.Rules, Salt: p.Salt,
		Fingerprint: p.Fingerprint, Limits: p.Limits, Principal: s.Principal, User: user, Body: s.Body, Digest: s.Digest(),
		After: s.After, Repair: s.Repair}}
	if s.Message != nil {
		inputs = append(inputs, agent.Message{ID: s.Message.ID, Principal: s.Message.Principal, Text: s.Message.Text,
			Policy: s.Message.Policy, First: true})
	}
	l.inbox.first(s.TraceID, inputs...)
	return nil
}

// readPins reads what the first task recorded. CodeUnavailable: it is a newer build's.
func readPins(data []byte) (pins, error) {
	var head struct {
		Rules int `json:"rules"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return pins{}, err
	}
	if err := agent.CheckRules(head.Rules); err != nil {
		return pins{}, err
	}
	p, err := pinned.Decode(data)
	if err != nil {
		return p, agent.UnknownSnapshot(err)
	}
	return p, nil
}

// unverified takes away what a sender says of its own authentication: nobody
// has checked it.
func unverified(p agent.Principal) agent.Principal {
	p.Auth = ""
	return p
}

// end is the workflow's result. A run that Temporal cancelled ends as cancelled
// there too.
func (l *loop) end(root workflow.Context) (signals.End, error) {
	r := l.machine.Run()
	end := signals.End{Status: r.Status, Phase: r.Phase, Reason: r.Reason, State: r.State}
	switch {
	case r.Status == agent.RunFailed:
		return end, temporal.NewNonRetryableApplicationError(r.Reason, signals.ErrInvalid, nil)
	case r.Status == agent.RunCancelled && root.Err() != nil:
		return end, temporal.NewCanceledError(r.Reason)
	}
	return end, nil
}

// newSalt is what a run's chain of hashes is keyed with: 128 random bits.
func newSalt() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
