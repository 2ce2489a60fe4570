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
	in.Tenant, in.Address, in.FirstRunID = run.Tenant, run.Address(), run.FirstRunID
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: checkWithin,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumAttempts: 3}, Summary: "token of " + in.Act})
	var out signals.Believed
	if err := workflow.ExecuteLocalActivity(ctx, signals.ActivityCheckToken, in).Get(ctx, &out); err != nil {
		return "the token could not be checked (" + rootMessage(err) + "): send it again"
	}
	if out.Refused != "" {
		return out.Refused
	}
	e.input = agent.By(e.input, out.Principal)
	return ""
}
