package client_test

import (
	"context"
	"encoding/json"
	"fmt"

	"interlock/api/client"
)

// A product's backend starts a run for its customer, and tells what becomes of it.
func ExampleClient_Follow() {
	follow := func(ctx context.Context, url, token string) error {
		c, err := client.New(url, token)
		if err != nil {
			return err
		}
		run, err := c.StartRun(ctx, client.StartBody{Agent: "refund", Key: "ticket-311", AsUser: "c-017", Body: json.RawMessage(`{"customer_id":"c-017"}`),
			Message: &client.FirstMessage{Text: "refund 1042, it broke"}})
		if err != nil {
			return err
		}
		for event, err := range c.Follow(ctx, "refund", "ticket-311", 0) {
			if err != nil {
				return err
			}
			fmt.Println(run.Address, event.Seq, event.Type, string(event.Data))
		}
		return nil
	}
	_ = follow
}

// A reviewer's tool is told of gates, misses none, and shows each as it stands.
func ExampleClient_FollowGates() {
	inbox := func(ctx context.Context, c *client.Client, decide func(client.Gate) client.VerdictBody) error {
		for change, err := range c.FollowGates(ctx, "", client.OfRole("refunds")) {
			switch {
			case err != nil:
				return err
			case change.Type == client.GatesReady: // list those that are open already, here: ListGates
				continue
			case change.Status != "open":
				continue
			}
			line, err := c.GetGate(ctx, change.Agent, change.Key, change.Gate)
			if err != nil {
				return err
			}
			_, err = c.DecideGate(ctx, change.Agent, change.Key, change.Gate, decide(line.Gate))
			if code := client.CodeOf(err); code == client.CodeGateClosed || code == client.CodeStale {
				continue // somebody else was faster, or the gate has changed
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	_ = inbox
}
