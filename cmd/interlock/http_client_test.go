package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/api/client"
)

// as is a client of the API with somebody's token.
func (r *restarted) as(who string) *client.Client {
	r.t.Helper()
	c, err := client.New(r.url, r.tokens[who])
	require.NoError(r.t, err)
	return c
}

// A product's backend and its reviewer, each with a Go client, take a refund from its
// start to its end. The server is killed while the run stands at its gate; neither of
// them notices.
func TestClient_Refund(t *testing.T) {
	w := newWorld(t)
	server := w.restarted(t)
	order := w.order(t, "7302")
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	backend, ann := server.as("backend"), server.as("ann")

	decided := make(chan error, 1)
	ready := make(chan struct{})
	go func() { decided <- approves(ctx, ann, "by-client", ready) }()
	<-ready

	started, err := backend.StartRun(ctx, client.StartBody{Agent: "refund", Key: "by-client", AsUser: "c-017", Body: json.RawMessage(`{"customer_id":"c-017"}`),
		Message: &client.FirstMessage{Text: "Please refund order " + order + ", it broke"}}, client.Key("start-1"))
	require.NoError(t, err)
	require.True(t, started.New)
	require.Equal(t, "acme/refund/by-client", started.Address)

	var seqs []int64
	killed, types := false, map[string]int{}
	for e, err := range backend.Follow(ctx, "refund", "by-client", 0) {
		require.NoError(t, err)
		seqs = append(seqs, e.Seq)
		types[e.Type]++
		if e.Type != "gate_opened" {
			continue
		}
		var d struct{ Gate client.Gate }
		require.NoError(t, json.Unmarshal(e.Data, &d))
		if d.Gate.Kind == "ask" {
			_, err := backend.MessageRun(ctx, "refund", "by-client", client.MessageBody{Text: "yes, that one", AsUser: "c-017"})
			require.NoError(t, err)
			continue
		}
		require.JSONEq(t, `{"amount":{"currency":"EUR","minor":8990},"order_id":"7302"}`, string(d.Gate.Args))
		killed = true
		server.kill()
	}
	require.True(t, killed)
	require.NoError(t, <-decided)

	run, err := backend.GetRun(ctx, "refund", "by-client")
	require.NoError(t, err)
	require.Equal(t, "completed", run.Status)
	require.Contains(t, string(run.State), `"refund_id":"r-7302"`)
	for i, seq := range seqs {
		require.EqualValues(t, i+1, seq)
	}
	require.EqualValues(t, run.Seq, len(seqs))
	require.Equal(t, []int{2, 1, 1}, []int{types["message"], types["verdict"], types["completed"]})

	_, err = ann.DecideGate(ctx, "refund", "by-client", "3.1", client.VerdictBody{Digest: "0", Verdict: client.VerdictValueReject, Reason: "late"})
	require.Equal(t, client.CodeGateClosed, client.CodeOf(err))
	_, err = ann.GetRun(ctx, "refund", "none")
	require.Equal(t, client.CodeNotFound, client.CodeOf(err))
}

// approves follows the gates of role refunds, and approves that of a run once it has
// opened.
func approves(ctx context.Context, ann *client.Client, key string, ready chan<- struct{}) error {
	for change, err := range ann.FollowGates(ctx, "", client.OfRole("refunds")) {
		switch {
		case err != nil:
			return err
		case change.Type == client.GatesReady:
			close(ready)
			continue
		case change.Key != key || change.Status != "open":
			continue
		}
		line, err := ann.GetGate(ctx, change.Agent, change.Key, change.Gate)
		if err != nil {
			return err
		}
		out, err := ann.DecideGate(ctx, change.Agent, change.Key, change.Gate, client.VerdictBody{Digest: line.Gate.Digest, Verdict: client.VerdictValueApprove})
		if err == nil && out.Receipt.Gate.Status != "approved" {
			err = fmt.Errorf("gate %s is %s", change.Gate, out.Receipt.Gate.Status)
		}
		return err
	}
	return nil
}
