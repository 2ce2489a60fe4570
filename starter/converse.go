package starter

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// Converse is a message of a session: it reaches the run that stands at the
// address, or starts one. Body, User and Version are those of a run that is
// started; they are not compared with those of one that runs.
type Converse struct {
	Agent     string
	Version   int // 0: the newest that the worker has
	Tenant    string
	Key       string // the session
	Principal agent.Principal
	User      string // the subject served; none: the principal
	Body      any    // the agent's start input
	Message   signals.Message
	TraceID   string
}

// Conversed says which run has the message.
type Conversed struct {
	Address    string        `json:"address"`
	FirstRunID string        `json:"first_run_id"`
	New        bool          `json:"new"` // this call started the run
	Receipt    agent.Receipt `json:"receipt"`
}

// Converse brings a message to the session's run. Where there is none, or the
// latest has ended, it starts one in the same round trip; two messages at once
// for a new session land in one run. A message that meets the end of a run goes
// on to the next.
//
// A repeat of a message is answered as the first was, also when the run that had
// it has ended meanwhile: no run is started for it. Without a reader that holds
// as long as Temporal keeps the ended run and a worker is up; and a session that
// Temporal has forgotten cannot be gone on with, since its next run would not
// know which one it follows.
func (s *Starter) Converse(ctx context.Context, in Converse) (Conversed, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	m := in.Message
	if m.TraceID == "" {
		m.TraceID = in.TraceID
	}
	start, err := Start{Agent: in.Agent, Version: in.Version, Tenant: in.Tenant, Key: in.Key, Principal: in.Principal, User: in.User,
		Body: in.Body, Message: &m, TraceID: in.TraceID}.input()
	if err != nil {
		return Conversed{}, err
	}
	start.Message = nil // it comes as an update, which is answered
	c := &conversation{s: s, start: start, input: input{signals.NameMessage, m.ID, m.Principal, m, m.Content()},
		address: signals.Address(in.Tenant, in.Agent, in.Key), nonce: rand.Text()}
	c.start.ID = c.nonce
	if c.body, err = c.input.check(); err != nil {
		return Conversed{}, err
	}
	c.updateID = c.input.updateID(c.body)
	return c.bring(ctx)
}

// memoRequest tells a starter whether the run that it reached is its own.
const memoRequest = "interlock_request"

// youngFor is how long after a run's start a repeat may be one of a message that
// the run before it had.
const youngFor = time.Hour

// conversation is one Converse.
type conversation struct {
	s        *Starter
	start    signals.Start // After: the run that a new one would follow
	input    input
	body     agent.JSON
	address  string
	nonce    string
	updateID string
	again    bool // a run may be started under an address that was used
}

// bring sends the message until a run has it. Each turn of the loop follows an
// end of a run, so that it is bounded by ctx alone.
func (c *conversation) bring(ctx context.Context) (Conversed, error) {
	if out, err := c.begin(ctx); out != nil || err != nil {
		return value(out), err
	}
	refused := false
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		out, runID, err := c.send(ctx)
		var used *serviceerror.WorkflowExecutionAlreadyStarted
		switch {
		case errors.As(err, &used):
			if out, err := c.follow(ctx); out != nil || err != nil {
				return value(out), err
			}
		case notTaken(err) && sleep(ctx, pause):
			continue
		case err != nil && !endedMeanwhile(err) && !hasEnded(err):
			return Conversed{}, c.s.explain(ctx, "converse", c.address, err)
		case err != nil, out.Receipt.Status == agent.Refused && out.Receipt.Code == agent.CodeEnded:
			c.fresh()
			c.again = false // which run is the latest is asked anew
			c.awaitEnd(ctx, runID)
		case stale(out.Receipt) && !refused:
			refused = true
			c.fresh()
			continue
		case stale(out.Receipt):
			return out, agent.Errorf(out.Receipt.Code, "%s", out.Receipt.Reason)
		default:
			if c.kept(ctx, &out, runID) {
				return out, nil
			}
			c.fresh()
			c.again = false
			c.awaitEnd(ctx, runID)
			if out, err := c.begin(ctx); out != nil || err != nil {
				return value(out), err
			}
		}
		if !sleep(ctx, pause) {
			return Conversed{}, &agent.Error{Code: agent.CodeUnavailable, Err: ctx.Err(),
				Message: "converse " + c.address + ": the run is ending, and had not ended in time; try again with the same id"}
		}
	}
}

// fresh makes the next update one that Temporal does not answer from memory: it
// gives an update's old outcome also where its run has ended.
func (c *conversation) fresh() { c.updateID = c.input.updateID(c.body) + ":" + rand.Text() }

// begin looks into the store: it knows ended runs for ever. out is set where the
// message was handled before.
func (c *conversation) begin(ctx context.Context) (out *Conversed, err error) {
	if c.s.reader == nil {
		return nil, nil
	}
	row, err := c.s.reader.RunRow(ctx, c.chain(""))
	switch {
	case agent.ErrorCode(err) == agent.CodeNotFound:
		return nil, c.s.checkDeployed(ctx, c.start.Agent, c.start.Version)
	case err != nil:
		return c.withoutStore(ctx, err)
	}
	c.start.After, c.again = row.FirstRunID, row.Head.Status.Ended()
	if c.again {
		if out, err := c.handled(ctx, row.FirstRunID); out != nil || err != nil {
			return out, err
		}
		return nil, c.s.checkDeployed(ctx, c.start.Agent, c.start.Version)
	}
	if time.Since(row.StartedAt) > youngFor {
		return nil, nil
	}
	before, err := c.before(ctx, row.FirstRunID)
	if err != nil || before == "" {
		return nil, err
	}
	return c.handled(ctx, before)
}

// withoutStore brings the message to a run that is there. None is started: the
// store may know one that Temporal has forgotten.
func (c *conversation) withoutStore(ctx context.Context, failed error) (*Conversed, error) {
	body, err := c.s.signed(ctx, c.address, "", c.input, c.body)
	if err != nil {
		return nil, err
	}
	r, err := c.s.send(ctx, c.address, c.input.name, c.updateID, body)
	switch {
	case err == nil && r.Status != agent.Refused:
		out := &Conversed{Address: c.address, Receipt: r}
		out.FirstRunID, _, _ = c.which(ctx, "")
		return out, nil
	case err == nil && stale(r):
		return &Conversed{Address: c.address, Receipt: r}, agent.Errorf(r.Code, "%s", r.Reason)
	case err == nil || over(c.s.explain(ctx, "converse", c.address, err)):
		return nil, agent.Errorf(agent.CodeUnavailable, "converse %s: no run is there that takes it, and the store, which knows earlier ones, cannot be read (%w): try again with the same id",
			c.address, failed)
	}
	return nil, c.s.explain(ctx, "converse", c.address, err)
}

// before is the first run id of the run that another one follows.
func (c *conversation) before(ctx context.Context, firstRunID string) (string, error) {
	events, err := c.s.reader.Events(ctx, c.chain(firstRunID), 1, 1)
	if err != nil || len(events) == 0 {
		return "", err
	}
	run, err := dataOf[agent.StartedData](events[0])
	return run.After, err
}

// handled answers a message that a run had which has ended.
func (c *conversation) handled(ctx context.Context, firstRunID string) (*Conversed, error) {
	run, err := c.s.fromJournal(ctx, c.chain(firstRunID))
	if err != nil {
		return nil, err
	}
	return c.handledBy(run)
}

func (c *conversation) handledBy(run *agent.Run) (*Conversed, error) {
	r, err := handledBy(run, c.input)
	if r == nil {
		return nil, err
	}
	return &Conversed{Address: c.address, FirstRunID: run.FirstRunID, Receipt: *r}, err
}

func (c *conversation) chain(firstRunID string) store.Chain {
	return store.Chain{Tenant: c.start.Tenant, Address: c.address, FirstRunID: firstRunID}
}

// send starts a run or reaches the one that is there, with the message. runID is
// the Temporal run that has it.
func (c *conversation) send(ctx context.Context) (out Conversed, runID string, err error) {
	out.Address = c.address
	start, err := c.s.signedStart(c.start)
	if err != nil {
		return out, "", err
	}
	// Of the run that stands there, or of the one that this starts. Where another
	// start comes between, the token is of neither, and the message is sent anew.
	body, err := c.s.signed(ctx, c.address, c.start.ID, c.input, c.body)
	if err != nil {
		return out, "", err
	}
	options := c.s.options(start)
	options.Memo[memoRequest] = c.nonce
	options.WorkflowIDConflictPolicy = enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	options.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	if c.again {
		options.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	handle, err := c.s.temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: c.s.temporal.NewWithStartWorkflowOperation(options, start.Agent, start),
		UpdateOptions: client.UpdateWorkflowOptions{UpdateName: c.input.name, UpdateID: c.updateID, Args: []any{body},
			WaitForStage: client.WorkflowUpdateStageCompleted},
	})
	if err != nil {
		return out, "", err
	}
	return out, handle.RunID(), handle.Get(ctx, &out.Receipt)
}

// kept completes out, and reports whether the run that said yes to the message
// has it for good.
func (c *conversation) kept(ctx context.Context, out *Conversed, runID string) bool {
	closed := false
	out.FirstRunID, out.New, closed = c.which(ctx, runID)
	if closed {
		return !c.lost(ctx, out.FirstRunID, runID)
	}
	return !c.outrun(ctx, *out)
}

// which names the run that has the message, and tells whether this call started
// it and whether it is closed. The message is taken in: that this cannot be found
// out is no error.
func (c *conversation) which(ctx context.Context, runID string) (firstRunID string, mine, closed bool) {
	d, err := c.s.temporal.DescribeWorkflow(ctx, c.address, runID)
	if err != nil {
		return runID, false, false
	}
	info := d.RawResponse.GetWorkflowExecutionInfo()
	closed = info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING && info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
	return info.GetFirstRunId(), string(info.GetMemo().GetFields()[memoRequest].GetData()) == `"`+c.nonce+`"`, closed
}

// lost reports that a closed run had said yes to the message and then could not
// record it: it was terminated, or the journal did not take it.
func (c *conversation) lost(ctx context.Context, firstRunID, runID string) bool {
	if c.s.reader == nil {
		out, err := c.handledThere(ctx, runID)
		return out == nil && err == nil
	}
	out, err := c.handled(ctx, firstRunID)
	return out == nil && (err == nil || agent.ErrorCode(err) == agent.CodeNotFound)
}

// follow makes the next run one that follows the chain that Temporal says has
// ended. out is set where that one had the message.
func (c *conversation) follow(ctx context.Context) (out *Conversed, err error) {
	d := c.s.describe(ctx, c.address)
	switch {
	case d.err != nil:
		return nil, c.s.explain(ctx, "converse", c.address, d.err)
	case d.missing || d.running():
		return nil, nil // somebody has started the next one, or it was deleted
	}
	c.again = true
	if c.s.reader == nil {
		if d.kind == signals.ErrKeyUsed || d.kind == signals.ErrConflict {
			return nil, agent.Errorf(agent.CodeConflict, "converse %s: the latest run there was refused, since the store knows one that Temporal has forgotten (%s): a starter.WithReader can go on with it",
				c.address, brief(d.closing))
		}
		c.start.After = d.firstRunID
		return c.handledThere(ctx, d.runID)
	}
	row, err := c.s.reader.RunRow(ctx, c.chain(""))
	switch {
	case agent.ErrorCode(err) == agent.CodeNotFound: // it ended before it had recorded anything
		c.start.After = ""
		return nil, nil
	case err != nil:
		return nil, err
	}
	c.start.After = row.FirstRunID
	return c.handled(ctx, row.FirstRunID)
}

// handledThere asks an ended run itself, which a worker answers for. One that
// cannot answer had nothing.
func (c *conversation) handledThere(ctx context.Context, runID string) (*Conversed, error) {
	asking, cancel := context.WithTimeout(ctx, queryFor)
	defer cancel()
	run, err := c.s.query(asking, c.address, runID)
	switch {
	case err == nil:
		return c.handledBy(run)
	case asking.Err() != nil || late(err):
		return nil, c.s.explain(ctx, "converse", c.address, err)
	}
	return nil, nil
}

// awaitEnd waits until a run that takes no message any more is closed; not where
// it is unknown which one that is: another may stand there now.
func (c *conversation) awaitEnd(ctx context.Context, runID string) {
	if runID == "" {
		return
	}
	_ = c.s.temporal.GetWorkflow(ctx, c.address, runID).Get(ctx, nil) // how it ended does not matter
}

// outrun reports that a run which this call started follows one that is not the
// latest: another has come and gone meanwhile. The journal will not take it.
func (c *conversation) outrun(ctx context.Context, out Conversed) bool {
	if !out.New || c.s.reader == nil || c.start.After == "" {
		return false
	}
	row, err := c.s.reader.RunRow(ctx, c.chain(""))
	return err == nil && row.FirstRunID != c.start.After && row.FirstRunID != out.FirstRunID
}
