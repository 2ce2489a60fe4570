package agent

import (
	"fmt"
	"slices"
	"strings"
)

// Snapshot is all that a machine goes on from in the next Temporal run of a
// chain: the run, and the events that the journal has not acknowledged. It is
// JSON, and at most Limits.Snapshot and the events long.
type Snapshot struct {
	V      int     `json:"v"`
	Run    *Run    `json:"run"`
	Salt   string  `json:"salt,omitempty"` // of the chain
	Hash   string  `json:"hash"`           // of the chain up to the run's last event
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
	return Snapshot{V: SnapshotSchema, Run: m.run, Salt: m.salt, Hash: m.hash, Before: m.before, Outbox: m.outbox}
}

// CheckRules says whether this code knows the decisions by which a run goes on:
// CodeUnavailable where a newer build began it, or carried it on.
func CheckRules(rules int) error {
	if rules > Rules {
		return Errorf(CodeUnavailable, "the run goes on by rules %d, and this build knows rules up to %d: %s", rules, Rules, newerBuild)
	}
	return nil
}

// CheckSnapshot says whether this code knows the schemas of a snapshot and of its run,
// and the rules by which that goes on. Of what it does not know the code is
// CodeUnavailable.
func CheckSnapshot(snapshot, run, rules int) error {
	if snapshot != SnapshotSchema || run != RunSchema {
		return Errorf(CodeUnavailable, "the snapshot's schema is %d, and its run's %d; this build knows %d and %d: %s", snapshot, run, SnapshotSchema, RunSchema, newerBuild)
	}
	return CheckRules(rules)
}

// UnknownSnapshot is the error for a snapshot that does not decode: err says which
// member this code does not know, or misses.
func UnknownSnapshot(err error) error {
	return Errorf(CodeUnavailable, "the run's snapshot is not of this build (%v): %s", err, newerBuild)
}

// newerBuild is what to do about a run that newer code has had. The starter looks for
// it in what blocks a run.
const newerBuild = "a newer build has had the run; deploy that build, or a newer one, on every worker of the task queue"

// IsNewerBuild reports whether a text says that only a newer build can go on.
func IsNewerBuild(text string) bool { return strings.Contains(text, newerBuild) }

// Restore makes a machine that goes on from a snapshot. The next input is
// [SnapshotLoaded]. CodeUnavailable says that other code must go on with it: the
// run's task waits for that. CodeInvalid says that it is no snapshot of such a run.
func Restore(def *Definition, s Snapshot) (*Machine, error) {
	switch {
	case s.Run == nil:
		return nil, Errorf(CodeInvalid, "the snapshot holds no run")
	case s.Run.Agent != def.Name || s.Run.Version != def.Version:
		return nil, Errorf(CodeInvalid, "the snapshot is of agent %s/v%d, not of %s/v%d", s.Run.Agent, s.Run.Version, def.Name, def.Version)
	}
	if err := CheckSnapshot(s.V, s.Run.V, s.Run.Rules); err != nil {
		return nil, err
	}
	if why := s.Run.dangling(); why != "" {
		return nil, Errorf(CodeInvalid, "the snapshot is damaged: %s", why)
	}
	if _, err := def.checkState(s.Run.State); err != nil {
		return nil, def.changedState(clip(err.Error(), 300))
	}
	m := &Machine{def: def, run: s.Run, salt: s.Salt, hash: s.Hash, before: s.Before, outbox: s.Outbox}
	hash := s.Before
	for _, e := range s.Outbox {
		hash = e.Chain(s.Salt, hash)
		m.hashes, m.heads = append(m.hashes, hash), append(m.heads, s.Run.head()) // they go in one batch, whose head is the last one's
		m.weight += e.bytes()
	}
	if len(s.Outbox) > 0 && hash != s.Hash {
		return nil, Errorf(CodeInvalid, "the snapshot's events do not lead to its run")
	}
	return m, nil
}

// dangling says what in a run refers to a step that it does not hold; "" for nothing.
func (r *Run) dangling() string {
	for _, g := range r.Gates {
		if g.Status == GateOpen && r.step(g.StepID()) == nil {
			return fmt.Sprintf("gate %s is open, and there is no step %s", g.ID, g.StepID())
		}
	}
	for _, u := range r.Undo {
		if u.As != "" && u.Stands == "" && r.step(u.As) == nil {
			return fmt.Sprintf("step %s is being undone by step %s, which is not there", u.Step, u.As)
		}
	}
	return ""
}

// CheckState compares the shape of the state that a run began with to that of this
// code: CodeUnavailable names the field that is another.
func (d *Definition) CheckState(was StateShape) error {
	if changed := was.Changed(d.StateShape()); changed != "" {
		return d.changedState(changed)
	}
	return nil
}

func (d *Definition) changedState(how string) error {
	return Errorf(CodeUnavailable, "the state of agent %s/v%d is not the one that this run began with (%s): %s", d.Name, d.Version, how, stateChanged)
}

// stateChanged is what to do about it. The starter looks for it in what blocks a run.
const stateChanged = "deploy a worker whose version keeps its state as it was, and put the change into a new version"

// IsStateChanged reports whether a text says that a state changed under its version.
func IsStateChanged(text string) bool { return strings.Contains(text, stateChanged) }

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
	n := 2048 + len(r.State) + 160*len(r.Provenance) + 60*len(r.Shown) + 48*len(r.Ordinals)
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
		n += len(r.Confirmed[name].Quote) + 120
	}
	for _, name := range sortedKeys(r.Shown) {
		n += len(r.Shown[name].Quote)
	}
	for _, u := range r.Rulings {
		n += 400 + len(u.Title) + len(u.Reason)
	}
	for _, h := range r.Handled {
		n += h.size()
	}
	for _, u := range r.Undo {
		n += len(u.By) + len(u.Reason) + len(u.Stands) + 80
	}
	if r.Reply != nil {
		n += len(r.Reply.Text) + 40
	}
	return n
}
