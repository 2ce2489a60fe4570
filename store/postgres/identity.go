package postgres

import (
	"context"
	"fmt"
	"time"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	selectIdentity = `SELECT id, generation, place, reason, at, %s FROM interlock.store`
	// A server that takes no writes has no timeline of its own.
	clusterPlace = `(CASE WHEN pg_is_in_recovery() THEN '' ELSE 'cluster ' || (SELECT system_identifier FROM pg_control_system()) ||
  ', timeline ' || ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END)`
	mayAskPlace     = `SELECT has_function_privilege('pg_control_system()', 'execute')`
	lockStore       = `SELECT 1 FROM interlock.store FOR UPDATE`
	raiseGeneration = `UPDATE interlock.store SET id = replace(gen_random_uuid()::text, '-', ''), generation = $1, reason = $2, at = clock_timestamp()`
	moveStore       = `UPDATE interlock.store SET place = $1`
	probeStore      = `UPDATE interlock.store SET probed = probed + 1`
	probeSettings   = `SELECT set_config('lock_timeout', '500ms', true), set_config('statement_timeout', '900ms', true), set_config('idle_in_transaction_session_timeout', '30s', true)`
	// A run that has no row recorded nothing before this store.
	selectRunBefore = `SELECT r.generation, EXISTS (SELECT 1 FROM interlock.events e
  WHERE e.tenant = r.tenant AND e.address = r.address AND e.first_run_id = r.first_run_id AND e.branch <> $3)
FROM interlock.runs r WHERE r.tenant = $1 AND r.address = $2 ORDER BY r.nth DESC LIMIT 1`
	insertLost = `UPDATE interlock.effects SET attempts = 2, unknown = true, reason = $3 WHERE tenant = $1 AND key = $2`
	// The first attempt is the one that may be lost, the second the claim's own.
	secondAttempt = `INSERT INTO interlock.effect_attempts (tenant, key, n, at, deadline, branch)
SELECT tenant, key, 2, at, deadline, branch FROM interlock.effect_attempts WHERE tenant = $1 AND key = $2 AND n = 1`
	lostAttempt = `UPDATE interlock.effect_attempts SET deadline = at, branch = '', reason = $3 WHERE tenant = $1 AND key = $2 AND n = 1`
)

// identified is an identity as it stands, and where the database is now ("": it does
// not say).
type identified struct {
	store.Identity
	now string
}

// queueIdentity queues the look at the identity.
func (s *Store) queueIdentity(t *transaction, into *identified) {
	t.rows(func(r row) error { return scanIdentity(r, into) }, s.selectIdentity)
}

func scanIdentity(r row, into *identified) error {
	var at *time.Time
	err := r.Scan(&into.ID, &into.Generation, &into.Place, &into.Reason, &at, &into.now)
	if at != nil {
		into.At = at.UTC()
	}
	return err
}

// settle notices that the database is on another cluster or timeline than before:
// it is a copy, or has failed over, and the generation rises.
func (s *Store) settle(ctx context.Context, seen *identified) error {
	if seen.now == "" || seen.now == seen.Place {
		return nil
	}
	err := s.transact(ctx, durably, func(t *transaction) error {
		t.exec(lockStore)
		s.queueIdentity(t, seen)
		if err := t.flush(ctx); err != nil || seen.now == seen.Place {
			return err
		}
		if reason := rules.FoundElsewhere(seen.Place, seen.now); reason != "" {
			t.exec(raiseGeneration, seen.Generation+1, reason)
		}
		t.exec(moveStore, seen.now)
		s.queueIdentity(t, seen)
		return nil
	})
	return err
}

func placed(may bool) string {
	if may {
		return fmt.Sprintf(selectIdentity, clusterPlace)
	}
	return fmt.Sprintf(selectIdentity, `''`)
}

// identify finds out how this user may ask where the database is, and looks.
func (s *Store) identify(ctx context.Context) error {
	may := false
	if err := s.plain(ctx, mayAskPlace, nil, func(r row) error { return r.Scan(&may) }); err != nil {
		return err
	}
	s.selectIdentity = placed(may)
	var id identified
	if err := s.plain(ctx, s.selectIdentity, nil, func(r row) error { return scanIdentity(r, &id) }); err != nil {
		return err
	}
	if err := s.settle(ctx, &id); err != nil {
		return err
	}
	s.acknowledges.Store(id.String())
	return nil
}

// Identity implements [store.Identities].
func (s *Store) Identity(ctx context.Context) (store.Identity, error) {
	var id identified
	err := s.read(ctx, "look at the store's identity", s.selectIdentity, nil, func(r row) error { return scanIdentity(r, &id) })
	return id.Identity, err
}

// Acknowledges implements [store.Identities].
func (s *Store) Acknowledges() string {
	id, _ := s.acknowledges.Load().(string)
	return id
}

// Restored implements [store.Identities].
func (s *Store) Restored(ctx context.Context, reason string) (store.Identity, error) {
	const operation = "raising of the store's generation"
	if err := store.CheckNamed("reason", reason); err != nil {
		return store.Identity{}, fail(operation, err)
	}
	return s.raise(ctx, operation, reason, func(id store.Identity) int64 { return id.Generation + 1 })
}

// raise brings the generation to where to says, and makes nothing of one that stays.
func (s *Store) raise(ctx context.Context, operation, reason string, to func(store.Identity) int64) (store.Identity, error) {
	var id identified
	err := s.write(ctx, operation, func(t *transaction) error {
		t.exec(lockStore)
		s.queueIdentity(t, &id)
		if err := t.flush(ctx); err != nil || to(id.Identity) == id.Generation {
			return err
		}
		t.exec(raiseGeneration, to(id.Identity), reason)
		s.queueIdentity(t, &id)
		return nil
	})
	return id.Identity, err
}

// Probe implements [store.Identities].
func (s *Store) Probe(ctx context.Context) error {
	return fail("a write to the store, to see whether it takes any", s.transact(ctx, probeSettings, func(t *transaction) error {
		var probed int64
		t.count(&probed, probeStore)
		if err := t.flush(ctx); err != nil || probed == 1 {
			return err
		}
		return agent.Errorf(agent.CodeUnavailable, "the store has no identity: run interlock migrate")
	}))
}
