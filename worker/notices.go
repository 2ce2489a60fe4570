package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"interlock/activities"
	"interlock/agent"
	"interlock/config"
	"interlock/notice"
	"interlock/signals"
	"interlock/store"
)

// NoticeOptions change how notices are told. The zero value is right for production.
type NoticeOptions struct {
	Sender *notice.Sender // one that links to Settings.Notices.Page where nil
	// FirstRetry is how long after the first attempt the second is made;
	// [signals.FirstRetry] where 0.
	FirstRetry time.Duration
}

// telling opens what the configuration says that notices are told by, nil where it
// names no targets.
func telling(c config.Notices, o NoticeOptions) (*activities.Notices, error) {
	if c.Targets == "" {
		return nil, nil
	}
	targets, err := notice.Open(c.Targets, nil)
	if err != nil {
		return nil, err
	}
	if o.Sender == nil {
		o.Sender = notice.NewSender(notice.Options{Page: c.Page})
	}
	return &activities.Notices{Targets: targets, Sender: o.Sender}, nil
}

const (
	feedPage = 200
	// portion is how many notices are started before the place is moved: one that
	// stops in the middle of a page does not begin it again.
	portion = 100
	// atOnce is how many are started at a time.
	atOnce = 8
	// keepsPlace is how often the place is moved past events that make no notice.
	keepsPlace = time.Minute
	firstPause = 100 * time.Millisecond
)

// dispatcher follows the feed of all runs and starts a workflow for each notice and
// target, at least once; Temporal knows a repeat by the workflow's id. Any number of
// them may follow at the same time.
type dispatcher struct {
	store   store.Store
	client  client.Client
	targets *notice.File
	log     *slog.Logger
	queue   string
	giveUp  time.Duration
	first   time.Duration

	place string // that the store has
	next  string // to read on from: behind place where nothing stands between
	moved time.Time
}

// dispatch begins to start the notices of what happens to runs, where there are
// targets, until stop is called.
func (w *Worker) dispatch() (stop func()) {
	if w.told == nil {
		return func() {}
	}
	c := w.config
	d := &dispatcher{store: c.Store, client: c.Client, targets: w.told.Targets, log: c.Log, queue: c.Settings.TaskQueue,
		giveUp: c.Settings.Notices.GiveUp, first: c.Notices.FirstRetry}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { d.run(ctx) })
	return func() { cancel(); running.Wait() }
}

// reader is the name of the queue's dispatchers in the store: queues may have other
// targets, and what one has told the other has not.
func (d *dispatcher) reader() string { return "notices/" + d.queue }

// run follows until ctx ends. Whatever fails is tried again: what was not told stands
// in the feed.
func (d *dispatcher) run(ctx context.Context) {
	wake := d.store.Follow(ctx, store.Scope{})
	pause, failing := firstPause, false
	for ctx.Err() == nil {
		more, err := d.step(ctx)
		hint := wake
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !failing {
				d.log.Warn("notices wait, and are told as soon as this is mended", "error", err)
				pause, failing = firstPause, true
			}
			d.place, hint = "", nil // it is looked up again, and no hint makes it sooner
		case failing:
			d.log.Info("notices are told again")
			failing = false
		}
		if more {
			pause = firstPause
			continue
		}
		// An event may become readable some moments after its hint.
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
			pause = min(2*pause, store.FollowWithin)
		case <-hint:
			pause = firstPause
		}
		timer.Stop()
	}
}

// step tells a page of the feed, and reports whether there may be more.
func (d *dispatcher) step(ctx context.Context) (more bool, err error) {
	if d.place == "" {
		if err := d.begin(ctx); err != nil {
			return false, err
		}
	}
	targets, err := d.targets.Targets()
	if err != nil {
		return false, err
	}
	found, next, err := d.store.Appended(ctx, store.FeedFilter{Types: notice.Types, After: d.next, Limit: feedPage})
	if err != nil {
		return false, err
	}
	var waiting []signals.Telling
	for i, a := range found {
		told, err := d.tellings(ctx, a, targets)
		if err != nil {
			return false, err
		}
		if waiting = append(waiting, told...); len(waiting) < portion && i < len(found)-1 {
			continue
		}
		if err := d.start(ctx, waiting); err != nil {
			return false, err
		}
		waiting = nil
		if mine, err := d.move(ctx, a.Place); err != nil || !mine {
			return err == nil, err
		}
	}
	d.next = next
	if len(found) == 0 && next != d.place && time.Since(d.moved) > keepsPlace {
		_, err = d.move(ctx, next)
	}
	return err == nil && len(found) > 0, err
}

// begin finds the place, and the first time makes it the feed's end: what happened
// before there were targets is told to nobody.
func (d *dispatcher) begin(ctx context.Context) error {
	place, err := d.store.Place(ctx, d.reader())
	if err == nil && place == "" {
		if place, err = d.store.FeedEnd(ctx); err == nil {
			err = d.store.MovePlace(ctx, d.reader(), "", place)
		}
		if agent.ErrorCode(err) == agent.CodeConflict { // another has begun
			place, err = d.store.Place(ctx, d.reader())
		}
	}
	if err == nil {
		d.place, d.next, d.moved = place, place, time.Now()
	}
	return err
}

// move keeps the place. Where another dispatcher has moved it, this one goes on from
// there, and what it has read itself is not its own: all before that place is told.
func (d *dispatcher) move(ctx context.Context, to string) (mine bool, err error) {
	err = d.store.MovePlace(ctx, d.reader(), d.place, to)
	if agent.ErrorCode(err) == agent.CodeConflict {
		return false, d.begin(ctx)
	}
	if err != nil {
		return false, err
	}
	d.place, d.next, d.moved = to, to, time.Now()
	return true, nil
}

// tellings are what an event makes for all targets.
func (d *dispatcher) tellings(ctx context.Context, a store.Appended, targets []notice.Target) (all []signals.Telling, err error) {
	n, ok := notice.Of(a)
	if !ok {
		return nil, nil
	}
	if n.Title != "" { // a notice goes to whoever reads the target, and decides nothing
		x, err := store.Redaction(ctx, d.store, a.Chain)
		if err != nil {
			return nil, err
		}
		n.Title = x.Text(n.Title)
	}
	if n.Kind == notice.GateClosed {
		if n.Roles, err = d.roles(ctx, a, n, targets); err != nil {
			return nil, err
		}
	}
	for _, t := range targets {
		if !t.Wants(n) {
			continue
		}
		j, err := t.Cut(n).Encode()
		if err != nil {
			return nil, err
		}
		all = append(all, signals.Telling{Tenant: n.Tenant, Target: t.Name, ID: n.ID, Notice: j, FirstMS: d.first.Milliseconds(), GiveUpMS: d.giveUp.Milliseconds()})
	}
	return all, nil
}

// roles are those of a closed gate, which its event does not name: looked up where
// they matter to anybody.
func (d *dispatcher) roles(ctx context.Context, a store.Appended, n notice.Notice, targets []notice.Target) ([]string, error) {
	matter := false
	for _, t := range targets {
		matter = matter || len(t.Roles) > 0
	}
	if !matter {
		return nil, nil
	}
	rows, err := d.store.GateRows(ctx, a.Tenant, store.GateFilter{Address: a.Address, Status: n.Status, Limit: 500})
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.FirstRunID == a.FirstRunID && r.Gate.ID == n.Gate {
			return r.Gate.Roles, nil
		}
	}
	return nil, nil
}

// start starts the workflows of notices, some at a time.
func (d *dispatcher) start(ctx context.Context, all []signals.Telling) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i, t := range all {
		free <- struct{}{}
		wg.Go(func() {
			errs[i] = startNotice(ctx, d.client, d.queue, t)
			<-free
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// startNotice starts the workflow of a notice, unless it was started before.
func startNotice(ctx context.Context, c client.Client, queue string, t signals.Telling) error {
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: t.WorkflowID(), TaskQueue: queue,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary: "notice to " + t.Target}, signals.WorkflowNotice, t)
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return nil
	}
	return err
}
