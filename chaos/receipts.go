package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"interlock/agent"
)

// taken is what a journal says of one input.
type taken struct {
	events int // that take it in; of a verdict, judgements but waiting ones
	waits  int // of a verdict: that it was kept, or could be taken back
	valid  int
	void   int
	cut    bool // of a message: it has cut a turn short
	let    bool // of a verdict that waited: its gate needed none any more, or it was taken back
	seq    map[int64]bool
}

// takings are all inputs of a journal, by id.
func takings(events []agent.Event) map[string]*taken {
	out, waiting := map[string]*taken{}, map[string][]*taken{} // by id, and by gate
	of := func(id string, seq int64) *taken {
		if out[id] == nil {
			out[id] = &taken{seq: map[int64]bool{}}
		}
		out[id].seq[seq] = true
		return out[id]
	}
	for _, e := range events {
		var d struct {
			ID, Message, Judgement string
			Status                 agent.GateStatus
			Verdict, Gate          json.RawMessage
		}
		_ = json.Unmarshal(e.Data, &d)
		switch e.Type {
		case agent.EventMessage, agent.EventAmended, agent.EventPaused, agent.EventResumed, agent.EventCancelRequested:
			if d.ID != "" {
				of(d.ID, e.Seq).events++
			}
		case agent.EventInterrupted:
			of(d.Message, e.Seq).cut = true
		case agent.EventVerdict:
			var v agent.Verdict
			_ = json.Unmarshal(d.Verdict, &v)
			switch t := of(v.ID, e.Seq); d.Judgement {
			case "valid":
				if t.events, t.valid = t.events+1, t.valid+1; v.Verdict == agent.TakeBack {
					letGo(waiting[v.Gate])
				}
			case "void":
				t.events, t.void = t.events+1, t.void+1
			default:
				t.waits++
				waiting[v.Gate] = append(waiting[v.Gate], t)
			}
		case agent.EventGateClosed:
			var gate string
			_ = json.Unmarshal(d.Gate, &gate)
			if d.Status == agent.GateVoid || d.Status == agent.GateWithdrawn {
				letGo(waiting[gate])
			}
		}
	}
	return out
}

func letGo(all []*taken) {
	for _, t := range all {
		t.let = true
	}
}

// verifyInputs compares what users were told with the journal: what was taken in is
// there once, however often it was sent, and does what its receipt says; what was
// refused is not there; nothing is there that nobody sent.
func (w *world) verifyInputs(r *run, events []agent.Event, steps []*step) {
	got := takings(events)
	r.inputs.mu.Lock()
	defer r.inputs.mu.Unlock()
	w.counts(r, steps, got)
	mine := map[string]bool{"m": true}
	for g := range r.answers {
		mine["v-"+g] = true
	}
	for _, in := range r.inputs.all {
		mine[in.id] = true
		t := got[in.id]
		if t == nil {
			t = &taken{}
		}
		if wrong := in.against(*t); wrong != "" {
			w.violate(lost, r.id, fmt.Sprintf("%s %s, sent %d times: %s", in.deed, in.id, in.times, wrong))
		}
		if t.events > 1 {
			w.violate(repeated, r.id, fmt.Sprintf("%s %s was taken in %d times", in.deed, in.id, t.events))
		}
	}
	for id := range got {
		if !mine[id] {
			w.violate(lost, r.id, fmt.Sprintf("the journal has an input %s, which nobody sent", id))
		}
	}
}

// against says what an input's answers and the journal do not agree about.
func (in *input) against(t taken) string {
	r, answered := in.first()
	switch {
	case !answered: // the run ended before anybody knew
		return ""
	case r.Status == agent.Refused:
		if t.events+t.waits > 0 {
			return fmt.Sprintf("it was refused (%s), and stands in the journal", r.Reason)
		}
		return ""
	case r.Status == agent.Repeated && in.cancels():
		return "" // another cancel was under way
	case t.events+t.waits == 0:
		return fmt.Sprintf("it was answered %s, and is not in the journal", r.Status)
	case r.Status == agent.KeptBack && t.valid+t.void == 0 && !t.let:
		return "it was kept, and never judged"
	case r.Status == agent.Accepted && !t.seq[r.Seq]:
		return fmt.Sprintf("its receipt names event %d, which is not its own", r.Seq)
	case r.Status == agent.Voided && (t.void != 1 || t.valid > 0), r.Status == agent.Accepted && t.void > 0:
		return fmt.Sprintf("it was answered %s, and judged valid %d and void %d times", r.Status, t.valid, t.void)
	case r.Took != nil && !in.cancels() && t.cut != slices.Contains([]agent.TookHow{agent.TookInterrupted, agent.TookRollingBack, agent.TookMerged}, r.Took.How):
		return fmt.Sprintf("it took effect as %s, and cut a turn short: %t", r.Took.How, t.cut)
	}
	return ""
}

func (in *input) cancels() bool { return slices.Contains(cancels, in.deed) }

// took is in a word what became of an input: by its receipt, and of a verdict by the
// journal where it waited.
func (in *input) took(t *taken) string {
	r, answered := in.first()
	switch {
	case !answered:
		return "unknown"
	case r.Status == agent.KeptBack && t != nil && t.valid > 0:
		return "accepted"
	case r.Status == agent.KeptBack && t != nil && t.void > 0:
		return "void"
	case r.Status == agent.KeptBack:
		return "kept, and let go"
	case r.Took != nil && r.Status == agent.Accepted:
		return string(r.Took.How)
	}
	return string(r.Status)
}
