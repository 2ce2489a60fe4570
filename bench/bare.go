package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The bare workflow is what one would write by hand without Interlock: a loop
// of two activities, which do nothing and keep nothing, with payloads as large
// as ours and under the same options.

const (
	bareQueue = "bench-bare"
	bareType  = "bare"
	bareModel = "bare.model"
	bareTool  = "bare.tool"
)

// payload is an argument or a result of a bare activity. Its JSON has exactly
// the size that was asked for, down to what the member names take.
type payload struct {
	Answer int    `json:"answer,omitempty"` // bytes of the result
	Text   string `json:"text"`
}

func sized(text string, from, answer, bytes int) payload {
	p := payload{Answer: answer}
	around := len(`{"text":""}`)
	if answer > 0 {
		around += len(fmt.Sprintf(`"answer":%d,`, answer))
	}
	p.Text = piece(text, from, max(bytes-around, 0))
	return p
}

// piece is n bytes of a text without end, from somewhere in it.
func piece(text string, from, n int) string {
	if text == "" {
		text = "x"
	}
	from %= len(text)
	return strings.Repeat(text, 2+n/len(text))[from : from+n]
}

// filler makes of one of our payloads a text that needs no escapes. Payloads of
// one repeated letter would flatter the bare workflow: they compress to nothing,
// on the wire and in the server.
func filler(payload []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune("\"\\<>&", r) {
			return -1
		}
		return r
	}, string(payload))
}

type bareInput struct {
	Turns int    `json:"turns"`
	Text  string `json:"text"` // what payloads are made of: see filler
	Model sizes  `json:"model"`
	Tool  sizes  `json:"tool"`
}

// sizes are the average bytes of an activity's payloads.
type sizes struct {
	Argument int `json:"argument"`
	Result   int `json:"result"`
}

// bareOptions are what our workflow gives a model call and an ordinary tool.
func bareOptions(ctx workflow.Context, attempt, all, backoff time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: attempt, ScheduleToCloseTimeout: all,
		HeartbeatTimeout: 15 * time.Second, Summary: summary,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: backoff}})
}

func bareWorkflow(ctx workflow.Context, in bareInput) error {
	for turn := 1; turn <= in.Turns; turn++ {
		var out payload
		ctx := bareOptions(ctx, 5*time.Minute+20*time.Second, 24*time.Hour, 5*time.Minute, fmt.Sprintf("turn %d, phase read", turn))
		if err := workflow.ExecuteActivity(ctx, bareModel, sized(in.Text, 397*turn, in.Model.Result, in.Model.Argument)).Get(ctx, &out); err != nil {
			return err
		}
		ctx = bareOptions(ctx, 2*time.Minute, time.Hour, time.Minute, fmt.Sprintf("step %d.1, look_up", turn))
		if err := workflow.ExecuteActivity(ctx, bareTool, sized(in.Text, 397*turn, in.Tool.Result, in.Tool.Argument)).Get(ctx, &out); err != nil {
			return err
		}
	}
	return nil
}

func bareActivity(_ context.Context, p payload) (payload, error) {
	return sized(p.Text, 0, 0, p.Answer), nil
}

// newBareWorker has the options of package worker.
func newBareWorker(c client.Client) sdk.Worker {
	const throttle = 1500 * time.Millisecond
	w := sdk.New(c, bareQueue, sdk.Options{MaxHeartbeatThrottleInterval: throttle, DefaultHeartbeatThrottleInterval: throttle,
		WorkerStopTimeout: 25 * time.Second, DisableRegistrationAliasing: true})
	w.RegisterWorkflowWithOptions(bareWorkflow, workflow.RegisterOptions{Name: bareType})
	for _, name := range []string{bareModel, bareTool} {
		w.RegisterActivityWithOptions(bareActivity, activity.RegisterOptions{Name: name})
	}
	return w
}
