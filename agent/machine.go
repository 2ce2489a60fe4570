package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rules is the newest set of decisions that this machine knows: an integer that a
// run's first event records. A run keeps the rules it started with until it goes on
// in a new Temporal run. From the first release on a changed decision stands behind
// run.Rules >= N; until then there is one set.
const Rules = 1

// Machine drives one run: input in, events and commands out. It is pure and
// not safe for concurrent use. Its decisions run the definition's code; a
// panic there leaves the machine unusable, and the run must be rebuilt from its
// history.
type Machine struct {
	def    *Definition
	run    *Run
	broken bool
	held   bool // no new turn: a snapshot is to be taken
	// idleTimer is when the timer fires that was asked for; zero: none is set.
	idleTimer time.Time

	salt   string   // of the chain; in no run, since people are shown those
	hash   string   // of the chain up to the last event
	before string   // of the chain before outbox[0]
	outbox []Event  // not acknowledged by the journal yet
	hashes []string // of the chain at each event of the outbox
	heads  []Head   // of the run at each of them
	weight int      // of the outbox, in bytes

	// Of the Step under way.
	at       time.Time
	trace    string
	commands []Command
	visible  bool
	stopped  []string // steps that are told to stop
}

// NewMachine makes a machine for a run that has not started. The definition
// must have no mistakes.
func NewMachine(def *Definition) *Machine { return &Machine{def: def, run: &Run{}} }

// Run is the run as it stands. The caller must not change it.
func (m *Machine) Run() *Run { return m.run }

// Definition is the agent that the machine runs.
func (m *Machine) Definition() *Definition { return m.def }

// Step decides what an input does to the run. Commands are to be started in
// order. The receipt answers the input's sender, where it has one.
//
// at is when the input arrived; it must not go back. A trace id that is not 32
// hex digits in lower case is dropped: it decides nothing, and stands in every event.
func (m *Machine) Step(at time.Time, traceID string, in Input) ([]Command, Receipt) {
	if m.broken {
		panic("agent: the machine's code panicked before; the run must be rebuilt from its history")
	}
	m.broken = true
	m.at, m.trace, m.commands, m.visible, m.stopped = at.UTC().Truncate(time.Microsecond), traced(traceID), nil, false, nil
	before := m.run.Status
	receipt := m.decide(in)
	m.advance()
	if before != RunWaiting && m.run.Status == RunWaiting && !m.held {
		m.visible = true // it has come to rest: no activity carries these events soon
	}
	m.setIdle()
	m.deliver()
	m.broken = false
	receipt.Run = m.run.Status
	if len(m.stopped) > 0 && receipt.Status == Accepted {
		receipt.Took = receipt.Took.stopping(m.stopped)
	}
	commands := m.commands
	m.commands = nil // the view of a model call is large, and the run may wait for days
	return commands, receipt
}

func (m *Machine) decide(in Input) Receipt {
	switch in := in.(type) {
	case Started:
		m.started(in)
	case Message:
		return m.message(in)
	case Proposed:
		m.proposed(in)
	case ProposalFailed:
		m.proposalFailed(in)
	case StepFinished:
		m.stepFinished(in)
	case StepNotApplied:
		m.stepEnded(in.Step, m.notApplied(in))
	case StepUnapproved:
		m.unapproved(in)
	case StepUnknown:
		m.stepEnded(in.Step, StepSettledData{Status: StepInDoubt, Reason: clip(in.Reason, reasonLimit)})
	case StepStopped:
		m.stepStopped(in)
	case StepBegun:
		m.stepBegun(in)
	case JudgeAgain:
		m.judgeAgain(in)
	case EffectStands:
		m.effectStands(in)
	case VerdictGiven:
		return m.verdict(in.Verdict)
	case IdleTimerFired:
		m.idleTimer = time.Time{} // idle, in advance, judges by the clock
	case GateTimerFired:
		// expireGates, in advance, judges by the clock.
	case CancelRun:
		return m.cancel(in)
	case AmendRun:
		return m.amend(in)
	case PauseRun:
		return m.pause(in)
	case ResumeRun:
		return m.resume(in)
	case UndoSteps:
		return m.undo(in)
	case LiftRuling:
		return m.liftRuling(in)
	case ConfirmRuling:
		return m.confirmRuling(in)
	case SnapshotLoaded:
		m.emit(EventSnapshotLoaded, "", SnapshotLoadedData(in))
		m.reopen()
		m.visible = true // what was not acknowledged may be what somebody waits to see
	case Malformed:
		if !m.run.Status.Ended() && m.run.Seq > 0 {
			m.emit(EventInputRefused, "", InputRefusedData{Name: in.Name, Reason: clip(in.Reason, reasonLimit)})
		}
	default:
		panic(fmt.Sprintf("agent: unknown input %T", in))
	}
	return Receipt{Status: Accepted, Seq: m.run.Seq}
}

// emit makes an event, applies it, and adds the commands that follow from it.
func (m *Machine) emit(t EventType, step string, data any) Event {
	e := Event{Seq: m.run.Seq + 1, At: m.at, Type: t, V: 1, Turn: m.run.Turn, Step: step, Tenant: m.run.Tenant,
		TraceID: m.trace, Data: mustEncode(data)}
	if t == EventTurnStarted {
		e.Turn++
	}
	m.add(e)
	return e
}

func (m *Machine) add(e Event) {
	apply(m.run, e)
	m.hash = e.Chain(m.salt, m.hash)
	m.outbox, m.hashes, m.heads = append(m.outbox, e), append(m.hashes, m.hash), append(m.heads, m.Head())
	m.weight += e.bytes()
	m.react(e)
}

// Batch is all events that the journal has not acknowledged.
func (m *Machine) Batch() Batch { return m.batch(len(m.outbox)) }

// NextBatch is what the next activity carries: of the events that the journal has not
// acknowledged the first, up to Limits.Batch bytes, one at least.
func (m *Machine) NextBatch() Batch { return m.batch(m.next()) }

// FitsBatch reports whether the next activity carries all events that the journal has
// not acknowledged. Where it does not, records go before it.
func (m *Machine) FitsBatch() bool { return m.next() == len(m.outbox) }

// next is how many events the next activity carries.
func (m *Machine) next() int {
	if m.weight <= m.run.Limits.Batch {
		return len(m.outbox)
	}
	n, bytes := 0, 0
	for _, e := range m.outbox {
		if bytes += e.bytes(); n > 0 && bytes > m.run.Limits.Batch {
			break
		}
		n++
	}
	return n
}

func (m *Machine) batch(n int) Batch {
	b := Batch{Salt: m.salt, Before: m.before, Events: slices.Clone(m.outbox[:n]), Head: m.Head()}
	if n > 0 {
		b.First, b.Head = b.Events[0].Seq, m.heads[n-1]
	}
	return b
}

// Head is the run in a line.
func (m *Machine) Head() Head { return m.run.head() }

func (r *Run) head() Head {
	return Head{Status: r.Status, Reason: r.Reason, Phase: r.Phase, Turn: r.Turn}
}

// Ack notes that the journal holds all events up to seq.
func (m *Machine) Ack(seq int64) {
	for len(m.outbox) > 0 && m.outbox[0].Seq <= seq {
		m.before = m.hashes[0]
		m.weight -= m.outbox[0].bytes()
		m.outbox, m.hashes, m.heads = m.outbox[1:], m.hashes[1:], m.heads[1:]
	}
	if len(m.outbox) == 0 { // what the journal has needs no memory while the run waits
		m.outbox, m.hashes, m.heads = nil, nil, nil
	}
}

// Unacknowledged reports whether events wait for the journal.
func (m *Machine) Unacknowledged() bool { return len(m.outbox) > 0 }

// deliver ends a Step: an activity carries the events, or a Record does, if
// somebody waits to see them.
func (m *Machine) deliver() {
	carried := false
	finish := -1
	for i, c := range m.commands {
		switch c := c.(type) {
		case CallModel:
			carried = true
		case RunStep:
			carried = carried || !m.quick(c.Task.Tool)
		case Finish:
			finish = i
		}
	}
	if !m.visible || carried {
		return
	}
	if finish >= 0 {
		m.commands = slices.Insert(m.commands, finish, Command(Record{}))
		return
	}
	m.commands = append(m.commands, Record{})
}

func (m *Machine) quick(tool string) bool {
	t, ok := m.def.tools[tool]
	return ok && t.quick
}

// react is what follows from an event, by the run alone: no user code.
func (m *Machine) react(e Event) {
	switch e.Type {
	case EventStarted, EventReply, EventReminded, EventMessage, EventVerdict, EventPaused, EventResumed, EventAmended, EventUndoRequested, EventInputRefused,
		EventRulingMade, EventRulingDrafted, EventRulingConfirmed, EventRulingLifted, EventGateEscalated, EventInterrupted:
		m.visible = true
	case EventTurnStarted:
		m.command(CallModel{View: m.view()})
	case EventTurnCut:
		if d, _ := decodeData[TurnCutData](e); d.LetGo {
			m.command(CancelModel{Turn: e.Turn})
		}
	case EventStepDone:
		// Whoever looks is told within seconds, also where nothing else is launched now:
		// the run is paused, or a step beside it is still tried.
		m.visible = m.visible || m.run.step(e.Step).effective()
	case EventStepStopping:
		s := m.run.step(e.Step)
		m.command(StopStep{Task: m.task(s), Reason: s.Stopping.Reason, Undo: s.Stopping.Undo})
	case EventStepBegun:
		m.command(RunStep{Task: m.task(m.run.step(e.Step))})
	case EventStepStarted:
		m.startStep(e)
	case EventStepResumed:
		if s := m.run.step(e.Step); s.Kind == KindTool {
			m.command(RunStep{Task: m.task(s)})
		}
	case EventStepSettled:
		if d, _ := decodeData[StepSettledData](e); d.Status == StepAbandoned {
			m.command(CancelStep{Step: e.Step})
		} else if d.Status == StepInDoubt || d.Status == StepUndone {
			m.visible = true
		} else if s := m.run.step(e.Step); s.effective() {
			m.visible = true
		}
	case EventGateOpened:
		m.visible = true
		d, _ := decodeData[GateOpenedData](e)
		m.openGate(d.Gate.ID)
	case EventGatePending:
		m.visible = true
		if d, _ := decodeData[GatePendingData](e); d.Pending != nil {
			m.command(SetPending{Gate: d.Gate, Until: d.Pending.Until})
		}
	case EventGateClosed:
		m.visible = true
		m.command(CloseGate{Gate: e.Step})
	case EventCancelRequested:
		m.visible = true
	case EventCompleted, EventCancelled, EventFailed:
		m.visible = true
		m.command(Finish{Status: m.run.Status})
	}
}

func (m *Machine) command(c Command) { m.commands = append(m.commands, c) }

func (m *Machine) startStep(e Event) {
	if s := m.run.step(e.Step); s.Kind == KindTool && s.Status == StepRunning {
		m.command(RunStep{Task: m.task(s)})
	}
}

// openGate sets the gate's clock and asks the ledger whether the step has been
// recorded meanwhile.
func (m *Machine) openGate(id string) {
	g := m.run.gate(id)
	s := m.run.step(g.StepID())
	open := OpenGate{Gate: id, ExpiresAt: g.ExpiresAt, EscalatesAt: g.escalatesAt()}
	if s.Kind == KindTool && s.Key != "" {
		t := m.task(s)
		open.Lookup = &t
	}
	if open.ExpiresAt != nil || open.EscalatesAt != nil || open.Lookup != nil {
		m.command(open)
	}
}

func (m *Machine) task(s *Step) Task {
	t := Task{Step: s.ID, Agent: m.run.Agent, Version: m.run.Version, Tool: s.Tool, Args: s.Args, Effect: m.def.tools[s.Tool].effect, Key: s.Key,
		Scope: m.run.Scope(), Ordinal: s.Ordinal, Tenant: m.run.Tenant, User: m.run.User, Limit: m.run.Limits.Result}
	if o := m.run.step(s.Undoes); o != nil {
		t.Undoes = &Undoes{Step: o.ID, Tool: o.Tool, Effect: m.def.tools[o.Tool].effect, Key: o.Key, Ordinal: o.Ordinal}
	}
	t.Approved = m.run.approvers(s)
	if g := m.run.approval(s); g != nil {
		t.NotAfter = g.approvedUntil()
	}
	return t
}

// traced is a trace id as it stands in events: 32 hex digits, or none.
func traced(id string) string {
	if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}

// situation is what user code is shown now.
func (m *Machine) situation() situation { return situation{at: m.at, run: m.run, def: m.def} }

const (
	idLimit     = 200  // bytes of a sender's id
	reasonLimit = 1000 // bytes of a reason in an event
)

// clip cuts a text at a character boundary and says so.
func clip(s string, limit int) string {
	s = clean(s)
	if len(s) <= limit {
		return s
	}
	const mark = " …(cut)"
	return head(s, max(limit-len(mark), 0)) + mark
}

func runeStart(b byte) bool { return b&0xC0 != 0x80 }

func failedStatus(forGood bool) StepStatus {
	if forGood {
		return StepRefused
	}
	return StepFailed
}
