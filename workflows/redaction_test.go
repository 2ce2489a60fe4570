package workflows_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/starter"
	"interlock/tool"
	"interlock/worker"
)

type cardStart struct {
	Number string `json:"number"`
}
type cardState struct {
	Card string `json:"card" set:"start" sensitive:"true"`
}
type cardPay struct {
	To string `json:"to"`
}

type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }
func (l *logged) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// What a tool panics with, and its errors, are in no log, not in Temporal, not in why and
// not before the model with the sensitive values that they repeat; the log has the stack,
// and nobody else. So it is with what the run waits for, in the query and in the details
// that Temporal's UI shows, and with news.
func TestRedaction_OfTheRunUnderWay(t *testing.T) {
	t.Parallel()
	w := idleWorld(t, false)
	const card = "4111 1111 1111"
	log := &logged{}
	w.config.Log = slog.New(slog.NewTextHandler(log, nil))
	c, err := client.Dial(client.Options{HostPort: this.Address, Logger: worker.SDKLog(w.config.Log)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w.config.Client = c
	var mended atomic.Bool
	look := tool.ReadOnly("look", func(context.Context, cardPay) (cardPay, error) { panic("no card " + card) }, func(*cardState, cardPay, cardPay) error { return nil })
	send := tool.Keyed("send", func(context.Context, tool.Key, cardPay) (cardPay, error) {
		if mended.Load() {
			return cardPay{}, nil
		}
		return cardPay{}, errors.New("the bank refuses 4111-1111-1111")
	}, func(*cardState, cardPay, cardPay) error { return nil })
	pay := tool.Keyed("pay", func(context.Context, tool.Key, cardPay) (cardPay, error) { return cardPay{}, nil }, func(*cardState, cardPay, cardPay) error { return nil }).
		Gate(tool.Gate[cardState, cardPay]{Roles: []string{"refunds"}, Title: func(_ agent.Situation[cardState], a cardPay) string { return "pay to " + a.To }})
	def := agent.Define(agent.Spec[cardStart, cardState]{Name: "card", Version: 1, Instructions: "x",
		Init:   func(in cardStart) (cardState, error) { return cardState{Card: in.Number}, nil },
		Phases: []agent.Phase[cardState]{{Name: "work", Tools: []agent.Tool[cardState]{look, send, pay}, Moves: []agent.Move[cardState]{{To: "end"}}}, {Name: "end", Final: true}}})
	require.NoError(t, def.Err())
	w.serve(turns(scripted.Call("look", cardPay{card}), scripted.Call("send", cardPay{card}), scripted.Call("pay", cardPay{card}), scripted.Say("done")), def)
	s, err := w.starter.Start(w.ctx, starter.Start{Agent: "card", Tenant: "acme", Key: w.name(), Principal: customer, Body: cardStart{card},
		Message: &signals.Message{ID: "m", Principal: customer, Text: "pay"}})
	require.NoError(t, err)
	clean := func(what string, said any) {
		for _, form := range []string{card, "4111-1111-1111"} {
			require.NotContains(t, fmt.Sprintf("%+v", said), form, what)
		}
	}
	eventually(t, "the bank refuses", func() bool {
		why, err := w.starter.Why(w.ctx, s.Address)
		clean("why", why)
		clean("why, plain", why.Plain())
		return err == nil && strings.Contains(why.Sentence, "the bank refuses (masked)") && !strings.Contains(why.Plain().Sentence, "bank")
	})
	d, err := temporalClient.DescribeWorkflow(w.ctx, s.Address, "")
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(d.RawResponse.GetPendingActivities()), "4111")
	mended.Store(true)
	eventually(t, "it waits at the gate", func() bool {
		v, err := temporalClient.QueryWorkflow(w.ctx, s.Address, "", signals.QueryWaiting)
		var waits []agent.Waiting
		if err != nil || v.Get(&waits) != nil || len(waits) == 0 || waits[0].For != agent.WaitsGate {
			return false
		}
		require.Equal(t, "pay to (masked)", waits[0].What)
		return true
	})
	v, err := temporalClient.QueryWorkflow(w.ctx, s.Address, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	metadata := new(sdk.WorkflowMetadata)
	require.NoError(t, v.Get(metadata))
	require.Contains(t, metadata.GetCurrentDetails(), "pay to (masked)")
	clean("details", metadata.GetCurrentDetails())
	news, err := w.starter.Wait(w.ctx, s.Address, 0)
	require.NoError(t, err)
	require.Len(t, news.Gates, 1)
	clean("news", fmt.Sprint(news.Gates[0].Title, news.Gates[0].Args.String()))

	run, err := w.starter.Get(w.ctx, s.Address)
	require.NoError(t, err)
	require.Contains(t, run.Steps[0].Reason, "tool look panicked; the worker's log says where")
	for _, step := range run.Steps {
		require.NotContains(t, step.Reason, ".go:")
	}
	require.Contains(t, log.String(), "redaction_test.go")
	require.Contains(t, log.String(), "no card (masked)")
	clean("log", log.String())
}
