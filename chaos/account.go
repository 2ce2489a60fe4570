package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"interlock/agent"
	"interlock/store"
)

// What must hold whatever users do. All of it is seen from the outside: by what the
// other side and the product's database have done, by the ledger, by the journal.

// effectOf is one effect as the journal tells of it: all steps that have its key.
type effectOf struct {
	tool  string
	steps []*step
}

// has reports whether one of the effect's steps ended so.
func (e effectOf) has(s agent.StepStatus) bool {
	return slices.ContainsFunc(e.steps, func(x *step) bool { return x.status == s })
}

func (e effectOf) asks(id string) bool {
	return slices.ContainsFunc(e.steps, func(x *step) bool { return x.id == id })
}

func (e effectOf) String() string {
	var told []string
	for _, s := range e.steps {
		told = append(told, fmt.Sprintf("step %s %s", s.id, s.status))
	}
	return e.tool + " (" + strings.Join(told, ", ") + ")"
}

// byKey are the effects of a run.
func byKey(steps []*step) (out []effectOf) {
	for _, s := range steps {
		if s.key == "" {
			continue
		}
		n := slices.IndexFunc(out, func(e effectOf) bool { return e.steps[0].key == s.key })
		if n < 0 {
			n, out = len(out), append(out, effectOf{tool: s.tool})
		}
		out[n].steps = append(out[n].steps, s)
	}
	return out
}

// verifySteps compares what the journal says of every effect with what the other side
// has done: done and undone, cancelled, given up or in doubt.
func (w *world) verifySteps(r *run, steps []*step, all []happening) {
	for _, h := range all {
		if !slices.ContainsFunc(steps, func(s *step) bool { return s.id == h.step && s.tool == h.tool }) {
			w.violate(lost, r.id, fmt.Sprintf("%s happened by step %s, of which the run knows nothing", h.tool, h.step))
		}
	}
	for _, e := range byKey(steps) {
		var mine []happening
		for _, h := range all {
			if h.tool == e.tool && e.asks(h.step) {
				mine = append(mine, h)
			}
		}
		w.verifyOne(r, e, mine, steps, all)
	}
}

// verifyOne compares one effect with what has happened of it.
func (w *world) verifyOne(r *run, e effectOf, mine []happening, steps []*step, all []happening) {
	n, undone := len(mine), 0
	for _, h := range all {
		if n > 0 && h.undoes != "" && h.undoes == mine[0].ref {
			undone++
		}
	}
	switch {
	case n > 1:
		w.violate(repeated, r.id, fmt.Sprintf("%v happened %d times", e, n))
	case undone > 1:
		w.violate(repeated, r.id, fmt.Sprintf("%v was undone %d times", e, undone))
	case e.has(agent.StepDone) && n == 0, e.has(agent.StepUndone) && n == 0:
		w.violate(lost, r.id, fmt.Sprintf("%v never happened", e))
	case e.has(agent.StepUndone) && undone == 0:
		w.violate(lost, r.id, fmt.Sprintf("%v was not undone on the other side", e))
	case e.has(agent.StepDone) && undone > 0 && !undoInDoubt(e, steps):
		w.violate(lost, r.id, fmt.Sprintf("%v was undone on the other side, and the run does not know", e))
	case n > 0 && !e.has(agent.StepDone) && !e.has(agent.StepUndone) && !e.has(agent.StepInDoubt):
		w.violate(lost, r.id, fmt.Sprintf("%v happened all the same", e))
	}
}

// undoInDoubt reports whether nobody has said whether the undo of an effect happened.
func undoInDoubt(e effectOf, steps []*step) bool {
	return slices.ContainsFunc(steps, func(s *step) bool { return e.asks(s.undoes) && s.status == agent.StepInDoubt })
}

// verifyRows compares the ledger with what has happened: it knows how every effect
// ended that is not in doubt, and what was undone.
func (w *world) verifyRows(r *run, steps []*step, all []happening, rows []store.Effect) {
	known := byKey(steps)
	for _, row := range rows {
		n := slices.IndexFunc(known, func(e effectOf) bool { return e.steps[0].key == row.Key })
		if n < 0 {
			w.violate(lost, r.id, fmt.Sprintf("the ledger has an effect of %s, step %s, and the run does not", row.Tool, row.Step))
			continue
		}
		e := known[n]
		happened := slices.ContainsFunc(all, func(h happening) bool { return h.tool == e.tool && e.asks(h.step) })
		marked, doubtful := row.UndoneBy != "", undoInDoubt(e, steps)
		switch {
		case row.Status == store.EffectClaimed && !e.has(agent.StepInDoubt):
			w.violate(lost, r.id, fmt.Sprintf("the ledger does not know how %v has ended", e))
		case row.Status == store.EffectApplied && !happened, row.Status == store.EffectRefused && happened:
			w.violate(lost, r.id, fmt.Sprintf("%v is %s by the ledger, and by the other side it happened: %t", e, row.Status, happened))
		// An undo may have been marked by an attempt whose answer was lost until the
		// time was up: then the ledger knows what the run does not.
		case marked && doubtful && wasUndone(e, all):
		case marked != e.has(agent.StepUndone):
			w.violate(lost, r.id, fmt.Sprintf("%v was undone by %q by the ledger", e, row.UndoneBy))
		}
	}
}

// wasUndone reports whether the other side has undone an effect.
func wasUndone(e effectOf, all []happening) bool {
	return slices.ContainsFunc(all, func(h happening) bool {
		return h.tool == e.tool && e.asks(h.step) && slices.ContainsFunc(all, func(u happening) bool { return u.undoes != "" && u.undoes == h.ref })
	})
}

// verifyTurns wants a definite end of all that was begun: of every gate one, of every
// turn that was cut short an account, and of a cancel that undoes a list of what
// stands.
func (w *world) verifyTurns(r *run, events []agent.Event, steps []*step) {
	opened, closed := map[string]int{}, map[string]int{}
	owed, undo := false, agent.UndoScope("")
	var end agent.EndedData
	for _, e := range events {
		var d struct {
			Gate json.RawMessage
			Undo agent.UndoScope
		}
		_ = json.Unmarshal(e.Data, &d)
		switch e.Type {
		case agent.EventGateOpened:
			var g agent.Gate
			_ = json.Unmarshal(d.Gate, &g)
			opened[g.ID]++
		case agent.EventGateClosed:
			var id string
			_ = json.Unmarshal(d.Gate, &id)
			closed[id]++
		case agent.EventInterrupted:
			owed = true
		case agent.EventInterruptSettled:
			owed = false
		case agent.EventCancelRequested:
			undo, owed = d.Undo, false
		case agent.EventCancelled, agent.EventCompleted:
			_ = json.Unmarshal(e.Data, &end)
		}
	}
	for id := range opened {
		if opened[id] != 1 || closed[id] != 1 {
			w.violate(lost, r.id, fmt.Sprintf("gate %s was opened %d times and closed %d times", id, opened[id], closed[id]))
		}
	}
	if owed {
		w.violate(lost, r.id, "a turn was cut short, and nobody was told what became of it")
	}
	let := letGoOf(end) // effects that a cancel only counts
	told := func(s *step) bool {
		return slices.ContainsFunc(end.Failed, func(l string) bool { return strings.HasPrefix(l, s.id+" ") })
	}
	for _, s := range steps {
		switch {
		case s.status == agent.StepInDoubt && told(s), s.status == agent.StepInDoubt && s.undoes != "":
		case s.status.Open():
			w.violate(stuck, r.id, fmt.Sprintf("%s of step %s is %s in the end", s.tool, s.id, s.status))
		case undo == agent.UndoRun && s.status == agent.StepDone && s.key != "" && s.undoes == "" && !told(s):
			if let--; let >= 0 {
				continue
			}
			w.violate(lost, r.id, fmt.Sprintf("%s of step %s stands, and a cancel that undoes all does not say so", s.tool, s.id))
		}
	}
}

// letGoOf is how many effects stand of which a run only says how many they are: it
// holds their steps no more.
func letGoOf(end agent.EndedData) (n int) {
	for _, l := range end.Failed {
		if count, rest, _ := strings.Cut(l, " "); strings.HasPrefix(rest, "earlier effects, ") {
			n, _ = strconv.Atoi(count)
		}
	}
	return n
}
