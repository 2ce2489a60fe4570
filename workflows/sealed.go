package workflows

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
	"interlock/signals"
)

// checkWithin bounds the check of a token, which reads no more than a key.
const checkWithin = 5 * time.Second

// sealOf is the token of a payload that was read, and what it must say; nil where
// there is none. Its expiry is judged by the arrival, now.
func sealOf(ctx workflow.Context, name string, raw converter.RawValue) *signals.Sealed {
	var sent struct{ ID, Token string }
	data := raw.Payload().GetData()
	if json.Unmarshal(data, &sent) != nil || sent.Token == "" {
		return nil
	}
	said, err := signals.Said(agent.JSON(data))
	if err != nil {
		return nil // it was not read either
	}
	return &signals.Sealed{Token: sent.Token, Act: name, Said: said, ID: sent.ID, AtMicros: workflow.Now(ctx).UnixMicro()}
}

// believe finds out who has sent an input that came with a token, and says why it
// must be refused. What arrived after it waits, so that the order of arrival stays.
func (l *loop) believe(ctx workflow.Context, e *entry) (refusal string) {
	if e.seal == nil {
		return ""
	}
	in, run := *e.seal, l.machine.Run()
	in.Tenant, in.Address, in.FirstRunID, in.Began = run.Tenant, run.Address(), run.FirstRunID, l.began
	who, refusal, err := whoSent(ctx, in)
	switch {
	case err != nil:
		return "the token could not be checked (" + rootMessage(err) + "): send it again"
	case refusal == "":
		e.input = agent.By(e.input, who)
	}
	return refusal
}

// whoSent is whom a token speaks of, or why it is not believed. An error says that
// it could not be found out.
func whoSent(ctx workflow.Context, in signals.Sealed) (who agent.Principal, refusal string, err error) {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: checkWithin,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumAttempts: 3}, Summary: "token of " + in.Act})
	var out signals.Believed
	err = workflow.ExecuteLocalActivity(ctx, signals.ActivityCheckToken, in).Get(ctx, &out)
	return out.Principal, out.Refused, err
}

// begunBy is a start with the principals that its token proves. Its expiry is judged
// by when the run was started, however long no worker was there. One whose token is
// not believed never becomes a run; one whose token cannot be checked blocks the
// task until it can.
func (l *loop) begunBy(ctx workflow.Context, s signals.Start, raw converter.RawValue) (signals.Start, error) {
	s.Principal = unverified(s.Principal)
	if s.Message != nil {
		m := *s.Message
		m.Principal = unverified(m.Principal)
		s.Message = &m
	}
	if s.Token == "" {
		return s, nil
	}
	said, err := signals.Said(agent.JSON(raw.Payload().GetData()))
	if err != nil {
		return s, err
	}
	who, refusal, err := whoSent(ctx, signals.Sealed{Token: s.Token, Tenant: s.Tenant, Address: l.info.WorkflowExecution.ID, FirstRunID: signals.StartChain(s.ID),
		Act: signals.ActStart, Said: said, ID: s.ID, AtMicros: l.info.WorkflowStartTime.UnixMicro()})
	if err != nil {
		panic("workflows: the token of the start cannot be checked: " + rootMessage(err))
	}
	if refusal != "" {
		return s, agent.Errorf(agent.CodeDenied, "%s", refusal)
	}
	s.Principal = who
	if s.Message != nil { // what the token says of the start names who the message is from
		s.Message.Principal.Tenant, s.Message.Principal.Auth = who.Tenant, who.Auth
	}
	return s, nil
}
