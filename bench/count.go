package main

import (
	"context"
	"maps"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/store"
)

// rpcs counts the client's requests to Temporal by operation, through the
// SDK's own metrics.
type rpcs struct {
	client.MetricsHandler // ignores what is not counted
	operation             string
	shared                *rpcCounts
}

type rpcCounts struct {
	mu     sync.Mutex
	counts map[string]int64
}

func newRPCs() *rpcs {
	return &rpcs{MetricsHandler: client.MetricsNopHandler, shared: &rpcCounts{counts: map[string]int64{}}}
}

func (r *rpcs) WithTags(tags map[string]string) client.MetricsHandler {
	if operation, ok := tags["operation"]; ok {
		return &rpcs{MetricsHandler: client.MetricsNopHandler, operation: operation, shared: r.shared}
	}
	return r
}

func (r *rpcs) Counter(name string) client.MetricsCounter {
	if r.operation == "" || name != "temporal_request" && name != "temporal_long_request" {
		return r.MetricsHandler.Counter(name)
	}
	return rpcCounter{r.operation, r.shared}
}

type rpcCounter struct {
	operation string
	shared    *rpcCounts
}

func (c rpcCounter) Inc(n int64) {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	c.shared.counts[c.operation] += n
}

func (r *rpcs) snapshot() map[string]int64 {
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	return maps.Clone(r.shared.counts)
}

// timedStore measures what activities wait for in the store.
type timedStore struct {
	store.Store

	mu      sync.Mutex
	spent   time.Duration
	commits int
}

func (s *timedStore) time(since time.Time, commits int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent += time.Since(since)
	s.commits += commits
}

func (s *timedStore) snapshot() (time.Duration, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spent, s.commits
}

func (s *timedStore) Append(ctx context.Context, ref store.RunRef, b agent.Batch) error {
	defer s.time(time.Now(), min(len(b.Events), 1)) // an empty batch commits nothing
	return s.Store.Append(ctx, ref, b)
}

func (s *timedStore) ModelCall(ctx context.Context, tenant, key string) (store.ModelCall, error) {
	defer s.time(time.Now(), 0)
	return s.Store.ModelCall(ctx, tenant, key)
}

func (s *timedStore) RecordModelCall(ctx context.Context, m store.ModelCall) (store.ModelCall, error) {
	defer s.time(time.Now(), 1)
	return s.Store.RecordModelCall(ctx, m)
}
