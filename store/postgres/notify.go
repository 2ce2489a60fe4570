package postgres

import (
	"context"
	"encoding/json"
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

// deltaChannel carries pieces of answers, as JSON. It must stay below what a
// notification may hold.
const (
	deltaChannel = "interlock_delta"
	maxPayload   = 7900 // bytes
)

// teller tells other processes of appends, beside the appends' own transactions: a
// notification inside of one would make all commits of the database wait for each
// other. What it cannot tell is made up for by [store.FollowWithin].
type teller struct {
	tell func(ctx context.Context, addresses, deltas []string) error

	mu      sync.Mutex
	pending map[string]bool
	deltas  []string // encoded; see maxDeltas
	telling bool
	closed  bool
	done    sync.WaitGroup
}

// maxDeltas bounds the pieces that wait to be told: those beyond are lost, as what is
// told while the database is away.
const maxDeltas = 1000

// add tells of an append soon.
func (t *teller) add(address string) {
	t.later(func() {
		if t.pending == nil {
			t.pending = map[string]bool{}
		}
		t.pending[address] = true
	})
}

// addDelta tells a piece of an answer soon.
func (t *teller) addDelta(encoded string) {
	t.later(func() {
		if len(t.deltas) < maxDeltas {
			t.deltas = append(t.deltas, encoded)
		}
	})
}

func (t *teller) later(note func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	note()
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
		deltas := t.deltas
		t.pending, t.deltas = nil, nil
		if t.telling = len(addresses)+len(deltas) > 0; !t.telling {
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = t.tell(ctx, addresses, deltas)
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

// tell sends what was gathered, each channel's in its order.
func (s *Store) tell(ctx context.Context, addresses, deltas []string) error {
	return s.connected(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `SELECT pg_notify($1, a) FROM unnest($2::text[]) a UNION ALL SELECT pg_notify($3, d) FROM unnest($4::text[]) d`,
			channel, addresses, deltaChannel, deltas)
		return err
	})
}

// Tell implements [store.Deltas].
func (s *Store) Tell(d store.Delta) {
	s.hub.Told(d)
	encoded, err := json.Marshal(told{d, s.id})
	if err == nil && len(encoded) <= maxPayload { // a piece is some words
		s.teller.addDelta(string(encoded))
	}
}

// told is a piece with the store that tells it, which hears it by itself.
type told struct {
	store.Delta
	By string `json:"by"`
}

// Hear implements [store.Deltas].
func (s *Store) Hear(ctx context.Context, scope store.Scope) <-chan store.Delta {
	return s.hub.Hear(ctx, scope)
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
	if _, err := conn.Exec(connecting, "LISTEN "+deltaChannel+"; LISTEN "+channel); err != nil {
		return err
	}
	s.hub.WakeAll() // what was appended before is not told
	for {
		waiting, cancel := context.WithTimeout(ctx, store.FollowWithin)
		n, err := conn.WaitForNotification(waiting)
		quiet := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil && n.Channel == deltaChannel:
			var d told
			if json.Unmarshal([]byte(n.Payload), &d) == nil && d.By != s.id {
				s.hub.Told(d.Delta)
			}
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
