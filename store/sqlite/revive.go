package sqlite

import (
	"context"
	"slices"

	"interlock/agent"
)

const selectVersions = `SELECT branch, superseded_by = '', at, type, v, turn, step, trace_id, data, hash FROM events
WHERE tenant = ? AND address = ? AND seq = ? ORDER BY superseded_by = '' DESC`

// version is one of the rows that the journal has of an event.
type version struct {
	event        agent.Event
	branch, hash string
	live         bool
}

// revive makes the history that the batch follows the live one, where all of
// it is recorded: a reset of a run that a newer one has superseded goes on with
// events that do not count any more. A row can be superseded only once, so they
// are appended again as our branch's. Where they are not recorded, or our own
// branch wrote what stands in their place, it answers refusal.
func (a *appending) revive(ctx context.Context, refusal error) error {
	lost, stands, err := a.lost(ctx)
	if err != nil {
		return err
	}
	if len(lost) == 0 {
		return refusal
	}
	if stands != nil {
		e := standingEvent{seq: stands.event.Seq, hash: stands.hash, branch: stands.branch, kind: string(stands.event.Type)}
		if err := a.supersede(ctx, e, refusal); err != nil {
			return err
		}
	}
	events, hashes := make([]agent.Event, len(lost)), make([]string, len(lost))
	for i, v := range lost {
		events[i], hashes[i] = v.event, v.hash
	}
	if events[0].Seq == 1 {
		if err := a.writeRun(ctx, events[0]); err != nil { // another start: of another version, perhaps
			return err
		}
	}
	return a.insert(ctx, events, hashes)
}

// lost are the superseded rows that lead from a live row, or from nothing, to
// the event before the batch. It is empty where they do not. stands is the live
// row in the place of the first of them, if there is one.
//
// An event names the one before it only by their common hash, so the walk is
// backwards, and which branch wrote a row does not matter.
func (a *appending) lost(ctx context.Context) (lost []version, stands *version, err error) {
	leads := func(hash string) bool { return hash == a.batch.Before }
	for seq := a.batch.First - 1; seq >= 1; seq-- {
		all, err := a.versions(ctx, seq)
		if err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(all, func(v version) bool { return leads(v.hash) })
		if i < 0 {
			return nil, nil, nil
		}
		found := all[i]
		if found.live {
			slices.Reverse(lost)
			return lost, stands, nil
		}
		lost, stands = append(lost, found), nil
		if all[0].live {
			stands = &all[0]
		}
		leads = func(hash string) bool { return found.event.Chain(hash) == found.hash }
	}
	if !leads("") {
		return nil, nil, nil
	}
	slices.Reverse(lost)
	return lost, stands, nil
}

// versions are all rows of an event, the live one first.
func (a *appending) versions(ctx context.Context, seq int64) (all []version, err error) {
	rows, err := a.rows(ctx, selectVersions, a.ref.Tenant, a.ref.Address, seq)
	if err != nil {
		return nil, err
	}
	err = each(rows, func(r row) error {
		v := version{event: agent.Event{Seq: seq, Tenant: a.ref.Tenant}}
		e := &v.event
		var at int64
		var data string
		err := r.Scan(&v.branch, &v.live, &at, &e.Type, &e.V, &e.Turn, &e.Step, &e.TraceID, &data, &v.hash)
		e.At, e.Data = fromMicros(at), agent.JSON(data)
		all = append(all, v)
		return err
	})
	return all, err
}
