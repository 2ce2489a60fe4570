package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"interlock/agent"
	"interlock/store"
	"interlock/store/internal/rules"
)

const (
	selectHead = `SELECT first_run_id, nth, body, seq, hash, updated_at, status, reason, phase, turn,
  coalesce((SELECT e.superseded_by FROM interlock.events e
    WHERE e.tenant = $1 AND e.address = $2 AND e.first_run_id = $3 AND e.branch = $4 AND e.superseded_by <> '' LIMIT 1), '')
FROM interlock.runs WHERE tenant = $1 AND address = $2 ORDER BY nth DESC LIMIT 1`
	selectStood    = `SELECT EXISTS (SELECT 1 FROM interlock.runs WHERE tenant = $1 AND address = $2 AND first_run_id = $3)`
	selectStanding = `SELECT seq, hash, branch, type FROM interlock.events
WHERE tenant = $1 AND address = $2 AND first_run_id = $3 AND seq BETWEEN $4 AND $5 AND superseded_by = '' ORDER BY seq`
	selectOwnLast = `SELECT coalesce(max(seq), 0) FROM interlock.events
WHERE tenant = $1 AND address = $2 AND first_run_id = $3 AND branch = $4 AND superseded_by = ''`
	selectVersions = `SELECT seq, branch, superseded_by = '', at, type, v, turn, step, trace_id, data, hash FROM interlock.events
WHERE tenant = $1 AND address = $2 AND first_run_id = $3 AND seq BETWEEN $4 AND $5 ORDER BY seq DESC, superseded_by = '' DESC`
	supersedeTail = `UPDATE interlock.events SET superseded_by = $4
WHERE tenant = $1 AND address = $2 AND first_run_id = $3 AND seq >= $5 AND superseded_by = ''`
	insertEvents = `INSERT INTO interlock.events (tenant, address, first_run_id, branch, seq, at, type, v, turn, step, trace_id, data, hash)
SELECT $1, $2, $3, $4, e.* FROM unnest($5::bigint[], $6::timestamptz[], $7::text[], $8::bigint[], $9::bigint[],
  $10::text[], $11::text[], $12::text[], $13::text[]) AS e`
)

// Append implements [store.Journal].
func (s *Store) Append(ctx context.Context, ref store.RunRef, batch agent.Batch) error {
	return s.appendBy(ctx, ref, batch, s.write, false)
}

// AppendSoon implements [store.Journal]: the commit does not wait for the disk,
// and PostgreSQL writes its log in order, so the next commit that waits covers it.
func (s *Store) AppendSoon(ctx context.Context, ref store.RunRef, batch agent.Batch) error {
	return s.appendBy(ctx, ref, batch, s.writeSoon, true)
}

func (s *Store) appendBy(ctx context.Context, ref store.RunRef, batch agent.Batch,
	write func(ctx context.Context, operation string, f func(*transaction) error) error, soon bool) error {
	if len(batch.Events) == 0 && batch.Acked == 0 {
		return nil
	}
	operation := fmt.Sprintf("append of events %d to %d to %s", batch.First, batch.Last(), ref.Address)
	hashes, err := store.CheckAppend(ref, batch)
	if err != nil {
		return fail(operation, err)
	}
	var id identified
	err = write(ctx, operation, func(t *transaction) error {
		s.queueIdentity(t, &id) // goes with the first read
		return rules.Append(ctx, &journal{transaction: t, ref: ref, batch: batch}, ref, batch, hashes, soon)
	})
	var refusal *store.Refusal
	if errors.As(err, &refusal) && refusal.Kind == store.Lost {
		_, raised := s.raise(ctx, operation, refusal.Message, func(is store.Identity) int64 { return rules.Raised(is, batch.Store) })
		return errors.Join(refusal, raised)
	}
	if err == nil {
		err = fail(operation, s.settle(ctx, &id))
	}
	if err == nil {
		s.acknowledges.Store(id.String())
		s.appended(ref)
	}
	return err
}

// journal is a [rules.Journal] in a transaction. Head reads, in one round trip,
// all that an ordinary append needs; what is written goes with the commit.
type journal struct {
	*transaction
	ref   store.RunRef
	batch agent.Batch

	standing []rules.Standing
	gates    map[string]*rules.Gate // read by Head, nil for one without a row; emptied when gates change
}

// chain are the arguments that name the chain, and what comes after.
func (j *journal) chain(more ...any) []any {
	return append([]any{j.ref.Tenant, j.ref.Address, j.ref.FirstRunID}, more...)
}

func (j *journal) Head(ctx context.Context) (h rules.Head, err error) {
	j.lock("journal", j.ref.Tenant, j.ref.Address)
	j.rows(func(r row) error {
		return r.Scan(&h.FirstRunID, &h.Nth, &h.Body, &h.Seq, &h.Hash, &h.At, &h.Run.Status, &h.Run.Reason, &h.Run.Phase, &h.Run.Turn, &h.SupersededBy)
	}, selectHead, j.chain(j.ref.Branch)...)
	j.rows(func(r row) error {
		var e rules.Standing
		err := r.Scan(&e.Seq, &e.Hash, &e.Branch, &e.Type)
		j.standing = append(j.standing, e)
		return err
	}, selectStanding, j.chain(j.batch.First-1, j.batch.Last())...)
	j.gates = map[string]*rules.Gate{}
	if ids := rules.ChangedGates(j.batch.Events); len(ids) > 0 {
		for _, id := range ids {
			j.gates[id] = nil
		}
		j.rows(func(r row) error {
			g, err := scanGate(r)
			j.gates[g.ID] = &g
			return err
		}, selectGates, j.chain(ids)...)
	}
	err = j.flush(ctx)
	return h, err
}

func (j *journal) Stood(ctx context.Context) (stood bool, err error) {
	j.rows(func(r row) error { return r.Scan(&stood) }, selectStood, j.chain()...)
	err = j.flush(ctx)
	return stood, err
}

func (j *journal) Standing(context.Context) ([]rules.Standing, error) { return j.standing, nil }

func (j *journal) OwnLast(ctx context.Context) (seq int64, err error) {
	j.rows(func(r row) error { return r.Scan(&seq) }, selectOwnLast, j.chain(j.ref.Branch)...)
	err = j.flush(ctx)
	return seq, err
}

func (j *journal) Versions(ctx context.Context, first, last int64) (all []rules.Version, err error) {
	j.rows(func(r row) error {
		v := rules.Version{Event: agent.Event{Tenant: j.ref.Tenant}}
		e := &v.Event
		var data string
		err := r.Scan(&e.Seq, &v.Branch, &v.Live, &e.At, &e.Type, &e.V, &e.Turn, &e.Step, &e.TraceID, &data, &v.Hash)
		e.At, e.Data = e.At.UTC(), agent.JSON(data)
		all = append(all, v)
		return err
	}, selectVersions, j.chain(first, last)...)
	err = j.flush(ctx)
	return all, err
}

func (j *journal) Supersede(_ context.Context, seq int64) error {
	j.exec(supersedeTail, j.chain(j.ref.Branch, seq)...)
	return nil
}

func (j *journal) Insert(_ context.Context, events []agent.Event, hashes []string) error {
	n := len(events)
	seqs, ats, types, vs, turns := make([]int64, n), make([]time.Time, n), make([]string, n), make([]int64, n), make([]int64, n)
	steps, traces, data := make([]string, n), make([]string, n), make([]string, n)
	for i, e := range events {
		seqs[i], ats[i], types[i], vs[i], turns[i] = e.Seq, e.At, string(e.Type), int64(e.V), int64(e.Turn)
		steps[i], traces[i], data[i] = e.Step, e.TraceID, e.Data.String()
	}
	j.exec(insertEvents, j.chain(j.ref.Branch, seqs, ats, types, vs, turns, steps, traces, data, hashes)...)
	return nil
}
