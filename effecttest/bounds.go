package effecttest

import (
	"context"
	"sync"
)

// bounds is the context of an attempt. It ends by the virtual clock.
type bounds struct {
	context.Context
	done chan struct{}
	mu   sync.Mutex
	err  error
}

func newBounds(parent context.Context) *bounds {
	return &bounds{Context: context.WithoutCancel(parent), done: make(chan struct{})}
}

func (b *bounds) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
		close(b.done)
	}
}

func (b *bounds) Done() <-chan struct{} { return b.done }

func (b *bounds) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
