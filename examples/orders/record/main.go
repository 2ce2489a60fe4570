// Command record makes the history that the replay test replays: it plays a run
// against a local Temporal and exports it. It needs the temporal CLI, on the PATH
// or named by INTERLOCK_TEMPORAL_CLI.
//
//	go run ./record
//
// A history says what the code did when it was recorded. Do not record one anew
// to make the test pass; add another.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"example.com/orders"
	"example.com/orders/memory"
	"interlock/agent"
	"interlock/config"
	"interlock/llm/scripted"
	"interlock/localtemporal"
	"interlock/replaytests"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/worker"
)

// file is the history, in testdata/histories.
const file = "approved.json"

func main() {
	path := filepath.Join("testdata", "histories", file)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		fmt.Println(path, "is kept; delete it to record it anew")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	history, err := record(ctx)
	if err == nil {
		err = os.WriteFile(path, history, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
	fmt.Println(path, len(history), "bytes")
}

// script is what the model proposes, turn by turn.
var script = scripted.New("script",
	scripted.Then(scripted.SetFields("order 77", scripted.Args{"order_id": "77"}), scripted.SetFields("", scripted.Args{"day": "2026-04-04"}),
		scripted.Call("check_day", orders.Wish{OrderID: "77", Day: "2026-04-04"})),
	scripted.Ask("Shall I move it?", "order_id", "day", "fee"),
	scripted.Then(scripted.Confirm("order_id", "day", "fee"), scripted.MoveTo("change")),
)

// monday is a day on which the script's Saturday is still to come.
func monday() time.Time { return time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC) }

func record(ctx context.Context) (history []byte, err error) {
	server, err := localtemporal.Start(ctx, localtemporal.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	quiet := slog.New(slog.DiscardHandler)
	// The SDK's own identity would put this machine's name into the history.
	c, err := client.Dial(client.Options{HostPort: server.Address(), Identity: "record", Logger: sdklog.NewStructuredLogger(quiet)})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	dir, err := os.MkdirTemp("", "record-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := sqlite.Open(ctx, filepath.Join(dir, "interlock.db"), nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	w, err := worker.New(worker.Config{Settings: config.Default(), Client: c, Store: db, Model: script, Log: quiet}, orders.Agent(&memory.Shop{Today: monday}))
	if err != nil {
		return nil, err
	}
	if err := w.Start(ctx); err != nil {
		return nil, err
	}
	defer w.Stop()
	if err := play(ctx, starter.New(c, starter.WithReader(db))); err != nil {
		return nil, err
	}
	if err := c.GetWorkflow(ctx, address, "").Get(ctx, nil); err != nil { // until it has ended
		return nil, err
	}
	return replaytests.Export(ctx, c, db, store.Chain{Tenant: "acme", Address: address})
}

const address = "acme/orders/t-1"

// play is the run: a customer asks, confirms, and a dispatcher approves.
func play(ctx context.Context, runs *starter.Starter) error {
	customer := agent.Principal{Subject: "c-1"}
	if _, err := runs.Start(ctx, starter.Start{Agent: "orders", Tenant: "acme", Key: "t-1", Principal: customer, Body: orders.Start{CustomerID: "c-1"}}); err != nil {
		return err
	}
	said, err := runs.Say(ctx, address, signals.Message{ID: "m-1", Principal: customer, Text: "Please bring order 77 on Saturday"})
	if err != nil {
		return err
	}
	said, err = runs.Say(ctx, address, signals.Message{ID: "m-2", Principal: customer, Text: "yes please"})
	if err != nil {
		return err
	}
	if len(said.News.Gates) != 1 {
		return fmt.Errorf("there are %d gates, not one: the run is %s %s", len(said.News.Gates), said.News.Status, said.News.Reason)
	}
	gate := said.News.Gates[0]
	receipt, err := runs.Decide(ctx, address, signals.Verdict{ID: "v-1", Gate: gate.ID, Digest: gate.Digest, Verdict: agent.Approve,
		Principal: agent.Principal{Subject: "dana", Roles: []string{"dispatch"}}})
	if err != nil {
		return err
	}
	if receipt.Status != agent.Accepted {
		return fmt.Errorf("the verdict is %s: %s", receipt.Status, receipt.Reason)
	}
	return nil
}
