package postgres

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"interlock/agent"
	"interlock/store"
)

// channel is the name by which processes tell each other of appends. The payload is
// the run's address, whose first part is the tenant.
const channel = "interlock_appended"

// gather is how long addresses are gathered before the others are told: a busy
// worker tells a few dozen times a second, and not of each append by itself.
const gather = 20 * time.Millisecond

// teller tells other processes of appends, beside the appends' own transactions: a
// notification inside of one would make all commits of the database wait for each
// other. What it cannot tell is made up for by [store.FollowWithin].
type teller struct {
	tell func(ctx context.Context, addresses []string) error

	mu      sync.Mutex
	pending map[string]bool
	telling bool
	closed  bool
	done    sync.WaitGroup
}

// add tells of an append soon.
func (t *teller) add(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if t.pending == nil {
		t.pending = map[string]bool{}
	}
	t.pending[address] = true
	if !t.telling {
		t.telling = true
		t.done.Go(t.run)
	}
}

// run tells what is pending until nothing is.
func (t *teller) run() {
	for {
		time.Sleep(gather)
		t.mu.Lock()
		var addresses []string
		for a := range t.pending {
			addresses = append(addresses, a)
		}
		t.pending = nil
		if t.telling = len(addresses) > 0; !t.telling {
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = t.tell(ctx, addresses)
		cancel()
	}
}

// close waits until what was appended has been told.
func (t *teller) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.done.Wait()
}

func (s *Store) tell(ctx context.Context, addresses []string) error {
	return s.connected(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `SELECT pg_notify($1, a) FROM unnest($2::text[]) a`, channel, addresses)
		return err
	})
}

// appended tells who follows, here and elsewhere.
func (s *Store) appended(ref store.RunRef) {
	s.hub.Wake(ref.Tenant, ref.Address)
	s.teller.add(ref.Address)
}

// listen wakes who follows what other processes append to. Its connection is its
// own. While there is none, and where a hint may have been lost, everybody is woken.
func (s *Store) listen(ctx context.Context) {
	for pause := 100 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 5*time.Second) {
		began := time.Now()
		_ = s.hear(ctx)
		if time.Since(began) > 10*time.Second {
			pause = 100 * time.Millisecond
		}
		s.hub.WakeAll()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// hear listens until the connection breaks.
func (s *Store) hear(ctx context.Context) error {
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, s.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(connecting, "LISTEN "+channel); err != nil {
		return err
	}
	s.hub.WakeAll() // what was appended before is not told
	for {
		waiting, cancel := context.WithTimeout(ctx, store.FollowWithin)
		n, err := conn.WaitForNotification(waiting)
		quiet := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			tenant, _, _ := strings.Cut(n.Payload, "/")
			s.hub.Wake(tenant, n.Payload)
		case quiet && !conn.IsClosed():
			s.hub.WakeAll()
		default:
			return agent.Errorf(agent.CodeUnavailable, "the connection that hears of appends broke: %w", err)
		}
	}
}
