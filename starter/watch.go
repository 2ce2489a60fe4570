package starter

import (
	"context"
	"iter"
	"time"

	"interlock/agent"
	"interlock/store"
)

const (
	// The store is polled this often, the longer nothing comes.
	pollSoon, pollLate = 250 * time.Millisecond, 2 * time.Second
	// A store that tells of appends (a [store.Feed]) is looked at this often besides.
	pollFollowed = askEvery
	// pollBatch bounds the events that are read at a time.
	pollBatch = 200
	// storeGrace is how long a store may fail before a watch gives up.
	storeGrace = 30 * time.Second
	// askEvery is how often a watch that sees nothing asks Temporal whether the
	// run is still there.
	askEvery = 15 * time.Second
)

// Watch yields a run's events after afterSeq (0: all) as the store gets them, in
// order and without a gap. It has no deadline of its own: it ends after the
// run's last event, or with ctx's error. Any error is the last thing that it
// yields; whoever goes on later passes the Seq of the last event that was seen.
//
// An event number that was seen is not shown again. Where the run was reset, its
// new events may therefore follow old ones of the branch that does not count any
// more; as soon as the journal is found to be shorter than what was seen, the
// watch ends with CodeConflict and says to which event the run was reset. A number
// beyond the end of a run that has ended is none of its: the watch ends at once.
//
// A run that has just been started and recorded nothing yet is waited for; one
// that nobody knows is CodeNotFound. Of the runs that follow one another under
// an address it watches the one that stands there when it begins. A run that
// Temporal has closed without an end of its own (terminated) is CodeEnded.
func (s *Starter) Watch(ctx context.Context, address string, afterSeq int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		tenant, err := tenantOf(address)
		if err != nil {
			yield(agent.Event{}, err)
			return
		}
		s.WatchRun(ctx, &store.Chain{Tenant: tenant, Address: address}, afterSeq)(yield)
	}
}

// WatchRun is [Starter.Watch] of the run that the chain names, also where another
// follows it under its address. Where the chain has no FirstRunID it is set before the
// first event: whoever goes on later names the run with it, since another run's events
// have the same numbers.
func (s *Starter) WatchRun(ctx context.Context, run *store.Chain, afterSeq int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		err := s.canRead(run.Tenant)
		if err == nil && afterSeq < 0 {
			err = agent.Errorf(agent.CodeInvalid, "after event %d: it is the number of an event, 0 before the first", afterSeq)
		}
		if err != nil {
			yield(agent.Event{}, err)
			return
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		w := &watcher{s: s, chain: run, from: afterSeq, last: afterSeq, asked: time.Now()}
		if f, ok := s.reader.(interface {
			Follow(ctx context.Context, scope store.Scope) <-chan struct{}
		}); ok {
			w.wake = f.Follow(ctx, store.Scope{Tenant: run.Tenant, Address: run.Address})
		}
		if err := w.watch(ctx, yield); err != nil {
			yield(agent.Event{}, err)
		}
	}
}

// watcher is one Watch.
type watcher struct {
	s       *Starter
	chain   *store.Chain
	from    int64           // where it began
	last    int64           // event that was shown
	asked   time.Time       // when Temporal was asked, or something came
	failing time.Time       // since when the store fails
	wake    <-chan struct{} // the store tells of appends; nil: it is polled
}

// watch ends with nil after the run's last event, or where nobody listens any
// more.
func (w *watcher) watch(ctx context.Context, yield func(agent.Event, error) bool) error {
	for pause := pollSoon; ; pause = min(pause*3/2, pollLate) {
		shown := w.last
		ended, stop, err := w.show(ctx, yield)
		if err == nil && !ended && !stop && w.last == shown {
			ended, err = w.idle(ctx)
		}
		switch {
		case stop || ended:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if err := w.tolerate(err); err != nil {
				return err
			}
		case w.last > shown:
			w.failing, w.asked = time.Time{}, time.Now()
			pause = pollSoon * 2 / 3
			continue // at once: there may be more
		default:
			w.failing = time.Time{}
		}
		if !w.await(ctx, pause) {
			return ctx.Err()
		}
	}
}

// await waits until the store should be looked at again; false where ctx has ended.
func (w *watcher) await(ctx context.Context, pause time.Duration) bool {
	if w.wake != nil && w.failing.IsZero() && w.chain.FirstRunID != "" {
		pause = pollFollowed
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-w.wake:
	case <-timer.C:
	}
	return true
}

// tolerate lets a store fail for a while.
func (w *watcher) tolerate(err error) error {
	switch agent.ErrorCode(err) {
	case agent.CodeNotFound, agent.CodeInvalid, agent.CodeConflict, agent.CodeEnded:
		return err
	}
	if w.failing.IsZero() {
		w.failing = time.Now()
	}
	if time.Since(w.failing) < storeGrace {
		return nil
	}
	return agent.Errorf(agent.CodeUnavailable, "watch %s: the store has failed for %s: %w; go on after event %d", w.chain.Address, storeGrace, err, w.last)
}

// show yields the next events.
func (w *watcher) show(ctx context.Context, yield func(agent.Event, error) bool) (ended, stop bool, err error) {
	if w.chain.FirstRunID == "" {
		row, err := w.s.reader.RunRow(ctx, *w.chain)
		if agent.ErrorCode(err) == agent.CodeNotFound {
			return false, false, nil
		}
		if err != nil {
			return false, false, err
		}
		w.chain.FirstRunID = row.FirstRunID
	}
	events, err := w.s.reader.Events(ctx, *w.chain, w.last+1, pollBatch)
	if err != nil {
		return false, false, err
	}
	for _, e := range events {
		if e.Seq != w.last+1 {
			return false, false, agent.Errorf(agent.CodeInternal, "watch %s: event %d follows event %d in the store", w.chain.Address, e.Seq, w.last)
		}
		w.last = e.Seq
		if !yield(e, nil) {
			return false, true, nil
		}
		switch e.Type {
		case agent.EventCompleted, agent.EventCancelled, agent.EventFailed:
			ended = true
		}
	}
	return ended, false, nil
}

// idle looks why nothing comes.
func (w *watcher) idle(ctx context.Context) (ended bool, err error) {
	row, err := w.s.reader.RunRow(ctx, store.Chain{Tenant: w.chain.Tenant, Address: w.chain.Address})
	notYet := agent.ErrorCode(err) == agent.CodeNotFound
	switch {
	case err != nil && !notYet:
		return false, err
	case notYet && w.chain.FirstRunID == "":
		return false, w.present(ctx)
	case notYet:
		return false, err
	case row.FirstRunID != w.chain.FirstRunID: // another follows it: nothing can come any more
		return true, nil
	case row.Seq < w.last:
		if err := w.wasReset(ctx, row.Seq); err != nil {
			return false, err
		}
		return row.Head.Status.Ended(), nil // its journal is whole, and has no such number
	case row.Head.Status.Ended() && row.Seq == w.last:
		return true, nil
	case row.Seq == w.last && time.Since(w.asked) > askEvery:
		w.asked = time.Now()
		if d := w.s.describe(ctx, w.chain.Address); d.known() && !d.running() && d.firstRunID == w.chain.FirstRunID && time.Since(d.closedAt) > askEvery {
			return false, agent.Errorf(agent.CodeEnded, "watch %s: Temporal has closed the run as %s, and its journal ends at event %d; interlock run why %s says more",
				w.chain.Address, statusWord(d.status), w.last, w.chain.Address)
		}
	}
	return false, nil
}

// present checks that a run which the store does not know is one at all.
func (w *watcher) present(ctx context.Context) error {
	d := w.s.describe(ctx, w.chain.Address)
	switch {
	case d.err != nil:
		return w.s.explain(ctx, "watch", w.chain.Address, d.err)
	case d.missing:
		return agent.Errorf(agent.CodeNotFound, "watch: there is no run %s", w.chain.Address)
	case !d.running() && time.Since(d.closedAt) > askEvery:
		return agent.Errorf(agent.CodeEnded, "watch %s: the run was closed as %s before it had recorded anything: %s", w.chain.Address, statusWord(d.status), brief(d.closing))
	}
	return nil
}

// wasReset says to which event a run was reset whose journal is shorter than what
// was seen; nil where the store is only behind what the run itself has told.
func (w *watcher) wasReset(ctx context.Context, seq int64) error {
	to, reset := seq, w.last > w.from
	branches, err := w.s.reader.Branches(ctx, *w.chain)
	if err != nil && !reset {
		return err
	}
	for _, b := range branches {
		if b.Superseded > 0 && b.Last >= w.last {
			reset, to = true, min(to, b.Last-int64(b.Superseded))
		}
	}
	if !reset {
		return nil
	}
	return agent.Errorf(agent.CodeConflict, "watch %s: the run was reset to event %d; what was shown after it does not count any more: go on after event %d",
		w.chain.Address, to, to)
}
