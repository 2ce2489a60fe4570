package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"interlock/agent"
	"interlock/signals"
	"interlock/store"
)

// step is a step as the journal tells of it.
type step struct {
	id, tool, key string
	undoes        string
	status        agent.StepStatus
	doubted       bool // an operator was asked
}

// stepsOf reads the steps of a journal.
func stepsOf(events []agent.Event) (steps []*step, err error) {
	for _, e := range events {
		find := func() *step {
			if n := slices.IndexFunc(steps, func(s *step) bool { return s.id == e.Step }); n >= 0 {
				return steps[n]
			}
			return &step{}
		}
		switch e.Type {
		case agent.EventStepStarted:
			var d agent.StepStartedData
			err = json.Unmarshal(e.Data, &d)
			if d.Kind == agent.KindTool {
				steps = append(steps, &step{id: e.Step, tool: d.Tool, key: d.Key, undoes: d.Undoes, status: d.Status})
			}
		case agent.EventStepResumed:
			find().status = agent.StepRunning
		case agent.EventStepDone:
			find().status = agent.StepDone
		case agent.EventStepSettled:
			var d agent.StepSettledData
			err = json.Unmarshal(e.Data, &d)
			s := find()
			s.status, s.doubted = d.Status, s.doubted || d.Status == agent.StepInDoubt
		}
		if err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// verify compares what a run knows with what has happened.
func (w *world) verify(ctx context.Context, r *run) error {
	events, err := w.store.Events(ctx, r.chain(), 1, 0)
	if err != nil {
		return err
	}
	steps, err := stepsOf(events)
	if err != nil {
		return err
	}
	if err := w.verifyEnd(ctx, r, events); err != nil {
		return err
	}
	rows, err := w.store.Effects(ctx, tenant, store.EffectFilter{Address: r.address})
	if err != nil {
		return err
	}
	all, err := w.happenings(ctx, r.id)
	if err != nil {
		return err
	}
	if !hasUsers(r.id) {
		for _, tool := range acting {
			n := times(all, tool)
			w.verifyEffect(r, tool, n, steps)
			if tool != pay { // its row is in the product's database
				w.verifyLedger(r, tool, n, rows)
			}
		}
	}
	w.verifySteps(r, steps, all)
	w.verifyRows(r, steps, all, rows)
	w.verifyInputs(r, events, steps)
	w.verifyTurns(r, events, steps)
	w.verifyDoubts(r, steps)
	return w.verifyBill(ctx, r, events)
}

// times is how often a tool has had its effect.
func times(all []happening, tool string) (n int) {
	for _, h := range all {
		if h.tool == tool {
			n++
		}
	}
	return n
}

// verifyEnd compares the journal with itself and with Temporal.
func (w *world) verifyEnd(ctx context.Context, r *run, events []agent.Event) error {
	reduced, err := agent.Reduce(events)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var end signals.End
	if err := w.client.GetWorkflow(ctx, r.address, "").Get(ctx, &end); err != nil {
		w.violate(stuck, r.id, fmt.Sprintf("its journal has ended, Temporal says %v", err))
		return nil
	}
	want := agent.RunCompleted
	if slices.ContainsFunc(events, func(e agent.Event) bool { return e.Type == agent.EventCancelRequested }) {
		want = agent.RunCancelled
	}
	if reduced.Status != want || end.Status != reduced.Status || !end.State.Equal(reduced.State) {
		w.violate(lost, r.id, fmt.Sprintf("it ended %s with %s, and by its journal %s with %s", end.Status, end.State, reduced.Status, reduced.State))
	}
	if !hasUsers(r.id) {
		return nil
	}
	held, err := w.held(r)
	if err != nil {
		w.violate(stuck, r.id, fmt.Sprintf("it cannot be asked after its end: %v", err))
		return nil
	}
	was, err := agent.Encode(held)
	if err != nil {
		return err
	}
	if is, err := agent.Encode(reduced); err != nil || !was.Equal(is) {
		w.violate(lost, r.id, fmt.Sprintf("its journal reduces to %s, and it holds %s", is, was))
	}
	return nil
}

// held is a run as a worker holds it that replays its whole history to say so. It is
// asked again where a question was lost: the worker that had it may have been one
// that a fault had struck, and was about to end.
func (w *world) held(r *run) (held *agent.Run, err error) {
	for range 4 {
		ctx, cancel := context.WithTimeout(w.ctx, 15*time.Second)
		value, failed := w.client.QueryWorkflow(ctx, r.address, "", signals.QueryRun)
		cancel()
		if err = failed; err == nil {
			held = &agent.Run{}
			return held, value.Get(held)
		}
	}
	return nil, err
}

// verifyEffect compares how often an effect has happened with the steps that say
// that it did. Every one has to, once; but a fire that is known not to have.
func (w *world) verifyEffect(r *run, tool string, n int, steps []*step) {
	done, known := 0, false
	var told []string
	for _, s := range steps {
		if s.tool != tool {
			continue
		}
		told = append(told, fmt.Sprintf("step %s %s", s.id, s.status))
		known = s.status == agent.StepFailed
		if s.status == agent.StepDone {
			done++
		}
	}
	switch {
	case n > 1:
		w.violate(repeated, r.id, fmt.Sprintf("%s happened %d times", tool, n))
	case n != done:
		w.violate(lost, r.id, fmt.Sprintf("%s happened %d times, and the run knows %v", tool, n, told))
	case n == 0 && !(tool == fire && known):
		w.violate(lost, r.id, fmt.Sprintf("%s never happened: %v", tool, told))
	}
}

// verifyLedger compares the ledger with what has happened.
func (w *world) verifyLedger(r *run, tool string, n int, rows []store.Effect) {
	applied := 0
	for _, e := range rows {
		if e.Tool != tool {
			continue
		}
		switch e.Status {
		case store.EffectApplied:
			applied++
		case store.EffectClaimed:
			w.violate(lost, r.id, fmt.Sprintf("the ledger does not know how %s of step %s has ended", tool, e.Step))
			return
		}
	}
	if applied != n {
		w.violate(lost, r.id, fmt.Sprintf("%s happened %d times, and by the ledger %d", tool, n, applied))
	}
}

// verifyDoubts wants an operator to have been asked wherever a fault has left a
// Once effect with nobody who knows.
func (w *world) verifyDoubts(r *run, steps []*step) {
	for _, s := range steps {
		for _, m := range w.injector.marked(place{r.address, effects[s.tool], s.id}) {
			if m.leavesDoubt(s.tool) && !s.doubted {
				w.violate(lost, r.id, fmt.Sprintf("%s of step %s met %s in %q, and nobody was asked", s.tool, s.id, m.kind, m.window))
			}
		}
	}
}

// leavesDoubt reports whether nobody can know after this fault: the worker that
// could have said is dead.
func (m mark) leavesDoubt(tool string) bool {
	return effects[tool] == agent.Once && m.aimed && m.kind == killed && (m.window == toEffect || m.window == toSettle)
}

// verifyBill compares what the provider has answered with the recorded model
// calls. One that was recorded is never made again; one that met a fault before
// may be, and where both answers came to the store the bill says so.
func (w *world) verifyBill(ctx context.Context, r *run, events []agent.Event) error {
	usage, err := w.store.ModelUsage(ctx, tenant, r.address)
	if err != nil {
		return err
	}
	answered, unrecorded, both := 0, 0, 0
	for _, e := range events {
		if e.Type == agent.EventTurnCut { // whatever came of the call, nobody wanted it
			n := w.side.billed(place{r.address, model, fmt.Sprint(e.Turn)})
			answered, unrecorded = answered+n, unrecorded+n
			continue
		}
		if e.Type != agent.EventProposal {
			continue
		}
		p := place{r.address, model, fmt.Sprint(e.Turn)}
		n, marks := w.side.billed(p), w.injector.marked(p)
		before := 0 // faults before the record
		for _, m := range marks {
			if m.window == toProvider || m.window == toRecord {
				before++
			}
		}
		if len(marks) == 1 && marks[0].kind == stopped && marks[0].window == toRecord && marks[0].aimed && n == 2 {
			both++ // the one that was stopped has recorded its answer too
		}
		if n-1 > before+usage.Twice {
			w.violate(repeated, r.id, fmt.Sprintf("the model was asked %d times in turn %d, with %d faults before its answer was recorded", n, e.Turn, before))
		}
		answered, unrecorded = answered+n, unrecorded+before
	}
	if usage.Calls > answered || answered-usage.Calls > unrecorded || usage.Twice < both {
		w.violate(lost, r.id, fmt.Sprintf("the provider answered %d times, and the bill has %d calls, %d of them twice, after %d faults and %d double answers",
			answered, usage.Calls, usage.Twice, unrecorded, both))
	}
	return nil
}
