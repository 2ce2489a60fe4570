// Package starter is the client of product backends: it starts runs and steers
// them. It needs Temporal, and for lists and for what Temporal has forgotten a
// reader of the store; it never needs a worker's code.
//
// Every call is idempotent by its id or key, names a principal, has a deadline,
// and fails with an [agent.Error] whose code and text say what to do.
package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// DefaultDeadline bounds a call whose context has no deadline.
const DefaultDeadline = 20 * time.Second

// Starter starts and steers runs. It is safe for concurrent use.
type Starter struct {
	temporal client.Client
	reader   store.Reader
	queue    string
	deadline time.Duration
	signing  *signing // nil: what is sent is not signed
}

// Option changes a [Starter].
type Option func(*Starter)

// WithReader gives access to the store: a start is then recognised as a repeat
// also after Temporal's retention, a mistyped agent is refused, and ended runs
// can be read for ever.
func WithReader(r store.Reader) Option { return func(s *Starter) { s.reader = r } }

// WithTaskQueue names the queue that the workers poll. Defaults to interlock.
func WithTaskQueue(name string) Option { return func(s *Starter) { s.queue = name } }

// WithDeadline bounds calls whose context has no deadline. Defaults to
// [DefaultDeadline].
func WithDeadline(d time.Duration) Option { return func(s *Starter) { s.deadline = d } }

// New makes a starter. The caller closes the client and the store.
func New(c client.Client, options ...Option) *Starter {
	s := &Starter{temporal: c, queue: "interlock", deadline: DefaultDeadline}
	for _, o := range options {
		o(s)
	}
	return s
}

// Start is what a run is started with; see [signals.Start].
type Start struct {
	Agent     string
	Version   int // 0: the newest that the worker has
	Tenant    string
	Key       string // one run for each; the session, order or ticket that it serves
	Principal agent.Principal
	User      string // the subject served; none: the principal
	Body      any    // the agent's start input
	Message   *signals.Message
	TraceID   string
}

// Started is a run that exists now.
type Started struct {
	Address    string `json:"address"`
	FirstRunID string `json:"first_run_id"`
	New        bool   `json:"new"` // false: the same start had been made before
}

// Start starts a run, durably when it returns. The same key, user, body and
// first message is the same run, whenever it comes again; anything else under
// the key is CodeConflict. No worker need be up.
func (s *Starter) Start(ctx context.Context, in Start) (Started, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	start, err := in.input()
	if err != nil {
		return Started{}, err
	}
	return s.begin(ctx, start)
}

// begin starts a run, or finds that the same start had been made.
func (s *Starter) begin(ctx context.Context, in signals.Start) (Started, error) {
	address, digest := signals.Address(in.Tenant, in.Agent, in.Key), in.Digest()
	if old, err := s.recorded(ctx, in.Tenant, address, digest); err != nil || old != nil {
		if err != nil {
			return Started{}, err
		}
		return *old, nil
	}
	if err := s.checkDeployed(ctx, in.Agent, in.Version); err != nil {
		return Started{}, err
	}
	in, err := s.signedStart(in)
	if err != nil {
		return Started{}, err
	}
	options := s.options(in)
	options.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	options.WorkflowIDConflictPolicy = enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	run, err := s.temporal.ExecuteWorkflow(ctx, options, in.Agent, in)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &already) {
		return s.same(ctx, address, digest)
	}
	if err != nil {
		return Started{}, s.explain(ctx, "start", address, err)
	}
	return Started{Address: address, FirstRunID: run.GetRunID(), New: true}, nil
}

// input is the start input, checked.
func (in Start) input() (signals.Start, error) {
	body, err := agent.Encode(in.Body)
	if err != nil {
		return signals.Start{}, agent.Errorf(agent.CodeInvalid, "the body is no JSON that is accepted: %w", err)
	}
	if in.Body == nil {
		body = nil
	}
	start := signals.Start{Agent: in.Agent, Version: in.Version, Tenant: in.Tenant, Key: in.Key, Principal: in.Principal, User: in.User,
		Body: body, Message: in.Message, TraceID: in.TraceID}
	if err := signals.CheckStart(start); err != nil {
		return start, err
	}
	// A run does not refuse this at its start: it would begin without its first message,
	// and take none of that user's.
	for _, who := range []agent.Principal{in.Principal, {Subject: in.User}} {
		if err := agent.CheckPrincipal(who); err != nil {
			return start, err
		}
	}
	return start, nil
}

// options are what all starts have in common.
func (s *Starter) options(start signals.Start) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: signals.Address(start.Tenant, start.Agent, start.Key), TaskQueue: s.queue,
		Memo:          map[string]any{signals.MemoBody: start.Digest(), signals.MemoAgent: fmt.Sprintf("%s/v%d", start.Agent, start.Version)},
		StaticSummary: fmt.Sprintf("%s for %s", start.Agent, start.Tenant),
	}
}

// recorded finds the run in the store, nil where there is no reader or no run.
func (s *Starter) recorded(ctx context.Context, tenant, address, digest string) (*Started, error) {
	if s.reader == nil {
		return nil, nil
	}
	row, err := s.reader.RunRow(ctx, store.Chain{Tenant: tenant, Address: address})
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if row.Body != digest {
		return nil, usedOtherwise(address)
	}
	return &Started{Address: address, FirstRunID: row.FirstRunID}, nil
}

func usedOtherwise(address string) error {
	return agent.Errorf(agent.CodeConflict, "%s was started with another body, user or first message: use a new key, or send the same start again", address)
}

// same compares a start with the one that Temporal knows.
func (s *Starter) same(ctx context.Context, address, digest string) (Started, error) {
	d, err := s.temporal.DescribeWorkflow(ctx, address, "")
	if err != nil {
		return Started{}, s.explain(ctx, "start", address, err)
	}
	info := d.RawResponse.GetWorkflowExecutionInfo()
	if string(info.GetMemo().GetFields()[signals.MemoBody].GetData()) != `"`+digest+`"` {
		return Started{}, usedOtherwise(address)
	}
	return Started{Address: address, FirstRunID: info.GetFirstRunId()}, nil
}

// checkDeployed refuses an agent that no worker has ever served from this
// store: a mistyped name would wait for ever.
func (s *Starter) checkDeployed(ctx context.Context, name string, version int) error {
	d, ok := s.reader.(store.Deployments)
	if !ok {
		return nil
	}
	all, err := d.AllDeployed(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	var have []string
	for _, e := range all {
		if e.Agent == name && (version == 0 || version == e.Version) {
			return nil
		}
		have = append(have, fmt.Sprintf("%s/v%d", e.Agent, e.Version))
	}
	return agent.Errorf(agent.CodeNotFound, "no worker serves agent %s/v%d (v0 is the newest); deployed are %v", name, version, have)
}

func (s *Starter) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, s.deadline)
}
