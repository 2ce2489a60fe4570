package agent

import "slices"

// Snapshot is all that a machine goes on from in the next Temporal run of a
// chain: the run, and the events that the journal has not acknowledged. It is
// JSON, and at most Limits.Snapshot and the events long.
type Snapshot struct {
	V      int     `json:"v"`
	Run    *Run    `json:"run"`
	Hash   string  `json:"hash"` // of the chain up to the run's last event
	Before string  `json:"before,omitempty"`
	Outbox []Event `json:"outbox,omitempty"`
}

// SnapshotSchema is the version of [Snapshot]'s JSON.
const SnapshotSchema = 1

// Hold keeps the machine from starting a turn or taking an Auto move, so that a
// snapshot can be taken as soon as nothing is in flight. What is in flight goes
// on, and inputs are taken as ever.
func (m *Machine) Hold() { m.held = true }

// Snapshot is where the machine stands. The caller must not change what it
// points to.
func (m *Machine) Snapshot() Snapshot {
	return Snapshot{V: SnapshotSchema, Run: m.run, Hash: m.hash, Before: m.before, Outbox: m.outbox}
}

// Restore makes a machine that goes on from a snapshot. The next input is
// [SnapshotLoaded]. CodeUnavailable says that only newer code can read it.
func Restore(def *Definition, s Snapshot) (*Machine, error) {
	switch {
	case s.Run == nil:
		return nil, Errorf(CodeInvalid, "the snapshot holds no run")
	case s.V != SnapshotSchema || s.Run.V != RunSchema:
		return nil, Errorf(CodeUnavailable, "the snapshot is of version %d.%d, this code knows %d.%d: it was made by a newer worker", s.V, s.Run.V, SnapshotSchema, RunSchema)
	case s.Run.Agent != def.Name || s.Run.Version != def.Version:
		return nil, Errorf(CodeInvalid, "the snapshot is of agent %s/v%d, not of %s/v%d", s.Run.Agent, s.Run.Version, def.Name, def.Version)
	}
	m := &Machine{def: def, run: s.Run, hash: s.Hash, before: s.Before, outbox: s.Outbox}
	hash := s.Before
	for _, e := range s.Outbox {
		hash = e.Chain(hash)
		m.hashes = append(m.hashes, hash)
	}
	if len(s.Outbox) > 0 && hash != s.Hash {
		return nil, Errorf(CodeInvalid, "the snapshot's events do not lead to its run")
	}
	return m, nil
}

// reopen sets the timers of gates anew and schedules the steps that wait, since
// nothing of that outlives its Temporal run.
func (m *Machine) reopen() {
	for i := range m.run.Steps {
		switch s := &m.run.Steps[i]; {
		case s.Status != StepRunning || s.Kind != KindTool:
		case s.Stopping != nil:
			m.command(StopStep{Task: m.task(s), Reason: s.Stopping.Reason, Undo: s.Stopping.Undo})
		default:
			m.command(RunStep{Task: m.task(s)})
		}
	}
	for _, g := range m.run.Gates {
		if g.Status == GateOpen && g.Pending != nil {
			m.command(SetPending{Gate: g.ID, Until: g.Pending.Until})
		}
		if g.Status == GateOpen && (g.ExpiresAt != nil || g.escalatesAt() != nil) {
			m.command(OpenGate{Gate: g.ID, ExpiresAt: g.ExpiresAt, EscalatesAt: g.escalatesAt()})
		}
	}
}

// size is about the JSON length of the run.
func (r *Run) size() int {
	n := 2048 + len(r.State) + 160*len(r.Provenance) + 40*len(r.Shown) + 48*len(r.Ordinals)
	for _, t := range r.Turns {
		n += t.bytes()
	}
	if r.Before != nil {
		for _, f := range sortedKeys(r.Before.Fields) {
			n += len(r.Before.Fields[f].Value) + 240
		}
		n += 100
	}
	for _, it := range r.Opening {
		n += len(it.Text) + 100
	}
	for _, s := range r.Steps {
		n += 400 + len(s.Args) + len(s.Result) + len(s.Reason)
		if s.Stopping != nil {
			n += 80 + len(s.Stopping.Reason)
		}
	}
	for _, g := range r.Gates {
		n += 600 + len(g.Args) + len(g.Title) + len(g.Policy) + len(g.Reason) + len(g.Risk) + len(g.Schema)
		for _, a := range g.Approvals {
			n += 200 + len(a.Reason)
		}
		for _, name := range sortedKeys(g.Shown) {
			n += len(g.Shown[name]) + 20
		}
	}
	for _, v := range slices.Concat(r.Kept, r.Pending) {
		n += 300 + len(v.Reason) + len(v.Args) + len(v.Result)
	}
	for _, f := range r.Facts {
		n += len(f.Quote) + 40
	}
	for _, name := range sortedKeys(r.Confirmed) {
		n += len(r.Confirmed[name].Quote) + 60
	}
	for _, u := range r.Rulings {
		n += 400 + len(u.Title) + len(u.Reason)
	}
	for _, h := range r.Handled {
		n += len(h.ID) + len(h.Body) + 40
	}
	for _, u := range r.Undo {
		n += len(u.By) + len(u.Reason) + len(u.Stands) + 80
	}
	if r.Reply != nil {
		n += len(r.Reply.Text) + 40
	}
	return n
}
