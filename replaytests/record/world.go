package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"interlock/agent"
	"interlock/config"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/llm"
	"interlock/replaytests"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/worker"
)

// world is what one run needs: a shop, a mail service, a store, a task queue.
type world struct {
	address, name, dir string
	client             client.Client
	store              *sqlite.Store
	shop               *shop.Shop
	mail               *mail.Server
	starter            *starter.Starter
	closers            []func() error
	sent               int
	ahead              atomic.Int64         // how far the store's clock is, in nanoseconds
	config             func(*worker.Config) // what a worker has besides; nil: nothing
}

func newWorld(ctx context.Context, address, name string) (w *world, err error) {
	w = &world{address: address, name: name}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "record-"); err != nil {
		return w, err
	}
	w.later(func() error { return os.RemoveAll(w.dir) })
	if w.client, err = dial(address); err != nil {
		return w, err
	}
	w.later(func() error { w.client.Close(); return nil })
	if w.store, err = sqlite.Open(ctx, w.file("interlock.db"), &sqlite.Options{Now: w.now}); err != nil {
		return w, err
	}
	w.later(w.store.Close)
	if w.shop, err = shop.Open(ctx, w.file("shop.db")); err != nil {
		return w, err
	}
	w.later(w.shop.Close)
	if w.mail, err = mail.Serve(ctx, "127.0.0.1:0", w.file("mail.db")); err != nil {
		return w, err
	}
	w.later(w.mail.Close)
	w.starter = starter.New(w.client, starter.WithReader(w.store), starter.WithTaskQueue(name))
	return w, nil
}

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func (w *world) later(f func() error) { w.closers = append(w.closers, f) }

func (w *world) close() error {
	var errs []error
	for i := len(w.closers) - 1; i >= 0; i-- {
		errs = append(errs, w.closers[i]())
	}
	return errors.Join(errs...)
}

// dial gives workers and clients a name of their own: the SDK's default would
// put the name of this machine into the histories.
func dial(address string) (client.Client, error) {
	return client.Dial(client.Options{HostPort: address, Identity: "record", Logger: sdklog.NewStructuredLogger(quiet)})
}

var quiet = slog.New(slog.DiscardHandler)

func (w *world) settings() config.Config {
	s := config.Default()
	s.TaskQueue = w.name
	return s
}

// serve runs a worker in this process until the world closes.
func (w *world) serve(ctx context.Context, model llm.Model, agents ...*agent.Definition) error {
	c := worker.Config{Settings: w.settings(), Client: w.client, Store: w.store, Model: model, Log: quiet}
	if w.config != nil {
		w.config(&c)
	}
	wk, err := worker.New(c, agents...)
	if err != nil {
		return err
	}
	if err := wk.Start(ctx); err != nil {
		return err
	}
	w.later(func() error { wk.Stop(); return nil })
	return nil
}

func (w *world) start(ctx context.Context, agentName, user string, body any, message string) (string, error) {
	in := starter.Start{Agent: agentName, Tenant: "acme", Key: w.name, Principal: agent.Principal{Subject: user}, Body: body}
	if message != "" {
		in.Message = &signals.Message{ID: "m0", Principal: in.Principal, Text: message}
	}
	s, err := w.starter.Start(ctx, in)
	return s.Address, err
}

func (w *world) say(ctx context.Context, address, user, text string) error {
	w.sent++
	_, err := w.starter.Message(ctx, address, signals.Message{ID: fmt.Sprintf("m%d", w.sent), Principal: agent.Principal{Subject: user}, Text: text})
	return err
}

// until waits for the run to be in a state.
func (w *world) until(ctx context.Context, address, what string, pred func(*agent.Run) bool) (*agent.Run, error) {
	var last *agent.Run
	for {
		run, err := w.starter.Get(ctx, address)
		if err == nil && pred(run) {
			return run, nil
		}
		if err == nil {
			last = run
		}
		if ctx.Err() != nil {
			if last == nil {
				return nil, fmt.Errorf("waited for %q: %w", what, errors.Join(err, ctx.Err()))
			}
			return nil, fmt.Errorf("waited for %q: the run is %s %s in phase %s, turn %d: %w", what, last.Status, last.Reason, last.Phase, last.Turn, ctx.Err())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// untilClosed waits for the workflow to end as the run has.
func (w *world) untilClosed(ctx context.Context, address string, want agent.RunStatus) error {
	var end signals.End
	if err := w.client.GetWorkflow(ctx, address, "").Get(ctx, &end); err != nil {
		return err
	}
	if end.Status != want {
		return fmt.Errorf("the run ended %s in phase %s (%s), and should be %s", end.Status, end.Phase, end.Reason, want)
	}
	return nil
}

// untilRecorded waits for the journal to have all events of a run.
func (w *world) untilRecorded(ctx context.Context, run *agent.Run) error {
	for ctx.Err() == nil {
		if row, err := w.store.RunRow(ctx, store.Chain{Tenant: "acme", Address: run.Address()}); err == nil && row.Seq >= run.Seq {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

// untilEvent waits for an event of the workflow's history that pred accepts.
func (w *world) untilEvent(ctx context.Context, address string, pred func(*historypb.HistoryEvent) bool) error {
	it := w.client.GetWorkflowHistory(ctx, address, "", true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return err
		}
		if pred(e) {
			return nil
		}
	}
	return errors.New("the workflow ended without the event that was waited for")
}

// save writes the run's history as it stands.
func (w *world) save(ctx context.Context, address, path string) (events, size int, err error) {
	text, err := replaytests.Export(ctx, w.client, w.store, store.Chain{Tenant: "acme", Address: address})
	if err != nil {
		return 0, 0, err
	}
	all, err := replaytests.Histories(text)
	for _, h := range all {
		events += len(h.GetEvents())
	}
	return events, len(text), errors.Join(err, os.WriteFile(path, text, 0o644))
}
