package agenttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"interlock/agent"
)

// Export writes a run's journal as a script (see [Script]) that gives the same
// events: what the model answered, what the tools gave, what people said and
// decided, each at its time. It holds all of that in clear, sensitive fields
// too.
//
// What differs in a replay by the same code: the digest of an amend that named
// null or left out members of a value, and what was said of arguments that the
// journal holds cut short.
func Export(events []agent.Event) ([]byte, error) {
	if len(events) == 0 || events[0].Type != agent.EventStarted {
		return nil, fmt.Errorf("agenttest: a journal begins with the event started: export all of it")
	}
	run, err := agent.Reduce(events)
	if err != nil {
		return nil, fmt.Errorf("agenttest: %w", err)
	}
	x := newJournal(events)
	groups, err := x.split()
	if err != nil {
		return nil, fmt.Errorf("agenttest: %w", err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# %s, %s/v%d\n\n", run.Address(), run.Agent, run.Version)
	for i, g := range groups {
		if g.held && (i == 0 || !groups[i-1].held) {
			out.WriteString("hold\n\n")
		}
		lines, err := x.input(g)
		if err != nil {
			return nil, fmt.Errorf("agenttest: event %d, %s: %w", events[g.cause].Seq, events[g.cause].Type, err)
		}
		fmt.Fprintf(&out, "%s\n----\n%s\n", lines, briefs(events[g.first:g.end]))
		x.track(g)
	}
	fmt.Fprintf(&out, "state\n----\n%s", stateOf(run))
	return []byte(out.String()), nil
}

// stateOf is where a run stands, in two lines.
func stateOf(r *agent.Run) string {
	reason := ""
	if r.Reason != "" {
		reason = " (" + r.Reason + ")"
	}
	return strings.TrimRight(fmt.Sprintf("= %s%s %s", r.Status, reason, r.Phase), " ") + "\n" + r.State.String() + "\n"
}

// group is the events of one input.
type group struct {
	first, end int
	cause      int  // the event that tells of the input; first, where none does
	pass       bool // nothing but time passed
	held       bool // the machine started no turn: a snapshot was to be taken
}

// journal is what must be known of a run to read its inputs out of its events.
type journal struct {
	events  []agent.Event
	running map[string]bool // steps
	reads   map[string]bool // steps without an effect
	stopped map[string]agent.Stopping
	seen    map[string]bool // ids of verdicts
	causes  []bool          // by event
	digests map[string]string
	state   agent.JSON
	repair  bool // it is a repair run's
}

func newJournal(events []agent.Event) *journal {
	x := &journal{events: events, running: map[string]bool{}, reads: map[string]bool{}, stopped: map[string]agent.Stopping{}, seen: map[string]bool{}, digests: map[string]string{}, state: agent.JSON("{}")}
	for _, e := range events {
		x.causes = append(x.causes, x.isCause(e))
	}
	return x
}

// isCause reports whether an event is the trace of an input, and not what
// followed from one. It is called for each event in order.
func (x *journal) isCause(e agent.Event) bool {
	switch e.Type {
	case agent.EventStarted:
		x.repair = dataOf[agent.StartedData](e).Repair != nil
		return true
	case agent.EventCancelRequested:
		return dataOf[agent.CancelRequestedData](e).ID != "" // else the run was idle
	case agent.EventMessage, agent.EventProposal, agent.EventInputRefused,
		agent.EventAmended, agent.EventResumed, agent.EventSnapshotLoaded,
		agent.EventRulingLifted, agent.EventRulingConfirmed:
		return true
	case agent.EventUndoRequested:
		return !x.repair && dataOf[agent.UndoRequestedData](e).ID != "" // else its start asks for it, or a cut
	case agent.EventTurnCut:
		return !dataOf[agent.TurnCutData](e).LetGo
	case agent.EventPaused:
		return dataOf[agent.PausedData](e).ID != ""
	case agent.EventVerdict: // a kept one has a second event when it is judged
		id := dataOf[agent.VerdictData](e).Verdict.ID
		again := x.seen[id]
		x.seen[id] = true
		return !again
	case agent.EventStepStarted:
		d := dataOf[agent.StepStartedData](e)
		x.running[e.Step], x.reads[e.Step] = d.Status == agent.StepRunning, d.Key == ""
	case agent.EventStepStopping:
		d := dataOf[agent.Stopping](e)
		x.stopped[e.Step] = d
		return d.Unapproved // else an input or the time stops it
	case agent.EventStepBegun:
		return true
	case agent.EventStepResumed:
		x.running[e.Step] = true
	case agent.EventStepDone:
		ran := x.running[e.Step]
		x.running[e.Step] = false
		return ran || dataOf[agent.StepDoneData](e).Stood // else a person said that it happened
	case agent.EventStepSettled:
		ran := x.running[e.Step]
		x.running[e.Step] = false
		status := dataOf[agent.StepSettledData](e).Status
		if x.reads[e.Step] && (status == agent.StepCancelled || status == agent.StepVoid || status == agent.StepWithdrawn) {
			return false // it was stopped, and its result dropped
		}
		return ran && status != agent.StepAbandoned
	}
	return false
}

func dataOf[T any](e agent.Event) (d T) {
	_ = json.Unmarshal(e.Data, &d)
	return d
}

// split finds the events of each input.
func (x *journal) split() ([]group, error) {
	var groups []group
	for i := 0; i < len(x.events); {
		if _, known := shown[x.events[i].Type]; !known {
			return nil, fmt.Errorf("event %d is of type %s, which this code does not know", x.events[i].Seq, x.events[i].Type)
		}
		cause, ok := x.begins(i)
		if !ok && (i == 0 || x.events[i].At.Equal(x.events[i-1].At)) {
			groups[len(groups)-1].end = i + 1
			i++
			continue
		}
		g := group{first: i, cause: i, end: i + 1, pass: !ok}
		if ok {
			g.cause, g.end = cause, cause+1
		}
		groups = append(groups, g)
		i = g.end
	}
	x.hold(groups)
	return groups, nil
}

// begins finds the cause of the input whose events begin at i. Some inputs have
// events before the one that names them.
func (x *journal) begins(i int) (cause int, ok bool) {
	e := x.events[i]
	if x.causes[i] {
		return i, true
	}
	next := func(n int) agent.Event {
		if n < len(x.events) && x.events[n].At.Equal(e.At) {
			return x.events[n]
		}
		return agent.Event{}
	}
	switch e.Type {
	case agent.EventTurnCut: // a pause lets go of the model first
		return i + 1, next(i+1).Type == agent.EventPaused && x.causes[i+1]
	case agent.EventGateClosed, agent.EventGateEscalated:
		if after := next(i + 1); after.Type == agent.EventStepDone && after.Step == e.Step && dataOf[agent.StepDoneData](after).Stood {
			return i + 1, true
		}
		// A verdict finds gates expired or escalated whose timers have not fired yet. Had an
		// input come before it at this time, that one would have found them.
		if i > 0 && x.events[i-1].At.Equal(e.At) {
			return 0, false
		}
		for n := i; ; n++ {
			switch after := next(n); {
			case after.Type == agent.EventVerdict:
				return n, x.causes[n]
			case after.Type != agent.EventGateClosed && after.Type != agent.EventStepSettled && after.Type != agent.EventGateEscalated:
				return 0, false
			}
		}
	}
	return 0, false
}

// hold marks the inputs before a snapshot that the machine took while it was
// held: as many as have no event that it would not have made then.
func (x *journal) hold(groups []group) {
	for i, g := range groups {
		if x.events[g.cause].Type != agent.EventSnapshotLoaded {
			continue
		}
		groups[i].held = true
		for n := i - 1; n > 0 && !slices.ContainsFunc(x.events[groups[n].first:groups[n].end], free); n-- {
			groups[n].held = true
		}
	}
}

// free reports whether only a machine that is not held makes an event.
func free(e agent.Event) bool {
	switch e.Type {
	case agent.EventTurnStarted, agent.EventCompleted, agent.EventSnapshotLoaded:
		return true
	case agent.EventPaused:
		return dataOf[agent.PausedData](e).ID == ""
	case agent.EventPhaseEntered:
		return dataOf[agent.PhaseEnteredData](e).By == "auto"
	case agent.EventReply:
		return dataOf[agent.ReplyData](e).Last
	case agent.EventStepStarted:
		d := dataOf[agent.StepStartedData](e)
		return d.Kind == agent.KindMove && d.By == agent.ByEnter || d.By == agent.ByUndo
	}
	return false
}

// track follows what later inputs need.
func (x *journal) track(g group) {
	for _, e := range x.events[g.first:g.end] {
		switch e.Type {
		case agent.EventGateOpened:
			d := dataOf[agent.GateOpenedData](e)
			x.digests[d.Gate.ID] = d.Gate.Digest
		case agent.EventStateSet:
			x.state = agent.ApplyPatch(x.state, dataOf[agent.StateSetData](e).Patch)
		}
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
