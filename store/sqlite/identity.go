package sqlite

import (
	"context"
	"errors"
	"os"
	"time"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	selectIdentity  = `SELECT id, generation, place, reason, at FROM store`
	raiseGeneration = `UPDATE store SET id = lower(hex(randomblob(16))), generation = ?, reason = ?, at = ?`
	moveStore       = `UPDATE store SET place = ?`
	probeStore      = `UPDATE store SET probed = probed + 1`
	selectRunBefore = `SELECT r.generation, EXISTS (SELECT 1 FROM events e
  WHERE e.tenant = r.tenant AND e.address = r.address AND e.first_run_id = r.first_run_id AND e.branch <> ?3)
FROM runs r WHERE r.tenant = ?1 AND r.address = ?2 ORDER BY r.nth DESC LIMIT 1`
)

// probeFor is how long a probe waits for another process's lock.
const probeFor = 500 * time.Millisecond

// settle looks where the file is, once it is open: in another place than before it is a
// copy, and the generation rises.
func (s *Store) settle(ctx context.Context) error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	s.file = info
	var id store.Identity
	err = s.transact(ctx, s.writer, func(t transaction) (err error) {
		if id, err = t.identity(ctx); err != nil {
			return err
		}
		place := placeOf(info)
		if place == "" || place == id.Place {
			return nil
		}
		if reason := rules.FoundElsewhere(id.Place, place); reason != "" {
			if _, err := t.exec(ctx, raiseGeneration, id.Generation+1, reason, micros(s.now())); err != nil {
				return err
			}
		}
		if _, err := t.exec(ctx, moveStore, place); err != nil {
			return err
		}
		id, err = t.identity(ctx)
		return err
	})
	if err == nil {
		s.acknowledges.Store(id.String())
	}
	return err
}

// replaced refuses to go on with a file that is no more where it was opened: what is
// written to it is lost with this process.
func (s *Store) replaced() error {
	if s.file == nil { // being opened
		return nil
	}
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return agent.Errorf(agent.CodeUnavailable, "the database file %s was deleted or moved while it was open, and nothing is written to what is left: "+
			"stop all processes, bring it back from a copy, interlock store restored, and start them again", s.path)
	case err != nil:
		return agent.Errorf(agent.CodeUnavailable, "the database file %s cannot be looked at any more: %w", s.path, err)
	case !os.SameFile(info, s.file):
		return agent.Errorf(agent.CodeUnavailable, "the database file %s was replaced by another while it was open, and nothing is written to the one before: "+
			"restart this process; where the other is an older copy, interlock store restored first", s.path)
	}
	return nil
}

func (t transaction) identity(ctx context.Context) (id store.Identity, err error) {
	err = scanIdentity(t.row(ctx, selectIdentity), &id)
	return id, err
}

func scanIdentity(r row, id *store.Identity) error {
	var at int64
	err := r.Scan(&id.ID, &id.Generation, &id.Place, &id.Reason, &at)
	if at > 0 {
		id.At = fromMicros(at)
	}
	return err
}

// Identity implements [store.Identities].
func (s *Store) Identity(ctx context.Context) (id store.Identity, err error) {
	err = s.read(ctx, "look at the store's identity", selectIdentity, nil, func(r row) error { return scanIdentity(r, &id) })
	return id, err
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
func (s *Store) raise(ctx context.Context, operation, reason string, to func(store.Identity) int64) (id store.Identity, err error) {
	err = s.write(ctx, operation, func(t transaction) error {
		if id, err = t.identity(ctx); err != nil || to(id) == id.Generation {
			return err
		}
		if _, err = t.exec(ctx, raiseGeneration, to(id), reason, micros(s.now())); err == nil {
			id, err = t.identity(ctx)
		}
		return err
	})
	return id, err
}

// Probe implements [store.Identities].
func (s *Store) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	return s.write(ctx, "a write to the store, to see whether it takes any", func(t transaction) error {
		_, err := t.exec(ctx, probeStore)
		return err
	})
}

// mayBeLost reports whether an effect without a row may have been begun.
func (t transaction) mayBeLost(ctx context.Context, c store.Claim) (bool, error) {
	if !c.Exclusive {
		return false, nil
	}
	id, err := t.identity(ctx)
	if err != nil {
		return false, err
	}
	before := rules.RunBefore{Generation: id.Generation}
	rows, err := t.rows(ctx, selectRunBefore, c.Tenant, c.Address, c.Branch)
	if err != nil {
		return false, err
	}
	err = each(rows, func(r row) error { return r.Scan(&before.Generation, &before.Branches) })
	return rules.MayBeLost(c, id, before), err
}
