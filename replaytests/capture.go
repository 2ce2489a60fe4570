package replaytests

import (
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// capture sees what the replayed workflow asks for. A workflow's coroutines run
// one at a time, so that nothing here is locked.
type capture struct {
	interceptor.WorkerInterceptorBase
	calls  []*call
	locals []string // in the order of their calls, which is that of their ids
	at     int64    // the started event of the workflow task that runs
	end    *ending
}

// call is one ExecuteActivity.
type call struct {
	at    int64
	name  string
	input []*commonpb.Payload
	err   error // its arguments could not be encoded
}

// ending is how the workflow's function returned.
type ending struct {
	at     int64
	result any
	err    error
}

// InterceptWorkflow implements [interceptor.WorkerInterceptor].
func (c *capture) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, c}
}

// look notes where the replay is.
func (c *capture) look(ctx workflow.Context) {
	c.at = int64(workflow.GetInfo(ctx).GetCurrentHistoryLength())
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	c *capture
}

func (i *inbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: out}, i.c})
}

func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := i.Next.ExecuteWorkflow(ctx, in)
	i.c.look(ctx)
	i.c.end = &ending{i.c.at, result, err}
	return result, err
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	c *capture
}

func (o *outbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	o.c.look(ctx)
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(args...)
	o.c.calls = append(o.c.calls, &call{at: o.c.at, name: name, input: payloads.GetPayloads(), err: err})
	return o.Next.ExecuteActivity(ctx, name, args...)
}

func (o *outbound) ExecuteLocalActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	o.c.look(ctx)
	o.c.locals = append(o.c.locals, name)
	return o.Next.ExecuteLocalActivity(ctx, name, args...)
}

// Await is where the interpreter is in each task, whether it calls anything or
// not.
func (o *outbound) Await(ctx workflow.Context, condition func() bool) error {
	return o.Next.Await(ctx, func() bool {
		o.c.look(ctx)
		return condition()
	})
}
