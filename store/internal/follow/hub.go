// Package follow wakes whoever follows a store's runs, within one process; a
// driver adds how other processes are heard.
package follow

import (
	"context"
	"sync"

	"interlock/store"
)

// Hub knows who follows what. Listen, where it is set, hears of appends by other
// processes and runs only while somebody follows; it returns when its context
// ends. The zero Hub is one without.
type Hub struct {
	Listen func(ctx context.Context)

	mu       sync.Mutex
	by       map[store.Scope]map[*follower]struct{}
	count    int
	stop     context.CancelFunc // of Listen
	listened sync.WaitGroup
	closed   bool
}

type follower struct {
	scope store.Scope
	wake  chan struct{}
}

// Follow implements [store.Feed].
func (h *Hub) Follow(ctx context.Context, scope store.Scope) <-chan struct{} {
	f := &follower{scope, make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil || h.closed {
		return f.wake
	}
	if h.by == nil {
		h.by = map[store.Scope]map[*follower]struct{}{}
	}
	if h.by[scope] == nil {
		h.by[scope] = map[*follower]struct{}{}
	}
	h.by[scope][f] = struct{}{}
	if h.count++; h.count == 1 && h.Listen != nil {
		var listening context.Context
		listening, h.stop = context.WithCancel(context.Background())
		h.listened.Go(func() { h.Listen(listening) })
	}
	context.AfterFunc(ctx, func() { h.leave(f) })
	return f.wake
}

func (h *Hub) leave(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, there := h.by[f.scope][f]; !there {
		return
	}
	delete(h.by[f.scope], f)
	if len(h.by[f.scope]) == 0 {
		delete(h.by, f.scope)
	}
	if h.count--; h.count == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// Wake wakes those who follow a run, its tenant, or everything.
func (h *Hub) Wake(tenant, address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, scope := range []store.Scope{{Tenant: tenant, Address: address}, {Tenant: tenant}, {}} {
		for f := range h.by[scope] {
			f.signal()
		}
	}
}

// WakeAll wakes everybody: nobody knows what was appended.
func (h *Hub) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, followers := range h.by {
		for f := range followers {
			f.signal()
		}
	}
}

// Followed reports whether anybody follows.
func (h *Hub) Followed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count > 0
}

// Close ends Listen and waits for its end. Who follows is woken no more.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	h.by = nil
	h.mu.Unlock()
	h.listened.Wait()
}

func (f *follower) signal() {
	select {
	case f.wake <- struct{}{}:
	default: // one is there already
	}
}
