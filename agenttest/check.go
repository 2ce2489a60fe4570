package agenttest

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"interlock/agent"
)

// step gives an input to the machine, and to its twins, and checks what came of
// it.
func (r *Run) step(at time.Time, trace string, in agent.Input) ([]agent.Command, agent.Receipt) {
	r.t.Helper()
	before, phase := text(in), r.Run().Phase
	commands, receipt, events := r.decide(r.machine, at, trace, in)
	if after := text(in); after != before {
		r.t.Fatalf("agenttest: %s changed what it was given:\n  before %s\n  after  %s", r.blame(phase, events, 0, in), cut(before), cut(after))
	}
	for _, twin := range r.twins {
		_, other, others := r.decide(twin, at, trace, in)
		if i := differ(events, others); i >= 0 {
			r.t.Fatalf("agenttest: %s decides one input in two ways:\n  %s\n  %s\nIt may rest on its arguments alone: no clock, no random number, no order of a map, nothing that it keeps between calls",
				r.blame(phase, longer(events, others), i, in), line(events, i), line(others, i))
		}
		if text(other) != text(receipt) {
			r.t.Fatalf("agenttest: one input is answered in two ways:\n  %s\n  %s", text(receipt), text(other))
		}
	}
	r.events = append(r.events, events...)
	r.reduces()
	return commands, receipt
}

// decide is one machine's step. A panic blocks the run in production, until
// other code is deployed.
func (r *Run) decide(m *agent.Machine, at time.Time, trace string, in agent.Input) ([]agent.Command, agent.Receipt, []agent.Event) {
	r.t.Helper()
	defer func() {
		if p := recover(); p != nil {
			r.t.Fatalf("agenttest: the agent's code panicked, which blocks a run: %v\ninput %s %s\n%s", p, name(in), cut(text(in)), debug.Stack())
		}
	}()
	had := m.Run().Seq
	commands, receipt := m.Step(at, trace, in)
	batch := m.Batch()
	m.Ack(batch.Last())
	return commands, receipt, slices.DeleteFunc(batch.Events, func(e agent.Event) bool { return e.Seq <= had })
}

// often is how many events of a run are reduced after each input; of longer
// runs, which are rare in tests, it is done now and then.
const often = 300

func (r *Run) reduces() {
	r.t.Helper()
	if n := len(r.events); n > often && n%often > 5 {
		return
	}
	again, err := agent.Reduce(r.events)
	if err != nil {
		r.t.Fatalf("agenttest: %v", err)
	}
	if want, got := text(r.Run()), text(again); want != got {
		r.t.Fatalf("agenttest: the events do not make the run; code of the agent changed what it was given, or this is a mistake of Interlock:\n  run     %s\n  reduced %s",
			cut(want[common(want, got):]), cut(got[common(want, got):]))
	}
}

// differ is the first event in which two machines differ, -1 where they do not.
func differ(a, b []agent.Event) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i].Chain("", "") != b[i].Chain("", "") {
			return i
		}
	}
	return -1
}

func longer(a, b []agent.Event) []agent.Event {
	if len(b) > len(a) {
		return b
	}
	return a
}

func line(events []agent.Event, i int) string {
	if i >= len(events) {
		return "nothing more"
	}
	return cut(strings.TrimSpace(string(events[i].Type) + " " + events[i].Step + " " + events[i].Data.String()))
}

// blame names the code of the agent that made an event; phase is the one before
// the input.
func (r *Run) blame(phase string, events []agent.Event, i int, in agent.Input) string {
	if i >= len(events) {
		return "the agent's code, on " + name(in) + ","
	}
	for _, e := range events[:i] {
		if e.Type == agent.EventPhaseEntered {
			phase = dataOf[agent.PhaseEnteredData](e).Phase
		}
	}
	e := events[i]
	switch e.Type {
	case agent.EventStepDone, agent.EventCommitRefused:
		return "Commit of " + r.toolOf(e.Step)
	case agent.EventStateSet:
		if e.Step != "" {
			return "Commit of " + r.toolOf(e.Step)
		}
		if _, first := in.(agent.Started); first {
			return "Init"
		}
	case agent.EventFailed:
		return "Init"
	case agent.EventCallAnswered:
		return "what answers the call " + callOf(events[:i], dataOf[agent.CallAnsweredData](e).Call) + " in phase " + phase + " (a guard, or Validate of the state)"
	case agent.EventStepStarted:
		d := dataOf[agent.StepStartedData](e)
		if d.By == agent.ByEnter {
			return fmt.Sprintf("Enter of phase %s, or the gate of %s,", phase, d.Tool)
		}
		return "the gate of " + d.Tool
	case agent.EventGateOpened, agent.EventStepStopping: // a policy is judged again while a step has not begun
		return "the gate of " + r.toolOf(e.Step)
	case agent.EventReply:
		return "Say of phase " + phase
	case agent.EventPhaseEntered, agent.EventTurnStarted, agent.EventPaused, agent.EventCompleted:
		return "a guard, or Enter, of phase " + phase
	}
	return "the agent's code, on " + name(in) + ","
}

// callOf is a call that events propose, in words.
func callOf(events []agent.Event, id string) string {
	for _, e := range events {
		if e.Type != agent.EventProposal {
			continue
		}
		for _, c := range dataOf[agent.Proposal](e).Calls {
			if c.ID == id {
				return c.Tool + " " + cut(c.Args.String())
			}
		}
	}
	return id
}

func (r *Run) toolOf(step string) string {
	for _, s := range r.Run().Steps {
		if s.ID == step {
			return s.Tool
		}
	}
	return "step " + step
}

// name is an input's type in words.
func name(in agent.Input) string { return strings.TrimPrefix(fmt.Sprintf("%T", in), "agent.") }

// text is a value as JSON, for comparing and showing.
func text(v any) string {
	j, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(j)
}

// common is where two texts begin to differ, less what helps to see it.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return max(n-40, 0)
}

func cut(s string) string {
	const most = 600
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + " …"
}
