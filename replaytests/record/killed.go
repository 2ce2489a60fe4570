package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/store/sqlite"
	"interlock/worker"
)

// workerCommand makes this program a worker process instead.
const workerCommand = "worker"

const recordTimeout = 30 * time.Second

// workerKilled kills the worker's process while it mails the receipt: nobody can
// say whether the mail went out. A new worker sends it again, under the same
// key, once the heartbeats have been missed.
func workerKilled(ctx context.Context, w *world) (string, error) {
	w.mail.Delay(time.Minute)
	stop, err := w.spawn(ctx)
	if err != nil {
		return "", err
	}
	defer stop()
	address, err := w.order(ctx, "1017")
	if err != nil {
		return "", err
	}
	if err := w.untilEvent(ctx, address, isActivity("refund.send_receipt")); err != nil {
		return "", err
	}
	if err := w.untilStarted(ctx, address); err != nil {
		return "", err
	}
	time.Sleep(500 * time.Millisecond) // the request is on its way
	stop()
	w.mail.Delay(0)
	again, err := w.spawn(ctx)
	if err != nil {
		return "", err
	}
	defer again()
	if err := w.untilClosed(ctx, address, agent.RunCompleted); err != nil {
		return "", err
	}
	sent, err := w.mail.Messages(ctx)
	if err == nil && len(sent) != 1 {
		err = fmt.Errorf("%d mails were sent", len(sent))
	}
	return address, err
}

// untilStarted waits for a pending activity to be taken by a worker.
func (w *world) untilStarted(ctx context.Context, address string) error {
	for ctx.Err() == nil {
		d, err := w.client.DescribeWorkflow(ctx, address, "")
		if err != nil {
			return err
		}
		for _, p := range d.RawResponse.GetPendingActivities() {
			if p.GetLastStartedTime() != nil {
				return nil
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

// spawn starts a worker process; kill ends it with SIGKILL, once.
func (w *world) spawn(ctx context.Context) (kill func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, workerCommand, w.address, w.name, w.file("interlock.db"), w.file("shop.db"), w.mail.URL())
	cmd.Stderr = os.Stderr
	life, err := cmd.StdinPipe() // closed when we die, whatever kills us
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed, or that this was done before
		_ = life.Close()
	}, nil
}

// serveUntilStdinCloses is the worker process.
func serveUntilStdinCloses(args []string) (err error) {
	if len(args) != 5 {
		return errors.New("worker: want address, task queue, store, shop and mail")
	}
	ctx := context.Background()
	c, err := dial(args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	st, err := sqlite.Open(ctx, args[2], nil)
	if err != nil {
		return err
	}
	s, err := shop.Open(ctx, args[3])
	if err != nil {
		return err
	}
	w := &world{name: args[1]}
	wk, err := worker.New(worker.Config{Settings: w.settings(), Client: c, Store: st, Model: refund.Model(), Log: quiet},
		refund.Agent(s, mail.Client{BaseURL: args[4]}))
	if err != nil {
		return err
	}
	if err := wk.Start(ctx); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1) // nothing is finished in order: whoever started us is gone
	return nil
}
