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
	hearers  map[store.Scope]map[chan store.Delta]struct{}
	count    int                // of both
	stop     context.CancelFunc // of Listen
	listened sync.WaitGroup
	closed   bool
}

type follower struct{ wake chan struct{} }

// Follow implements [store.Feed].
func (h *Hub) Follow(ctx context.Context, scope store.Scope) <-chan struct{} {
	f := &follower{make(chan struct{}, 1)}
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
	h.came()
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		leave(h, h.by, scope, f)
	})
	return f.wake
}

// room is how many pieces wait for who hears them.
const room = 64

// Hear implements [store.Deltas].
func (h *Hub) Hear(ctx context.Context, scope store.Scope) <-chan store.Delta {
	c := make(chan store.Delta, room)
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil || h.closed {
		return c
	}
	if h.hearers == nil {
		h.hearers = map[store.Scope]map[chan store.Delta]struct{}{}
	}
	if h.hearers[scope] == nil {
		h.hearers[scope] = map[chan store.Delta]struct{}{}
	}
	h.hearers[scope][c] = struct{}{}
	h.came()
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		leave(h, h.hearers, scope, c)
	})
	return c
}

// came begins to listen to other processes with the first who wants to know.
func (h *Hub) came() {
	if h.count++; h.count == 1 && h.Listen != nil {
		var listening context.Context
		listening, h.stop = context.WithCancel(context.Background())
		h.listened.Go(func() { h.Listen(listening) })
	}
}

// leave takes one out, and ends the listening with the last.
func leave[T comparable](h *Hub, all map[store.Scope]map[T]struct{}, scope store.Scope, one T) {
	if _, there := all[scope][one]; !there {
		return
	}
	delete(all[scope], one)
	if len(all[scope]) == 0 {
		delete(all, scope)
	}
	if h.count--; h.count == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// scopes are those that hold a run.
func scopes(tenant, address string) []store.Scope {
	return []store.Scope{{Tenant: tenant, Address: address}, {Tenant: tenant}, {}}
}

// Told hands a piece to who hears it here. Who has no room loses it.
func (h *Hub) Told(d store.Delta) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, scope := range scopes(d.Tenant, d.Address) {
		for c := range h.hearers[scope] {
			select {
			case c <- d:
			default:
			}
		}
	}
}

// Wake wakes those who follow a run, its tenant, or everything.
func (h *Hub) Wake(tenant, address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, scope := range scopes(tenant, address) {
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

// Close ends Listen and waits for its end. Who follows is woken no more.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	h.by, h.hearers = nil, nil
	h.mu.Unlock()
	h.listened.Wait()
}

func (f *follower) signal() {
	select {
	case f.wake <- struct{}{}:
	default: // one is there already
	}
}
