package agent

import (
	"fmt"
	"slices"
	"time"
)

// maxAutos bounds the Auto moves in a row: beyond it the run pauses.
const maxAutos = 16

// advance does what the run can do by itself until something outside must
// happen: it ends a cancel, expires gates, judges kept verdicts, takes Auto
// moves, ends the run in a final phase, or calls the model.
func (m *Machine) advance() {
	for m.run.Seq > 0 && !m.run.Status.Ended() {
		before := m.run.Seq
		m.once()
		if m.run.Seq == before {
			return
		}
	}
}

func (m *Machine) once() {
	r := m.run
	if r.Cancel != nil {
		m.cancelling()
		return
	}
	m.expireGates()
	m.escalateGates()
	m.judgeSteps()
	if r.Status == RunPaused {
		return
	}
	if r.Owed == 0 && len(r.Kept) > 0 {
		m.judgeKept()
		return
	}
	if r.Owed == 0 && m.pendingOver() {
		m.judgePending()
		return
	}
	if m.settleCut() || m.renew() || m.undoNext() || r.busy() || m.held {
		return
	}
	if r.Repairs != nil {
		m.repaired()
		return
	}
	if reason := m.overBudget(); reason != "" {
		m.emit(EventPaused, "", PausedData{Reason: reason})
		return
	}
	if r.Owed == 0 && m.auto() {
		return
	}
	if r.Final && m.final() {
		return
	}
	if m.callsModel() {
		m.trim()
		if n := r.size(); n > r.Limits.Snapshot {
			m.emit(EventPaused, "", PausedData{Reason: fmt.Sprintf("snapshot: the run has grown to %d bytes, the limit is %d", n, r.Limits.Snapshot)})
			return
		}
		m.emit(EventTurnStarted, "", TurnStartedData{})
		return
	}
	m.idle()
}

// turnWaits reports whether a step of the latest turn waits for a person.
func (r *Run) turnWaits() bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool {
		return r.turnOf(&s) == r.Turn && s.By != ByUndo && (s.Status == StepWaiting || s.Status == StepInDoubt)
	})
}

// unread reports whether a message arrived after the latest turn began.
func (r *Run) unread() bool { return r.Owed > 0 && r.Owed > r.lastTurn().Seq }

// callsModel says whether the model has something new to be told: a message
// calls it; so does anything else, unless a call of the latest turn waits for
// a person.
func (m *Machine) callsModel() bool {
	return m.run.unread() || m.run.Due && !m.run.turnWaits()
}

// auto takes the first Auto move that its guard allows.
func (m *Machine) auto() bool {
	p, ok := m.def.phase(m.run.Phase)
	if !ok {
		return false
	}
	for _, mv := range p.moves {
		if !mv.auto || m.guard(mv) != nil {
			continue
		}
		args := mustEncode(moveArgs{To: mv.to})
		if _, needed := m.needsGate(mv.gate, args); needed {
			if m.forbidsMove(args) != "" || m.triedSince(args) {
				continue
			}
			m.commit(commitment{kind: KindMove, tool: CallMove, args: args, by: ByEnter, gate: mv.gate})
			return true
		}
		if m.run.Autos >= maxAutos {
			m.emit(EventPaused, "", PausedData{Reason: fmt.Sprintf("auto_loop: %d Auto moves in a row, the next to %s", maxAutos, mv.to)})
			return true
		}
		to, _ := m.def.phase(mv.to)
		m.enter(to, "auto", "")
		return true
	}
	return false
}

// triedSince reports whether the gate of an Auto move was opened in this phase
// and closed without a change of what it reads: it waits for such a change.
func (m *Machine) triedSince(args JSON) bool {
	for i := len(m.run.Gates) - 1; i >= 0; i-- {
		g := m.run.Gates[i]
		if g.Kind != KindMove || !g.Args.Equal(args) {
			continue
		}
		s := m.run.step(g.ID)
		if s != nil && m.run.changedSince(g.Reads, s.Seq) {
			return false
		}
		// A void step was approved, but its guard refused it then: it is asked for anew
		// when the guard allows it.
		return s != nil && s.Seq > m.run.PhaseSeq && s.Status != StepVoid && !m.run.lifted(g.ID) && digest(g.Shown) == digest(m.values(g.Reads))
	}
	return false
}

// final ends the run, once the calls that its phase made are settled and it
// has had its last word. It reports false while a step is open.
func (m *Machine) final() bool {
	r := m.run
	if r.waitsAgain() {
		return false
	}
	var failed []string
	for _, s := range r.Steps {
		if s.Status.Open() && s.Kind != KindAsk {
			return false
		}
		if s.By == ByEnter && s.Seq > r.PhaseSeq && s.Status != StepDone && !r.replaced(s.ID) {
			failed = append(failed, fmt.Sprintf("%s %s: %s", s.ID, s.Tool, s.Status))
		}
	}
	p, _ := m.def.phase(r.Phase)
	switch {
	case r.Spoken:
		for _, g := range slices.Clone(r.Gates) {
			if g.Status == GateOpen {
				m.closeStep(g.ID, GateVoid, StepVoid, "the run has ended")
			}
		}
		m.emit(EventCompleted, "", EndedData{Failed: failed})
	case p.say != nil && r.unread():
		return false // a message that came meanwhile is answered first
	case p.say != nil:
		m.emit(EventReply, "", ReplyData{Text: clip(p.say(m.situation()), r.Limits.Message), Last: true})
	default:
		m.trim()
		m.emit(EventTurnStarted, "", TurnStartedData{LastWord: true})
	}
	return true
}

func (m *Machine) inDoubt() []string {
	var out []string
	for _, s := range m.run.Steps {
		if s.Status == StepInDoubt {
			out = append(out, fmt.Sprintf("%s %s: %s", s.ID, s.Tool, s.Status))
		}
	}
	return out
}

// overBudget names the budget that is at its limit, as the run's reason.
func (m *Machine) overBudget() string {
	u, g, b := m.run.Used, m.run.Granted, m.run.Limits.Budget
	for _, p := range []struct {
		name       string
		used, most int64
	}{
		{"turns", int64(u.Turns - g.Turns), int64(b.Turns)},
		{"model_calls", int64(u.ModelCalls - g.ModelCalls), int64(b.ModelCalls)},
		{"tokens", u.Usage.Total() - g.Tokens, b.Tokens},
		{"active", u.ActiveMS - g.ActiveMS, activeLimit(b.Active)},
		{"refusals", int64(u.Refusals), int64(b.Refusals)},
		{"tool_errors", int64(u.ToolErrors), int64(b.ToolErrors)},
		{"same_call", int64(u.SameCall), int64(b.SameCall)},
	} {
		if p.most >= 0 && p.used >= p.most && m.wouldGoOn() {
			return "budget:" + p.name
		}
	}
	return ""
}

// activeLimit is the limit in milliseconds; a negative one is none, however
// small: -1 ns must not become 0 ms.
func activeLimit(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return d.Milliseconds()
}

// wouldGoOn keeps a run that only waits from pausing: a budget at its limit
// stops the next thing, not the last one. The last word is always allowed.
func (m *Machine) wouldGoOn() bool {
	lastWord := m.run.Final && !slices.ContainsFunc(m.run.Steps, func(s Step) bool { return s.Status.Open() && s.Kind != KindAsk })
	return m.callsModel() && !lastWord
}

// trim drops what the view has no room for, by an event, in blocks: so that
// the window of recent turns stays put for some turns, and a provider's prefix
// cache keeps hitting.
func (m *Machine) trim() {
	r := m.run
	d := TrimmedData{Turns: m.oldTurns()}
	size := 0
	for _, s := range r.Steps {
		size += s.shown()
	}
	if size > r.Limits.Active {
		for _, s := range r.Steps {
			if size <= r.Limits.Active/2 {
				break
			}
			if s.shown() > 0 && s.Turn < r.Turn {
				d.Results = append(d.Results, s.ID)
				size -= s.shown()
			}
		}
	}
	d.Rulings = m.oldRulings()
	if d.Turns > 0 || len(d.Results)+len(d.Rulings) > 0 {
		m.emit(EventTrimmed, "", d)
	}
}

// maxRulings bounds the rulings that a run remembers.
const maxRulings = 100

// oldRulings are the oldest rulings beyond the bound, those first that bind
// nothing, since what they were made on has changed.
func (m *Machine) oldRulings() []string {
	over := len(m.run.Rulings) - maxRulings
	if over <= 0 {
		return nil
	}
	var free, bound []string
	for _, u := range m.run.Rulings {
		if !m.binds(u) {
			free = append(free, u.ID)
		} else {
			bound = append(bound, u.ID)
		}
	}
	return append(free, bound...)[:over]
}

// oldTurns counts the oldest turns that are to go: a third of the window when
// it is full, and as many as the view could not show anyway.
func (m *Machine) oldTurns() int {
	r := m.run
	old := 0
	if len(r.Turns) >= r.Limits.Window {
		old = max(r.Limits.Window/3, 1)
	}
	bytes := 0
	for i := len(r.Turns) - 1; i >= old; i-- {
		if bytes += r.Turns[i].bytes(); bytes > r.Limits.View {
			return min(i+1, len(r.Turns)-1) // the latest stays
		}
	}
	return old
}

// bytes is about what the turn takes, results apart.
func (t Turn) bytes() int {
	n := 60
	for _, it := range t.Opening {
		n += len(it.Text) + 80
	}
	if p := t.Proposal; p != nil {
		n += len(p.Text) + len(p.Opaque) + 120
		for _, c := range p.Calls {
			n += len(c.Args) + len(c.Raw) + len(c.Text) + 100
		}
	}
	return n
}
